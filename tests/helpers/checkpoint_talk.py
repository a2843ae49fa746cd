"""What the tests of the scheduler checkpoint share: jobs in, runs out."""

from __future__ import annotations

from collections import defaultdict

from builders import played

from batwatt.model.hostset import from_text, ids
from batwatt.model.machines import MachineSpec, machines_platform
from batwatt.model.series import Series
from batwatt.schedulers.checkpoint import Checkpoint

ID, CORES, STATE, START, END, HOSTS, META = 0, 4, 7, 8, 10, 14, 16


def row_of(name, submit_s, length_s, cpus, **fields):
    """A job as it stands in a workload; its profile travels in `_profile`."""
    row = {"id": str(name), "subtime": submit_s, "res": cpus, "profile": f"p{name}", **fields}
    return row | {"_profile": {"type": "delay", "delay": length_s}}


def series_of(*rows):
    """`(0, 4), (100, 2)`: 4 machines, 2 from 100 s on."""
    return Series(tuple(float(at) for at, _ in rows), tuple(float(n) for _, n in rows))


def play(rows, capacity, machines, cores=1, between=None, energy=False, **options):
    """The record of a run on the embedded engine."""
    scheduler = Checkpoint({"capacity": capacity, "switch": energy} | options)
    config = {"energy": energy, "dynamic_jobs": True, "profile_reuse": True}
    return played(scheduler, machines_platform(MachineSpec(machines, cores)), *rows, link=between, **config)


def spans_of(record):
    """The spans of each job in order of time: (kind, begin, end, state, hosts)."""
    found = defaultdict(list)
    for row in record.jobs:
        if row[START] is None or row[START] < 0:
            continue
        kind = row[META] if row[META] in ("checkpoint", "recovery") else "work"
        saved = row[META] == "checkpointed"
        span = (kind, row[START], row[END], row[STATE], saved, frozenset(ids(from_text(row[HOSTS]))))
        found[row[ID].partition("#")[0]].append(span)
    return {name: sorted(spans, key=lambda span: span[1:3]) for name, spans in found.items()}


def told(record):
    """The spans as text: `1: work 0-98 saved | checkpoint 98-100`."""
    lines = []
    for name, spans in sorted(spans_of(record).items()):
        texts = [f"{kind} {begin:g}-{end:g}{' saved' if saved else ''}" for kind, begin, end, _, saved, _ in spans]
        lines.append(f"{name}: {' | '.join(texts)}")
    return lines
