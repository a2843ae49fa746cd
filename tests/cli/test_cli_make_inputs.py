"""Commands that make inputs or turn them into others: series, platforms, traces of jobs."""

from __future__ import annotations

import pytest

from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.servers import machines_xml
from batwatt.inputs.signal import read_series
from batwatt.model.platform import MachineSpec

SUN = "datetime,power_kw\n2024-06-01 00:00,0\n2024-06-01 01:00,2\n2024-06-01 02:00,8\n2024-06-01 03:00,4\n"
EVENTS = """\
time,type,collection_id,instance_index,resource_request.cpus,resource_request.memory
600000000,SCHEDULE,1,0,0.05,0.02
660000000,FINISH,1,0,0.05,0.02
670000000,SCHEDULE,2,0,0.1,0.01
680000000,FINISH,2,0,0.1,0.01
"""


def made(house, command: str, *words: object):
    path = house.out / "x"
    done = house.batwatt("generate", command, *words, "-o", path)
    assert (done.code, done.out, done.err) == (0, "", "")
    return path


def printed(done) -> dict[str, str]:
    assert (done.code, done.err) == (0, ""), done
    return dict(line.split("\t") for line in done.out.splitlines())


# series --------------------------------------------------------------------------------------------------------------


def test_characterised_text_and_files(house):
    rows = printed(house.batwatt("characterise", "walk:range=0.6,step=0.15,seed=1,level=0"))
    assert rows["structure"].startswith("walk") and rows["period"] == "3600 s" and rows["values"].endswith("30 days")
    assert rows["synthetic"].startswith("walk:range=0.5")
    walk = house.write("walk.txt", "24\n1200 26\n2400 24\n")
    assert printed(house.batwatt("characterise", walk))["mean"] == "24.67"
    walk = house.write("walk.csv", "time_s,machines\n0,24\n1200,26\n2400,24\n")
    rows = printed(house.batwatt("characterise", f"{walk},full=50"))
    assert (rows["range"], rows["frequency"].split(",")[0]) == ("0.04 (0.48 to 0.52)", "3 an hour possible")


@pytest.mark.parametrize(
    ("text", "values", "mean"),
    [
        ("constant:2000", "power_w, 1 rows over 30 days", "2000"),
        ("power:{sun}", "power_w, 4 rows over 0.1667 days", "3500"),
        ("power:{sun},peak_w=800 + constant:100", "power_w, 4 rows over 0.1667 days", "450"),
        ("{csv}", "power_w, 2 rows over 0.08333 days", "1500"),
        ("constant:1000 + battery:capacity_kwh=10", "power_w, 1 rows over 30 days", "1000"),
        ("constant:mean=0.5", "fraction, 1 rows over 30 days", "0.5"),
    ],
)
def test_characterise_takes_what_the_envelope_of_a_run_takes(house, text, values, mean):
    """Constants last until --end."""
    files = {"sun": house.write("sun.csv", SUN), "csv": house.write("cap.csv", "time_s,power_w\n0,1000\n3600,2000\n")}
    rows = printed(house.batwatt("characterise", text.format(**files)))
    assert (rows["values"], rows["mean"]) == (values, mean)
    if text == "constant:2000":
        rows = printed(house.batwatt("characterise", text, "--end", 7200))
        assert rows["values"] == "power_w, 1 rows over 0.08333 days"


def test_envelopes(house):
    sun, soc = house.write("sun.csv", SUN), house.out / "soc.csv"
    out = made(house, "series", f"power:{sun}", "constant:50")
    assert out.read_text() == "time_s,power_w\n0,50\n3600,2050\n7200,8050\n10800,4050\n"
    battery = "battery:capacity_kwh=10,demand_w=3000,initial_soc=1,step=3600"
    series = read_series(made(house, "series", f"power:{sun} + {battery}", "--state-of-charge", soc))
    # 4 of the 8 kW are charged, then it is full
    assert (series.times_s, series.values) == ((0.0, 7200.0), (3000.0, 4000.0))
    assert soc.read_text() == "time_s,state_of_charge\n0,1\n3600,0.7\n7200,0.6\n10800,1\n14400,1\n"
    done = house.batwatt("generate", "series", "walk:range=0.6,seed=1,level=0", "--end", 3600, "--full-w", 1000)
    assert (done.code, done.out) == (0, "time_s,power_w\n0,700\n")


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("constant:5", "power_w\n0,5\n"),
        ("constant:mean=0.7", "fraction\n0,0.7\n"),
        ("constant:mean=0.7 --machines 9", "machines\n0,6\n"),
        ("constant:mean=0.2 constant:mean=0.5", "fraction\n0,0.7\n"),
        ("constant:5 --machines 9", "machines\n0,5\n"),
        ("walk.csv", "machines\n0,24\n1200,26\n"),
        ("trace:walk.csv,full=100", "fraction\n0,0.24\n1200,0.26\n"),
        ("walk.csv,full=100", "fraction\n0,0.24\n1200,0.26\n"),
        ("share.csv", "fraction\n0,0.5\n"),
        ("share.csv,peak_w=100", "power_w\n0,50\n"),
        ("sun.csv", "power_w\n0,0\n3600,2000\n7200,8000\n10800,4000\n"),
        ("sun.csv,scale=2 --end 4000", "power_w\n0,0\n3600,4000\n"),
    ],
)
def test_the_quantity_of_a_series_is_in_its_text_or_its_file(house, monkeypatch, words, rows):
    monkeypatch.chdir(house.folder)
    house.write("sun.csv", SUN)
    house.write("walk.csv", "time_s,machines\n0,24\n1200,26\n")
    house.write("share.csv", "time_s,fraction\n0,0.5\n")
    done = house.batwatt("generate", "series", *words.split())
    assert (done.code, done.out, done.err) == (0, f"time_s,{rows}", "")


