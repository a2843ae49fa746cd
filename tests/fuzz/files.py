"""Changed files of every kind that batwatt reads: numbers, cells, bytes, JSON values and types of columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

from batwatt.cli.main import _carry_out
from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_gen import platform_xml_of
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.inputs.series.capacity import read_capacity
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.traces.convert import convert_file, read_trace
from batwatt.inputs.traces.job_log import LogOptions
from batwatt.inputs.traces.reference import read_reference
from batwatt.inputs.workloads.batsim5_files import converted_file, read_events5, read_workload5
from batwatt.inputs.workloads.batsim_files import read_events, read_workload
from batwatt.inputs.workloads.phase_jobs import read_model, read_phase_jobs
from batwatt.protocol.batprotocol import to_batsim5
from batwatt.systems.checkpoint.files import read_instance

from .mutate import PARTS, TEXTS, changed, octets

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
NUMBERS = (
    b"0", b"-0", b"-1", b"1e308", b"-1e308", b"1e-308", b"1e15", b"1e18", b"1e400", b"nan", b"inf", b"-inf", b"",
    b"9" * 400, b"-" + b"9" * 400, b"9" * 5000, b"0." + b"0" * 400 + b"1", b"2147483648", b"9223372036854775808",
    b"18446744073709551616", b"1700000000", b"1700000000000", "²".encode(), "٣".encode(), b"0x10", b"1e9999999999",
    b"true", b"null", b"[]", b'"5"', b"1_0", b"+5",
)  # fmt: skip
LONG = (b"x" * 300_000, b"1" * 300_000, b"," * 30_000, b'"' * 3001, b"[" * 100_000, b"1 " * 100_000, b"\xff" * 200_000)

SWF = b"; MaxProcs: 4\n" + b"".join(
    b"%d %d 5 %d 2 -1 100 2 %d 200 1 3 1 -1 2 -1 -1 -1\n" % (n, 60 * n, 100 * n, 200 * n) for n in range(1, 7)
)
CSV = b"arrival_time,length,cpus,memory,estimate,use,depends_on,user,start\n" + b"".join(
    b"%d,%d,%d,12.5,3600,0.4,,ann,%d\n" % (60 * n, 100 * n, 1 + n % 3, 60 * n) for n in range(6)
)
TXT = b"".join(b"%d %d %d %d\n" % (n, 60 * n, 100 * n, 1 + n % 3) for n in range(1, 7))
AZURE = b"a,s,d,0,600,90,10,50.5,Interactive,4,32\nb,s,d,300,300,90,10,0,Unknown,>24,>64\nc,s,d,0,9,90,1,1,x,1,1.75\n"
BORG = b"time,type,collection_id,scheduling_class,collection_type,instance_index,machine_id,resource_request.cpus," + (
    b"resource_request.memory\n610000000,3,2,0,0,0,1,0.001,0.01\n620000000,0,3,0,0,5,1,0.1,0.3\n640000000,3,3,0,0,5,1,,\n"
    b"650000000,6,2,0,0,0,1,0.1,0.3\n660000000,4,3,0,0,5,1,0.1,0.3\n"
)
SMALL = json.loads((ROOT / "workloads" / "small.json").read_text())
EVENTS = (
    b'{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1 3"}\n'
    b'{"timestamp": 50.5, "type": "machine_available", "resources": "0-1 3"}\n'
    b'{"timestamp": 7, "type": "power_envelope", "power_w": 400}\n'
)
EVENTS5 = b'{"timestamp": 5, "type": "generic", "data": "x"}\n{"timestamp": 6, "type": "generic", "data": "{}"}\n'
PERIOD = json.loads((ROOT / "workloads" / "periods" / "period.json").read_text())
MODEL = json.loads((ROOT / "workloads" / "carbon" / "job.json").read_text())
OPTIONS = {"response": "hfld", "order": "fcfs", "backfilling": "easy", "victim": "resubmit", "forecast_steps": 0}

Reader = Callable[[Path], object]
Change = Callable[[Random, bytes], bytes]


def _bytes_of(path: str) -> bytes:
    return (ROOT / path).read_bytes()


def _declared(path: str) -> bytes:
    """A declaration that may lie anywhere."""
    return _bytes_of(path).replace(b"../", f"{ROOT}/".encode())


def flat(rng: Random, data: bytes) -> bytes:
    """A text with other numbers, cells or bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kind = rng.random()
        if kind < 0.5:
            spans = [match.span() for match in NUMBER.finditer(data)]
            if spans:
                a, b = rng.choice(spans)
                data = data[:a] + rng.choice(NUMBERS) + data[b:]
        elif kind < 0.75:
            cells = [match.span() for match in re.finditer(rb"[^,|\s;\"<>]+", data)]
            if cells:
                a, b = rng.choice(cells)
                odd = rng.choice((*PARTS, *(one.encode("utf-8", "surrogatepass") for one in TEXTS)))
                data = data[:a] + odd + data[b:]
        elif kind < 0.8:
            a = rng.randrange(len(data) + 1)
            data = data[:a] + rng.choice(LONG) + data[a:]
        else:
            data = octets(rng, data)
    return data


def tree(rng: Random, data: bytes) -> bytes:
    """JSON with other values, or the text of it changed."""
    if rng.random() < 0.3:
        return flat(rng, data)
    value = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = changed(rng, value)
        if not isinstance(value, dict | list):
            break
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def trace(path: Path) -> object:
    """A trace in both of its ways."""
    convert_file(path, log=LogOptions(width="nodes") if path.suffix == ".sacct" else LogOptions())
    return read_trace(path)


