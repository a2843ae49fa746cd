"""One run: inputs, an engine, a scheduler, and the files that they leave."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from batwatt.batsim.adapters import seldom_collected, simulate
from batwatt.batsim.events import JobCompleted, Message, Reply, SimulationEnds
from batwatt.engine.core import Engine
from batwatt.errors import DeadlockError, InputError, tell_before_work
from batwatt.files import refuse_folder, whole_set, write_json, write_text
from batwatt.inputs.load import RunInputs
from batwatt.inputs.signal import to_csv
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.record import Record
from batwatt.model.timeline import Timeline
from batwatt.results.figures import METRICS, Values
from batwatt.results.run_files import FILES, RunData, digests_of, file_of, metadata_of, write_record
from batwatt.run.find_scheduler import attribute_errors
from batwatt.run.metadata import write_metadata
from batwatt.run.resolve import ResolvedRun, prepare
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    from batwatt.results.outcomes import JobOutcomes
    from batwatt.results.power import PowerTrace
    from batwatt.results.run_table import RunTable

LOGGER = logging.getLogger(__name__)
Progress = Callable[[float, int], None]
"""Callback with the simulated time in s and the number of ended jobs, at most once every `PROGRESS_S` s."""
PROGRESS_S = 0.1
OUTPUTS = (
    *((stem, ".csv") for stem in (*FILES, "capacity", "envelope", "job_power")),
    *(("metrics", ".json"), ("metadata", ".json"), ("platform", ".xml"), ("workload", ".json")),
)
"""Stem and suffix of every file that a run may leave."""


class _Watched:
    """A link that reports progress, a few times a second and at the end."""

    def __init__(self, link: Any, progress: Progress) -> None:
        self._link = link
        self._progress = progress
        self._ended = 0
        self._next_s = 0.0

    def message(self) -> Message:
        message: Message = self._link.message()
        last = False
        for event in message.events:
            if isinstance(event, JobCompleted):
                self._ended += 1
            last = isinstance(event, SimulationEnds)
        if last or time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + PROGRESS_S
            self._progress(message.now, self._ended)
        return message

    def reply(self, reply: Reply) -> None:
        self._link.reply(reply)


def _watch(resolved: ResolvedRun, progress: Progress | None) -> Callable[[Any], Any]:
    """Return a function that adds reports of progress, and holds of jobs, to a link."""
    return lambda link: resolved.link(_Watched(link, progress) if progress else link)


class RunOutcome:
    """A run that has ended in this process: its record, and the figures of the record."""

    def __init__(self, resolved: ResolvedRun, record: Record, deadlock: DeadlockError | None, elapsed_s: float) -> None:
        self.resolved = resolved
        self.record = record
        self.deadlock = deadlock
        self.elapsed_s = elapsed_s

    @cached_property
    def figures(self) -> Figures:
        """Figures of the record, equal to those of its files. Raises InputError."""
        return Figures(RunData(self.resolved.spec.prefix, self.record), self.resolved.inputs)

    def write(self, prefix: Path) -> None:
        """Write all files of the run under a prefix."""
        began = time.perf_counter()
        write_record(self.record, prefix)
        self.figures.write(prefix)
        _write_generated(prefix, self.resolved, self.figures)
        resolved, elapsed_s = self.resolved, self.elapsed_s + time.perf_counter() - began
        write_metadata(prefix, resolved.spec, resolved.config, resolved.inputs.clock, elapsed_s)


@seldom_collected()
def perform(resolved: ResolvedRun, progress: Progress | None = None) -> RunOutcome:
    """Run on an engine in this process, without files. Raises BatwattError, but not for a deadlock."""
    began = time.perf_counter()
    spec, inputs, scheduler = resolved.spec, resolved.inputs, resolved.scheduler
    deadlock: DeadlockError | None = None
    with attribute_errors(spec.scheduler_name, scheduler):
        engine = Engine(inputs.platform, inputs.run, resolved.config, inputs.events)
        try:
            record = simulate(engine, scheduler, _watch(resolved, progress))
        except DeadlockError as error:
            record, deadlock = engine.close(), error
    return RunOutcome(resolved, record, deadlock, time.perf_counter() - began)


@seldom_collected()
def run(
    spec: RunSpec,
    progress: Progress | None = None,
    *,
    durable: bool = True,
    ready: Callable[[int], None] = lambda jobs: None,
) -> Figures:
    """Run, and write the files of the run under `spec.prefix`: all of them, or none if it fails.

    `ready` is called with the number of jobs when all inputs are read.

    A deadlock leaves Batsim's files for inspection, as Batsim does, and is raised. Files are on
    the disk when this returns, unless they need not be `durable`.
    """
    began = time.perf_counter()
    resolved = prepare(spec)
    ready(sum(len(workload.jobs) for workload in resolved.inputs.run))
    tell_before_work()
    deadlock: DeadlockError | None = None
    with staging(spec.prefix, durable) as inner:
        if spec.engine == "embedded":
            outcome = perform(resolved, progress)
            outcome.elapsed_s = time.perf_counter() - began
            outcome.write(inner)
            figures, deadlock = outcome.figures, outcome.deadlock
        else:
            figures, deadlock = _run_apart(resolved, inner, progress, began)
    if deadlock is not None:
        raise deadlock
    warn_after_run(figures.metrics, resolved.inputs)
    return figures


def warn_after_run(metrics: Values, inputs: RunInputs) -> None:
    """Log the reason if no job of a run has finished, and the envelope or the capacity that ended before the run."""
    from batwatt.results.unfinished import why_none_finished

    end_s = metrics["makespan_s"] or 0.0
    for source, ends_s in inputs.ends.items():
        if end_s > ends_s:
            LOGGER.warning("%s: ended at %.15g s, the run at %.15g s: its last value held", source, ends_s, end_s)

    why = why_none_finished(metrics, inputs.run[0], inputs.platform)
    if why is not None:
        LOGGER.warning("%s", why)


def _run_apart(
    resolved: ResolvedRun, inner: Path, progress: Progress | None, began: float
) -> tuple[Figures, DeadlockError | None]:
    """Return the figures of a run on an engine in another process, whose files come under `inner`, and a deadlock."""
    # zmq takes a while to be loaded
    from batwatt.run.apart import Apart

    inputs = resolved.inputs
    apart = Apart.of(resolved.spec, inputs, resolved.scheduler, resolved.config, inner, _watch(resolved, progress))
    about, deadlock = apart.run()
    figures = write_results(inner, inputs)
    _write_generated(inner, resolved, figures)
    elapsed_s = time.perf_counter() - began
    write_metadata(inner, resolved.spec, resolved.config, inputs.clock, elapsed_s, about)
    return figures, deadlock


def outputs_of(prefix: Path) -> list[str]:
    """Return the names of the files that a run may leave under a prefix."""
    names = [file_of(prefix, stem, suffix).name for stem, suffix in OUTPUTS]
    more = prefix.parent.glob(f"{escape(prefix.name)}_workload[0-9]*.json")
    return names + [path.name for path in more if path.stem.rpartition("_workload")[2].isdigit()]


@contextmanager
def staging(prefix: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a prefix in a hidden folder, whose files appear under `prefix`, as a set, if the block succeeds.

    Otherwise nothing is left, not even folders made for it. Files of an earlier run under the same prefix that this
    one did not write are removed. Raises InputError if the place cannot be written.
    """
    option = f"--export {prefix}"
    try:
        refuse_folder(prefix, "--export")
        # a set without jobs is none, for any reader
        last = [
            file_of(prefix, "jobs").name,
            *(file_of(prefix, stem, ".json").name for stem in ("metrics", "metadata")),
        ]
        old = outputs_of(prefix)
        with whole_set(prefix.parent, last=last, old=old, durable=durable, place=option) as part:
            yield part / prefix.name
    except OSError as error:
        raise InputError(option, f"cannot be written ({error.strerror})", "choose another place") from None


