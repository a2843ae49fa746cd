"""Jobs that draw different power, on hosts of 100 W when idle and 300 W with all cores busy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.record import Record
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.figures import Values
from batwatt.results.job_power import job_power_figures
from batwatt.results.run_files import RunData
from batwatt.schedulers.jobpower import Jobpower

IDLE_W, FULL_W = 100.0, 300.0


def plain(hosts: int) -> Platform:
    """Hosts that are alike and have one state."""
    state = PState(1.0, IDLE_W, IDLE_W, FULL_W)
    return Platform(tuple(Host(i, f"h{i:02d}", (state,), has_power=True) for i in range(hosts)))


def drawing(name: object, at: float, hosts: int, run: float, **fields: Any) -> dict[str, Any]:
    """A job of `run` s, with a walltime half a second later; `_run` is for `jobs_of`. Ids order jobs of one time."""
    return {"id": str(name), "subtime": at, "res": hosts, "walltime": run + 0.5, "_run": run, **fields}


def jobs_of(*rows: dict[str, Any], nb_res: int) -> Workload:
    """A workload of them."""
    jobs = [{"profile": f"p{row['_run']}", **{k: v for k, v in row.items() if k != "_run"}} for row in rows]
    profiles = {f"p{row['_run']}": {"type": "delay", "delay": row["_run"]} for row in rows}
    return parse_workload({"nb_res": nb_res, "jobs": jobs, "profiles": profiles}, "w0", "test")


def carried_out(
    workload: Workload, hosts: int, link: Any = None, events: Sequence[Any] = (), **options: Any
) -> tuple[Record, Jobpower]:
    """Run them, by the real power of the jobs unless the options have a predictor; `link` is for `simulate`."""
    platform = plain(hosts)
    scheduler = Jobpower({"platform": platform, "predictor": "exact", **options})
    again = scheduler.needs_dynamic_jobs
    config = EngineConfig(dynamic_jobs=again, profile_reuse=again, forward_unknown_events=bool(events))
    return simulate(Engine(platform, [workload], config, events), scheduler, link), scheduler


def figures_of(record: Record, workload: Workload, hosts: int, envelope: Any) -> Values:
    """The figures of a run."""
    return job_power_figures(RunData("x", record), workload, plain(hosts), envelope)
