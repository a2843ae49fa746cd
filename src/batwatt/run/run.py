"""One run: a scheduler on an engine, in this process or apart, and the files that it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from batwatt.batsim.adapters import seldom_collected, simulate
from batwatt.batsim.events import JobCompleted, Message, Reply, SimulationEnds
from batwatt.engine.core import Engine
from batwatt.errors import DeadlockError, tell_before_work
from batwatt.model.attempt import Attempt
from batwatt.results.run_files import file_of, write_attempts
from batwatt.run.files import staging, write_metadata
from batwatt.run.find_scheduler import attribute_errors
from batwatt.run.prepared import PreparedRun
from batwatt.run.result import Result
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import Scheduler

Progress = Callable[[float, int], None]
"""Callback with the simulated time in s and the number of ended jobs, at most once every `PROGRESS_S` s."""
PROGRESS_S = 0.1


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


def _watch(run: PreparedRun, progress: Progress | None) -> Callable[[Any], Any]:
    """Return a function that adds reports of progress, and holds of jobs, to a link."""
    return lambda link: run.link(_Watched(link, progress) if progress else link)


def attempts_of(scheduler: Any) -> dict[str, Attempt]:
    """Return the attempts of the jobs of a scheduler by their ids; empty for a scheduler that collects none."""
    return scheduler.lifecycle.attempts if isinstance(scheduler, Scheduler) else {}


@seldom_collected()
def perform(run: PreparedRun, progress: Progress | None = None) -> Result:
    """Run on an engine in this process, without files. Raises BatwattError, but not for a deadlock."""
    began = time.perf_counter()
    deadlock: DeadlockError | None = None
    with attribute_errors(run.spec.scheduler_name, run.scheduler):
        engine = Engine(run.platform, run.engine_workloads, run.config, run.events)
        try:
            record = simulate(engine, run.scheduler, _watch(run, progress))
        except DeadlockError as error:
            record, deadlock = engine.close(), error
    record.attempts = attempts_of(run.scheduler)
    return Result(run, record, elapsed_s=time.perf_counter() - began, deadlock=deadlock)


@seldom_collected()
def run(
    spec: RunSpec,
    progress: Progress | None = None,
    *,
    durable: bool = True,
    ready: Callable[[int], None] = lambda jobs: None,
) -> Result:
    """Run, and write the files of the run under `spec.prefix`: all of them, or none if it fails.

    `ready` is called with the number of jobs when all inputs are read.

    A deadlock leaves Batsim's files for inspection, as Batsim does, and is raised. Files are on
    the disk when this returns, unless they need not be `durable`.
    """
    began = time.perf_counter()
    prepared = PreparedRun.of(spec)
    ready(sum(len(workload.jobs) for workload in prepared.engine_workloads))
    tell_before_work()
    with staging(spec.prefix, durable) as inner:
        if spec.engine == "embedded":
            result = perform(prepared, progress)
            result.elapsed_s = time.perf_counter() - began
            result.write(inner)
        else:
            result = _run_apart(prepared, inner, progress, began)
    if result.deadlock is not None:
        raise result.deadlock
    result.warn()
    return result


def _run_apart(prepared: PreparedRun, inner: Path, progress: Progress | None, began: float) -> Result:
    """Return the result of a run on an engine in another process, whose files come under `inner`."""
    # zmq takes a while to be loaded
    from batwatt.run.apart import Apart

    about, deadlock = Apart.of(prepared, inner, _watch(prepared, progress)).run()
    attempts = attempts_of(prepared.scheduler)
    if attempts:
        write_attempts(file_of(inner, "attempts"), attempts)
    result = Result.of_files(inner, prepared, series=True)
    result.deadlock = deadlock
    write_metadata(inner, prepared, time.perf_counter() - began, about)
    return result
