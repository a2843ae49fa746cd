"""Test a part of your own: the laws of the project on random jobs, in one call.

    from batwatt.testing import check_part
    check_part("order", "patience", plugin="mine.py")

The laws of a simulated part, on the embedded engine, with random jobs and a random envelope or capacity:

1. no host runs two jobs at a time, and each job has as many hosts as it asks for;
2. no job starts before its submission, and none is forgotten: it completes, is killed, or is rejected;
3. the same jobs give the same record, twice.

Further laws: the work that counts under a victim rule adds up to the length of the job; the key of an order is the same
for a job alone and in vectors, and constant in time if the order is time-invariant; a carbon policy runs a job within
its window, in order, and for its length; the bound of a power check does not fall with more jobs; a predictor returns
figures of a power, and changes its prediction only when a run has ended.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.model.hostset import from_text
from batwatt.model.platform import MachineSpec, Platform, SpeedMachineSpec, machines_platform
from batwatt.model.record import Record
from batwatt.model.timeline import Timeline
from batwatt.model.work import ShiftJob, constant
from batwatt.model.workload import POWER_W, JobPower, Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.run.find_scheduler import load_plugins, scheduler_class
from batwatt.schedulers.carbon.policies import PolicyInputs, StartWindow, policy_named
from batwatt.schedulers.jobpower.power import Load, Submitted
from batwatt.scheduling.orders import Columns
from batwatt.scheduling.registry import make
from batwatt.scheduling.victims import NextRun, Victim, next_run

SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "order": ("powercap", "varcap", "jobpower"),
    "backfilling": ("powercap", "varcap", "jobpower"),
    "node_selection": ("powercap", "varcap", "jobpower", "carbon"),
    "response": ("powercap",),
    "victim": ("powercap", "riskaware", "varcap", "jobpower"),
    "termination": ("varcap",),
    "mapping": ("varcap",),
    "preemption": ("varcap",),
    "strategy": ("riskaware",),
    "power_check": ("jobpower",),
    "predictor": ("jobpower",),
}
"""Kind of part -> the schedulers with an option of this kind."""
MACHINES, CORES = 4, 2


class LawError(AssertionError):
    """A part breaks a law; the message has the law and the seed."""


def check_part(kind: str, choice: object, *, plugin: str | Path | None = None, cases: int = 20, seed: int = 0) -> None:
    """Check the laws on `cases` random instances from `seed` on.

    `choice` is the value of an option of that kind: a name, or an object with its name and parameters (of a policy, a
    name). `plugin` is a file that registers the part. Raises LawError if a law does not hold, InputError for an unknown
    part, and any error of the part.
    """
    if plugin is not None:
        load_plugins([Path(plugin)])
    if kind not in (*SYSTEMS, "policy"):
        raise ValueError(f"kind must be policy or one of {', '.join(SYSTEMS)}, got {kind!r}")
    systems = SYSTEMS.get(kind, ())
    if kind == "backfilling" and make(kind, choice).blocked is None:
        systems = ("powercap",)
    own: dict[str, Callable[..., None]] = {
        "policy": _policy, "victim": _victim, "order": _order, "power_check": _power_check, "predictor": _predictor
    }  # fmt: skip
    laws = [partial(own[kind], choice)] if kind in own else []
    laws += [partial(_simulated, system, kind, choice) for system in systems]
    for law, number in product(laws, range(seed, seed + cases)):
        try:
            law(np.random.default_rng(number))
        except LawError as error:
            raise LawError(f"{kind} {choice!r}, seed {number}: {error}") from None


def _law(holds: bool, text: str) -> None:
    if not holds:
        raise LawError(text)


def _victim(choice: object, rng: np.random.Generator) -> None:
    rule, length_s, useful_s = make("victim", choice), float(rng.integers(1, 2000)), 0.0
    run = NextRun(length_s)
    for ran_s in rng.integers(0, 1000, 8).astype(np.float64).tolist():
        if ran_s >= run.run_s:
            break
        following = next_run(rule, Victim(length_s, run.saved_s, run.recovery_s, ran_s))
        if following is None:
            return
        if following.kind or following.overhead_s:
            useful_s += ran_s - following.overhead_s
        run = following
    total_s = useful_s + run.run_s - run.recovery_s
    _law(abs(total_s - length_s) <= 1e-3, f"{total_s:g} s of work count of a job of {length_s:g} s")


# simulated parts --------------------------------------------------------------------------------------------------


def _simulated(system: str, kind: str, choice: object, rng: np.random.Generator) -> None:
    power = system in ("powercap", "jobpower")
    speeds = system == "powercap"
    platform = machines_platform((SpeedMachineSpec if speeds else MachineSpec)(MACHINES, CORES, off_s=5.0, on_s=20.0))
    workload = _jobs(rng, platform.fastest_flops if speeds else 0.0)
    options: dict[str, Any] = {kind: choice}
    if power:
        most_w = sum(host.pstates[host.initial_pstate].full_w for host in platform.hosts)
        options |= {"platform": platform, "envelope": _series(rng, 0.2 * most_w, most_w, most_w)}
        options |= {} if kind == "response" or not speeds else {"response": "idfs"}
        options |= {"excess": "kill-latest"} if system == "jobpower" else {}
    else:
        options |= {"capacity": _series(rng, 1, MACHINES + 1, MACHINES, whole=True), "switch": False}
    if system == "carbon":
        signal = Timeline.regular(rng.uniform(50.0, 500.0, 600).tolist(), step_s=60.0)
        options |= {"signal": signal, "policy": "oracle", "wait_h": [0.2], "replan_h": 0.05}
    first, second = (_record(system, dict(options), platform, workload) for _ in range(2))
    _law(first == second, f"{system}: two runs of the same jobs differ")
    _check_record(first, workload, system)


def _record(system: str, options: dict[str, Any], platform: Platform, workload: Workload) -> Record:
    scheduler = scheduler_class(system)(options)
    # its messages on random jobs are not of interest
    scheduler.logger = logging.Logger("batwatt.testing", logging.CRITICAL)
    again = scheduler.needs_dynamic_jobs
    config = EngineConfig(energy=True, dynamic_jobs=again, profile_reuse=again)
    return simulate(Engine(platform, [workload], config), scheduler)


def _check_record(record: Record, workload: Workload, system: str) -> None:
    events: list[tuple[float, int, int]] = []
    seen = set()
    for row in record.jobs:
        seen.add(row.job_id.partition("#")[0])
        if row.starting_time is None or row.finish_time is None:
            continue
        hosts, name = from_text(row.allocated_resources), f"{system}: job {row.job_id}"
        wanted = row.requested_number_of_resources
        _law(hosts.bit_count() == wanted, f"{name} asks for {wanted} hosts and has {row.allocated_resources}")
        _law(row.starting_time >= row.submission_time, f"{name} starts before its submission")
        if row.finish_time > row.starting_time:
            # ends come before starts
            events += [(row.finish_time, 0, hosts), (row.starting_time, 1, hosts)]
    busy = 0
    for time_s, starts, hosts in sorted(events):
        _law(not (starts and busy & hosts), f"{system}: a host runs two jobs at {time_s:g} s")
        busy ^= hosts
    missing = {job.name for job in workload.jobs} - seen
    _law(not missing, f"{system}: job {min(missing, default='')} is neither run nor rejected")


def _jobs(rng: np.random.Generator, speed_flops: float) -> Workload:
    """Return random jobs: delays, and flops where there are several speeds."""
    count = int(rng.integers(1, 16))
    rows, profiles = [], {}
    for number in range(count):
        length_s = float(rng.integers(1, 200))
        profiles[f"p{number}"] = {"type": "delay", "delay": length_s}
        if speed_flops and rng.random() < 0.7:
            profiles[f"p{number}"] = {"type": "parallel_homogeneous", "cpu": length_s * speed_flops, "com": 0}
        rows.append({
            "id": str(number), "profile": f"p{number}", "subtime": float(rng.integers(0, 300)),
            "res": int(rng.integers(1, CORES + 1)), "walltime": 3 * length_s, "user": f"u{number % 3}",
            "power_w": float(rng.integers(1, 30)), "mean_power_estimation": 1.0,
        })  # fmt: skip
    return parse_workload({"nb_res": MACHINES * CORES, "jobs": rows, "profiles": profiles}, "w0", "batwatt.testing")


def _series(rng: np.random.Generator, low: float, high: float, last: float, *, whole: bool = False) -> Timeline:
    """Return random steps of 50 s, then a value that is enough for all jobs."""
    count = int(rng.integers(1, 12))
    values = rng.integers(int(low), int(high), count).astype(np.float64) if whole else rng.uniform(low, high, count)
    return Timeline(tuple(50.0 * i for i in range(count + 1)), (*values.tolist(), float(last)))


# power of jobs ---------------------------------------------------------------------------------------------------


def _load(rng: np.random.Generator) -> Load:
    mean_w = float(rng.uniform(0.0, 500.0))
    return Load(
        float(rng.uniform(mean_w, 2000.0)), mean_w, float(rng.uniform(0.0, 1e4)), float(rng.uniform(mean_w, 900.0))
    )


def _power_check(choice: object, rng: np.random.Generator) -> None:
    check, loads = make("power_check", choice), [_load(rng) for _ in range(6)]
    bounds = [check.bound_w(Load.of(loads[:count])) for count in range(len(loads) + 1)]
    _law(all(bound >= 0.0 for bound in bounds), f"it takes jobs to draw {min(bounds):g} W")
    _law(bounds == sorted(bounds), "with one job more it takes all to draw less")


def _predictor(choice: object, rng: np.random.Generator) -> None:
    predictor = make("predictor", choice)
    predictor.node_w, predictor.idle_w = 500.0, 100.0
    for number in range(12):
        watts = float(rng.uniform(100.0, 500.0))
        fields = {"user": f"u{rng.integers(3)}", POWER_W: watts, "mean_power_estimation": watts}
        hidden = {name: value for name, value in fields.items() if predictor.oracle or name != POWER_W}
        job = Submitted(f"w0!{number}", int(rng.integers(1, 4)), hidden)
        prediction = predictor.predict(job)
        good = 0.0 <= prediction.mean_w <= prediction.max_w < math.inf and 0.0 <= prediction.variance_w2 < math.inf
        _law(good, f"{prediction} is not a power: 0 <= mean <= maximum, and a variance >= 0")
        _law(predictor.predict(job) == prediction, "its second prediction for the same job differs")
        predictor.learn(job, JobPower(job.hosts * watts, 0.1 * watts, 1.2 * job.hosts * watts))


# orders and carbon policies ---------------------------------------------------------------------------------------


def _order(choice: object, rng: np.random.Generator) -> None:
    order = make("order", choice)
    now_s = 1000.0
    columns = Columns(
        rng.integers(0, 900, 9).astype(np.float64), rng.integers(1, 900, 9).astype(np.float64), rng.integers(1, 9, 9)
    )
    together = np.asarray(order.key(columns, now_s), dtype=np.float64) + np.zeros(9)
    later = np.asarray(order.key(columns, now_s + 500.0), dtype=np.float64) + np.zeros(9)
    for i in range(9):
        alone = order.key(Columns(columns.submit_s[i], columns.walltime_s[i], columns.hosts[i]), now_s)
        _law(math.isclose(float(alone), float(together[i])), "the key of a job is another one among vectors")
    _law(not order.time_invariant or np.array_equal(together, later), "it is time_invariant, but its keys change")


def _policy(choice: object, rng: np.random.Generator) -> None:
    policy = policy_named(str(choice))
    job = ShiftJob("1", float(rng.integers(0, 100_000)), constant(float(rng.integers(600, 20_000)), 100.0), 1)
    window = StartWindow(job.arrival_s, float(rng.integers(0, 40_000)))
    signal = Timeline.regular(rng.uniform(50, 500, 96).tolist())
    intervals = policy.choose(job, window, signal, PolicyInputs())
    _law(bool(intervals), "it plans nothing")
    edges = [edge for interval in intervals for edge in interval]
    _law(edges == sorted(edges), f"its intervals are not in order: {intervals}")
    slack_s = 1e-3
    _law(edges[0] >= window.arrival_s - slack_s, f"it starts at {edges[0]:g} s, before the arrival")
    _law(edges[-1] <= window.deadline_s(job) + slack_s, f"it ends at {edges[-1]:g} s, after the deadline")
    total_s = math.fsum(end - begin for begin, end in intervals)
    _law(abs(total_s - job.length_s) <= slack_s, f"it runs for {total_s:g} s of {job.length_s:g} s")
    _law(policy.interrupting or len(intervals) == 1, "it has several intervals, but is not interrupting")


__all__ = ["LawError", "check_part"]
