"""Bad input: one line that names the place, exit code 2, nothing written. Readers have theirs in tests/inputs."""

from __future__ import annotations

import json
import shlex
import socket

import pytest
from carbon_talk import hourly
from cli_house import JOBS, ROOT, SMALL, scheduler

NONE = ("-o", '{"response": "none"}')
NAP = {"id": 1, "subtime": 0, "res": 1, "profile": "nap"}
LOOP = {"type": "composed", "repeat": 2**31 - 1, "seq": ["b"]}
FILES = {
    "none.csv": "",
    "prices.csv": "time_s,price\n0,100\n3600,250\n7200,400\n",
    "t.csv": "arrival_time,length,cpus\n0,3600,2\n",
    "t.txt": "1 0 100 1\n2 0 300 1\n",
    "walk.csv": "time_s,machines\n0,3\n60,0\n90,3\n",
    "short.csv": "time_s,power_w\n0,600\n0.001,500\n",
    "plain.csv": "time_s,carbon_intensity\n0,400\n3600,100\n",
    "job.json": json.dumps({"work": [{"duration": 7200, "power": 1000}]}),
    "event.txt": '{"timestamp": 0, "type": "power_envelope", "power_w": "much"}\n',
    "five.json": json.dumps({"nb_res": 4, "jobs": [NAP], "profiles": {"nap": {"type": "DelayProfile", "delay": 5}}}),
    "long.json": json.dumps(
        {"nb_res": 1, "jobs": [NAP | {"walltime": 1e6}], "profiles": {"nap": {"type": "delay", "delay": 9e5}}}
    ),
    "loop.json": json.dumps(
        {"nb_res": 4, "jobs": [NAP], "profiles": {"nap": LOOP, "b": {"type": "delay", "delay": 1}}}
    ),
    "vm.csv": "a,s,d,0,600,90,10,50.5,Interactive,many,32\n",
}
SHORT = {
    "RUN": f"run -p {SMALL} -w {JOBS} --envelope envelope.csv -e out/x",
    "RISK": "run -w t.txt --machines 3 --cores 1 -s riskaware --capacity walk.csv -e out/x",
    "TRACE": "run -w t.csv --machines 3 --cores 1 --capacity constant:mean=1 -e out/x",
    "COMPARE": "compare -w t.csv --machines 12 --envelope constant:90 -e out/cmp",
    "CARBON": "run -w t.csv --machines 2 --carbon plain.csv -s carbon -e out/x",
    "PLAN": "plan carbon job.json --carbon signal.csv",
    "NONE": '-o \'{"response": "none"}\'',
    "PERIODS": f"plan checkpoint {ROOT}/workloads/periods",
    "JOBS": str(JOBS),
    "SMALL": str(SMALL),
}
REFUSED = {
    # options of a scheduler
    "RUN -o '[1]'": "must be a JSON object",
    "RUN -o '{\"response\": 5}'": "option 'response': 5 is not the name of a response",
    'RUN -o \'{"backfilling": {"name": "easy", "depth": 3}}\'': "'depth'",
    "RUN -o '{\"envelope\": 5}'": "option 'envelope': 5",
    'RUN -o \'{"envelope": "events"}\'': "--events: the envelope is to come as events",
    'RISK -o \'{"capacity": "walk:range=0.5"}\'': "option 'capacity': 'walk:range=0.5' is another one",
    # a run
    f'run -p {SMALL} -w {JOBS} -e out/x -o \'{{"response": "hfld"}}\'': "the response 'hfld' needs one",
    f"run -p {SMALL} -w five.json -e out/x": "five.json: is a workload of Batsim 5 (profile 'nap' is a DelayProfile)",
    f"run -p {SMALL} -w loop.json -e out/x": "profile 'nap': a job of it runs more than 10000000 tasks",
    f"run -w {JOBS} -e out/x": "--platform, --machines: neither is given",
    f"run -p {SMALL} -w {JOBS} -w t.csv -e out/x": "t.csv: is a trace: several workloads must be Batsim's JSON",
    "RUN --machines 3": "--platform, --machines: both are given",
    "RUN --batsim-arg=--sg-cfg=a": "--batsim-arg: '--sg-cfg=a' is no switch of the embedded engine",
    "RUN -w JOBS,wdith=nodes": "no key 'wdith'; did you mean 'width'?",
    "RUN -w JOBS,width=nodes,width=cpus": "width is given twice",
    "RUN -p SMALL,mmax=few": "mmax: 'few' is not a number of hosts",
    'RUN --events event.txt -o \'{"envelope": "events"}\'': "much",
    "RUN -s powercp": "'powercap'",
    "RUN --engine foo": "--engine: 'foo'",
    "RUN NONE --engine batsim --batsim no/batsim": "--batsim: 'no/batsim'",
    "RUN --timeout nan": "--timeout: nan",
    "RUN --no-energy": "--no-energy: the scheduler 'powercap' changes speeds, which Batsim does with energy accounting",
    "RUN --ignore-communication --engine batsim": "--ignore-communication: a real Batsim simulates communication",
    "RUN -w JOBS,unit=hour": "unit: no unit of time 'hour'",
    "account -w t.csv,unit=h": "--workload 't.csv,unit=h': no key 'unit'",
    "RUN -w JOBS,unit=h": "unit: is for traces of jobs",
    "RUN -w JOBS,width=nodes": "fields, width: are for job logs",
    "RUN --carbon signal.csv,days=1e-5": "the signal ends at 0.864 s, the last job is submitted at",
    # machines that come and go
    "RISK --capacity ''": "capacity '': names no file; write FILE, then keys",
    "RISK --window 3600:600": "--window: invalid window '3600:600'",
    "RISK --long 0": "--long: 0 is not a number of seconds > 0",
    f"run -p {SMALL} -w t.txt --cores 7 -s riskaware --capacity walk.csv -e out/x": "--cores",
    'TRACE -s checkpoint -o \'{"checkpoint_s": 60, "recovery_s": 1e-9}\'': "recovery_s must be 0 or at least 1e-06 s",
    "serve -s riskaware --capacity walk:range=0.6": "is made for a number of machines; give --platform",
    # Batsim's own command line
    "serve NONE --socket tcp://300.1.1.1:1": "300.1.1.1",
    # comparisons
    "COMPARE -c varcpa": "no scheduler 'varcpa'; did you mean 'varcap'?",
    "COMPARE -c 'varcap terminaton=lww'": "--case varcap: no option 'terminaton'; did you mean 'termination'?",
    "COMPARE -c a=varcap -c a=varcap": "there are two cases 'a'",
    "COMPARE -c a=varcap -c b={": "--case b: ",
    "COMPARE -c a=varcap -c b=planned": "batwatt: case 'b': option 'plan': the scheduler 'planned' needs one",
    "COMPARE -c a=varcap --by queue": "--by: no job of the workload has a queue; use size, length",
    "COMPARE -c a=varcap --figures bmp": "--figures: no format 'bmp'",
    "COMPARE -c a=varcap -w JOBS": "--workload: a comparison has one workload; give one, or declare a study",
    # carbon
    'CARBON -o \'{"deadline_h": 3, "constraint": "semi-weekly"}\'': "have both deadline_h and constraint",
    "CARBON -o '{\"deadline_h\": 0}'": "option 'deadline_h': 0",
    'CARBON -o \'{"clock": "Mars/Olympus"}\'': "clock 'Mars/Olympus' is not a time zone",
    "CARBON -o '{\"price_weight\": 2}'": "give money a weight without a price",
    "PLAN --deadline 36000 --carbon-weight 2": "--carbon-weight: is for a price",
    "PLAN --deadline 36000 --slot-s 0": "--slot-s: must be > 0, got 0",
    "PLAN --start -1 --deadline 36000": "is before the signal begins",
    "PLAN --deadline 2024-07-01T06:00 --carbon plain.csv": "has no dates",
    # plans of periods
    "PERIODS/period.json --method subset_sum": "--method: no method 'subset_sum'; did you mean",
    "PERIODS/period.json --prepare all": f"--prepare: is not for one period, which {ROOT}/work",
    "PERIODS/period.json --cover k": f"--cover: is not for one period, which {ROOT}/work",
    "PERIODS/period.json --min-yield 0": f"--min-yield: is not for one period, which {ROOT}/work",
    "PERIODS/change.json --method dp": f"--method: is not for a period before a change, which {ROOT}/work",
    "PERIODS/change.json --min-yield 0": f"--min-yield: is not for a period before a change, which {ROOT}/work",
    "PERIODS/figure1.json --prepare none": "--prepare: no way to prepare 'none'",
    "PERIODS/figure1.json --min-yield 1.5": "Invalid value for '--min-yield'",
    "PERIODS/figure1.json --min-yield 0.5 --method subset-sum": "--min-yield: is for the method dp",
    # job logs and accounts
    "account --carbon signal.csv": "PREFIX, --workload: neither is given; give the prefix of the files of",
    "account out/x": "--carbon: is missing for a run; give its carbon intensity, as in nl.csv",
    "account out/x --carbon signal.csv --pue 1": "--pue: is for a log, and out/x is the prefix of a run; leave it out",
    "account out/x --carbon signal.csv --by user": "--by: is for a log, and out/x is the prefix of a run; leave it out",
    "account -w x.sacct --segments s.csv": "--segments: is for a run; give the PREFIX of its files, or leave it out",
    "metrics out/x --job-power -p SMALL -w JOBS": "--job-power: needs the envelope of that run; give --envelope",
    # conversions and what is made
    "convert JOBS,width=nodes --to batsim5": "--to: a workload, events and an envelope become another file as they are",
    "convert event.txt --begin 0": "--to: a workload, events and an envelope become another file as they are; leave",
    "convert walk.csv --to events --nb-res 3": "--to: a workload, events and an envelope become another file as they",
    "convert JOBS --to batsim3": "--to: no target 'batsim3'; did you mean",
    "convert JOBS --to events": "is a file of Batsim, no envelope; give a CSV file with time_s,power_w",
    "convert event.txt --to events": "event.txt: is a file of Batsim, no envelope; give a CSV file with time_s,power_w",
    "convert walk.csv --to events": "walk.csv: no column 'power_w'",
    "convert short.csv": "short.csv line 1: lacks the column 'submission_time_s', 'submission_time' or 'arrival_time'",
    "convert t.csv --machines 3": "--machines: is for jobs in phases; give --platform, too, or leave it out",
    "convert t.csv --watts 3": "--watts: is for jobs in phases; give --platform, too, or leave it out",
    "convert t.csv -p p.xml -o w.json": "--platform: is for the workload in --output on --machines; give both, too",
    "convert t.csv -p p.xml --machines 3": "--platform: is for the workload in --output on --machines; give both, too",
    "convert t.csv -p p.xml --machines 3 -o w.json --to batsim5": "--platform: jobs in phases become a workload",
    "convert t.csv,width=nodes -p p.xml --machines 3 -o w.json": "no key 'width'",
    "convert vm.csv,unit=h --format azure": "--format: azure becomes a CSV trace, not a workload",
    "convert vm.csv --format azure --collections t.csv": "--collections: is for --format borg; leave it out",
    "generate series walk:range=0.6 -o /dev/full": "/dev/full: cannot be written (No space left on device)",
    "generate series nix.csv": "nix.csv: cannot be read",
    "generate series nix.csv --full-w 5": "nix.csv: cannot be read",
    "generate series walk: --machines 5 --full-w 5": "--machines, --full-w: a series is a capacity in machines or an",
    "generate series walk: constant:5": "is a share of the unknown power of the whole machine; give watts",
    "generate series walk: --state-of-charge x.csv": "--state-of-charge: there is no battery; add for instance",
    "generate series constant:5 --state-of-charge x.csv": "--state-of-charge: there is no battery; add for instance",
    "characterise short.csv,full=5": "column 'power_w' is in W, not machines or fractions of them; name another",
    "optimum -p SMALL -w long.json --envelope short.csv --effort 1 -e out/x": "in steps of 0.001 s are more than",
    # usage
    "rnu": "No such command 'rnu'",
    "run -p x": "Missing option '-w' / '--workload'",
    "policies none.py": "names: `batwatt policies`",
    "init .": "is not empty: ",
    "metrics / -p SMALL -w JOBS": "/: is a folder, not a prefix of files",
    f"run -p {'x' * 300} -w JOBS": "File name too long",
}
"""Command line -> part of the line on stderr."""


