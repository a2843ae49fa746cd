"""Unexpected arguments of the functions and classes of `batwatt`, one or two in each call."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import batwatt as bw
import batwatt.files

from .mutate import number, text, value

SIGNAL = "time,carbon_intensity_avg\n" + "".join(f"2024-07-01T{hour:02d}:00Z,{300 + 10 * hour}\n" for hour in range(24))
JOBS = {
    "nb_res": 8,
    "jobs": [{"id": str(n), "subtime": 60 * n, "res": 1 + n % 3, "walltime": 900, "profile": "p"} for n in range(6)],
    "profiles": {"p": {"type": "delay", "delay": 300}},
}
PERIOD = {
    "period_s": 1800,
    "processors": 4,
    "jobs": [
        {"id": "a", "processors": 3, "checkpoint_s": 120, "recovery_s": 90, "state": "running"},
        {"id": "b", "processors": 2, "checkpoint_s": 60, "recovery_s": 90, "state": "stopped"},
    ],
}
PHASES = {
    "startup": [{"name": "boot", "duration": 60, "power": 100}],
    "work": [{"name": "w", "duration": 3600, "power": 200}],
}
CAMPAIGN = """
name: one
studies:
  few:
    scheduler: powercap
    platforms: [{machines: 4, cores: 1}]
    workloads: [jobs.json]
    envelopes: [cap.csv]
    options: {order: fcfs, response: none}
"""
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="None">
<host id="master_host" speed="1Gf"/>
<host id="a" speed="1Gf" core="1"><prop id="wattage_per_state" value="10:20:30"/></host>
</zone></platform>
"""


batwatt.files.PEER_S = 0.2


