"""Small machines and workloads for tests, with powers and speeds that are easy to add up by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.model.record import Record
from batwatt.model.timeline import Timeline
from batwatt.protocol.workload4 import parse_workload

FAST = (
    # 100 W at 10 flop/s, 60 W at 6, 40 W at 4; asleep 5 W, off 20 W for 10 s, on 50 W for 20 s
    PState(10.0, 100.0, 100.0, 100.0),
    PState(6.0, 60.0, 60.0, 60.0),
    PState(4.0, 40.0, 40.0, 40.0),
    PState(1e-3, 5.0, 5.0, 5.0),
    PState(0.1, 20.0, 20.0, 20.0),
    PState(0.05, 50.0, 50.0, 50.0),
)
SLOW = (
    # 120 W at 5 flop/s, 70 W at 3; asleep 8 W, off 30 W for 10 s, on 60 W for 40 s
    PState(5.0, 120.0, 120.0, 120.0),
    PState(3.0, 70.0, 70.0, 70.0),
    PState(1e-3, 8.0, 8.0, 8.0),
    PState(0.1, 30.0, 30.0, 30.0),
    PState(0.025, 60.0, 60.0, 60.0),
)
ASLEEP_FAST, ASLEEP_SLOW = 3, 2
TWO = [{"id": str(n), "subtime": 0, "res": 4, "walltime": 60, "profile": "nap"} for n in (1, 2)]
"""Jobs in Batsim's JSON."""


def machine(fast: int = 2, slow: int = 0) -> Platform:
    """`fast` hosts of the first kind, then `slow` of the second."""
    kinds = [("f", FAST, Sleep(3, 4, 5))] * fast + [("s", SLOW, Sleep(2, 3, 4))] * slow
    hosts = [
        Host(i, f"{letter}{i:03d}", states, sleeps=(sleep,), has_power=True)
        for i, (letter, states, sleep) in enumerate(kinds)
    ]
    return Platform(tuple(hosts))


def one_by_one(jobs: int, every_s: float, least_s: float, longer_s: float, lengths: int) -> pd.DataFrame:
    """Jobs that arrive one every `every_s` s, on 1, 2, 3, 1, ... hosts, of `lengths` lengths in turn."""
    return pd.DataFrame(
        {
            "submission_time_s": [every_s * i for i in range(jobs)],
            "length_s": [least_s + longer_s * (i % lengths) for i in range(jobs)],
            "hosts": [1 + i % 3 for i in range(jobs)],
        }
    )


def job(
    name: object, at: float, hosts: int, run: float, walltime: float | None = None, flops: bool = False
) -> dict[str, Any]:
    """A job that lasts `run` s (`flops`: on a fast host at its top state); its profile travels in `_profile`."""
    row: dict[str, Any] = {"id": str(name), "subtime": at, "res": hosts, "profile": f"p{name}"}
    if walltime is not None:
        row["walltime"] = walltime
    row["_profile"] = (
        {"type": "parallel_homogeneous", "cpu": run * 10.0, "com": 0} if flops else {"type": "delay", "delay": run}
    )
    return row


def workload_of(*jobs: dict[str, Any], nb_res: int = 4):
    """A workload of such jobs."""
    rows = [{key: value for key, value in row.items() if key != "_profile"} for row in jobs]
    profiles = {row["profile"]: row["_profile"] for row in jobs}
    return parse_workload({"nb_res": nb_res, "jobs": rows, "profiles": profiles}, "w0", "test")


def envelope(*powers: float, step: float = 300.0) -> Timeline:
    """One value a step."""
    return Timeline(tuple(i * step for i in range(len(powers))), tuple(powers), "power_w")


def played(
    scheduler: Any, platform: Platform, *jobs: dict[str, Any], events: Any = (), link: Any = None, **config: Any
) -> Record:
    """Run on the embedded engine, which takes jobs of the scheduler if that has to register some."""
    dynamic = scheduler.needs_dynamic_jobs
    engine_config = EngineConfig(**{"dynamic_jobs": dynamic, "profile_reuse": dynamic} | config)
    return simulate(
        Engine(platform, [workload_of(*jobs, nb_res=len(platform))], engine_config, events), scheduler, link
    )


def starts(record: Record) -> dict[str, tuple[float, str]]:
    """Job -> (start, hosts) of the jobs that ran."""
    return {row[0]: (row[8], row[14]) for row in record.jobs if row[8] is not None}
