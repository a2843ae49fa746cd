"""Tiny instances, and their optimum by trying out everything: written against docs/explanation/optimum.md, not against
the planner.

Servers have names here, each has a state in each step, and a job tries every start of a grid on every set of servers.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from builders import workload_of

from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload

STEP_S, STEPS = 20, 4
ONE = {
    "speed": (10.0, 5.0),
    "watts": (100.0, 60.0),
    "sleep_w": 5.0,
    "off_w": 20.0,
    "on_w": 70.0,
    "off_s": 5,
    "on_s": 10,
}
TWO = {"speed": (5.0, 2.5), "watts": (80.0, 50.0), "sleep_w": 8.0, "off_w": 30.0, "on_w": 40.0, "off_s": 10, "on_s": 5}


def platform_of(*kinds: dict[str, Any]) -> Platform:
    """One host per kind given: two computation states, sleep, off, on."""
    hosts = []
    for i, kind in enumerate(kinds):
        rows = [*zip(kind["speed"], kind["watts"], strict=True), (1e-3, kind["sleep_w"])]
        rows += [(1.0 / kind["off_s"], kind["off_w"]), (1.0 / kind["on_s"], kind["on_w"])]
        states = tuple(PState(speed, watts, watts, watts) for speed, watts in rows)
        hosts.append(Host(i, f"h{i}", states, sleeps=(Sleep(2, 3, 4),), has_power=True))
    return Platform(tuple(hosts))


def instance(seed: int, *kinds: dict[str, Any]) -> tuple[Platform, Workload, Timeline]:
    """Three jobs on two servers, caps that let them run for four steps; all times multiples of 5 s."""
    rng = np.random.default_rng(seed)
    jobs = []
    for name in range(3):
        run = 5 * int(rng.integers(1, 4))
        row = {"id": str(name), "subtime": float(5 * rng.integers(0, 7)), "res": int(rng.integers(1, 3))}
        row |= {"profile": f"p{name}", "_profile": {"type": "parallel_homogeneous", "cpu": run * 10.0, "com": 0}}
        if rng.random() < 0.4:
            row["walltime"] = run * 2
        if rng.random() < 0.2:
            row["_profile"] = {"type": "delay", "delay": run}
            row["walltime"] = run + 1
        jobs.append(row)
    most = sum(kind["watts"][0] for kind in kinds)
    # after these steps there is enough to fall asleep, but for no server to run
    caps = [*(float(rng.integers(most // 3, most + 10)) for _ in range(STEPS)), sum(kind["off_w"] for kind in kinds)]
    times = tuple(float(STEP_S * i) for i in range(STEPS + 1))
    return platform_of(*kinds), workload_of(*jobs, nb_res=2), Timeline(times, tuple(caps), "power_w")


ASLEEP = 2


def _histories(kind: dict[str, Any], steps: int) -> list[tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]]]:
    """(state per step, power per step, second from which it takes jobs, per step) of a server that begins awake."""
    rows = []
    for states in itertools.product((0, 1, ASLEEP), repeat=steps):
        powers, ready = [], []
        before = 0
        for step, state in enumerate(states):
            if state == ASLEEP:
                powers.append(max(kind["off_w"], kind["sleep_w"]) if before != ASLEEP else kind["sleep_w"])
                ready.append(10**9)
            elif before == ASLEEP:
                powers.append(max(kind["on_w"], kind["watts"][state]))
                ready.append(step * STEP_S + kind["on_s"])
            else:
                powers.append(kind["watts"][state])
                ready.append(step * STEP_S)
            before = state
        rows.append((states, tuple(powers), tuple(ready)))
    return rows


def brute_force(platform: Platform, workload: Workload, caps_w: tuple[float, ...], *kinds: dict[str, Any]) -> float:
    """Least sum of wait / Et over all plans of the first steps; infinite if not all jobs fit in them."""
    steps = len(caps_w)
    best = [float("inf")]
    for histories in itertools.product(*(_histories(kind, steps) for kind in kinds)):
        if all(sum(h[1][t] for h in histories) <= caps_w[t] + 1e-6 for t in range(steps)):
            _place(list(workload.jobs), workload, histories, kinds, [], 0.0, best)
    return best[0]


def _a_mode(used: set[tuple[int, int]], kinds: Any) -> bool:
    """One state a kind; the faster kind in its slowest state that is not slower than the other's."""
    if len(used) == 1:
        return True
    speeds = {id(kind): kind["speed"] for kind in kinds}
    (fast, high), (slow, low) = sorted(used, key=lambda row: -speeds[row[0]][row[1]])
    enough = [d for d, speed in enumerate(speeds[fast]) if speed >= speeds[slow][low]]
    return fast != slow and high == max(enough)


def _place(
    jobs: list[Any], workload: Workload, histories: Any, kinds: Any, busy: list[Any], cost: float, best: list[float]
) -> None:
    if cost >= best[0] - 1e-12:
        return
    if not jobs:
        best[0] = cost
        return
    job, profile = jobs[0], workload.profiles[jobs[0].profile]
    for hosts in itertools.combinations(range(len(kinds)), job.hosts):
        for start in range(int(job.submit_time_s), STEP_S * len(histories[0][0]), 5):
            if cost + (start - job.submit_time_s) / (job.walltime_s or 1e9) >= best[0]:
                break
            step = start // STEP_S
            states = {h: histories[h][0][step] for h in hosts}
            if ASLEEP in states.values() or any(histories[h][2][step] > start for h in hosts):
                continue
            if not _a_mode({(id(kinds[h]), state) for h, state in states.items()}, kinds):
                continue
            if hasattr(profile, "duration_s"):
                run = float(profile.duration_s)
            else:
                run = profile.per_host_flops / min(kinds[h]["speed"][states[h]] for h in hosts)
                if job.walltime_s is not None and run > job.walltime_s:
                    continue
            end = start + run
            last = -int(-end // STEP_S) - 1
            if last >= len(histories[0][0]):
                continue
            if any(histories[h][0][t] != states[h] for h in hosts for t in range(step, last + 1)):
                continue
            if any(h in other and start < e and s < end for other, s, e in busy for h in hosts):
                continue
            wait = start - job.submit_time_s
            _place(jobs[1:], workload, histories, kinds, [*busy, (hosts, start, end)], cost + wait / run, best)