class Files:
    """Small good inputs in a folder, and odd places."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, content in {
            "jobs.json": json.dumps(JOBS),
            "jobs.csv": "job_id,submission_time_s,runtime_s,hosts\n1,0,100,1\n2,5,50,2\n",
            "jobs.swf": "; a log\n1 0 0 100 2 -1 -1 2 200 -1 1 1 1 1 1 -1 -1 -1\n",
            "cap.csv": "time_s,power_w\n0,400\n3600,200\n",
            "machines.csv": "time_s,machines\n0,4\n3600,2\n",
            "nl.csv": SIGNAL,
            "period.json": json.dumps(PERIOD),
            "phases.json": json.dumps(PHASES),
            "study.yaml": CAMPAIGN,
            "hosts.xml": PLATFORM,
            "empty": "",
        }.items():
            (folder / name).write_text(content)
        (folder / "folder").mkdir()
        os.mkfifo(folder / "pipe")
        os.mkfifo(folder / "pipe.csv")

    def path(self, rng: Random) -> Any:
        """A place that may be read or written by mistake."""
        names = sorted(path.name for path in self.folder.iterdir())
        odd = ["no.csv", "folder/x", "jobs.json/x", "x" * 300, "pipe.csv", "pipe", "folder", "a\0b", "\ud800.csv", ""]
        place = self.folder / rng.choice(names + odd)
        outside = ("/dev/zero", "/dev/null", "/dev/full", "/", "/proc/self/mem", ".")
        return rng.choice((place, str(place), rng.choice(outside), Path(rng.choice(outside)), b"jobs.csv"))


def odd(rng: Random, files: Files) -> Any:
    """Any object."""
    kind = rng.randrange(8)
    if kind < 3:
        return value(rng)
    if kind == 3:
        return files.path(rng)
    if kind == 4:
        return rng.choice((np.float64, np.int64, np.float32, np.bool_, np.str_, np.array))(rng.choice((1, 0)))
    jobs, signal = files.folder / "jobs.json", files.folder / "nl.csv"
    plain = [
        object(), {1: 2}, {"a": {"b": object()}}, [object()], b"x", bytearray(3), print, {1, 2}, iter([1, 2]), range(3),
        (n for n in (1, 2)), 1 + 2j, decimal.Decimal("NaN"), decimal.Decimal("1e999999"), Ellipsis, bw,
        datetime.datetime(2024, 7, 1), datetime.timedelta(1), itertools.repeat(1, 10), Counter("aab"),
        type("Text", (str,), {})("x"), NotEqual(), Unprintable(),
    ]  # fmt: skip
    tables = [
        pd.Timestamp("2024"), pd.NaT, pd.NA, pd.DataFrame(), pd.Series([1.0, 2.0]), pd.DataFrame({"a": [1]}),
        np.array([[1.0, np.nan]]), np.zeros((0,)), np.array(object()),
    ]  # fmt: skip
    ours = [bw.Series((0,), (1,)), bw.Series((0, 5), (300, 100)), bw.Case("powercap"), bw.Case(3, 4, 5)]
    read = [lambda: bw.Workload.read(jobs), lambda: bw.read_signal(signal), lambda: bw.Platform.machines(2)]
    made = [*plain, *tables, *ours]
    number = rng.randrange(len(made) + len(read))
    return made[number] if number < len(made) else read[number - len(made)]()


def other(rng: Random, files: Files, usual: Any) -> Any:
    """An odd value in the place of a usual one, mostly of its type."""
    if rng.random() < 0.6:
        if isinstance(usual, int | float) and not isinstance(usual, bool):
            return number(rng)
        if isinstance(usual, str):
            return text(rng)
        if isinstance(usual, Path):
            return files.path(rng)
    return odd(rng, files)


class NotEqual:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    __hash__ = None  # type: ignore[assignment]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


def frame(rng: Random, files: Files) -> Any:
    """A table of jobs with a few odd cells or columns."""
    rows = 4
    table: dict[Any, list[Any]] = {
        "submission_time_s": [0, 10, 20, 30], "length_s": [100, 50, 20.5, 10], "hosts": [1, 2, 3, 1],
    }  # fmt: skip
    more = ["id", "estimate_s", "memory", "use", "depends_on", "user", "power_w", "start_s", "profile", "walltime_s"]
    more.append("checkpoint_s")
    for name in rng.sample(more, rng.randrange(4)):
        table[name] = [rng.choice((1, "1", None, 2.5))] * rows
    for _ in range(rng.randrange(3)):
        name = rng.choice([*table, text(rng), 3])
        table.setdefault(name, [1] * rows)[rng.randrange(rows)] = odd(rng, files)
    if rng.random() < 0.2:
        table.pop(rng.choice(list(table)))
    try:
        return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in table.items()}).infer_objects()
    except UnicodeEncodeError:
        # pandas refuses halves of surrogate pairs by itself
        return pd.DataFrame()


def calls(files: Files) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Name -> a function, and arguments with which it works."""
    at = files.folder
    hosts, jobs, cap = bw.Platform.machines(4, 2), at / "jobs.json", bw.Series((0, 1800), (80, 60))
    run = {"platform": hosts, "workload": jobs}
    options = {"order": "fcfs", "backfilling": "easy", "response": "none"}
    none = dict.fromkeys(("envelope", "capacity", "carbon", "price", "window", "seed", "events", "progress", "energy"))
    two = {"a": bw.Case("powercap", options), "b": bw.Case("varcap")}
    return {
        "Platform.read": (bw.Platform.read, {"path": at / "hosts.xml", "master": "master_host", "mmax": 0}),
        "Platform.machines": (bw.Platform.machines, {"count": 4, "cores": 2, "watts": 20.0, "speed": "1Gf"}),
        "Workload.read": (bw.Workload.read, {"path": jobs}),
        "Workload.read trace": (
            bw.Workload.read,
            {"path": at / "jobs.swf", "unit": "s", "window": (0, 100), "hosts": 4, "begin": None, "tz": "UTC", "width": "cpus", "fields": ()},  # noqa: E501
        ),
        "Workload.synthetic": (
            bw.Workload.synthetic,
            {"seed": 1, "jobs_per_hour": 4, "hours": 2, "mean_runtime_s": 600.0, "sigma": 1.0, "max_servers": 4},
        ),
        "Workload.from_frame": (
            bw.Workload.from_frame,
            {"frame": pd.DataFrame({"submission_time_s": [0], "length_s": [9], "hosts": [1]}), "window": None, "hosts": None, "source": "t"},  # noqa: E501
        ),
        "Series": (bw.Series, {"times_s": (0, 10), "values": (1, 2), "name": "power_w", "source": "x"}),
        "read_series": (bw.read_series, {"path": at / "cap.csv"}),
        "read_signal": (
            bw.read_signal,
            {"path": at / "nl.csv", "kind": "lifecycle", "tz": "UTC", "gaps": "hold", "max_gap_s": 9.0, **dict.fromkeys(("column", "time_column", "zone", "begin", "end", "days", "period_s", "wanted", "unit", "dates"))},  # noqa: E501
        ),
        "simulate": (bw.simulate, {**run, "scheduler": "powercap", "options": options, **none, "unit": "s", "long_s": 9.0, "plugins": ()}),  # noqa: E501
        "simulate envelope": (bw.simulate, {**run, "scheduler": "powercap", "options": options, "envelope": cap}),
        "simulate carbon": (bw.simulate, {**run, "scheduler": "carbon", "carbon": at / "nl.csv", "options": {"policy": "immediate", "slot_s": 60}}),  # noqa: E501
        "compare": (
            bw.compare,
            {**run, "envelope": cap, "cases": two, "capacity": None, "carbon": None, "price": None, "seeds": (0,), "workers": 1, "lenient": None, "samples": 2, "window": None, "keep": None},  # noqa: E501
        ),
        "Case": (lambda **case: bw.compare(**run, envelope=cap, cases={"a": bw.Case(**case)}), {"scheduler": "powercap", "options": options, "limit": "mean"}),  # noqa: E501
        "campaign": (bw.campaign, {"declared": at / "study.yaml", "results": at / "results", "only": (), "workers": 1, "dask": None, "progress": None}),  # noqa: E501
        "plan_checkpoints": (bw.plan_checkpoints, {"instance": PERIOD, "method": "dp", "min_yield": 0.0, "refill": False}),  # noqa: E501
        "plan_carbon": (
            bw.plan_carbon,
            {"job": PHASES, "signal": at / "nl.csv", "deadline_s": 43200.0, "start_s": 0.0, "price": None, "carbon_weight": 1.0, "price_weight": 0.0, "slot_s": 600.0, "max_starts": 3, "checkpoints": False, "cpus": 1},  # noqa: E501
        ),
        "BatwattEnv": (
            episode,
            {"platform": hosts, "workload": [jobs, str(at / "jobs.swf")], "observation": ("queue_length", "job_hosts"), "reward": {"makespan_s": 0.5}, "queue": 3, "envelope": None, "capacity": None, "victim": "resubmit", "every_event": False, "render_mode": None, "action": 0, "options": {"workload": 0}},  # noqa: E501
        ),
        "optimum": (bw.optimum, {**run, "envelope": cap, "time_limit_s": None, "effort": 1, "seed": 0, "progress": None}),  # noqa: E501
    }  # fmt: skip