def _write_generated(prefix: Path, resolved: ResolvedRun, figures: Figures) -> None:
    """Write the series that are in no file: generated, an object, or a view of another series (watts, machines).

    One that repeats is written until the end of the run.
    """
    inputs, declared = resolved.inputs, resolved.spec.inputs
    end_s = max(figures.metrics["makespan_s"] or 0.0, inputs.measured.last_submission_s)
    capacity, envelope = inputs.capacity, inputs.envelope
    read = isinstance(declared.capacity, SeriesSpec) and capacity is not None and str(declared.capacity.path)
    if capacity is not None and capacity.source != read:
        write_text(file_of(prefix, "capacity"), to_csv(_written(capacity, end_s)))
    if envelope is not None and isinstance(declared.envelope, SeriesSpec) and declared.envelope.path is None:
        write_text(file_of(prefix, "envelope"), to_csv(_written(envelope, end_s)))


def _written(series: Timeline, end_s: float) -> Timeline:
    return series.upto(end_s) if series.repeats else series


def write_results(prefix: Path, inputs: RunInputs) -> Figures:
    """Compute the figures of Batsim's files under a prefix; write PREFIX_metrics.json, _power.csv and _classes.csv.

    Figures of a run of ours that these inputs do not suffice for stay as they are. Raises InputError.
    """
    from batwatt.results.metrics import read_metrics

    # the reader of the jobs compares them
    metadata = metadata_of(prefix)
    files = metadata["files"]
    figures = Figures(RunData(prefix), inputs, read_metrics(prefix) if "metrics.json" in files else {})
    with whole_set(prefix.parent, place=prefix) as part:
        inner = part / prefix.name
        figures.write(inner)
        if "power.csv" in files and inputs.envelope is None:
            # it has the cap of the run
            file_of(inner, "power").unlink(missing_ok=True)
        if files:
            metadata["files"] = files | digests_of(inner)
            write_json(file_of(inner, "metadata", ".json"), metadata, allow_nan=True)
    return figures


