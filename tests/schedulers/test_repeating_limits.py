"""Limits that repeat for ever: what no period can run is rejected, whatever else waits, and runs end."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from builders import machine

import batwatt as bw
from batwatt.scheduling.capacity import CapacityScheduler, MachineOptions
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.job import Job

pytestmark = pytest.mark.usefixtures("quiet")

HOUR_S = 3600.0
SUN = bw.Series((0.0, 9 * HOUR_S, 15 * HOUR_S), (0.0, 400.0, 0.0), loop=0, period_s=24 * HOUR_S)
"""A day with six hours of power for two machines of 200 W."""
MACHINES = bw.Platform.machines(2, 1, watts=200)
LONG = pd.DataFrame({"submission_time_s": [0.0, 3600.0], "length_s": [10 * HOUR_S, HOUR_S], "hosts": [1, 1]})
"""Ten hours are never in one day, an hour is."""
STALLS = "as no job ended or saved work in a whole period of 86400 s"


NEVER_SAVED = {"name": "checkpoint", "checkpoint_s": 30_000.0, "recovery_s": 0.0}
"""A checkpoint takes longer than the sun shines."""


RESUBMIT = {"victim": "resubmit"}
AWAY = (("unavailable", 100), ("available", 50_000))
"""What happens to a host, and when, in s."""


@pytest.mark.parametrize(
    ("scheduler", "options", "need"),
    [
        ("varcap", {}, "1 machine"),
        ("riskaware", {}, "1 machine"),
        ("adaptive", {}, "1 machine"),
        ("powercap", RESUBMIT | {"response": "hfld"}, "200 W"),
        ("powercap", RESUBMIT | {"response": "idsb"}, "200 W"),
        ("powercap", RESUBMIT | {"response": "frugal"}, "200 W"),
    ],
)
def test_a_job_that_no_day_can_run_is_rejected_at_once(scheduler, options, need):
    """With its need, its length, and the longest time for which the limit gives that."""
    result = bw.simulate(MACHINES, bw.Workload.from_frame(LONG), scheduler, envelope=SUN, options=options)
    rows = result.jobs.set_index("job_id").sort_index()
    assert rows.loc["1", "metadata"] == f"needs {need} for 10 h; the limit gives that for at most 6 h"
    assert list(rows["final_state"]) == ["REJECTED", "COMPLETED_SUCCESSFULLY"]


def test_a_job_that_no_speed_can_run_is_rejected_at_once():
    """Three servers of 5 W asleep and 40 W at their slowest: two need 85 W for 2000 s, and have that for 900 s."""
    caps = bw.Series((0.0, 900.0), (100.0, 50.0), loop=0, period_s=1800.0)
    rows = pd.DataFrame({"submission_time_s": [0.0] * 3, "length_s": [2000.0, 100.0, 100.0], "hosts": [2, 1, 2]})
    options = {"response": "frugal", "victim": "resubmit"}
    result = bw.simulate(machine(3), bw.Workload.from_frame(rows), "powercap", envelope=caps, options=options)
    assert result.jobs.set_index("job_id").loc["1", "metadata"] == (
        "needs 85 W for 0.5556 h; the limit gives that for at most 0.25 h"
    )
    assert result.metrics["jobs_rejected"] == 1 and result.metrics["jobs_finished"] == 2


@pytest.mark.parametrize(
    ("scheduler", "options"),
    [
        ("varcap", {"victim": NEVER_SAVED}),
        ("varcap", {"mapping": "migration", "victim": NEVER_SAVED}),
        ("riskaware", {"victim": NEVER_SAVED}),
        ("powercap", {"response": "hfld", "victim": NEVER_SAVED}),
        ("powercap", {"response": "idsb", "victim": NEVER_SAVED}),
        ("jobpower", {"excess": "kill-latest", "victim": "resubmit"}),
    ],
)
def test_a_job_that_no_day_can_run(scheduler, options):
    """It is killed three times, the other job runs, and the run ends."""
    result = bw.simulate(MACHINES, bw.Workload.from_frame(LONG), scheduler, envelope=SUN, options=options)
    rows = result.jobs.assign(name=result.jobs["job_id"].astype(str).str.partition("#")[0])
    long, short = (rows[rows["name"] == name] for name in ("1", "2"))
    assert list(short["final_state"]) == ["COMPLETED_SUCCESSFULLY"]
    assert long["final_state"].iloc[-1] == "REJECTED" and long["metadata"].iloc[-1] == STALLS
    assert len(long) <= 4


def finished(platform, rows, scheduler, **limits):
    """The jobs that complete, by id."""
    frame = pd.DataFrame(rows, columns=["id", "submission_time_s", "length_s", "hosts"])
    jobs = bw.simulate(platform, bw.Workload.from_frame(frame), scheduler, **limits).jobs
    return sorted(str(name).partition("#")[0] for name in jobs.loc[jobs["success"].astype(bool), "job_id"])


@pytest.mark.parametrize("response", ["hfld", "frugal"])
def test_jobs_that_are_in_each_others_way_run_on_later_days(response):
    """Two hosts for 6 h of 12: a and b, of 5 h each, begin at 2 h and are killed; they run when c, of 5 h, has."""
    caps = bw.Series((0.0, 6 * HOUR_S), (20.0, 3.0), loop=0, period_s=12 * HOUR_S)
    rows = [("d", 0.0, 10.0, 1), ("a", 7200.0, 18_000.0, 1), ("b", 7200.0, 18_000.0, 1), ("c", 7201.0, 18_000.0, 2)]
    options = {"victim": "resubmit", "response": response}
    assert finished(bw.Platform.machines(2, 1), rows, "powercap", envelope=caps, options=options) == list("abcd")


@pytest.mark.parametrize("scheduler", ["powercap", "varcap", "jobpower"])
def test_a_job_waits_for_hosts_that_come_back_after_many_periods(tmp_path, scheduler):
    """A host is away for three and a half periods of 4 h; the second job needs it."""
    events = tmp_path / "events.txt"
    lines = ({"type": f"machine_{what}", "resources": "0", "timestamp": at} for what, at in AWAY)
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    caps = bw.Series((0.0, 2 * HOUR_S), (60.0, 45.0), loop=0, period_s=4 * HOUR_S)
    rows = [("1", 0.0, 1000.0, 2), ("2", 0.0, 500.0, 2)]
    platform = bw.Platform.machines(2, 1, watts=20)
    assert finished(platform, rows, scheduler, envelope=caps, events=events) == ["1", "2"]


def test_a_job_that_is_killed_again_and_again_is_lost_at_last():
    """Each hour one of two machines goes, at random; a job of 200 h begins again at once and never waits."""
    hours = bw.Series((0.0, HOUR_S), (2.0, 1.0), "machines", loop=0, period_s=2 * HOUR_S)
    rows = [("1", 0.0, 200 * HOUR_S, 1)]
    options = {"termination": {"name": "random", "idle_first": False}}
    assert finished(bw.Platform.machines(2, 1), rows, "varcap", capacity=hours, options=options) == []


def test_checkpoints_that_save_nothing_new_are_no_progress():
    """Of each 300 s with a machine a job recovers for 150 s and checkpoints for 150 s."""
    rows = pd.DataFrame({"submission_time_s": [0.0], "length_s": [2699.0], "hosts": [1]})
    jobs = bw.Workload.from_frame(rows.assign(checkpoint_s=150.0, recovery_s=150.0))
    capacity = bw.Series((0.0, 300.0), (1.0, 0.0), "machines", loop=0, period_s=600.0)
    result = bw.simulate(bw.Platform.machines(1, 1), jobs, "checkpoint", capacity=capacity)
    assert result.metrics["jobs_rejected"] == 1 and result.metrics["makespan_s"] < 10 * 600.0


@pytest.mark.parametrize(
    ("scheduler", "options"),
    [("checkpoint", {}), ("varcap", {"victim": "checkpoint"}), ("adaptive", {"checkpoint_s": 60.0})],
)
def test_a_job_that_saves_its_work_ends_on_a_later_day(scheduler, options):
    """Ten hours are done on two days of six."""
    result = bw.simulate(MACHINES, bw.Workload.from_frame(LONG), scheduler, envelope=SUN, options=options)
    assert (
        result.metrics["completed_fraction"] in (1.0, None) and 33 * HOUR_S < result.metrics["makespan_s"] < 39 * HOUR_S
    )


def test_a_run_may_last_for_years():
    """A job a year after the other one still has its days, its carbon and its cost."""
    late = pd.DataFrame({"submission_time_s": [0.0, 0.0], "length_s": [5 * HOUR_S] * 2, "hosts": [2, 2]})
    days = pd.concat([late] * 40, ignore_index=True)
    carbon = bw.Series((0.0, 12 * HOUR_S), (100.0, 300.0), unit="g/kWh", loop=0, period_s=24 * HOUR_S)
    result = bw.simulate(MACHINES, bw.Workload.from_frame(days), "varcap", envelope=SUN, carbon=carbon)
    # machines are on from 9:00 to 15:00, on the last of 80 days until 14:00: 3 h at 100 and 3 h at 300 g/kWh
    assert result.metrics["jobs_finished"] == 80 and result.metrics["makespan_s"] == pytest.approx(
        (79 * 24 + 14) * HOUR_S
    )
    assert result.metrics["carbon_g"] == pytest.approx(80 * 0.4 * (3 * 100 + 3 * 300) - 0.4 * 300, rel=1e-6)


class OneByOne(CapacityScheduler[MachineOptions]):
    """A user's scheduler: jobs start one after another while a machine is alive, and are never killed."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.fleet, self.jobs = Fleet(len(self.hosts), 1, float("inf")), []

    def arrived(self, job):
        self.lifecycle.live += 1
        self.jobs.append(job)

    def onJobCompletion(self, job):
        self.lifecycle.ended(job)
        self.lifecycle.live -= 1

    def process_events(self, now_s):
        while self.step_s <= now_s:
            self.step()

    def apply(self):
        if self.jobs and not self.lifecycle.jobs and self.machines_alive():
            job = self.jobs.pop(0)
            state = self.lifecycle.jobs[job.id] = Job(0, job)
            self.lifecycle.execute(state, 1)

    def stop(self):
        self.lifecycle.give_up(self.jobs)

    def unrunnable(self):
        if self.lifecycle.jobs:
            return [], ""
        jobs, self.jobs = self.jobs, []
        self.lifecycle.live -= len(jobs)
        return jobs, "no machine is alive"


def test_a_scheduler_of_a_user_need_not_know_the_rule_of_stalls():
    limit = bw.Series((0.0, 3600.0), (0.0, 1.0), loop=0, period_s=7200.0)
    jobs = bw.simulate(MACHINES, LONG, OneByOne, capacity=limit).jobs
    assert sorted(jobs["starting_time_s"]) == [HOUR_S, 11 * HOUR_S]