def prepare() -> None:
    """Compile the kernels of the optimum, as its first call in a fresh clone does."""
    with TemporaryDirectory() as folder:
        function, arguments = calls(Files(Path(folder)))["optimum"]
        function(**arguments)


def attempt(rng: Random, folder: Path) -> None:
    """Call something with one or two arguments changed, and use what it returns."""
    files = Files(folder)
    table = calls(files)
    name = rng.choice(sorted(table))
    function, arguments = table[name]
    if name == "Workload.from_frame" and rng.random() < 0.8:
        arguments["frame"] = frame(rng, files)
    else:
        for argument in rng.sample(sorted(arguments), min(len(arguments), rng.choice((0, 1, 1, 1, 2)))):
            usual = arguments[argument]
            if isinstance(usual, dict) and rng.random() < 0.7:
                arguments[argument] = {**usual, rng.choice([*usual, text(rng)]): odd(rng, files)}
            elif isinstance(usual, tuple) and usual and rng.random() < 0.5:
                arguments[argument] = (*usual[:-1], odd(rng, files))
            else:
                arguments[argument] = other(rng, files, usual)
    if name == "optimum" and not (isinstance(arguments["effort"], int) and arguments["effort"] < 2):
        # it may search as long as it is told to
        arguments["effort"] = 1
    use(rng, files, function(**arguments))


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


def use(rng: Random, files: Files, result: Any) -> None:
    """Show what was returned, and call its methods with odd arguments."""
    repr(result)
    if isinstance(result, bw.Workload):
        bw.Workload.from_frame(result.frame())
    if isinstance(result, bw.Result) and rng.random() < 0.3:
        method, arguments = rng.choice(
            (("save", (odd(rng, files),)), ("_repr_html_", ()), ("save", (files.path(rng),)))
        )
        getattr(result, method)(*arguments)
    if type(result).__name__ == "Comparison" and rng.random() < 0.5:
        choice = rng.randrange(3)
        if choice == 0:
            result.save(odd(rng, files), by=rng.choice((("size",), odd(rng, files))), command=odd(rng, files))
        elif choice == 1:
            result.groups(odd(rng, files))
        else:
            result.save(files.path(rng))
