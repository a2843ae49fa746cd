"""The runs of a comparison: cases x windows of one workload x seeds, each against the same power."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from batwatt.errors import BatwattError, InputError, errors_of
from batwatt.files import digest_of
from batwatt.model.platform import MachinePower, MachineSpec, Platform
from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.workload import DEPENDS, RELEASE, START_S, JobSpec, Workload
from batwatt.results.run_files import file_of
from batwatt.run.files import outputs_of, staging
from batwatt.run.find_scheduler import SchedulerError, scheduler_class
from batwatt.run.loader import loaded_plugins
from batwatt.run.prepared import check_options
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import Scheduler
from batwatt.studies.cases import Case
from batwatt.studies.cells import CellOutcome, CellTask, Contents, code_digest, key_of
from batwatt.studies.executors import check_dask, run_cells
from batwatt.studies.store import Store
from batwatt.units import date_text

_log = logging.getLogger(__name__)
SERIES = ("envelope", "capacity", "signal", "price")
"""Options of a case that are series, from 0 s of its run on."""
RESUME = "run the same comparison again"


@dataclass(frozen=True)
class RunTask:
    """A run: the label of its case, the number of its window from 1, and the seed of its random numbers."""

    case: str
    window: int
    seed: int


@dataclass(frozen=True)
class ComparedRuns:
    """Inputs of all runs of a comparison, read once; `keep` is the prefix of the files of each run.

    `delays_to_flops` as in `RunSpec`. `folder` has the cells of runs that have ended; None: they are in memory only.
    """

    platform: Platform | MachineSpec
    hosts: Platform
    samples: Sequence[Sample]
    cases: Mapping[str, Case]
    seeds: Sequence[int]
    keep: Path | None = None
    delays_to_flops: bool | None = None
    folder: Path | None = None

    @cached_property
    def power(self) -> MachinePower:
        """Machines and their power."""
        return MachinePower.of(self.hosts)

    @property
    def assumed_w(self) -> float | None:
        """Power of a core in W that machines without watts are taken to have; None if they have watts."""
        spec = self.platform
        return spec.core_w if isinstance(spec, MachineSpec) and spec.core_w == MachineSpec.core_w else None

    @property
    def tasks(self) -> list[RunTask]:
        """All runs; a case without random numbers runs once in each window."""
        windows = range(1, len(self.samples) + 1)
        return [
            RunTask(label, window, seed)
            for label, case in self.cases.items()
            for window in windows
            for seed in (self.seeds if case.draws else self.seeds[:1])
        ]

    def prefix_of(self, task: RunTask, keep: Path) -> Path:
        """Return the prefix of the files of a run, with window and seed if there are several."""
        words = "".join(c if c.isalnum() else "-" for c in task.case.lower()).strip("-")
        window = f"-window{task.window}" if len(self.samples) > 1 else ""
        seed = f"-seed{task.seed}" if len(self.seeds) > 1 and self.cases[task.case].draws else ""
        return keep.with_name(f"{keep.name}-{words}{window}{seed}")

    def _remove(self, labels: Collection[str]) -> None:
        """Remove the files of the runs of some cases."""
        if self.keep is None:
            return
        for task in self.tasks:
            if task.case in labels:
                prefix = self.prefix_of(task, self.keep)
                for name in outputs_of(prefix):
                    prefix.with_name(name).unlink(missing_ok=True)

    def check(self, lenient: Collection[str]) -> None:
        """Raise InputError for a wrong case before any run, but not for wrong options of `lenient` cases."""
        for label, case in self.cases.items():
            with errors_of(f"case {label!r}"):
                scheduler_class(case.scheduler)
        self._check_prefixes()
        for label, case in self.cases.items():
            own = [name for name in (*SERIES, "plan") if name in case.options]
            if own and len(self.samples) > 1:
                problem = f"option {own[0]!r} begins with the whole log, not with each window"
                raise InputError(f"case {label!r}", problem, "give the series to all cases, or take one sample")
            if label not in lenient:
                self._check_options(label, case)

    def _check_prefixes(self) -> None:
        """Raise InputError for two runs whose files would have one name, or none."""
        if self.keep is None:
            return
        taken: set[Path] = set()
        for task in self.tasks:
            prefix = self.prefix_of(task, Path("x"))
            if not any(map(str.isalnum, task.case)) or prefix in taken:
                raise InputError(f"case {task.case!r}", "gives no file name of its own", "change the label")
            taken.add(prefix)

    def _check_options(self, label: str, case: Case) -> None:
        """Raise InputError for wrong options of a scheduler of ours; its run checks series that texts describe."""
        if not issubclass(scheduler_class(case.scheduler), Scheduler):
            return
        own = {name: value for name, value in case.options.items() if name not in SERIES}
        # other errors of a scheduler are errors of its run
        with suppress(SchedulerError), errors_of(f"case {label!r}"):
            check_options(replace(self._spec_of(RunTask(label, 1, self.seeds[0])), options=own))

    def carry_out(
        self,
        report: Callable[[RunTask, Mapping[RunTask, CellOutcome]], None],
        *,
        workers: int = 1,
        dask: str | None = None,
        lenient: Collection[str] = (),
    ) -> tuple[dict[RunTask, CellOutcome], dict[str, str]]:
        """Run cells that are missing or have failed; return the outcomes of cases that have not, and label -> error.

        Warnings of runs are logged once they have ended, with the label of their case.

        Args:
            report: Function that gets a run that has ended, and the outcomes of all that have.
            workers: Processes of this machine. 1: this process.
            dask: Address of a Dask cluster that runs the cells instead.
            lenient: Labels of cases that may fail.

        Raises:
            BatwattError: The error of a case that may not fail, or a reason outside the runs.
        """
        if dask is not None:
            check_dask(dask)
        cells, lasting = self._cells(self.folder is not None or dask is not None)
        store = None
        if self.folder is not None:
            store = Store(self.folder, study="comparison", place="folder", name="place", resume=RESUME)
        with nullcontext() if store is None else store.locked():
            ended: dict[RunTask, CellOutcome] = {}
            for task, outcome in self._finished(cells, store).items():
                ended[task] = outcome
                report(task, ended)
            scratch = None if store is None or dask is not None else str(store.scratch.resolve())
            # cases that are alike run once
            left: dict[str, CellTask] = {}
            tasks_of: dict[str, list[RunTask]] = {}
            for task, cell in cells.items():
                if task not in ended:
                    left.setdefault(cell.key, replace(cell, scratch=scratch))
                    tasks_of.setdefault(cell.key, []).append(task)

            def save(outcome: CellOutcome) -> None:
                tasks = tasks_of[outcome.key]
                for task in tasks:
                    outcome = self._with_files_kept(task, outcome)
                outcome = replace(outcome, files={})
                if store is not None and outcome.key in lasting:
                    store.save(outcome, {"scheduler": self.cases[tasks[0].case].name, **asdict(tasks[0])})
                for task in tasks:
                    ended[task] = outcome
                    report(task, ended)

            processes = workers if workers > 1 and len(left) > 1 else 0
            run_cells([*left.values()], save, processes=processes, dask=dask, note=_log.warning, resume=RESUME)
            ended = {task: ended[task] for task in cells}
            for note in self.notes_of(ended):
                _log.warning("%s", note)
            errors = refuse_failures(ended, lenient)
            self._remove(errors)
            if store is not None:
                store.remove(store.stale(lasting))
        return {task: outcome for task, outcome in ended.items() if task.case not in errors}, errors

    def _cells(self, by_content: bool) -> tuple[dict[RunTask, CellTask], set[str]]:
        """Return the cells of all runs, and the keys among theirs that are made of the content of a run."""
        contents, code = Contents(), code_digest()
        cells: dict[RunTask, CellTask] = {}
        lasting: set[str] = set()
        for task in self.tasks:
            spec = self._spec_of(task)
            key = uuid4().hex
            # without content, the run has a key of this call only
            with suppress(InputError):
                key = key_of(contents.digest(spec), code) if by_content else key
                lasting.update([key] if by_content else ())
            cells[task] = CellTask(
                key=key,
                name=self._named(task),
                spec=spec,
                code=code,
                study="comparison",
                digests=contents.files,
                keep=self.keep is not None,
                by_job=True,
            )
        return cells, lasting

    def _finished(self, cells: Mapping[RunTask, CellTask], store: Store | None) -> dict[RunTask, CellOutcome]:
        """Return the outcomes of the runs that need not run again."""
        if store is None:
            return {}
        loaded, damaged = store.load(dict.fromkeys(cell.key for cell in cells.values()))
        for line in damaged:
            _log.warning("%s: %s", store.folder, line)
        finished = {
            key: outcome for key, outcome in loaded.items() if outcome.status == "done" and outcome.jobs is not None
        }
        for task, cell in cells.items():
            # the files of a run may have been removed, or be those of another one
            outcome = finished.get(cell.key)
            if outcome is not None and self.keep is not None and self._digest_of_files(task) != outcome.files_digest:
                del finished[cell.key]
        return {task: finished[cell.key] for task, cell in cells.items() if cell.key in finished}

    def _digest_of_files(self, task: RunTask) -> str:
        """Return the SHA-256 of the metadata of the files of a run, which has theirs; empty if there are none."""
        digest = None if self.keep is None else digest_of(file_of(self.prefix_of(task, self.keep), "metadata", ".json"))
        return digest or ""

    def _with_files_kept(self, task: RunTask, outcome: CellOutcome) -> CellOutcome:
        """Write the files of a run under the prefix of its case, and return the outcome with their digest."""
        if self.keep is None or not outcome.files:
            return outcome
        with staging(self.prefix_of(task, self.keep)) as inner:
            for end, content in outcome.files.items():
                inner.with_name(f"{inner.name}{end}").write_bytes(content)
        return replace(outcome, files_digest=self._digest_of_files(task))

    def notes_of(self, ended: Mapping[RunTask, CellOutcome]) -> list[str]:
        """Return the warnings of runs, each once with the names of its cases."""
        tasks_of: dict[str, list[RunTask]] = {}
        for task, end in ended.items():
            for note in end.notes if end.status == "done" else ():
                tasks_of.setdefault(note, []).append(task)
        notes = []
        for note, tasks in tasks_of.items():
            cases = list(dict.fromkeys(repr(task.case) for task in tasks))
            named = self._named(tasks[0]) if len(cases) == 1 else f"cases {', '.join(cases)}"
            notes.append(f"{named}: {note}")
        return notes

    def _spec_of(self, task: RunTask) -> RunSpec:
        """Return the specification of a run."""
        case, sample = self.cases[task.case], self.samples[task.window - 1]
        return RunSpec(
            platform=self.platform,
            workloads=(sample.workload,),
            scheduler=case.scheduler,
            options={**case.options, "seed": task.seed} if case.draws else case.options,
            envelope=sample.cap,
            follow=case.follow,
            carbon=sample.signals["carbon_g"],
            price=sample.signals["cost"],
            delays_to_flops=self.delays_to_flops,
            plugins=loaded_plugins(),
        )

    def _named(self, task: RunTask) -> str:
        """Return the name of a run in a message."""
        return f"case {task.case!r}" + (f", window {task.window}" if len(self.samples) > 1 else "")


def refuse_failures(ended: Mapping[RunTask, CellOutcome], lenient: Collection[str]) -> dict[str, str]:
    """Return label -> error of failed cases. Raises the error of one that is not `lenient`, or if all have failed."""
    errors: dict[str, str] = {}
    for task, outcome in ended.items():
        label = task.case
        if outcome.status == "done" or label in errors:
            continue
        error = outcome.raised or BatwattError(f"case {label!r}: {outcome.error}")
        if label not in lenient:
            if isinstance(error, InputError):
                raise InputError(f"case {label!r}", str(error)) from error
            raise error
        errors[label] = str(error)
    if not any(outcome.status == "done" and task.case not in errors for task, outcome in ended.items()):
        why = "; ".join(f"{label}: {text}" for label, text in errors.items())
        raise InputError("comparison", "no case could run", why)
    return errors


@dataclass(frozen=True)
class Sample:
    """Jobs, the power in W that all cases are measured against, if any, and the signals by the figure that uses them.

    `length_s` is the length of the window in s.
    """

    workload: Workload
    cap: Timeline | None
    signals: Mapping[str, Timeline | None]
    length_s: float


def samples_of(whole: Sample, window: tuple[float, float] | None, count: int) -> list[Sample]:
    """Cut a sample into `count` windows of equal length.

    A window has the jobs that are submitted in it; no job runs when it begins. Its begin becomes 0 s of the jobs, the
    power and the signals.

    Args:
        whole: All jobs, with their power and signals.
        window: Begin and end in s of the part to cut. None: from 0 s to the last submission.
        count: Number of windows. 1: the whole, as it is.

    Raises:
        InputError: A window has no jobs.
    """
    if count == 1:
        return [whole]
    workload = whole.workload
    begin_s, end_s = window or (0.0, workload.last_submission_s)
    length_s = (end_s - begin_s) / count
    fresh = [job for job in workload.jobs if RELEASE not in job.raw and begin_s <= job.submit_time_s <= end_s]
    parts: list[list[JobSpec]] = [[] for _ in range(count)]
    for job in fresh:
        number = int((job.submit_time_s - begin_s) / length_s) if length_s > 0.0 else 0
        parts[min(number, count - 1)].append(job)
    samples = []
    for number, jobs in enumerate(parts):
        at_s = round(begin_s + number * length_s, 6)
        if not jobs:
            problem = f"window {number + 1} of {count}, {at_s:g} to {at_s + length_s:g} s, has no job"
            raise InputError(workload.source, problem, "take fewer samples, or another window")
        signals = {name: signal and _later(signal, at_s) for name, signal in whole.signals.items()}
        begun = _begun(workload, jobs, at_s)
        cap = whole.cap and whole.cap.since(at_s)
        samples.append(Sample(begun, cap, signals, length_s))
    return samples


def _begun(workload: Workload, jobs: list[JobSpec], at_s: float) -> Workload:
    """Return the workload with some of its jobs, and with `at_s` as 0 s."""
    names = {job.name for job in jobs}
    moved = []
    for job in jobs:
        submit_s = max(0.0, round(job.submit_time_s - at_s, 6))
        raw = {**job.raw, "subtime": submit_s}
        if START_S in raw:
            raw[START_S] = round(raw[START_S] - at_s, 6)
        if DEPENDS in raw:
            # jobs of earlier windows have completed
            raw[DEPENDS] = [name for name in raw[DEPENDS] if name in names]
        moved.append(job._replace(submit_time_s=submit_s, raw=raw))
    begin = date_text(parse_date_s(workload.begin) + at_s) if workload.begin else ""
    return replace(workload, jobs=tuple(moved), begin=begin)


def _later(signal: Timeline, at_s: float) -> Timeline:
    """Return the signal with `at_s` as 0 s."""
    later = signal.since(at_s)
    # one that is over then has no values left
    return later if signal.loop is not None else later.lasting(False)
