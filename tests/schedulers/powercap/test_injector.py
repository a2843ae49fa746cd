"""When steps begin and what their cap is, from a file and from events."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from builders import envelope, job, machine, played

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.schedulers.easy import Easy
from batwatt.scheduling.power import EventInjector, FileInjector


def test_a_series_holds_before_its_first_and_after_its_last_row():
    series = Timeline((100.0, 400.0), (5.0, 7.0))
    assert [series.at(t) for t in (0, 100, 399.9, 400, 1e9)] == [5, 5, 5, 7, 7]
    assert list(series.steps(0, 1200)) == [(0, 100, 5), (100, 400, 5), (400, 700, 7), (700, 1000, 7), (1000, 1200, 7)]
    # one row: in steps of five minutes
    assert [step[:2] for step in Timeline((0.0,), (5.0,)).steps(0, 700)] == [(0, 300), (300, 600), (600, 700)]


def test_file_steps():
    injector = FileInjector(envelope(10, 20, 30))
    seen = []
    for now in (0.0, 12.0, 300.0, 300.0, 1000.0, 1100.0, 1200.0):
        seen.append((injector.due(now), injector.cap_w, injector.over, injector.next_call_s()))
    assert seen == [
        (True, 10, False, 300), (False, 10, False, 300), (True, 20, False, 600), (False, 20, False, 600),
        (True, 30, True, 1200), (False, 30, True, 1200), (True, 30, True, 1500),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [None, -1, float("nan")])
def test_a_malformed_event_is_one_line(value):
    with pytest.raises(InputError, match="power_w"):
        EventInjector().receive({"type": "power_envelope", "power_w": value}, 0.0)


def test_a_cap_that_lets_nothing_run_rejects_the_jobs_in_the_end(caplog):
    scheduler = Easy({"response": "hfld", "platform": machine(2), "envelope": envelope(200, 10)})
    record = played(scheduler, machine(2), job("a", 0, 1, 1000, 2000), job("b", 700, 1, 5, 10))
    assert {row[0]: row[7] for row in record.jobs} == {"a": "COMPLETED_KILLED", "b": "REJECTED"}
    assert "can never run, too wide for the last cap of 10 W" in caplog.text


def test_an_exact_estimate_slows_down_where_a_walltime_estimate_must_kill():
    # two jobs of 300 flops a server that may take 600 s and 900 s; 90 W from 300 s on
    def ends(estimate):
        options = {"platform": machine(2), "envelope": envelope(250, 90), "work_estimate": estimate}
        jobs = (job("a", 290, 1, 30, 600, flops=True), job("b", 290, 1, 30, 900, flops=True))
        record = played(Easy({"response": "hfld", **options}), machine(2), *jobs)
        return {row[0]: (row[7], row[9]) for row in record.jobs}

    # 290-300 s at 10 flop/s leave 200 flops; the minimal state of Eq. 7 is 4 flop/s for both: 80 W, 50 s more
    done = ("COMPLETED_SUCCESSFULLY", pytest.approx(60))
    assert ends("exact") == {"a": done, "b": done}
    # estimated to need all their walltime at 10 flop/s, they cannot be slowed by Eq. 7; then b, of the later deadline,
    # is reduced and killed (20 W on the way to sleep), and a goes to 60 W: 200 flops at 6 flop/s
    assert ends("walltime") == {
        "a": ("COMPLETED_SUCCESSFULLY", pytest.approx(10 + 200 / 6)),
        "b": ("COMPLETED_KILLED", 10),
    }


def test_an_exact_estimate_of_what_only_a_real_batsim_runs_is_the_walltime():
    options = {"response": "hfld", "platform": machine(1), "envelope": envelope(1), "work_estimate": "exact"}
    job = SimpleNamespace(profile="p", profile_dict={"type": "parallel_homogeneous", "cpu": 5, "com": 1})
    run = SimpleNamespace(attempt=job, mask=1, hosts=1, walltime_s=30.0, estimate_s=30.0)
    assert Easy(options)._work_flops(run) == 300.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"response": "hfld", "envelope": envelope(1)}, "platform"),
        ({"response": "none", "forecast_steps": 1}, "forecast_steps"),
        ({"response": "frugal", "platform": machine(1), "envelope": "events", "forecast_steps": 1}, "forecast_steps"),
    ],
)
def test_options_that_lack_another(options, words):
    with pytest.raises(InputError, match=words):
        Easy(options)