def test_a_signal_is_neither_envelope_nor_capacity(house):
    path = house.write("nl.csv", "time_s,carbon_intensity (g/kWh)\n0,400\n")
    assert "is in g/kWh, not machines or fractions of them" in house.batwatt("generate", "series", path).line


# machines and traces -------------------------------------------------------------------------------------------------


def test_converted_traces(house):
    events = house.write("events.csv", EVENTS)
    collections = house.write("c.csv", "collection_id,parent_collection_id,start_after_collection_ids\n2,,1\n")
    path = house.out / "jobs.csv"
    words = ["--format", "borg", "--collections", collections, "-o", path]
    done = house.batwatt("convert", events, *words)
    assert (done.code, done.out, done.err) == (0, "", "2 jobs\n")
    assert path.read_text() == "arrival_time,length,cpus,memory,depends_on\n0.0,60.0,3,0.02,\n70.0,10.0,6,0.01,1\n"
    hours = house.write("hours.csv", "arrival_time,length,cpus\n0,0.5,4\n")
    assert '"delay": 1800' in house.batwatt("convert", f"{hours},unit=hours").out


def test_a_platform_of_like_machines_has_the_defaults_of_a_run(house):
    assert made(house, "platform", "--machines", 2).read_text() == machines_xml(MachineSpec(2, 1))
    words = ("--machines", 2, "--cores", 3, "--core-watts", 0, "--core-speed", "2Gf")
    assert made(house, "platform", *words).read_text() == machines_xml(MachineSpec(2, 3, core_w=0.0, core_flops="2Gf"))


def test_generated_jobs_have_the_defaults_and_the_keys_of_the_generator(house):
    assert made(house, "jobs", "google", "seed=3").read_text() == to_text(google_like(GoogleLike(), 3))
    few = GoogleLike(jobs_per_hour=3, hours=2, mean_runtime_s=900, sigma=0.5, max_servers=2, nb_res=4)
    words = [f"{key}={value}" for key, value in vars(few).items() if not key.startswith("_")]
    assert made(house, "jobs", "google", *words).read_text() == to_text(google_like(few, 0))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("jobs azure", "KIND: no kind of jobs 'azure'; known: google. Give one of these."),
        ("jobs google hour=2", "google: no key 'hour'; did you mean 'hours'? Correct it."),
        (
            "jobs google xyz=2",
            "google: no key 'xyz'; known: hours, jobs_per_hour, max_servers, mean_runtime_s, nb_res, ",
        ),
        ("jobs google seed=1 seed=2", "google: seed is given twice; give it once"),
        ("jobs google seed=-1", "google-like workload: seed must be a whole number >= 0, got -1"),
        ("jobs google hours=1.5", "google-like workload: hours must be a whole number, got 1.5"),
        ("jobs google hours=0", "google-like workload: hours must be >= 1, got 0"),
        ("jobs google hours", "google-like workload: hours must be a whole number, got ''"),
        ("platform", "FILE.toml, --machines: neither is given; give a file of types, or machines and cores"),
        ("platform s.toml --machines 2", "FILE.toml, --machines: both are given; give a file of types, or machines"),
        ("platform s.toml --cores 2", "--cores: is for --machines; leave it out: the file has its servers"),
        ("platform s.toml --core-watts 0", "--core-watts: is for --machines; leave it out"),
        ("platform s.toml --core-speed 2Gf", "--core-speed: is for --machines; leave it out"),
        ("platform s.toml --speeds", "--speeds: is for --machines; leave it out"),
        ("platform --machines 0", "machines must be"),
    ],
)
def test_a_wrong_kind_key_or_option_is_one_line(house, words, line):
    done = house.batwatt("generate", *words.split())
    assert (done.code, done.out) == (2, "") and done.line.startswith("batwatt: ") and line in done.line, done.line
