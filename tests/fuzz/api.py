"""Unexpected arguments of the functions and classes of `batwatt`, one or two in each call."""

from __future__ import annotations

import inspect
import json
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

import batwatt as bw
import batwatt.files

from .files import PHASES, PLATFORM, SMALL, SWF
from .hostile import TEXTS, value

PERIOD = {
    "period_s": 1800,
    "processors": 4,
    "jobs": [{"id": "a", "processors": 3, "checkpoint_s": 120, "recovery_s": 90, "state": "running"}],
}
CAMPAIGN = """
name: one
comparisons:
  few:
    scheduler: powercap
    platforms: [{machines: 4, cores: 1}]
    workloads: [jobs.json]
    envelopes: [cap.csv]
    options: {order: fcfs, response: none}
"""
FILES = {
    "jobs.json": json.dumps(SMALL),
    "jobs.swf": SWF.decode(),
    "cap.csv": "time_s,power_w\n0,400\n3600,200\n",
    "nl.csv": "time,carbon_intensity_avg\n" + "".join(f"2024-07-01T{hour:02d}:00Z,{hour}\n" for hour in range(24)),
    "phases.json": json.dumps(PHASES),
    "study.yaml": CAMPAIGN,
    "hosts.xml": PLATFORM.decode(),
}
TABLE = {"submission_time_s": [0, 10, 20], "length_s": [100, 50, 20.5], "hosts": [1, 2, 1]}
LOG = ("begin", "tz", "width", "fields")
batwatt.files.PEER_S = 0.2


def episode(action: Any = 0, options: Any = None, **arguments: Any) -> Any:
    """Play an episode of the gym's environment, with one action that may be odd; nothing without Gymnasium."""
    if find_spec("gymnasium") is None:
        return None
    from batwatt.gym import BatwattEnv

    env, over, step = BatwattEnv(**arguments), False, 0
    env.reset(seed=1, options=options)
    while not over and step < 300:
        _, _, over, _, _ = env.step(action if step == 3 else 0)
        env.action_masks(), env.values()
        step += 1
    return env


def calls() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return name -> a function, and all of its arguments, with which it works in the folder of FILES."""
    hosts, cap = bw.Platform.machines(4, 2), bw.Series((0, 1800), (80, 60))
    run = {"platform": hosts, "workload": "jobs.json"}
    rules = {"order": "fcfs", "backfilling": "easy", "response": "none"}
    two = {"a": bw.Case("powercap", rules), "b": bw.Case("varcap")}
    carbon = {"scheduler": "carbon", "carbon": "nl.csv", "options": {"policy": "immediate", "slot_s": 60}}
    gym = {"observation": ("queue_length", "job_hosts"), "reward": {"makespan_s": 0.5}, "queue": 3, "action": 0}
    small = {"jobs_per_hour": 4, "hours": 2, "mean_runtime_s": 600.0, "sigma": 1.0, "max_servers": 4}
    log = dict(zip(LOG, (None, "UTC", "cpus", ()), strict=True))
    usual: dict[str, tuple[Any, dict[str, Any]]] = {
        "Platform.read": (bw.Platform.read, {"path": "hosts.xml"}),
        "Platform.machines": (bw.Platform.machines, {"count": 4}),
        "Workload.read": (bw.Workload.read, {"path": "jobs.json"}),
        "Workload.read trace": (bw.Workload.read, {"path": "jobs.swf", "window": (0, 100), "hosts": 4, **log}),
        "Workload.synthetic": (bw.Workload.synthetic, small),
        "Workload.from_frame": (bw.Workload.from_frame, {"frame": pd.DataFrame(TABLE)}),
        "Series": (bw.Series, {"times_s": (0, 10), "values": (1, 2), "name": "power_w", "source": "x"}),
        "read_series": (bw.read_series, {"path": "cap.csv"}),
        "read_signal": (bw.read_signal, {"path": "nl.csv"}),
        "simulate": (bw.simulate, {**run, "scheduler": "powercap", "options": rules}),
        "simulate envelope": (bw.simulate, {**run, "scheduler": "powercap", "options": rules, "envelope": cap}),
        "simulate carbon": (bw.simulate, {**run, **carbon}),
        "compare": (bw.compare, {**run, "envelope": cap, "cases": two, "workers": 1, "samples": 2}),
        "Case": (compared, {"scheduler": "powercap", "options": rules, "follow": "mean"}),
        "study": (bw.study, {"declared": "study.yaml", "results": "results", "workers": 1}),
        "plan_checkpoints": (bw.plan_checkpoints, {"instance": PERIOD}),
        "plan_carbon": (bw.plan_carbon, {"job": PHASES, "signal": "nl.csv", "deadline_s": 43200.0}),
        "BatwattEnv": (episode, {"platform": hosts, "workload": "jobs.json", **gym}),
        "optimum": (bw.optimum, {**run, "envelope": cap, "effort": 1}),
    }
    return {name: (function, defaults_of(function) | arguments) for name, (function, arguments) in usual.items()}


def defaults_of(function: Any) -> dict[str, Any]:
    """Return the arguments of a function that have a default."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def compared(**case: Any) -> Any:
    """Compare one case."""
    return bw.compare(bw.Platform.machines(4), "jobs.json", bw.Series((0,), (80,)), {"a": bw.Case(**case)})


def write_files(folder: Path) -> None:
    """Write the files that `calls` name."""
    for name, content in FILES.items():
        (folder / name).write_text(content)


def attempt(rng: Random, folder: Path) -> None:
    """Call something with one or two arguments changed, and print its result."""
    write_files(folder)
    table = calls()
    name = rng.choice(sorted(table))
    function, arguments = table[name]
    for argument in rng.sample(sorted(arguments), min(len(arguments), rng.choice((0, 1, 1, 1, 2)))):
        usual, odd = arguments[argument], value(rng)
        inner = isinstance(usual, dict) and rng.random() < 0.7
        arguments[argument] = {**usual, rng.choice([*usual, *TEXTS]): odd} if inner else odd
    if name == "optimum" and not (isinstance(arguments["effort"], int) and arguments["effort"] < 2):
        # it may search as long as it is told to
        arguments["effort"] = 1
    repr(function(**arguments))