class Figures:
    """Figures of a run's columns: metrics, the power over time, the jobs of each class of length.

    Metrics that the inputs do not suffice for have the values of `earlier` figures of the run.
    """

    def __init__(self, data: RunData, inputs: RunInputs, earlier: Values = MappingProxyType({})) -> None:
        self.data = data
        self._inputs = inputs
        self._earlier = earlier

    @cached_property
    def _measured(self) -> tuple[Values, RunTable | None]:
        from batwatt.results.metrics import measured

        inputs = self._inputs
        return measured(
            self.data,
            inputs.measured,
            inputs.envelope,
            inputs.full_flops,
            capacity=inputs.capacity,
            cores=inputs.cores,
            window=inputs.described.window,
            long_s=inputs.described.long_s,
            signals=inputs.signals,
        )

    @property
    def metrics(self) -> Values:
        """Metrics of the run. Raises InputError."""
        computed = self._measured[0]
        return {figure.name: computed.get(figure.name, self._earlier.get(figure.name)) for figure in METRICS}

    @property
    def unchanged(self) -> list[str]:
        """Names of the metrics with values of earlier figures."""
        return [name for name, value in self.metrics.items() if value is not None and name not in self._measured[0]]

    @property
    def currency(self) -> str:
        """Currency of the cost, that of the price; empty if the price has none."""
        price = self._inputs.price
        return price.currency if price is not None else ""

    @cached_property
    def power(self) -> PowerTrace | None:
        """Power over time; None without energy accounting, or if no job ran. Raises InputError."""
        from batwatt.results.power import power_series

        end_s = self.metrics["makespan_s"]
        return power_series(self.data, end_s) if self.data.energy is not None and end_s else None

    @cached_property
    def rejections(self) -> dict[str, int]:
        """Cause -> rejected jobs. Raises InputError."""
        from batwatt.results.rejections import rejections
        from batwatt.results.run_table import job_rows_of

        inputs = self._inputs
        rows = job_rows_of(self.data, inputs.measured, inputs.described.window)
        return rejections(rows, inputs.measured, len(inputs.platform))

    @cached_property
    def outcomes(self) -> JobOutcomes:
        """Outcome of each job. Raises InputError."""
        from batwatt.results.outcomes import job_outcomes

        inputs = self._inputs
        return job_outcomes(self.data, inputs.measured, inputs.platform, inputs.full_flops)

    def write(self, prefix: Path) -> None:
        """Write the files of figures under a prefix."""
        from batwatt.results.classes import write_classes
        from batwatt.results.metrics import write_metrics
        from batwatt.results.power import write_power

        run_table = self._measured[1]
        write_metrics(prefix, self.metrics)
        if run_table is not None:
            write_classes(prefix, run_table)
        if self.power is not None:
            write_power(prefix, self.power, self._inputs.envelope)
