"""What the tests of the scheduler checkpoint share: jobs in, runs out."""

from __future__ import annotations

from collections import defaultdict

from builders import played
from by_hand import capacity_of, job_row, series_of

from batwatt.model.hostset import from_text, ids
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.schedulers.checkpoint import Checkpoint

ID, CORES, STATE, START, END, HOSTS, META = 0, 4, 7, 8, 10, 14, 16


def play(jobs, capacity, machines, cores=1, between=None, energy=False, **options):
    """The record of a run on the embedded engine; jobs and capacity are texts, or rows and a series."""
    rows = map(job_row, jobs.split(", ")) if isinstance(jobs, str) else jobs
    series = series_of(capacity_of(capacity)) if isinstance(capacity, str) else capacity
    scheduler = Checkpoint({"capacity": series, "switch": energy} | options)
    config = {"energy": energy, "dynamic_jobs": True, "profile_reuse": True}
    return played(scheduler, machines_platform(MachineSpec(machines, cores)), *rows, link=between, **config)


def spans_of(record):
    """The spans of each job in order of time: (kind, begin, end, state, hosts)."""
    by_job = defaultdict(list)
    for row in record.jobs:
        if row[START] is None or row[START] < 0:
            continue
        kind = row[META] if row[META] in ("checkpoint", "recovery") else "work"
        saved = row[META] == "checkpointed"
        span = (kind, row[START], row[END], row[STATE], saved, frozenset(ids(from_text(row[HOSTS]))))
        by_job[row[ID].partition("#")[0]].append(span)
    return {name: sorted(spans, key=lambda span: span[1:3]) for name, spans in by_job.items()}


def in_words(record):
    """The spans as text: `1: work 0-98 saved | checkpoint 98-100`."""
    lines = []
    for name, spans in sorted(spans_of(record).items()):
        texts = [f"{kind} {begin:g}-{end:g}{' saved' if saved else ''}" for kind, begin, end, _, saved, _ in spans]
        lines.append(f"{name}: {' | '.join(texts)}")
    return lines
