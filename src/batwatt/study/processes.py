"""Processes of this machine that work through a list; each takes the next item when it has finished one.

They are forked from this process, with its imports and inputs: only items and results pass between processes.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Generic, TypeVar

from batwatt.study.store import CampaignStopped

Item = TypeVar("Item")
Result = TypeVar("Result")

COLLECT_S = 1.0
"""Time between two collections of garbage in a process, s: one takes some 50 ms."""
DEATHS = 3
"""Most deaths in a row of processes without an item, and most deaths of processes with the same item."""
QUOTAS = (
    Path("/sys/fs/cgroup/cpu.max"),
    *(Path(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period")),
)
"""Files of Linux with the cores of a container: quota and period in one file, or in one each."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Died(Generic[Item]):
    """Result for an item whose process has died."""

    item: Item


class _Worker:
    """A process, and the number of its item; `ready` once it has reported its begin."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.number: int | None = None
        self.ready = False
        with _children_allowed():
            self.process = context.Process(target=_work, args=(function, items, os.getpid(), theirs))
            self.process.start()
        theirs.close()

    def give(self, number: int) -> None:
        self.number = number
        # if the process has died, its answer shows it
        with suppress(OSError):
            self.pipe.send(number)

    def answer(self) -> Any:
        """Return the answer of the process; None if it died."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Generator[Result | Died[Item], None, None]:
    """Yield the results of a function in `jobs` processes as they are ready; raise the errors of the function.

    A process that dies is replaced; a process gets its next item before its result is used. The processes end with
    this one, however it ends, and receive no Ctrl-C, which a terminal sends them too: this one ends them. Raises
    CampaignStopped if processes cannot be started, or die before they begin.
    """
    waiting = deque(range(len(items)))
    workers: dict[Any, _Worker] = {}
    deaths = 0

    def give() -> None:
        for worker in workers.values():
            if waiting and worker.number is None:
                worker.give(waiting.popleft())
        while waiting and len(workers) < jobs:
            # an interrupt before the process is listed would leave it behind, and this one would wait for its end
            with _interrupts_blocked():
                worker = _started(function, items)
                workers[worker.pipe] = worker
            worker.give(waiting.popleft())

    try:
        give()
        while any(worker.number is not None for worker in workers.values()):
            ended: list[Result | Died[Item]] = []
            for pipe in wait([*workers]):
                worker = workers[pipe]
                answer, number = worker.answer(), worker.number
                if answer is None:
                    workers.pop(pipe).end()
                    deaths = 0 if worker.ready else deaths + 1
                    if deaths == DEATHS:
                        raise CampaignStopped("the worker processes die before they run anything; see the memory")
                    if number is not None and worker.ready:
                        ended.append(Died(items[number]))
                    elif number is not None:
                        waiting.appendleft(number)
                elif not worker.ready:
                    worker.ready, deaths = True, 0
                else:
                    worker.number = None
                    result, error = answer
                    if error is not None:
                        raise error
                    ended.append(result)
            give()
            yield from ended
    finally:
        for worker in workers.values():
            worker.end()


def run_safely(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    again: Callable[[Item], None],
    failed: Callable[[Item, str], Result],
) -> Generator[Result, None, None]:
    """Yield results as `in_processes` does. Call `again` with an item whose process dies; it runs alone at the end.

    The result of an item whose process has died `DEATHS` times is that of `failed`, with a text.
    """
    died: list[Item] = []
    with closing(in_processes(function, items, jobs)) as results:
        for result in results:
            if isinstance(result, Died):
                again(result.item)
                died.append(result.item)
            else:
                yield result
    for item in died:
        for _ in range(DEATHS - 1):
            [result] = in_processes(function, [item], 1)
            if not isinstance(result, Died):
                yield result
                break
        else:
            text = f"the process that ran it died {DEATHS} times (killed from outside, out of memory, or a crash)"
            yield failed(item, text)


def _started(function: Callable[[Any], Any], items: Sequence[Any]) -> _Worker:
    try:
        return _Worker(function, items)
    except OSError as error:
        raise CampaignStopped(f"no process can be started ({error.strerror or error}); see the memory") from None


def _work(function: Callable[[Any], Any], items: Sequence[Any], parent: int, pipe: Any) -> None:
    """Work in a process: report the begin, then answer each number with a result or an error."""
    _end_with(parent)
    _forget()
    pipe.send(())
    collected_s = time.monotonic()
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = function(items[number]), None
        except Exception as error:
            answer = None, error
        pipe.send(answer)
        if time.monotonic() - collected_s >= COLLECT_S:
            # a run leaves circles of objects, which Python's own collections free too late
            del answer
            gc.collect()
            collected_s = time.monotonic()


def _end_with(parent: int) -> None:
    """Let the kernel (Linux) end this process as soon as the thread of `parent` ends that started it."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # the parent has ended already
        os._exit(1)


def _forget() -> None:
    """Undo the settings of the process from which this one was forked."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    logging.basicConfig(level=logging.WARNING, handlers=[logging.NullHandler()], force=True)
    if "numpy" in sys.modules:
        # draws without a generator differ from process to process, as those of `random` do
        sys.modules["numpy"].random.seed()
    # exclude objects of the other process from collections of garbage
    gc.freeze()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let the block start processes and threads that SIGINT does not reach, from their first instruction on.

    An interrupt during the block is raised at its end, also one that another thread of this process receives.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Python runs handlers in the main thread, whichever thread has received the signal
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    received: list[int] = []
    if handler is not None:
        signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if received:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _children_allowed() -> Iterator[None]:
    """Let a process of a pool of multiprocessing start others, which it may not, as they could outlive it."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    before = config.pop("daemon", None)
    try:
        yield
    finally:
        if before is not None:
            config["daemon"] = before


def cpu_count() -> int:
    """Return the number of cores that this process may use, by its affinity and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        numbers = QUOTAS[0].read_text() if QUOTAS[0].exists() else " ".join(path.read_text() for path in QUOTAS[1:])
        quota, period = (int(word) for word in numbers.split())
    except (OSError, ValueError):
        return cores  # no such files, or `max`
    return max(1, min(cores, -(-quota // period))) if quota > 0 and period > 0 else cores
