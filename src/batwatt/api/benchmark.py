"""A benchmark of schedulers: frozen cells, a score in units of EASY without a limit, and entries that are reproduced.

The slowdown of a job that ends by the horizon is max(1, (end - submission) / max(10 min, run time)); that of any other
job is (horizon - submission) / 10 min, which no job exceeds. The score of a window is the mean over its jobs relative
to that of the reference. A cell has the geometric mean of its windows, a log that of its cells, an entry that of its
logs.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from batwatt._version import __version__
from batwatt.api.comparison import compare, sample_read
from batwatt.api.inputs import Platform
from batwatt.checks import load_json
from batwatt.errors import BatwattError, InputError, UnknownNameError, argument
from batwatt.files import read_text, sha256_of, write_json
from batwatt.inputs.batch_logs import USUAL
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.compared import mean_of, sure
from batwatt.run.find_scheduler import load_plugins, scheduler_class
from batwatt.run.spec import Follow
from batwatt.scheduling.base import Scheduler
from batwatt.studies.benchmark import benchmark, data_folder
from batwatt.studies.cases import Case
from batwatt.units import DAY_S

Row = Mapping[str, float]
COUNTS, MEANS = ("jobs_lost", "jobs_rejected"), ("finished_work_fraction", "energy_j", "energy_above_cap_j")
_REFERENCE = "reference of the score"
LEAST_S = 60.0
"""Least time in s of a checkpoint and of a recovery in an entry."""


@dataclass(frozen=True)
class Entry:
    """Result of a scheduler: the figures of each window of each cell, and the inputs that reproduce them.

    Without a `scheduler`, the one that the file `policy` defines; `sha256` is that of the file. An entry that is
    written has the name of the file only.
    """

    label: str
    scheduler: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: Follow = "envelope"
    policy: str = ""
    sha256: str = ""
    cells: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    version: str = ""
    batwatt: str = __version__

    @classmethod
    def read(cls, path: Path) -> Entry:
        """Read an entry. Raises InputError."""
        values, names = load_json(read_text(path), path), {one.name for one in fields(cls)}
        if not isinstance(values, dict) or values.keys() != names or not isinstance(values["cells"], dict):
            raise InputError(path, "is not an entry of a benchmark", "give a file that `batwatt benchmark` has written")
        if values["version"] != benchmark().version or values["cells"].keys() - benchmark().cells.keys():
            raise InputError(path, f"is not an entry of benchmark {benchmark().version}", "run its policy again")
        return cls(**values)

    def write(self, path: Path) -> None:
        """Write the entry as JSON."""
        write_json(path, asdict(replace(self, policy=Path(self.policy).name)))

    def case(self) -> Case:
        """Return the case of a comparison; a scheduler of batwatt decides by walltimes. Raises InputError."""
        load_plugins([Path(self.policy)] if self.policy and self.scheduler else [])
        kind = scheduler_class(self.scheduler or str(Path(self.policy).absolute()))
        own = {"run_times": "walltime"} if issubclass(kind, Scheduler) else {}
        options = {**own, **self.options}
        estimate = options.get("run_times", "walltime")
        if (estimate.get("name") if isinstance(estimate, dict) else estimate) in ("exact", None):
            raise InputError("option 'run_times'", "an entry may not know run times", "choose walltime")
        _check_rules(options)
        return Case(kind, options, self.limit)

    @property
    def most_above(self) -> tuple[float, str]:
        """Largest share of energy above the limit, and its cell; more than `Benchmark.above` is not ranked."""
        return max((row["energy_above_cap_j"] / (row["energy_j"] or 1.0), row["cell"]) for row in self.records()[:-1])

    @property
    def ranked(self) -> bool:
        """True if in no cell more energy is above the limit than is allowed."""
        return self.most_above[0] <= benchmark().above

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each cell and one for all: score, lost and rejected jobs, means of windows, energy in J."""
        records: list[dict[str, Any]] = []
        logs: dict[str, list[float]] = {}
        for cell, rows in self.cells.items():
            ratios = [math.log(row["slowdown"] / row["reference"]) for row in rows]
            logs.setdefault(cell.partition("/")[0], []).append(fmean(ratios))
            own = {name: sum(row[name] for row in rows) for name in COUNTS}
            own |= {name: fmean([row[name] for row in rows]) for name in MEANS}
            records.append({"cell": cell, **score_of(ratios), **own})
        totals = {name: sum(row[name] for row in records) for name in (*COUNTS, *MEANS)}
        totals["finished_work_fraction"] /= len(records)
        return [*records, {"cell": "all", **score_of([fmean(ratios) for ratios in logs.values()]), **totals}]

    def refuse_difference(self, other: Entry) -> None:
        """Raise BatwattError for the first figure in which a rerun of the entry differs."""
        for cell, rows in self.cells.items():
            for number, (row, rerun) in enumerate(zip(rows, other.cells[cell], strict=True), 1):
                for name in (name for name, value in row.items() if value != rerun.get(name)):
                    text = f"{name} is {rerun.get(name)!r}, and {row[name]!r} in the entry, of batwatt {self.batwatt}"
                    raise BatwattError(f"cell {cell}, window {number}: {text}")