@pytest.mark.parametrize(("line", "said"), REFUSED.items(), ids=[line[:90] for line in REFUSED])
def test_refused(house, monkeypatch, line, said):
    for name, text in FILES.items():
        house.write(name, text)
    hourly(house)
    monkeypatch.chdir(house.folder)
    before = sorted(house.folder.rglob("*"))
    for short, text in SHORT.items():
        line = line.replace(short, text)
    done = house.batwatt(*shlex.split(line))
    assert (done.code, done.out) == (2, "") and said in done.line
    assert sorted(house.folder.rglob("*")) == before


@pytest.mark.parametrize("where", ["folder", "file/x", "/proc/nowhere/x", "", "x" * 300])
def test_output_that_cannot_be_written(house, where, monkeypatch):
    monkeypatch.chdir(house.folder)
    (house.folder / "folder").mkdir()
    house.write("file", "")
    before = sorted(house.folder.rglob("*"))
    done = house.batwatt("run", "-p", SMALL, "-w", JOBS, *NONE, "-e", where)
    assert done.code == 2 and "--export" in done.line
    assert sorted(house.folder.rglob("*")) == before


EXECUTE = "from procset import ProcSet; job.allocation = ProcSet(99); self.bs.execute_jobs([job])"
CTOR = """\
from batsim.batsim import BatsimScheduler


class Ctor(BatsimScheduler):
    def __init__(self, options):
        raise KeyError('opt')
"""
BROKEN = {
    "syntax": ("class Syntax(:\n", 2, "syntax.py: cannot be loaded: SyntaxError"),
    "importer": (
        "import no_such_module\n",
        2,
        "No module named 'no_such_module' (",
        "importer.py:1",
        "install 'no_such",
    ),
    "base": ("raise BaseException('x')\n", 2, "base.py: cannot be loaded: BaseException: x", "base.py:1"),
    "noclass": ("x = 1\n", 2, "defines no class Noclass"),
    "stranger": ("class Stranger:\n    pass\n", 2, "Stranger is not a scheduler"),
    "ctor": (CTOR, 1, "'ctor' raised KeyError: 'opt'", "ctor.py:6, in __init__"),
    "raiser": (
        scheduler("Raiser", "raise ValueError('no\\nway')"),
        1,
        "'raiser' raised ValueError: no way",
        "raiser.py:6, in onJobSubmission",
    ),
    "quitter": (scheduler("Quitter", "raise SystemExit(0)"), 1, "'quitter' raised SystemExit: 0"),
    "misuser": (scheduler("Misuser", "self.bs.execute_jobs([job])"), 1, "has no allocation", "misuser.py:6"),
    "outsider": (scheduler("Outsider", EXECUTE), 1, "illegal decision EXECUTE_JOB", "no host 99"),
    "nanny": (scheduler("Nanny", decide="self.bs.wake_me_up_at(float('nan'))"), 1, "CALL_ME_LATER"),
}
"""Name of a scheduler -> its text, the exit code, and parts of the line on stderr."""


