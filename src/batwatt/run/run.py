"""One run: inputs, an engine, a scheduler, and the files that they leave."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batwatt.engine.core import Engine
from batwatt.engine.embedded import seldom_collected, serve, simulate
from batwatt.engine.events import JobCompleted, Message, Reply, SimulationEnds
from batwatt.errors import DeadlockError, InputError
from batwatt.files import whole_set
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.workloads.events import read_events
from batwatt.model.record import Record
from batwatt.results.columns import FILES
from batwatt.results.writers import file_of, write_record
from batwatt.run.find_scheduler import blaming
from batwatt.run.inputs import RunInputs, load_inputs, with_files, write_capacity
from batwatt.run.metadata import write_metadata
from batwatt.run.nominal import check_nominal, nominal_record
from batwatt.run.resolve import resolve
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    from batwatt.results.metrics import Metrics

LOGGER = logging.getLogger(__name__)
Progress = Callable[[float, int], None]
"""Called with the time in s and the number of jobs that have ended so far, not oftener than every `PROGRESS_S` s."""
PROGRESS_S = 0.1
OUTPUTS = (
    *((stem, ".csv") for stem in FILES),
    *(("metrics", ".json"), ("metadata", ".json"), ("platform", ".xml"), ("workload", ".json"), ("capacity", ".csv")),
)
"""Stem and suffix of every file that a run may leave."""


@dataclass(frozen=True)
class RunResult:
    """What a run gave: its metrics, and the files under its prefix."""

    metrics: Metrics
    prefix: Path


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


@seldom_collected()
def run(spec: RunSpec, progress: Progress | None = None, *, durable: bool = True) -> RunResult:
    """Carry out a run and write its files under `spec.prefix`: all of them, or none if it fails.

    A deadlock on the embedded engine leaves Batsim's files for inspection, as Batsim does, and is raised. Files are on
    the disk when this returns, unless they need not be `durable`.
    """
    from batwatt.results.unfinished import why_none_finished

    began = time.perf_counter()
    if spec.engine == "nominal":
        check_nominal(spec)
    resolved = resolve(spec)
    spec, inputs, scheduler = resolved.spec, resolved.inputs, resolved.scheduler
    record: Record | None = None
    deadlock: DeadlockError | None = None
    about: dict[str, Any] = {}
    with staging(spec.prefix, durable) as inner:
        if spec.engine == "nominal":
            with blaming(spec.scheduler, scheduler):
                record, deadlock = nominal_record(resolved, progress)
            write_record(record, inner)
        elif spec.engine == "embedded":
            engine = Engine(inputs.platform, inputs.run, resolved.config, resolved.events)
            watch = (lambda link: _Watched(link, progress)) if progress else None
            try:
                with blaming(spec.scheduler, scheduler):
                    record = simulate(engine, scheduler, watch)
            except DeadlockError as error:
                record, deadlock = engine.close(), error
            write_record(record, inner)
        else:
            # zmq takes a while to be loaded
            from batwatt.run.apart import Apart

            files = with_files(spec, len(inputs.platform), inner)
            watch = (lambda link: _Watched(link, progress)) if progress else (lambda link: link)
            about = Apart(files, scheduler, resolved.config, inputs.platform, inner, watch).run()
        if isinstance(spec.capacity, CapacitySpec) and inputs.capacity is not None:
            write_capacity(inner, inputs.capacity)
        metrics = write_results(inner, inputs, record)
        write_metadata(inner, spec, resolved.config, time.perf_counter() - began, about)
    if deadlock is not None:
        raise deadlock
    why = why_none_finished(metrics, inputs.simulated or inputs.workload, inputs.platform)
    if why is not None:
        LOGGER.warning("%s", why)
    return RunResult(metrics, spec.prefix)


def run_engine(spec: RunSpec, endpoint: str, ready: Callable[[], None] = lambda: None) -> None:
    """Play Batsim on the wire for a scheduler that listens on `endpoint`; writes Batsim's files.

    `ready` is called when all inputs are read, before the scheduler is waited for.
    """
    inputs = load_inputs(spec, None)
    hosts = len(inputs.platform)
    events = read_events(spec.events, spec.config.forward_unknown_events, hosts) if spec.events else ()
    engine = Engine(inputs.platform, inputs.run, spec.config, events)
    with staging(spec.prefix) as inner:
        ready()
        write_record(serve(engine, endpoint, spec.patience_s), inner)


@contextmanager
def staging(prefix: Path, durable: bool = True) -> Iterator[Path]:
    """A prefix in a hidden folder; what was written there appears under `prefix`, as a set, if the block ends well.

    Otherwise nothing is left, not even folders made for it. Files of an earlier run under the same prefix that this
    one did not write are removed. InputError if the place cannot be written.
    """
    shown = f"--export {prefix}"
    try:
        if prefix.name in ("", "..") or prefix.is_dir():
            hint = f"give a prefix of files such as {prefix / 'run'}"
            raise InputError("--export", f"{str(prefix)!r} is a folder", hint)
        names = [file_of(prefix, stem, suffix).name for stem, suffix in OUTPUTS]
        last = [file_of(prefix, stem, ".json").name for stem in ("metrics", "metadata")]
        with whole_set(prefix.parent, prefix.name, last=last, old=names, durable=durable, shown=shown) as part:
            yield part / prefix.name
    except OSError as error:
        raise InputError(shown, f"cannot be written ({error.strerror})", "choose another place") from None


def write_results(prefix: Path, inputs: RunInputs, record: Record | None = None) -> Metrics:
    """Work out what Batsim's files under a prefix tell; write PREFIX_metrics.json, _power.csv and _classes.csv.

    With the `record` that was written to these files they are not read.
    """
    from batwatt.results.classes import write_classes
    from batwatt.results.metrics import measured, write_metrics
    from batwatt.results.power import power_series, write_power
    from batwatt.results.run_data import RunData

    data = RunData(prefix, record)
    metrics, run_table = measured(
        data,
        inputs.measured,
        inputs.envelope,
        inputs.platform.fastest_flops,
        capacity=inputs.capacity,
        cores=inputs.cores,
        window=inputs.window,
        long_s=inputs.long_s,
        slowed=inputs.simulated is not None,
    )
    write_metrics(prefix, metrics)
    if run_table is not None:
        write_classes(prefix, run_table)
    if data.energy is not None and metrics.makespan_s:
        write_power(prefix, power_series(data, metrics.makespan_s), inputs.envelope)
    return metrics
