"""Steps without end after an envelope: who has nothing to do in them is not called, and nothing else changes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.description import Inputs
from batwatt.inputs.series.series_csv import read_series
from batwatt.protocol.events import envelope_events
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.systems.powercap import scheduler as envelope
from batwatt.systems.powercap.responses import HighestFlopsLowestDeadline, IdleDegradation

SMALL = Path(__file__).resolve().parents[3] / "platforms" / "small.xml"
FILES = ("jobs.csv", "schedule.csv", "machine_states.csv", "pstate_changes.csv", "consumed_energy.csv", "metrics.json")
FAST_FLOPS = 40e9


def workload(folder: Path, *jobs: tuple[float, int, float, float | None], delay: bool = False) -> Path:
    """Jobs of (submission in s, hosts, s at full speed, walltime in s)."""
    rows, profiles = [], {}
    for number, (submit_s, hosts, run_s, walltime_s) in enumerate(jobs):
        row = {"id": str(number), "subtime": submit_s, "res": hosts, "profile": f"p{number}"}
        rows.append(row if walltime_s is None else row | {"walltime": walltime_s})
        work = {"type": "parallel_homogeneous", "cpu": run_s * FAST_FLOPS, "com": 0}
        profiles[f"p{number}"] = {"type": "delay", "delay": run_s} if delay else work
    path = folder / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": rows, "profiles": profiles}))
    return path


def caps(folder: Path, *watts: float) -> Path:
    path = folder / "e.csv"
    path.write_text("time_s,power_w\n" + "".join(f"{300 * n},{w}\n" for n, w in enumerate(watts)))
    return path


def carried_out(folder: Path, jobs: Path, series: Path, to: str = "x", **options) -> tuple[int, list[bytes]]:
    """How many messages there were, and the files."""
    messages = []
    events = options.pop("events", None)
    sources = {"envelope": None, "events": events} if events else {"envelope": series}
    options = options | ({"envelope": "events"} if events else {})
    spec = RunSpec(Inputs(SMALL, (jobs,), **sources), options=options, prefix=folder / to)
    with pytest.MonkeyPatch.context() as patch:
        # every message is progress, not a few times a second
        patch.setattr("batwatt.run.run.PROGRESS_S", 0.0)
        run(spec, lambda now_s, _: messages.append(now_s))
    return len(messages), [(folder / f"{to}_{name}").read_bytes() for name in FILES]


@pytest.mark.parametrize("response", ["idfs", "hfld"])
def test_a_long_run_costs_as_much_as_a_short_one(tmp_path, response):
    series = caps(tmp_path, 600, 400)
    short, long = (
        carried_out(tmp_path, workload(tmp_path, (0, 1, run_s, None), delay=True), series, response=response)[0]
        for run_s in (3e3, 3e7)
    )
    # 100,000 steps of 5 minutes
    assert long <= short + 2 < 20


@pytest.mark.parametrize(
    ("response", "order", "backfilling", "source"),
    [
        ("idfs", "fcfs", "easy", "file"),
        ("iasb", "slowdown", "easy", "events"),
        ("hfld", "slowdown", "first-fit", "events"),
    ],
)
def test_the_schedule_is_that_of_looking_at_every_step(tmp_path, monkeypatch, response, order, backfilling, source):
    rng = random.Random(f"{response} {order} {backfilling}")
    # ends and submissions at steps and between them
    jobs = [
        (rng.choice([0, 300, 900, 1500.5, 6000, 7212.25]), rng.choice([1, 1, 2, 3]), rng.choice([100, 300, 1200, 4000]),
         rng.choice([None, 2500, 9000]))
        for _ in range(14)
    ]  # fmt: skip
    series = caps(tmp_path, 600, 130, 450, rng.choice([600, 420, 300]))
    events = tmp_path / "events.txt"
    events.write_text("".join(f"{line}\n" for line in envelope_events(read_series(series))))
    options = {"response": response, "order": order, "backfilling": backfilling}
    if source == "events":
        options["events"] = events
    path = workload(tmp_path, *jobs)
    fewer, files = carried_out(tmp_path, path, series, "fewer", **options)
    for kind in (IdleDegradation, HighestFlopsLowestDeadline):
        monkeypatch.setattr(kind, "steady", lambda *_: False)
    more, expected = carried_out(tmp_path, path, series, "more", **options)
    assert files == expected and fewer <= more


def test_one_that_must_look_at_every_step_gives_up_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(envelope, "MAX_IDLE_STEPS", 40)
    jobs = workload(tmp_path, (0, 1, 1e9, None), delay=True)
    with pytest.raises(InputError, match=r"nothing has changed for 40 steps after its end, while w0!0 runs; correct"):
        carried_out(tmp_path, jobs, caps(tmp_path, 600, 500), response="frugal")
    # shorter than that
    carried_out(tmp_path, workload(tmp_path, (0, 1, 5e3, None), delay=True), caps(tmp_path, 600), response="frugal")


@pytest.mark.parametrize(
    "submit_s,run_s,walltime_s,response",
    [(0, 1.1e10, None, "frugal"), (0, 1e290, None, "none"), (3e8, 1.1e10, 2e10, "frugal")],
)
def test_jobs_that_end_in_centuries_are_refused(tmp_path, submit_s, run_s, walltime_s, response):
    # every step until then is a message: hours, and all memory
    jobs = workload(tmp_path, (0, 1, 5, None), (submit_s, 1, run_s, walltime_s))
    with pytest.raises(
        InputError, match=r"w\.json: job '1': ends at .* at the earliest, .* years on; correct its times"
    ):
        carried_out(tmp_path, jobs, caps(tmp_path, 600, 500), response=response)
