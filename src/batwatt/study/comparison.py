"""The runs of a comparison: cases x windows x seeds, each against the same power, in processes of this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from batwatt.errors import BatwattError, InputError, errors_of, message
from batwatt.model.platform import MachinePower, MachineSpec, Platform
from batwatt.model.timeline import Timeline
from batwatt.results.compared import COMPARED, CaseFacts
from batwatt.results.figures import Values
from batwatt.results.outcomes import JobOutcomes
from batwatt.results.power import PowerTrace
from batwatt.results.power import compare as against
from batwatt.run.files import outputs_of, staging
from batwatt.run.find_scheduler import SchedulerError, scheduler_class
from batwatt.run.prepared import PreparedRun, check_options
from batwatt.run.repeats import noted
from batwatt.run.run import perform
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import Scheduler
from batwatt.study.processes import run_safely
from batwatt.study.samples import Sample

_log = logging.getLogger(__name__)
LIMITS = ("envelope", "none", "mean")
"""Parts of the envelope that a case may follow: all, nothing, its mean."""
SERIES = ("envelope", "capacity", "signal", "price")
"""Options of a case that are series, from 0 s of its run on."""


@dataclass(frozen=True)
class Case:
    """A case: a scheduler and its options. `limit`: the part of the envelope that it follows, one of `LIMITS`."""

    scheduler: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "envelope"

    @property
    def name(self) -> str:
        """Name of the scheduler, or of its class."""
        return self.scheduler if isinstance(self.scheduler, str) else str(self.scheduler.__name__)

    @property
    def draws(self) -> bool:
        """True if the scheduler has a seed that the case does not set."""
        kind = scheduler_class(self.scheduler)
        return issubclass(kind, Scheduler) and "seed" in kind.Options.model_fields.keys() - self.options.keys()

    @property
    def facts(self) -> CaseFacts:
        """Facts of the case for pages."""
        return CaseFacts(self.name, self.options, self.limit, self.draws)


@dataclass(frozen=True)
class RunTask:
    """A run: the label of its case, the number of its window from 1, and the seed of its random numbers."""

    case: str
    window: int
    seed: int


@dataclass(frozen=True)
class Measured:
    """Results of a run for the comparison; `notes` are the warnings of its process."""

    outcomes: JobOutcomes
    trace: PowerTrace | None
    metrics: Values
    rejections: Mapping[str, int]
    notes: Sequence[str] = ()


Ended = Measured | BatwattError
"""End of a run: its results, or its error."""


@dataclass(frozen=True)
class ComparedRuns:
    """Inputs of all runs of a comparison, read once; `keep` is the prefix of the files of each run.

    `delays_to_flops` as in `Inputs`.
    """

    platform: Platform | MachineSpec
    hosts: Platform
    samples: Sequence[Sample]
    cases: Mapping[str, Case]
    seeds: Sequence[int]
    keep: Path | None = None
    delays_to_flops: bool | None = None

    @cached_property
    def power(self) -> MachinePower:
        """Machines and their power."""
        return MachinePower.of(self.hosts)

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

    def remove(self, labels: Collection[str]) -> None:
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

    def all_measured(
        self, workers: int, report: Callable[[RunTask, Mapping[RunTask, Ended]], None]
    ) -> dict[RunTask, Ended]:
        """Return the end of each run, in the order of `tasks`; `report` gets a run that has ended, and all that have.

        Warnings of runs are logged once they have ended, with the label of their case.
        """
        tasks = self.tasks
        ended: dict[RunTask, Ended] = {}
        if workers > 1 and len(tasks) > 1:
            results = run_safely(self.measured, tasks, min(workers, len(tasks)), _again, _dead)
        else:
            results = (self.measured(task) for task in tasks)
        # an interrupt ends the processes at once
        with closing(results):
            for task, end in results:
                ended[task] = end
                report(task, ended)
        ended = {task: ended[task] for task in tasks}
        for note in self.notes_of(ended):
            _log.warning("%s", note)
        return ended

    def notes_of(self, ended: Mapping[RunTask, Ended]) -> list[str]:
        """Return the warnings of runs, each once with the names of its cases."""
        tasks_of: dict[str, list[RunTask]] = {}
        for task, end in ended.items():
            for note in end.notes if isinstance(end, Measured) else ():
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
            envelope=self._followed(case, sample),
            carbon=sample.signals["carbon_g"],
            price=sample.signals["cost"],
            delays_to_flops=self.delays_to_flops,
        )

    def _named(self, task: RunTask) -> str:
        """Return the name of a run in a message."""
        return f"case {task.case!r}" + (f", window {task.window}" if len(self.samples) > 1 else "")

    def measured(self, task: RunTask) -> tuple[RunTask, Ended]:
        """Run a task, write its files if there is a prefix for them, and return its end."""
        try:
            with noted() as repeats:
                result = perform(PreparedRun.of(self._spec_of(task)))
                if result.deadlock is not None:
                    raise result.deadlock
                result.warn()
                if self.keep is not None:
                    with staging(self.prefix_of(task, self.keep)) as inner:
                        result.write(inner)
        except BatwattError as error:
            return task, error
        notes = tuple(message(line) for _, line in repeats.drain())
        return task, Measured(result.outcomes, result.trace, result.metrics, result.rejections, notes)

    def _followed(self, case: Case, sample: Sample) -> Timeline | None:
        """Return the power that a case follows, in W; None without an envelope and a capacity."""
        cap, power = sample.cap, self.power
        if cap is None:
            return None
        if case.limit == "none":
            return Timeline((0.0,), (power.machines * power.full_w,), cap.name, "no limit")
        if case.limit == "envelope":
            return cap
        # a constant limit of the same energy
        energy_j = sum(value * (end - begin) for begin, end, value in cap.steps(0.0, sample.length_s))
        return Timeline((0.0,), (energy_j / sample.length_s,), cap.name, f"mean of {cap.source}")

    def figures_of(self, task: RunTask, run: Measured) -> dict[str, float | int | None]:
        """Return the figures of a run, rounded as in its files, against the envelope, also if its case has no limit."""
        cap, power = self.samples[task.window - 1].cap, self.power
        figures = {name: run.metrics.get(name) for name in COMPARED}
        if cap is None:
            return figures
        end_s = run.metrics["makespan_s"] or 0.0
        fed_s = sum(n * (end - begin) for begin, end, n in power.fed_by(cap).steps(0.0, end_s)) if end_s > 0.0 else 0.0
        if fed_s > 0.0:
            used = run.outcomes.useful_host_s / (fed_s * len(self.hosts) / power.machines)
            figures["work_per_fed_host"] = round(used, 6)
        if run.trace is not None:
            pieces = against(run.trace, cap)
            figures["violations"] = pieces.violations
            figures["energy_above_cap_j"] = round(pieces.above_j, 6)
            figures["unused_j"] = round(pieces.unused_j, 6)
        return figures


def _again(task: RunTask) -> None:
    _log.warning("case %r: a worker process died: the run starts again at the end, alone", task.case)


def _dead(task: RunTask, text: str) -> tuple[RunTask, Ended]:
    return task, BatwattError(f"case {task.case!r}: {text}")


def refuse_failures(ended: Mapping[RunTask, Ended], lenient: Collection[str]) -> dict[str, str]:
    """Return label -> error of failed cases. Raises the error of one that is not `lenient`, or if all have failed."""
    errors: dict[str, str] = {}
    for task, error in ended.items():
        label = task.case
        if isinstance(error, Measured) or label in errors:
            continue
        if label not in lenient:
            if isinstance(error, InputError):
                raise InputError(f"case {label!r}", str(error)) from error
            raise error
        errors[label] = str(error)
    if not any(isinstance(end, Measured) and task.case not in errors for task, end in ended.items()):
        why = "; ".join(f"{label}: {text}" for label, text in errors.items())
        raise InputError("comparison", "no case could run", why)
    return errors
