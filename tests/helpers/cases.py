"""Cases of every system, and of the gym, drawn by hypothesis; a new part is drawn once it is registered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from builders import envelope, machine, workload_of
from hypothesis import strategies as st
from laws import COMPLETED, Case, Job, Observed, Victim

from batwatt.model.platform import Host, MachineSpec, Platform, PState, SpeedMachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.checkpoint import Checkpoint
from batwatt.schedulers.jobpower import Jobpower
from batwatt.schedulers.multifactor import Multifactor
from batwatt.schedulers.oversubscribed import Oversubscribed
from batwatt.schedulers.planned import Planned
from batwatt.schedulers.planned.scheduler import PlannedJob, PlannedState, SchedulePlan
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.replay import Replay
from batwatt.schedulers.riskaware import Riskaware
from batwatt.schedulers.riskaware.scheduler import LOST
from batwatt.schedulers.varcap import Varcap
from batwatt.scheduling.registry import names

# what cases are made of ---------------------------------------------------------------------------------------------

MACHINES, CORES, MEMORY = 4, 3, 8.0
SERVERS = machine(3, 2)
SIGNAL = Timeline.regular([300.0, 80.0, 500.0, 120.0, 60.0, 400.0, 200.0] * 40)
UNLIKE = Platform(
    tuple(
        Host(i, f"h{i}", (PState(10.0, 20.0, 25.0, watts),), has_power=True)
        for i, watts in enumerate((100.0, 100.0, 60.0, 60.0, 80.0))
    )
)
"""Hosts of one speed that draw 20 W idle."""
NODES = names("node_selection")
BEGIN_S = 1000.0
"""Of a window before which jobs may have begun."""

tens = st.integers(1, 30).map(lambda count: 10.0 * count)
dates = st.integers(0, 60).map(lambda count: 10.0 * count) | st.floats(0, 600).map(lambda x: round(x, 3))
times = tens | st.floats(1, 300).map(lambda x: round(x, 2))
steps = st.sampled_from([50.0, 37.5, 100.0])
ends = st.none() | st.integers(1, 80).map(lambda count: 10.0 * count)
factors = st.none() | st.floats(0.3, 4.0).map(lambda x: round(x, 2))
kinds = st.sampled_from(["delay", "delay", "flops"])


def job_of(number: int, at: float, hosts: int, run_s: float, walltime_s: float | None = None, **fields: Any) -> Job:
    """A job that lasts `run_s` s; `flops`: of a host at its fastest, else a delay."""
    speed = fields.pop("flops", None)
    profile = {"type": "delay", "delay": run_s}
    if speed is not None:
        profile = {"type": "parallel_homogeneous", "cpu": run_s * speed, "com": 0}
    row = {"id": str(number), "subtime": at, "res": hosts, "profile": f"p{number}", "_profile": profile, **fields}
    return row if walltime_s is None else row | {"walltime": walltime_s}


def many(rows: st.SearchStrategy[Any], most: int, least: int = 0) -> st.SearchStrategy[list[Any]]:
    """Lists of rows that are long more often than not."""
    return st.sampled_from([least, most // 2, most // 2]).flatmap(
        lambda count: st.lists(rows, min_size=count, max_size=most)
    )


def lasting(values: st.SearchStrategy[Any], enough: float) -> st.SearchStrategy[list[Any]]:
    """Values by time, the last of which are enough more often than not."""
    return st.builds(lambda some, last: some + last, many(values, 10, 1), st.sampled_from([[], [enough], [enough]]))


WALLTIMES = [{"name": "walltime", "otherwise_s": 70.0}]
PREDICTIONS = [{"name": name, "otherwise_s": 70.0} for name in ("recent", "regression")]
"""Estimates of run times."""


@st.composite
def mixed_jobs(
    draw,
    platform: Platform,
    most: int = 14,
    kinds=kinds,
    factors=factors,
    times=times,
    dates=dates,
    least=0,
):
    """Delays and flops of three users on 1 host, up to all hosts of a machine, and now and then too many."""
    hosts = len(platform)
    widths = st.sampled_from([*range(1, CORES + 1)] * 3) | st.integers(1, hosts + 1)
    rows = st.tuples(dates, widths, times, factors, kinds, st.integers(0, 2))
    made = []
    for i, (at, width, run_s, factor, kind, user) in enumerate(draw(many(rows, most, least))):
        walltime_s = None if factor is None else round(run_s * factor + 1.0, 3)
        flops = {"flops": platform.fastest_flops} if kind == "flops" else {}
        made.append(job_of(i, at, width, run_s, walltime_s, user=f"u{user}", **flops))
    return tuple(made)


def series(values: Iterable[float], step_s: float, begin_s: float = 0.0) -> Timeline:
    """Machines by time: a value for each step, the first from 0 s on."""
    values = tuple(map(float, values))
    return Timeline((0.0, *(begin_s + step_s * i for i in range(1, len(values)))), values, "machines")


counts = lasting(st.integers(0, MACHINES) | st.integers(2, MACHINES), MACHINES)
watts = lasting(st.floats(0, 700).map(lambda x: round(x, 1)), 700.0)
capacities = st.builds(series, counts, steps)
seconds = st.sampled_from([0.0, 7.0, 60.0])
victims_that_stay = st.one_of(
    st.just("resubmit"),
    st.just("lose"),
    st.builds(lambda c, r: {"name": "checkpoint", "checkpoint_s": c, "recovery_s": r}, seconds, seconds),
)
victims = victims_that_stay | st.builds(lambda r: {"name": "migrate", "cost_s": r}, seconds)


# powercap, planned, jobpower, replay, multifactor -------------------------------------------------------------------


@st.composite
def powercap(draw, response: str) -> Case:
    """Servers of two kinds and several speeds, under caps that now and then let nothing run."""
    caps = draw(watts)
    optional = {
        "order": st.sampled_from(names("order")),
        "backfilling": st.sampled_from(names("backfilling")),
        "node_selection": st.sampled_from(NODES),
        "victim": victims,
        "work_estimate": st.sampled_from(["walltime", "learned", "exact"]),
        "run_times": st.sampled_from([{"name": "exact"}, *WALLTIMES, *PREDICTIONS]),
        "forecast_steps": st.integers(0, 3),
        "forecast_error": st.just(0.2),
    }
    if response == "none":
        optional = {name: part for name, part in optional.items() if not name.startswith("forecast")}
    options = draw(st.fixed_dictionaries({"response": st.just(response)}, optional=optional))
    options |= {"platform": SERVERS, "envelope": envelope(*caps, step=60.0)}
    cap = None if response == "none" else options["envelope"]
    return Case(Powercap, SERVERS, draw(mixed_jobs(SERVERS)), options, envelope=cap)


@st.composite
def planned(draw) -> Case:
    """A plan of jobs on any hosts, in any order; a server may sleep before the first of them."""
    jobs = draw(mixed_jobs(SERVERS))
    states, rows = [], []
    if draw(st.booleans()):
        host, at = str(draw(st.integers(0, 2))), draw(st.integers(0, 100))
        states = [PlannedState(time_s=at, hosts=host, pstate=3), PlannedState(time_s=at + 50.0, hosts=host, pstate=0)]
    for job in jobs:
        if job["res"] <= len(SERVERS) and draw(st.integers(0, 4)):
            first = draw(st.integers(0, len(SERVERS) - job["res"]))
            hosts = f"{first}-{first + job['res'] - 1}"
            start_s = 200.0 + draw(dates)
            rows.append(PlannedJob(id=f"w0!{job['id']}", start_s=start_s, run_s=1.0, hosts=hosts, pstates={hosts: 0}))
    planned_ids = {row.id.partition("!")[2] for row in rows}
    options = {"platform": SERVERS, "plan": SchedulePlan(states=tuple(states), jobs=tuple(rows))}
    return Case(Planned, SERVERS, jobs, options, hopeless=lambda run, job: job["id"] not in planned_ids)


@st.composite
def jobpower(draw) -> Case:
    """Jobs of which any power is told, under caps the last of which lets all hosts run."""
    platform = UNLIKE
    caps = draw(st.lists(st.integers(100, 400), min_size=1, max_size=6))
    optional = {
        "order": st.sampled_from(names("order")),
        "backfilling": st.sampled_from(names("backfilling")),
        "power_check": st.sampled_from(names("power_check")),
        "victim": victims,
    }
    fixed = {
        "predictor": st.sampled_from(names("predictor")),
        "excess": st.sampled_from(["keep", "kill-latest", "kill-latest"]),
    }
    options = draw(st.fixed_dictionaries(fixed, optional=optional))
    options |= {"platform": platform, "envelope": envelope(*map(float, caps), 1000.0, step=60.0)}
    host_w = draw(st.integers(20, 100))
    jobs = [
        job | {"queue": "q", **dict.fromkeys(("power_w", "mean_power_estimation"), host_w * job["res"])}
        for job in draw(mixed_jobs(platform))
    ]
    return Case(Jobpower, platform, tuple(jobs), options)


@st.composite
def replay(draw) -> Case:
    """Recorded starts of some jobs, on machines of several hosts."""
    platform = machines_platform(MachineSpec(MACHINES, CORES))
    jobs = [
        job | draw(st.just({}) | st.builds(lambda at: {"start_s": at}, dates)) for job in draw(mixed_jobs(platform))
    ]
    return Case(Replay, platform, tuple(jobs), {}, compact=False)


PARTITIONS = {
    "u0": {"hosts": "0-5", "max_time_s": 240, "max_nodes": 1, "priority_tier": 2},
    "u1": {"hosts": "4-11", "priority_job_factor": 3},
    "u2": {},
}
"""By user."""


@st.composite
def multifactor(draw) -> Case:
    """Jobs of three users with and without requests, in partitions that overlap."""
    platform = machines_platform(MachineSpec(MACHINES, CORES))
    optional = {
        "partitions": st.just(PARTITIONS),
        "fairshare": st.sampled_from(["classic", "fair-tree"]),
        "priority_decay_half_life_s": st.sampled_from([0.0, 100.0]),
        "priority_calc_period_s": st.sampled_from([1.0, 45.0]),
        "priority_favor_small": st.booleans(),
        "default_queue_depth": st.integers(1, 3),
        "bf_interval_s": st.sampled_from([1.0, 30.0, 77.0]),
        "bf_window_s": st.sampled_from([60.0, 600.0]),
        "bf_resolution_s": st.sampled_from([1.0, 60.0]),
        "bf_max_job_test": st.integers(1, 5),
        "bf_max_job_user": st.integers(0, 2),
    }
    options = draw(st.fixed_dictionaries({}, optional=optional))
    estimates = st.just({}) | st.builds(lambda s: {"estimate_s": s}, times)
    jobs = [job | {"queue": job["user"]} | draw(estimates) for job in draw(mixed_jobs(platform))]
    return Case(Multifactor, platform, tuple(jobs), options, hopeless=hopeless_of_multifactor, compact=False)


def request_of(job: Job, otherwise_s: float) -> float:
    """The run time in s that a job requests."""
    return job.get("estimate_s", job.get("walltime", otherwise_s))


def hopeless_of_multifactor(run: Observed, job: Job) -> bool:
    """It is over a limit of its partition."""
    if "partitions" not in run.case.options:
        return False
    limit_s = request_of(job, 0.0)
    narrow = job["queue"] == "u0" and (limit_s > 240.0 or job["res"] > CORES)
    return narrow or (job["queue"] == "u1" and job["res"] > 8)


# varcap, oversubscribed, riskaware ----------------------------------------------------------------------------------

KNOWS = {
    "base": ("none", "class", "exact"),
    "migration": ("none", "class", "exact"),
    "longshort": ("class", "exact"),
}
"""What mappings may know of run times; others have it exact."""


@st.composite
def varcap(draw, mapping: str) -> Case:
    """Jobs with memory, estimates and dependencies, on machines that come and go."""
    platform = machines_platform(MachineSpec(MACHINES, CORES))
    capacity = draw(capacities)
    optional = {
        "seed": st.integers(0, 3),
        "nodes": st.sampled_from(["shared", "dedicated"]),
        "knowledge": st.sampled_from(KNOWS.get(mapping, ("exact",))),
        "foresight_h": st.sampled_from([0.0, 0.02, 1.0]),
        "foresight_noise": st.sampled_from([0.1, 1.0]),
        "foresight_missed": st.just(0.5),
        "machine_memory": st.just(MEMORY),
        "node_selection": st.sampled_from(NODES),
        "until_s": ends,
        # rows of `migrate`, which has a cost, look like those of the ideal migration
        "victim": victims_that_stay if mapping == "migration" else victims,
    }
    if mapping != "migration":
        optional["termination"] = st.sampled_from(names("termination"))
    if mapping not in ("jobsize-order", "twomode"):
        optional |= {"order": st.sampled_from(names("order")), "backfilling": st.sampled_from(names("backfilling"))}
    optional["run_times"] = st.sampled_from(WALLTIMES if mapping == "longshort" else [*WALLTIMES, *PREDICTIONS])
    if mapping == "longshort":
        optional["stable"] = st.integers(0, MACHINES)
    if mapping == "base" or mapping == "longshort":
        optional["preemption"] = st.builds(lambda most: {"name": "slowdown", "most": most}, st.integers(0, 3))
    options = draw(st.fixed_dictionaries({}, optional=optional))
    if options.get("victim") == "lose":
        options.pop("preemption", None)
    options |= {"mapping": mapping, "long_s": 100.0, "longest_s": 300.0, "capacity": capacity, "platform": platform}
    jobs = []
    for i, job in enumerate(draw(mixed_jobs(platform))):
        fields = draw(st.tuples(st.integers(0, 36), st.none() | times, st.lists(st.integers(0, 13), max_size=2)))
        others = sorted({str(n % i) for n in fields[2]}) if i else []
        job = job | {"memory": fields[0] / 4} | ({"depends_on": others} if others else {})
        jobs.append(job if fields[1] is None else job | {"estimate_s": fields[1]})
    promised = {"hopeless": hopeless_of_varcap, "stops": "preemption" in options}
    return Case(Varcap, platform, tuple(jobs), options, capacity=capacity, **promised)


def hopeless_of_varcap(run: Observed, job: Job) -> bool:
    """It needs more than there is from some time on, or a job that does not complete."""
    options, width = run.case.options, -(-job["res"] // CORES)
    capacity = options["capacity"].values
    last = capacity[-1]
    if options["mapping"] == "longshort":
        stable = min(options.get("stable", min(capacity)), MACHINES)
        expected_s = run.length_s(job["id"])
        if "run_times" in options:
            expected_s = request_of(job, options["run_times"]["otherwise_s"])
        elif "knowledge" not in options:
            expected_s = request_of(job, expected_s)
        long = expected_s > options["long_s"]
        last = min(stable, last) if long else last - stable
    heavy = "machine_memory" in options and job["memory"] > MEMORY * width
    return width > last or heavy or any(run.ended(other) != COMPLETED for other in job.get("depends_on", ()))


@st.composite
def oversubscribed(draw) -> Case:
    """Cores that are promised more than once; jobs are slowed down, and stand still without machines."""
    platform = machines_platform(SpeedMachineSpec(MACHINES, CORES))
    values = draw(counts)
    options = draw(
        st.fixed_dictionaries(
            {"oversubscription": st.sampled_from([1.0, 1.25, 2.0])},
            optional={"interval_s": st.sampled_from([30.0, 77.7]), "until_s": ends},
        )
    )
    # jobs must be able to end
    options |= {"capacity": series([*values, values[-1] or 1], draw(steps)), "platform": platform}
    jobs = draw(mixed_jobs(platform, kinds=st.just("flops"), factors=st.none()))
    uses = st.sampled_from([1.0, 0.9, 0.5, 0.25, 0.05])
    return Case(Oversubscribed, platform, tuple(job | {"use": draw(uses)} for job in jobs), options, exact=False)


@st.composite
def riskaware(draw, strategy: str) -> Case:
    """Jobs of one machine; some began before the window, of others only the walltime is known."""
    boots = draw(st.sampled_from([{}, {}, {"off_s": 15.0, "on_s": 40.0}]))
    platform = machines_platform(MachineSpec(MACHINES, CORES, **boots))
    optional = {
        "as_published": st.booleans(),
        "seed": st.integers(0, 3),
        "distance": st.integers(0, MACHINES),
        "quantiles": st.sampled_from([0, 10]),
        "usable": st.integers(1, MACHINES),
        "pack": st.integers(1, 3),
        "until_s": ends,
        "victim": victims,
    }
    options = draw(st.fixed_dictionaries({"strategy": st.just(strategy)}, optional=optional))
    rows = st.tuples(
        dates,
        st.integers(1, CORES + 1),
        times,
        st.sampled_from(["delay"] * 4 + ["old", "flops"]),
        st.floats(0.05, 0.95),
    )
    drawn = draw(many(rows, 14))
    begin_s = BEGIN_S if any(kind == "old" for *_, kind, _ in drawn) else 0.0
    jobs = []
    for i, (at, cores, length_s, kind, part) in enumerate(drawn):
        # no two have the same length
        length_s = round(length_s + i / 1000, 6)
        some_s = round(part * length_s, 3)
        if kind == "old":
            left = {"release_s": BEGIN_S - some_s, "length_s": length_s}
            jobs.append(job_of(i, BEGIN_S, cores, round(length_s - some_s, 6), **left))
        elif kind == "flops":
            jobs.append(job_of(i, begin_s + at, cores, some_s, length_s, flops=platform.fastest_flops))
        else:
            jobs.append(job_of(i, begin_s + at, cores, length_s))
    options["capacity"] = series(draw(counts), draw(steps), begin_s)
    if not isinstance(options.get("victim", "resubmit"), str):
        # else only the walltime of flops is known
        options["platform"] = platform
    if options.get("until_s") is not None:
        options["until_s"] += begin_s
    # jobs that are late as machines boot run though theirs has gone
    alive = None if boots else options["capacity"]
    return Case(Riskaware, platform, tuple(jobs), options, capacity=alive, hopeless=hopeless_of_riskaware)


def hopeless_of_riskaware(run: Observed, job: Job) -> bool:
    """It is wider than a machine, none is left, or its machine leaves: of jobs that began before, or are not to return.

    Those that began before the window are dropped as published. Others are lost under the victim rule `lose`, though
    they have not run where their machine was late.
    """
    options, own = run.case.options, run.attempts[job["id"]]
    dropped = "release_s" in job and len(own) == 1 and options.get("as_published", False)
    lost = run.case.victim.lost and len(own) == 1 and own[0].metadata == LOST
    return job["res"] > CORES or dropped or lost or options["capacity"].values[-1] == 0.0


# checkpoint, carbon, gym --------------------------------------------------------------------------------------------


@st.composite
def checkpoint(draw, dates=dates, most: int = 10, least: int = 0) -> Case:
    """Delays that are saved before machines leave, each with costs of its own."""
    platform = machines_platform(MachineSpec(MACHINES, CORES))
    overheads = st.none() | st.integers(0, 12).map(float) | st.floats(0, 120).map(lambda x: round(x, 3))
    optional = {
        "prepare": st.sampled_from(["cheapest", "worst", "expected", "all"]),
        "cover": st.just("needed"),
        "k": st.integers(0, MACHINES),
        "warning_s": st.sampled_from([0.0, 5.0, 60.0, 1000.0]),
        "checkpoint_s": st.sampled_from([0.0, 7.0, 300.0]),
        "recovery_s": st.sampled_from([0.0, 11.0, 300.0]),
        "min_yield": st.sampled_from([0.2, 0.6, 1.0]),
        "until_s": ends,
    }
    options = draw(st.fixed_dictionaries({"method": st.sampled_from(["dp", "subset-sum"])}, optional=optional))
    if options["method"] == "subset-sum":
        options.pop("min_yield", None)
    step_s = draw(st.sampled_from([100.0, 37.5, 250.0, 400 / 3]))
    options |= {"capacity": series(draw(counts), step_s), "platform": platform}
    jobs = []
    for job in draw(mixed_jobs(platform, most, st.just("delay"), st.none(), dates=dates, least=least)):
        costs = {"checkpoint_s": draw(overheads), "recovery_s": draw(overheads)}
        jobs.append(job | {name: cost_s for name, cost_s in costs.items() if cost_s is not None})
    exact = step_s % 0.5 == 0.0
    return Case(Checkpoint, platform, tuple(jobs), options, capacity=options["capacity"], stops=True, exact=exact)


@st.composite
def carbon(draw) -> Case:
    """Jobs that wait for hours of little carbon; all machines are there in the end."""
    boots = draw(st.sampled_from([{}, {"on_s": 45.0, "off_s": 20.0}]))
    platform = machines_platform(MachineSpec(MACHINES, CORES, **boots))
    policies = st.sampled_from(["immediate", "oracle", "waiting", "lowest", "suspend-resume", "phase-aware"])
    optional = {
        "replan_h": st.sampled_from([0.5, 2.0]),
        "forecast_error": st.sampled_from([0.1, 0.5]),
        "slot_s": st.sampled_from([60.0, 900.0]),
        "step_s": st.sampled_from([60.0, 900.0]),
    }
    options = draw(st.fixed_dictionaries({"policy": policies}, optional=optional))
    capacity = series([*draw(counts), MACHINES], draw(st.sampled_from([700.0, 3600.0, 5431.0])))
    options |= {"signal": SIGNAL, "wait_h": [4.0], "platform": platform}
    limit = {"capacity": capacity}
    if draw(st.booleans()):
        fed_w = tuple(value * 10.0 * CORES for value in capacity.values)
        limit = {"envelope": Timeline(capacity.times_s, fed_w, "power_w")}
    jobs = draw(mixed_jobs(platform, 8, factors=st.none(), times=times | times.map(lambda x: 30.0 * x)))
    options |= limit
    promised = {"capacity": capacity, "envelope": limit.get("envelope"), "stops": True}
    return Case(Carbon, platform, jobs, options, keeps=Victim(keeps=True), **promised)


class Agent(Case):
    """An episode of the gym's environment in which an agent takes random legal actions."""

    def run(self, between: Any = None) -> Observed:
        """The record of the episode; each moment has an action that is legal, and none is before the last one."""
        from batwatt.gym import OBSERVATIONS, BatwattEnv

        columns = [name for name, column in OBSERVATIONS.items() if not column.limit or column.limit in self.options]
        workload = workload_of(*self.jobs, nb_res=len(self.platform))
        env = BatwattEnv(self.platform, workload, observation=columns, **self.options)
        rng = np.random.default_rng(len(self.jobs))
        _, info = env.reset(seed=0)
        over = False
        while not over:
            assert np.array_equal(env.action_masks(), info["action_mask"])
            before_s, action = info["time_s"], int(rng.choice(np.flatnonzero(info["action_mask"])))
            seen, _, over, _, info = env.step(action)
            assert seen in env.observation_space and info["action"] == action
            # the end of an episode is that of the last job, which may be before jobs are rejected
            assert over or (info["time_s"] >= before_s and info["action_mask"].any())
        return Observed(self, env.record)


@st.composite
def gym(draw) -> Case:
    """Hosts under a cap that idle hosts keep, a number of hosts, both or neither; the first job can run."""
    caps = draw(st.just([]) | many(st.floats(100, 420).map(lambda x: round(x, 1)), 10, 1).map(lambda w: [*w, 420.0]))
    hosts = draw(st.just([]) | many(st.integers(0, len(UNLIKE)), 10, 1).map(lambda n: [*n, len(UNLIKE)]))
    options = {"queue": draw(st.sampled_from([1, 3, 20]))}
    options |= {"envelope": envelope(*caps, step=60.0)} if caps else {}
    options |= {"capacity": series(hosts, 45.0)} if hosts else {}
    limits = {"capacity": options.get("capacity"), "envelope": options.get("envelope"), "stops": bool(caps)}
    first, *jobs = draw(mixed_jobs(UNLIKE, least=1))
    return Agent(None, UNLIKE, (first | {"res": min(first["res"], len(UNLIKE))}, *jobs), options, **limits)