@pytest.mark.parametrize("name", BROKEN)
def test_broken_scheduler(house, name):
    text, code, *parts = BROKEN[name]
    done = house.run("-s", house.write(f"{name}.py", text))
    assert (done.code, house.left) == (code, [])
    assert all(part in done.line for part in parts)


@pytest.mark.parametrize("place", [0, 7])
def test_a_traceback_is_shown_on_request_and_files_stay(house, place):
    assert house.run(*NONE).code == 0
    before = {name: house.file(name) for name in house.left}
    words = ["run", "-p", SMALL, "-w", JOBS, "-s", house.write("raiser.py", BROKEN["raiser"][0])]
    words.insert(place, "-v")
    done = house.batwatt(*words, "-e", house.out / "x")
    assert done.code == 1 and "Traceback" in done.err and done.err.rstrip().split("\n")[-1].startswith("batwatt: ")
    assert {name: house.file(name) for name in house.left} == before


def test_endpoint_in_use(house, endpoint):
    with socket.create_server(("127.0.0.1", int(endpoint.rpartition(":")[2]))):
        done = house.batwatt("serve", *NONE, "--socket", endpoint)
        assert done.code == 2 and "in use" in done.line


def test_files_of_an_earlier_run_do_not_stay_among_those_of_a_later_one(house):
    assert house.run(*NONE).code == 0 and "x_consumed_energy.csv" in house.left
    assert house.run(*NONE, "--no-energy").code == 0
    assert not {"x_consumed_energy.csv", "x_power.csv"} & set(house.left)
    assert house.metrics()["energy_j"] is None
