"""What only a real Batsim does: a job that ends before it can be killed. And what is compiled follows its sources."""

from __future__ import annotations

import pytest
from builders import job, workload_of
from links import Race

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.engine.events import KillJob, RegisterJob
from batwatt.model.machines import MachineSpec, machines_platform
from batwatt.model.series import Series
from batwatt.schedulers.riskaware import Riskaware


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_a_job_that_ends_before_its_kill_is_not_run_again(strategy):
    work = workload_of(job("a", 0, 1, 100.0), job("b", 0, 1, 300.0), job("c", 60, 1, 20.0), nb_res=2)
    engine = Engine(machines_platform(MachineSpec(2, 1)), [work], EngineConfig(dynamic_jobs=True, profile_reuse=True))
    # the second machine goes at 50 s and comes back at 90 s
    capacity = Series((0.0, 50.0, 90.0), (2.0, 1.0, 2.0))
    links: list[Race] = []

    def between(link):
        links.append(Race(link))
        return links[0]

    scheduler = Riskaware({"capacity": capacity, "strategy": strategy, "as_published": False})
    record = simulate(engine, scheduler, between)
    assert links[0].asked.count(KillJob) == 1 and RegisterJob not in links[0].asked
    assert sorted(row[0] for row in record.jobs) == ["a", "b", "c"]