def _check_rules(options: Mapping[str, Any]) -> None:
    """Raise InputError for options against the rules of docs/reference/benchmark.md."""
    victim = options.get("victim")
    parts = victim if isinstance(victim, dict) else {"name": victim}
    if parts.get("name") == "migrate":
        raise InputError("option 'victim'", "'migrate' saves work in no time", "choose checkpoint, of 60 s or more")
    for name, value in (*options.items(), *parts.items()):
        if name in ("checkpoint_s", "recovery_s") and isinstance(value, int | float) and value < LEAST_S:
            raise InputError(f"option {name!r}", f"must be >= {LEAST_S:g} s in an entry, got {value!r}", "correct it")
    if options.get("work_estimate") == "exact":
        raise InputError("option 'work_estimate'", "an entry may not know run times", "choose walltime or learned")


def entry_of(policy: Path | None, scheduler: str | None, options: Mapping[str, Any], old: Entry | None = None) -> Entry:
    """Return an entry to be run, or an old one with the file of its policy. Raises InputError."""
    sha256 = "" if policy is None else sha256_of(policy)
    if old is None:
        label = scheduler if policy is None else policy.stem
        return Entry(label or "", scheduler or "", options, policy=str(policy or ""), sha256=sha256)
    if sha256 != old.sha256:
        raise InputError("FILE", f"is not {old.policy or 'none'} of the entry", f"its SHA-256 is {old.sha256!r}")
    return replace(old, policy=str(policy or ""))


def references() -> list[Entry]:
    """Return the entries of the declaration, without figures; the first is the reference of the score."""
    return [Entry(label, **values) for label, values in benchmark().references.items()]


def cells_of(names: Sequence[str]) -> list[str]:
    """Return the cells that are named, or are of a log that is; all without names. Raises InputError."""
    cells, logs = list(benchmark().cells), benchmark().logs
    for name in names:
        if name not in (*cells, *logs):
            raise UnknownNameError(argument("cells"), "cell or log", name, [*cells, *logs], "Correct it.")
    return [cell for cell in cells if not names or cell in names or cell.partition("/")[0] in names]


def run_entries(
    entries: Sequence[Entry], cells: Sequence[str], workers: int, progress: Callable[..., None]
) -> list[Entry]:
    """Return entries with the figures of cells, run in `workers` processes.

    `progress` gets the number of cells that have `completed`, and of all (`total`). Raises InputError, also for a cell
    that is not as it was declared.
    """
    cases = {_REFERENCE: references()[0].case(), **{entry.label: entry.case() for entry in entries}}
    results: dict[str, dict[str, list[Row]]] = {entry.label: {} for entry in entries}
    # warnings concern declared inputs, and facts that figures have
    logging.disable(logging.WARNING)
    try:
        for number, cell in enumerate(cells, 1):
            rows = _run(cell, cases, workers)
            for label, result in results.items():
                pairs = zip(rows[label], rows[_REFERENCE], strict=True)
                result[cell] = [{**row, "reference": reference["slowdown"]} for row, reference in pairs]
            progress(completed=number, total=len(cells))
    finally:
        logging.disable(logging.NOTSET)
    version = benchmark().version
    return [replace(one, cells=results[one.label], version=version, batwatt=__version__) for one in entries]


def _run(cell: str, cases: Mapping[str, Case], workers: int) -> dict[str, list[Row]]:
    """Return the figures of each case in each window of a cell. Raises InputError."""
    declared = benchmark()
    log = declared.log_of(cell)
    hosts, data = Platform.machines(log.hosts, 1, watts=declared.host_w), declared.jobs_of(cell)
    jobs, limit = parse_workload(data, "w0", cell), declared.cells[cell]["limit"].format(data=data_folder())
    cap = sample_read(hosts, jobs, USUAL, envelope=limit).cap
    assert cap is not None
    cap = replace(cap, date_s=None)
    declared.check(cell, data, cap)
    window = (0.0, log.days * DAY_S)
    result = compare(hosts, jobs, cap, cases, window=window, samples=declared.windows, workers=workers)
    rows: dict[str, list[Row]] = {label: [] for label in cases}
    windows = result.jobs.groupby(["case", "window"])
    for figures in result.table.to_dict("records"):
        own = windows.get_group((figures["case"], figures["window"]))
        slowdown, lost = mean_slowdown(own, log.horizon_days * DAY_S, declared.bound_s)
        some = {name: figures[name] for name in ("jobs_rejected", *MEANS)}
        rows[figures["case"]].append({"slowdown": slowdown, "jobs_lost": lost, **some})
    return rows


def mean_slowdown(jobs: pd.DataFrame, horizon_s: float, bound_s: float) -> tuple[float, int]:
    """Return the mean slowdown over the jobs of a window, lost ones included, and the number of these."""
    took_s = jobs["full_speed_slowdown"] * jobs["length_s"]
    # false for jobs without an end
    on_time = jobs["submission_time_s"] + took_s <= horizon_s
    ended = (took_s / jobs["length_s"].clip(lower=bound_s)).clip(lower=1.0)
    slowdowns = ended.where(on_time, (horizon_s - jobs["submission_time_s"]) / bound_s)
    return fmean(slowdowns.tolist()), int((~on_time).sum())


def score_of(logarithms: Sequence[float]) -> dict[str, float]:
    """Return a geometric mean of ratios, its relative standard error and its 95 % interval, NaN of one ratio."""
    mean, error, count = mean_of(pd.Series(logarithms, dtype=float))
    low, high = (math.exp(mean + sign * sure(count) * error) for sign in (-1.0, 1.0))
    return {"score": math.exp(mean), "score_se": error, "low": low, "high": high}
