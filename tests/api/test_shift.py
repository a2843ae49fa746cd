"""Jobs held by a carbon policy before a scheduler sees them: any scheduler, any engine."""

from __future__ import annotations

import pandas as pd
import pytest
from builders import one_by_one

import batwatt as bw
from batwatt.errors import InputError
from batwatt.model.timeline import Timeline

HOURS = [400.0, 300.0, 100.0, 250.0, 80.0, 500.0, 90.0, 320.0]
SIGNAL = Timeline.regular(HOURS * 30)
JOBS = bw.Workload.from_frame(one_by_one(20, 600.0, 900.0, 611.0, 9))
MACHINES = bw.Platform.machines(6, 1, watts=100)
ONE = bw.Platform.machines(1, 1, watts=100)


def test_jobs_held_until_the_same_time_start_in_their_order():
    """Four hours to wait: both are to start in the fifth, the second waits."""
    both = bw.Workload.from_frame(pd.DataFrame({"submission_time_s": [0.0] * 2, "length_s": [3600.0] * 2, "hosts": 1}))
    options = {"shift": {"name": "oracle", "wait_h": [4]}}
    held = bw.simulate(ONE, both, "easyBackfill", carbon=SIGNAL, options=options)
    assert held.jobs.sort_values("job_id")["starting_time_s"].tolist() == [14_400.0, 18_000.0]


@pytest.mark.parametrize(
    ("run_times", "sure_h", "start_h"),
    # hours 27 and 28 together are the least, 28 alone is less; by the day before 26 and 27 are, or 26 alone
    [("exact", None, 28), ("walltime", None, 27), ("recent", None, 27), ("exact", 0, 26), ("exact", 6, 28)],
)
def test_held_by_requests_and_forecasts(run_times, sure_h, start_h):
    """A job of an hour for which two are requested, submitted in hour 25, may wait three hours."""
    day = [400.0] * 24
    day[2], day[3], day[4] = 40.0, 100.0, 400.0
    signal = Timeline.regular([*day, 400.0, 400.0, 400.0, 100.0, 90.0, 300.0, *day, *day])
    shift = {"name": "oracle", "wait_h": [3], "forecast_sure_h": sure_h}
    options = {"response": "none", "shift": shift, "run_times": run_times}
    rows = {"submission_time_s": [0.0, 90_000.0], "length_s": [3600.0] * 2, "hosts": [1, 1], "estimate_s": 7200.0}
    jobs = bw.Workload.from_frame(pd.DataFrame(rows))
    held = bw.simulate(ONE, jobs, "powercap", carbon=signal, options=options)
    assert held.jobs["starting_time_s"].max() == 3600.0 * start_h


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("powercap", {"response": "frugal"}),
        ("riskaware", {}),
        ("varcap", {"termination": "lww", "backfilling": "easy"}),
        ("varcap", {"mapping": "longshort", "foresight_h": 2.0}),
        ("checkpoint", {}),
        ("easyBackfill", {}),
    ],
)
def test_any_scheduler(name, options):
    """Nothing starts before its time, all of it runs, and a policy that holds nothing changes nothing."""
    capacity = bw.Series((0.0, 9000.0, 30_000.0), (6.0, 4.0, 6.0), "machines") if name != "easyBackfill" else None
    shared = {"carbon": SIGNAL, "capacity": capacity}
    plain = bw.simulate(MACHINES, JOBS, name, options=options, **shared)
    none = bw.simulate(MACHINES, JOBS, name, options={**options, "shift": "immediate"}, **shared)
    pd.testing.assert_frame_equal(plain.jobs, none.jobs)
    oracle = {"wait_h": [8]}
    held = bw.simulate(MACHINES, JOBS, name, options=options | {"shift": {"name": "oracle"} | oracle}, **shared)
    wide = bw.Platform.machines(100, 1)
    alone = bw.simulate(wide, JOBS, "carbon", options={"policy": "oracle"} | oracle, carbon=SIGNAL)
    earliest = alone.jobs.set_index("job_id")["starting_time_s"].sort_index()
    first = held.jobs.groupby(held.jobs["job_id"].str.partition("#")[0])["starting_time_s"].min().sort_index()
    # one that was rejected has no start
    assert (first.isna() | (first >= earliest - 1e-4)).all() and set(first.index) == set(earliest.index)
    assert held.metrics["jobs_finished"] >= plain.metrics["jobs_finished"] > 5


def test_the_same_over_a_socket(house):
    intensity = "".join(f"{3600 * i},{value}\n" for i, value in enumerate(HOURS * 9))
    signal = house.write("s.csv", f"time_s,carbon_intensity\n{intensity}")
    rows = "".join(f"{500 * i},{1000 + 90 * i},1\n" for i in range(9))
    jobs = house.write("j.csv", f"arrival_time,length,cpus\n{rows}")
    shift = ("-s", "easyBackfill", "-o", '{"shift": {"name": "oracle", "wait_h": [3]}}', "--carbon", signal)
    for engine in ("embedded", "wire"):
        words = ("-w", jobs, "--machines", 4, "--cores", 1, "--engine", engine, "-e", house.out / engine)
        assert house.batwatt("run", *words, *shift).code == 0
    assert house.file("embedded_jobs.csv") == house.file("wire_jobs.csv")


@pytest.mark.parametrize(
    ("scheduler", "shift", "carbon", "line"),
    [
        (
            "powercap",
            "suspend-resume",
            SIGNAL,
            "'suspend-resume' suspends jobs, which only the scheduler 'carbon' does",
        ),
        ("powercap", {"wait_h": [3]}, SIGNAL, "option 'shift': {\"wait_h\": \\[3\\]} is not a policy"),
        ("powercap", "nothing", SIGNAL, "^option 'shift': no policy 'nothing'; known: cst-average, .*, waiting. See "),
        ("powercap", "waiting", None, "option 'shift': needs a carbon or price signal"),
        ("carbon", "waiting", SIGNAL, "is for schedulers that do not shift jobs themselves"),
    ],
)
def test_refused(scheduler, shift, carbon, line):
    with pytest.raises(InputError, match=line):
        bw.simulate(MACHINES, JOBS, scheduler, options={"shift": shift}, carbon=carbon)


OWN_SHIFT = """
from batsim.batsim import BatsimScheduler

class Foreign(BatsimScheduler):
    def __init__(self, options):
        super().__init__(options)
        assert options == {"shift": 5}, options
    def onJobSubmission(self, job):
        self.bs.reject_jobs([job])
    def onNoMoreEvents(self):
        pass
"""


def test_schedulers_of_other_authors(tmp_path):
    """A scheduler with an option of that name gets its text, and no job is held."""
    (tmp_path / "foreign.py").write_text(OWN_SHIFT)
    foreign = bw.simulate(MACHINES, JOBS, str(tmp_path / "foreign.py"), options={"shift": 5})
    assert len(foreign.jobs) == 20
