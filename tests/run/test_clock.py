"""One clock of a run: values of series by date hold at their dates, by hand; what has no overlap is refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.load import _windowed
from batwatt.model.platform import MachineSpec
from batwatt.model.timeline import Timeline
from batwatt.run.prepared import PreparedRun
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

JOBS = "JobID|Submit|Elapsed|NCPUS\n1|2024-09-03T21:36:00|01:00:00|1\n2|2024-09-04T01:00:00|01:00:00|1\n"
BEGIN = "2024-09-03T21:36Z"
NONE = {"response": "none"}


def hours(begin: str, count: int, column: str) -> str:
    """A row an hour: the hour of the day that it says."""
    first = datetime.fromisoformat(begin)
    dates = [first + timedelta(hours=hour) for hour in range(count)]
    return f"time,{column}\n" + "".join(f"{date.isoformat(timespec='minutes')},{date.hour}\n" for date in dates)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    # what is kept of an earlier test says nothing again
    _windowed.cache_clear()
    caplog.set_level(logging.WARNING)
    jobs = [{"id": str(i), "subtime": i * 3600, "res": 1, "profile": "p"} for i in range(3)]
    plain = {"nb_res": 1, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 60}}}
    files = {
        "night.sacct": JOBS,
        "plain.json": json.dumps(plain),
        "sun.csv": hours("2024-09-03", 72, "power_w"),
        "late.csv": hours("2024-09-03T22:00", 72, "power_w"),
        "short.csv": hours("2024-09-03", 24, "power_w"),
        "june.csv": hours("2024-06-03", 48, "power_w"),
        "june-carbon.csv": hours("2024-06-03", 48, "carbon intensity (g/kWh)"),
        "autumn.csv": hours("2024-10-03", 24, "power_w"),
        "odd.csv": hours("2024-06-03", 36, "power_w"),
        "carbon.csv": hours("2024-09-03", 72, "carbon intensity (g/kWh)"),
        "price.csv": hours("2024-09-03T06:00", 72, "price (EUR/kWh)"),
        "plain.csv": "time_s,power_w\n0,7\n3600,8\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def inputs_of(workload: str, log: Mapping[str, str] | None = None, **series: str) -> PreparedRun:
    options = LogOptions(**(log or {}))
    spec = RunSpec(platform=MachineSpec(20, 1), workloads=(Path(workload),), scheduler=None, log=options, **series)
    return PreparedRun.read(spec)


def at(series: Timeline | None, *times_s: float) -> list[float]:
    assert series is not None
    return [series.at(time_s) for time_s in times_s]


# jobs with dates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "keys", "date", "times_s", "hour_of_day"),
    [
        # 22:00 is 24 minutes after 0 s
        ({}, "", BEGIN, (0, 1439, 1440, 8640), [21, 21, 22, 0]),
        ({"begin": "2024-09-03T12:00"}, "", "2024-09-03T12:00Z", (0, 3599, 3600), [12, 12, 13]),
        # 21:36 in Berlin is 15:36 in New York
        ({"tz": "Europe/Berlin"}, ",tz=America/New_York", "2024-09-03T19:36Z", (0, 1439, 1440), [15, 15, 16]),
    ],
    ids=["first submission", "told date", "two zones"],
)
def test_the_sun_of_the_evening(caplog, log, keys, date, times_s, hour_of_day):
    inputs = inputs_of("night.sacct", log, envelope=f"power:sun.csv{keys}")
    assert at(inputs.envelope, *times_s) == hour_of_day and inputs.clock.date == date
    if not log:
        assert caplog.messages == [f"night.sacct: 0 s is {BEGIN}, the first submission"]


def test_everything_has_one_clock():
    inputs = inputs_of(
        "night.sacct",
        envelope="power:sun.csv + power:late.csv,scale=100 + constant:1000",
        capacity="stranded:price.csv,threshold=21",
        carbon="carbon.csv",
        price="price.csv,tz=UTC",
    )
    assert at(inputs.envelope, 0, 1440, 5040) == [1000 + 21 + 2200, 1000 + 22 + 2200, 1000 + 23 + 2300]
    assert at(inputs.capacity, 0, 1440, 5040 + 3600) == [20, 0, 20]
    for signal in (inputs.carbon, inputs.price):
        assert signal.values_at([0, 1439, 1440]).tolist() == [21, 21, 22] and signal.begin == BEGIN
    # until midnight of the third day, and six hours more
    assert inputs.carbon.end_s == (50 * 60 + 24) * 60 and inputs.price.end_s == inputs.carbon.end_s + 6 * 3600


def test_no_overlap():
    line = r"june.csv: its rows go from 2024-06-03T00:00Z to 2024-06-05T00:00Z, jobs are submitted from "
    line += r"2024-09-03T21:36Z to 2024-09-04T01:00Z; .*from=.*repeat=yes.*begin"
    with pytest.raises(InputError, match=line):
        inputs_of("night.sacct", envelope="power:june.csv")
    Path("june.csv").write_text(hours("2024-06-03", 48, "x"))
    for series in ({"capacity": "price:june.csv,unit=EUR/kWh"}, {"carbon": "june.csv,unit=g/kWh"}):
        with pytest.raises(InputError, match=line):
            inputs_of("night.sacct", **series)
    Path("one.sacct").write_text(JOBS.rpartition("2|")[0])
    inputs_of("one.sacct", envelope="power:late.csv")
    # the only job ends when its rows begin
    Path("later.csv").write_text(hours("2024-09-03T22:36", 5, "power_w"))
    with pytest.raises(InputError, match="its rows go from 2024-09-03T22:36Z"):
        inputs_of("one.sacct", envelope="power:later.csv")


WEEK_S = 7 * 86400
STANDS = f"stands for {BEGIN}, which is 0 s"
JOBS_FROM = "jobs are submitted from 2024-09-03T21:36Z to 2024-09-04T01:00Z"
ENVELOPES = [
    (
        "late.csv",
        {0: 22, 1440: 22, 5040: 23},
        f"Z to 2024-09-06T22:00Z, {JOBS_FROM}: the first holds where there is none",
    ),
    (
        "short.csv",
        {0: 21, 1440: 22, 5040: 23},
        f"Z to 2024-09-04T00:00Z, {JOBS_FROM}: the last holds where there is none",
    ),
    # 92 days later, 46 times two days
    (
        "june.csv,repeat=yes",
        {0: 21, 1440: 22, 5040: 23, 8640: 0, WEEK_S: 21, WEEK_S + 1440: 22},
        f"june.csv: its 2024-06-03T21:36Z {STANDS}; it repeats every 2 days",
    ),
    # also before its first row
    ("autumn.csv,repeat=yes", {0: 21, 1440: 22, 8640: 0}, STANDS),
    ("june.csv,days=1,repeat=yes", {0: 21, 1440: 22, 86400: 21}, STANDS),
    # 1.5 days, 61 times and 17.6 h before: 09:36 of the second day would be 33.6 h
    ("odd.csv,repeat=yes", {0: 9, 1440: 10}, "every 1.5 days, which moves its time of day: give to= or days="),
    ("june.csv,from=2024-06-03T10:00", {0: 10, 3600: 11}, f"june.csv: its 2024-06-03T10:00Z {STANDS}"),
    ("plain.csv + constant:20", {0: 27, 3600: 28}, "of night.sacct; without dates, from 0 s on: plain.csv"),
]


@pytest.mark.parametrize(("text", "values", "said"), ENVELOPES, ids=[row[0] for row in ENVELOPES])
def test_envelopes_of_other_dates(caplog, text, values, said):
    inputs = inputs_of("night.sacct", envelope=f"power:{text}")
    assert at(inputs.envelope, *values) == list(values.values())
    assert any(said in message for message in caplog.messages)


def test_signals_of_other_dates(caplog):
    """One that repeats keeps the hour of the day; one that does not is from 0 s on."""
    repeated = inputs_of("night.sacct", carbon="june-carbon.csv,repeat=yes").carbon
    assert repeated.values_at([0, 1440, WEEK_S]).tolist() == [21, 22, 21]
    part = inputs_of("night.sacct", carbon="carbon.csv,days=1").carbon
    assert (part.at(0), part.end_s) == (21, 86400)
    caplog.clear()
    inputs_of("night.sacct", envelope="power:sun.csv,from=2024-09-03T21:36")
    assert not caplog.messages


# jobs without dates -------------------------------------------------------------------------------------------------


def test_the_latest_first_row(caplog):
    inputs = inputs_of("plain.json", carbon="carbon.csv", price="price.csv")
    assert inputs.carbon.values_at([0, 3600]).tolist() == inputs.price.values_at([0, 3600]).tolist() == [6, 7]
    line = "0 s is 2024-09-03T06:00Z, the first row of price.csv; without dates, from 0 s on: plain.json"
    assert caplog.messages == [line]
    # unless a series is given from a date on, also as an object
    inputs = inputs_of(
        "plain.json", envelope="power:sun.csv", carbon="carbon.csv,from=2024-09-03T09:00", price="price.csv"
    )
    assert (at(inputs.envelope, 0), inputs.carbon.at(0), inputs.price.at(0)) == ([9], 9, 9)
    inputs = simulated("plain.json", carbon=bw.read_signal("carbon.csv,from=2024-09-03T05:00"), price="price.csv")
    assert (inputs.clock.date, inputs.carbon.at(0), inputs.price.at(7200)) == ("2024-09-03T05:00Z", 5, 7)
    # a series without dates gives none
    assert inputs_of("plain.json", envelope="power:plain.csv").clock is None


def test_a_date_for_jobs_that_have_none(caplog):
    log = {"begin": "2024-09-03T14:00", "tz": "Europe/Berlin"}
    inputs = inputs_of("plain.json", log, carbon="carbon.csv")
    assert (inputs.carbon.at(0), inputs.clock.date) == (12, "2024-09-03T12:00Z")
    with pytest.raises(InputError, match="begin: '5' is not a date"):
        inputs_of("plain.json", {"begin": "5"})


# the API, and files -------------------------------------------------------------------------------------------------


def simulated(workload, **series) -> PreparedRun:
    """The inputs of a run by the API."""
    return bw.simulate(bw.Platform.machines(2), workload, "powercap", **series).run


def test_signals_and_jobs_as_objects():
    jobs = bw.Workload.read("night.sacct")
    assert jobs.begin == BEGIN
    signal = bw.read_signal("carbon.csv")
    inputs = simulated(jobs, carbon=signal, price="price.csv")
    assert inputs.carbon.values_at([0, 1440]).tolist() == inputs.price.values_at([0, 1440]).tolist() == [21, 22]
    with pytest.raises(InputError, match="its rows go from 2024-06-03T00:00Z"):
        bw.simulate(bw.Platform.machines(2), jobs, carbon=bw.read_signal("june-carbon.csv"))
    with pytest.raises(InputError, match=f"begin: is 2024-09-03T00:00Z, but 0 s of night.sacct is {BEGIN}"):
        bw.simulate(bw.Platform.machines(2), jobs, begin="2024-09-03")
    plain = simulated("plain.json", carbon=signal, begin="2024-09-03T05:00")
    assert plain.carbon.at(0) == 5


def test_a_comparison_has_one_clock():
    cases = {"a": bw.Case("powercap", NONE)}
    result = bw.compare(bw.Platform.machines(2), "night.sacct", "power:sun.csv,scale=10", cases, carbon="carbon.csv")
    assert at(result.envelope, 0, 1440) == [210, 220]
    # two machines of 10 W: 24 min at 21 g/kWh, the hours of 22, 23, 0 and 1, and of job 2 nothing after 02:00
    carbon_g = 0.02 * (0.4 * 21 + 22 + 23 + 0 + 1)
    assert result.table["carbon_g"].tolist() == [pytest.approx(carbon_g)]


def test_the_signal_of_an_option():
    """The greenest hour is midnight, 144 minutes after 0 s."""
    options = {"policy": "oracle", "wait_h": [12], "signal": "carbon.csv"}
    jobs = bw.simulate(bw.Platform.machines(2), "night.sacct", "carbon", options=options).jobs
    assert jobs["starting_time_s"].tolist()[0] == pytest.approx(144 * 60, abs=1)


def test_metadata_have_the_date(folder):
    run(RunSpec(platform=MachineSpec(2, 1), workloads=(Path("night.sacct"),), options=NONE, prefix=folder / "x"))
    assert json.loads((folder / "x_metadata.json").read_text())["begin"] == BEGIN
    Path("dates.csv").write_text("time_s,power_w\n1719792000,7\n")
    with pytest.raises(InputError, match=r"its times are dates from 2024-07-01T00:00Z on, .*write power:dates"):
        inputs_of("plain.json", envelope="dates.csv")


# texts and objects --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [",from=2024-06-03T10:00,days=0.125,repeat=yes", ",repeat=yes"])
@pytest.mark.parametrize("workload", ["night.sacct", "plain.json"])
def test_an_envelope_means_what_its_text_means(caplog, workload, keys):
    text = f"june.csv{keys}"
    signal = bw.read_signal(text, quantity="power")
    path, read = simulated(workload, envelope=f"power:{text}"), simulated(workload, envelope=signal)
    times_s = [hour * 3600.0 + 1440.0 for hour in range(100)]
    assert at(read.envelope, 0, *times_s) == at(path.envelope, 0, *times_s)
    # the third time that 3 h begin is 6 h on
    assert "days" not in keys or at(read.envelope, 0, 3 * 3600, 6 * 3600 + 3600) == [10, 10, 11]


def test_objects_move_to_the_date_of_0_s(caplog):
    """0 s of the run is 21:36 of the day, 24 minutes before the row of 22:00; a day of the file ends at midnight."""
    sun = bw.read_signal("power:sun.csv + constant:20")
    assert sun.begin == "2024-09-03T00:00Z"
    assert at(simulated("plain.json", envelope=sun).envelope, 0, 3600) == [20, 21]
    whole = simulated("night.sacct", envelope="power:sun.csv + constant:20").envelope
    times_s = [600.0 * step for step in range(30)]
    assert at(simulated("night.sacct", envelope=sun).envelope, *times_s) == at(whole, *times_s)
    caplog.clear()
    day = simulated("night.sacct", envelope=bw.read_signal("sun.csv,days=1", quantity="power"))
    assert at(day.envelope, 0, 1440, 5040, 8640, 1e6) == [21, 22, 23, 23, 23]
    assert "the last holds where there is none" in caplog.text


def test_a_series_that_ends_says_so(tmp_path, caplog):
    """Before the run when a job may outlast it, and after the run when one did."""
    frame = pd.DataFrame({"submission_time_s": [0.0, 3600.0], "length_s": [36000.0, 3600.0], "hosts": [1, 1]})
    path = tmp_path / "sun.csv"
    path.write_text("time,power_w\n2024-06-01T00:00Z,400\n2024-06-01T01:00Z,400\n")
    result = bw.simulate(
        bw.Platform.machines(2, 1, watts=200), bw.Workload.from_frame(frame), "varcap", envelope=f"power:{path}"
    )
    assert result.metrics["jobs_finished"] == 2
    text = f"{path}: ends at 7200 s, jobs may run until 36000 s: its last value holds; repeat=yes or loop=0 repeats it"
    assert text in caplog.messages
    assert any("ended at 7200 s, the run at 36000" in message for message in caplog.messages)