def command(*words: str) -> Reader:
    """A command in which `{}` is the file."""

    def called(path: Path) -> object:
        line = [word.replace("{}", str(path)) for word in words]
        line = [str(path.parent / "out" / "x") if word == "OUT" else word for word in line]
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                return _carry_out(line)
        except Exception as error:
            if hasattr(error, "format_message"):
                # typer's own usage errors
                raise InputError("usage", error.format_message()) from None
            raise

    return called


P, W, E = (str(ROOT / name) for name in ("platforms/small.xml", "workloads/small.json", "power_profiles/small.csv"))
S = str(ROOT / "power_profiles" / "carbon" / "carbon-hourly.csv")
JOB = str(ROOT / "workloads" / "carbon" / "job.json")
TO = ("-e", "OUT")
PLAN = ("--deadline", "86400")
PLAIN = ("-o", '{"response": "none"}')

KINDS: dict[str, tuple[str, Change, bytes, tuple[Reader, ...]]] = {
    "platform": ("x.xml", flat, _bytes_of("platforms/small.xml"), (
        read_platform, command("run", "-p", "{}", "-w", W, "--envelope", E, *TO))),
    "batsim4": ("x.json", tree, json.dumps(SMALL).encode(), (
        read_workload, lambda path: converted_file(path, "batsim5"),
        command("run", "-p", P, "-w", "{}", "--envelope", E, *TO),
        command("run", "-p", P, "-w", "{}", "-s", "adaptive", "--envelope", E, *TO))),
    "batsim5": ("x.json", tree, json.dumps(to_batsim5(SMALL, "small")).encode(), (
        lambda path: read_workload5(path, "w0"), lambda path: converted_file(path, "batsim4"),
        command("convert", "{}", "--to", "batsim4", "-o", "OUT"))),
    "swf": ("x.swf", flat, SWF, (trace, trace, command("run", "-w", "{}", "--machines", "2", "--cores", "2", *TO))),
    "sacct": ("x.sacct", flat, _bytes_of("tests/data/oddities.sacct"), (
        trace, trace, command("run", "-w", "{}", "--machines", "2", "--cores", "4", "-s", "replay", *TO))),
    "csv": ("x.csv", flat, CSV, (trace, trace, command("run", "-w", "{}", "--machines", "2", "--cores", "2", *TO))),
    "txt": ("x.txt", flat, TXT, (trace, command("run", "-w", "{}", "--machines", "2", "--cores", "2", *TO))),
    "azure": ("x.csv", flat, AZURE, (command("convert", "{}", "--format", "azure", "-o", "OUT"),)),
    "borg": ("x.csv", flat, BORG, (command("convert", "{}", "--format", "borg", "-o", "OUT"),)),
    "series": ("x.csv", flat, _bytes_of("power_profiles/small.csv"), (
        read_series, command("run", "-p", P, "-w", W, "--envelope", "{}", *TO))),
    "capacity": ("x.csv", flat, b"time_s,machines\n0,4\n100,2\n2000,3\n", (
        lambda path: read_capacity(path, None), command("characterise", "{}"),
        command("run", "-w", W, "--machines", "4", "--capacity", "{}", "-s", "varcap", *TO))),
    "events": ("x.txt", flat, EVENTS, (
        lambda path: read_events(path, True, 4),
        command("run", "-p", P, "-w", W, "--events", "{}", "--forward-unknown-events", *PLAIN, *TO))),
    "events5": ("x.txt", flat, EVENTS5, (lambda path: read_events5(path, "ee0"),)),
    "signal": ("x.csv", flat, b"\n".join(_bytes_of("power_profiles/carbon/carbon-hourly.csv").split(b"\n")[:60]), (
        command("characterise", "carbon:{},budget=0.7"), command("carbon", "plan", JOB, "--carbon", "{}", *PLAN))),
    "phases": ("x.json", tree, json.dumps(MODEL).encode(), (
        read_model, command("carbon", "plan", "{}", "--carbon", S, *PLAN))),
    "carbon jobs": ("x.csv", flat, _bytes_of("workloads/carbon/jobs.csv"), (
        read_phase_jobs,
        command("carbon", "run", "--policy", "oracle", "-w", "{}", "--carbon", S, "--deadline", "48", *TO))),
    "period": ("x.json", tree, json.dumps(PERIOD).encode(), (read_instance, command("checkpoint", "plan", "{}"))),
    "reference": ("x.csv", flat, b"length_s,area_core_s\n60,600\n3600,7200\n86400,1000\n", (read_reference,)),
    "toml": ("x.toml", flat, _bytes_of("platforms/small.toml"), (platform_xml_of,)),
    "campaign": ("x.yaml", flat, _declared("start/first.yaml"), (command("campaign", "status", "{}"),)),
    "options": ("x.json", tree, json.dumps(OPTIONS).encode(), (
        command("run", "-p", P, "-w", W, "--envelope", E, "-o", "@{}", *TO),)),
}  # fmt: skip
"""Kind -> name of the file, how it is changed, a good one, and what reads it, the cheap ones first."""


def attempt(rng: Random, folder: Path) -> None:
    """One changed file and one of its readers."""
    name, change, data, readers = KINDS[rng.choice(list(KINDS))]
    path = folder / name
    path.write_bytes(change(rng, data) if rng.random() < 0.98 else data)
    # commands take longer than readers
    reader = readers[0] if rng.random() < 0.7 else rng.choice(readers)
    reader(path)
