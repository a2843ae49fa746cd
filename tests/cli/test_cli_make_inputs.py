"""Commands that make inputs or turn them into others: capacities, envelopes, machines, traces of jobs."""

from __future__ import annotations

from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.signal import read_series

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


# capacities and envelopes --------------------------------------------------------------------------------------------


def test_characterised_text_and_files(house):
    rows = printed(house.batwatt("characterise", "walk:range=0.6,step=0.15,seed=1,level=0"))
    assert rows["structure"].startswith("walk") and rows["period"] == "3600 s" and rows["values"].endswith("30 days")
    assert rows["synthetic"].startswith("walk:range=0.5")
    walk = house.write("walk.txt", "24\n1200 26\n2400 24\n")
    assert printed(house.batwatt("characterise", walk))["mean"] == "24.67"
    walk = house.write("walk.csv", "time_s,machines\n0,24\n1200,26\n2400,24\n")
    rows = printed(house.batwatt("characterise", f"{walk},full=50"))
    assert (rows["range"], rows["frequency"].split(",")[0]) == ("0.04 (0.48 to 0.52)", "3 an hour possible")


def test_generated_envelopes(house):
    sun, soc = house.write("sun.csv", SUN), house.out / "soc.csv"
    out = made(house, "envelope", f"power:{sun}", "constant:50")
    assert out.read_text() == "time_s,power_w\n0,50\n3600,2050\n7200,8050\n10800,4050\n"
    battery = "battery:capacity_kwh=10,demand_w=3000,initial_soc=1,step=3600"
    series = read_series(made(house, "envelope", f"power:{sun} + {battery}", "--state-of-charge", soc))
    # 4 of the 8 kW are charged, then it is full
    assert (series.times_s, series.values) == ((0.0, 7200.0), (3000.0, 4000.0))
    assert soc.read_text() == "time_s,state_of_charge\n0,1\n3600,0.7\n7200,0.6\n10800,1\n14400,1\n"
    done = house.batwatt("generate", "envelope", "walk:range=0.6,seed=1,level=0", "--end", 3600, "--full-w", 1000)
    assert (done.code, done.out) == (0, "time_s,power_w\n0,700\n")


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


def test_a_generated_workload_has_the_defaults_of_the_generator(house):
    assert made(house, "workload", "--seed", 3).read_text() == to_text(google_like(GoogleLike(), 3))
