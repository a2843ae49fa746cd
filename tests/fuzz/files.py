"""Changed files of every kind that batwatt reads: numbers, cells, bytes, JSON values and types of columns."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

from batwatt.cli.main import _carry_out
from batwatt.errors import InputError
from batwatt.inputs.batsim_files import (
    converted_file,
    read_events,
    read_model,
    read_phase_jobs,
    read_workload,
)
from batwatt.inputs.convert import convert_file, read_trace
from batwatt.inputs.formats import read_reference
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.servers import read_platform_xml
from batwatt.inputs.signal import read_capacity, read_series
from batwatt.protocol.conversion import to_batsim5
from batwatt.schedulers.checkpoint.files import read_periods

from .hostile import octets, tree

ROOT = Path(__file__).resolve().parents[2]
SWF = b"; MaxProcs: 4\n" + b"".join(
    b"%d %d 5 %d 2 -1 100 2 %d 200 1 3 1 -1 2 -1 -1 -1\n" % (n, 60 * n, 100 * n, 200 * n) for n in range(1, 7)
)
CSV = b"arrival_time,length,cpus,memory,estimate,use,depends_on,user,start\n" + b"".join(
    b"%d,%d,%d,12.5,3600,0.4,,ann,%d\n" % (60 * n, 100 * n, 1 + n % 3, 60 * n) for n in range(6)
)
TXT = b"".join(b"%d %d %d %d\n" % (n, 60 * n, 100 * n, 1 + n % 3) for n in range(1, 7))
AZURE = b"a,s,d,0,600,90,10,50.5,Interactive,4,32\nb,s,d,300,300,90,10,0,Unknown,>24,>64\nc,s,d,0,9,90,1,1,x,1,1.75\n"
BORG = (
    b"time,type,collection_id,collection_type,instance_index,resource_request.cpus,resource_request.memory\n"
    b"610000000,3,2,0,0,0.001,0.01\n620000000,0,3,0,5,0.1,0.3\n640000000,3,3,0,5,,\n660000000,4,3,0,5,0.1,0.3\n"
)
EVENTS = (
    b'{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1 3"}\n'
    b'{"timestamp": 50.5, "type": "machine_available", "resources": "0-1 3"}\n'
    b'{"timestamp": 7, "type": "power_envelope", "power_w": 400}\n'
)
EVENTS5 = "\n".join(
    json.dumps({"timestamp": time, "type": "generic", "data": json.dumps({"type": kind, "resources": "3"})})
    for time, kind in ((15, "machine_unavailable"), (40, "machine_available"))
).encode()
OPTIONS = {"response": "hfld", "order": "fcfs", "backfilling": "easy", "victim": "resubmit", "forecast_steps": 0}
SMALL, PHASES, PERIOD = (
    json.loads((ROOT / "workloads" / name).read_text())
    for name in ("small.json", "carbon/job.json", "periods/period.json")
)


def _bytes_of(name: str) -> bytes:
    return (ROOT / name).read_bytes()


PLATFORM = _bytes_of("platforms/small.xml")


def trace(path: Path) -> object:
    """Read a trace in both ways."""
    convert_file(path)
    return read_trace(path)


def command(*words: str) -> Callable[[Path], object]:
    """Return a call of a command in which `{}` is the file."""

    def called(path: Path) -> object:
        line = [str(path.parent / "out" / "x") if word == "OUT" else word.replace("{}", str(path)) for word in words]
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                return _carry_out(line)
        except Exception as error:
            if hasattr(error, "format_message"):
                # typer's own usage errors
                raise InputError("usage", error.format_message()) from None
            raise

    return called


def _run(words: str) -> Callable[[Path], object]:
    """Return a run on the small inputs, of which `words` replace some."""
    usual = {"-p": ROOT / "platforms/small.xml", "-w": ROOT / "workloads/small.json"}
    usual["--envelope"] = ROOT / "power_profiles/small.csv"
    if "--machines" in words:
        del usual["-p"], usual["--envelope"]
    line = words.split()
    more = [str(word) for option, path in usual.items() if option not in line for word in (option, path)]
    return command("run", *line, *more, "-e", "OUT")


S, JOB = (str(ROOT / name) for name in ("power_profiles/carbon/carbon-hourly.csv", "workloads/carbon/job.json"))
PLAN = ("--deadline", "86400")
TRACE = (trace, _run("-w {} --machines 2 --cores 2"))
KINDS = {
    "platform": ("x.xml", octets, PLATFORM, (read_platform, _run("-p {}"))),
    "batsim4": ("x.json", tree, json.dumps(SMALL).encode(), (
        read_workload, lambda path: converted_file(path, "batsim5"), _run("-w {}"), _run("-w {} -s adaptive"))),
    "batsim5": ("x.json", tree, json.dumps(to_batsim5(SMALL, "small")).encode(), (
        lambda path: converted_file(path, "batsim4"), command("convert", "{}", "--to", "batsim4", "-o", "OUT"))),
    "swf": ("x.swf", octets, SWF, TRACE),
    "sacct": ("x.sacct", octets, _bytes_of("tests/data/oddities.sacct"), (
        trace, _run("-w {},width=nodes --machines 2 --cores 4 -s replay"))),
    "csv": ("x.csv", octets, CSV, TRACE),
    "txt": ("x.txt", octets, TXT, TRACE),
    "azure": ("x.csv", octets, AZURE, (command("convert", "{}", "--format", "azure", "-o", "OUT"),)),
    "borg": ("x.csv", octets, BORG, (command("convert", "{}", "--format", "borg", "-o", "OUT"),)),
    "series": ("x.csv", octets, _bytes_of("power_profiles/small.csv"), (read_series, _run("--envelope {}"))),
    "capacity": ("x.csv", octets, b"time_s,machines\n0,4\n100,2\n2000,3\n", (
        lambda path: read_capacity(path, None), command("characterise", "{}"),
        _run("--machines 4 --capacity {} -s varcap"))),
    "events": ("x.txt", octets, EVENTS, (
        lambda path: read_events(path, True, 4),
        _run('--events {} --batsim-arg=--forward-unknown-events -o {"response":"none"}'))),
    "events5": ("x.txt", octets, EVENTS5, (command("convert", "{}", "-o", "OUT"),)),
    "signal": ("x.csv", octets, b"\n".join(_bytes_of("power_profiles/carbon/carbon-hourly.csv").split(b"\n")[:60]), (
        command("characterise", "carbon:{},budget=0.7"), command("plan", "carbon", JOB, "--carbon", "{}", *PLAN))),
    "phases": ("x.json", tree, json.dumps(PHASES).encode(), (
        read_model, command("plan", "carbon", "{}", "--carbon", S, *PLAN))),
    "carbon jobs": ("x.csv", octets, _bytes_of("workloads/carbon/jobs.csv"), (
        read_phase_jobs,
        command("convert", "{}", "--watts", "60", "--machines", "8", "-o", "OUT", "-p", "OUT.xml"))),
    "period": ("x.json", tree, json.dumps(PERIOD).encode(), (read_periods, command("plan", "checkpoint", "{}"))),
    "reference": ("x.csv", octets, b"length_s,area_core_s\n60,600\n3600,7200\n86400,1000\n", (read_reference,)),
    "toml": ("x.toml", octets, _bytes_of("platforms/small.toml"), (read_platform_xml,)),
    "study": ("x.yaml", octets, _bytes_of("start/first.yaml").replace(b"../", f"{ROOT}/".encode()), (
        command("study", "{}", "--status"),)),
    "options": ("x.json", tree, json.dumps(OPTIONS).encode(), (_run("-o @{}"),)),
}  # fmt: skip
"""Kind -> name of the file, its change, a good file, and its readers, the cheap ones first."""


def attempt(rng: Random, folder: Path) -> None:
    """Read a changed file with one of its readers."""
    name, change, data, readers = KINDS[rng.choice(list(KINDS))]
    path = folder / name
    path.write_bytes(change(rng, data) if rng.random() < 0.8 else data)
    # commands take longer than readers
    reader = readers[0] if rng.random() < 0.7 else rng.choice(readers)
    reader(path)
