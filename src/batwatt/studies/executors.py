"""Execution of cells: in this process, in processes of this machine, or on a Dask cluster.

Processes are forked from this one, with its imports and inputs: only items and results pass between processes.
The pool of `concurrent.futures` ends all processes when one dies, so that a run that takes too much memory would end
the runs of the others, too, and the run that it was would not be known.
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
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from batwatt.errors import InputError, argument, extra
from batwatt.studies.cells import CellOutcome, CellTask, execute, execute_silently
from batwatt.studies.store import StudyStopped

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
CONNECT_S = 20.0
SECURE = ("tls", "wss")
"""Schemes of addresses that need certificates."""


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
    StudyStopped if processes cannot be started, or die before they begin.
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
                        raise StudyStopped("the worker processes die before they run anything; see the memory")
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
        raise StudyStopped(f"no process can be started ({error.strerror or error}); see the memory") from None


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


def run_cells(
    tasks: Sequence[CellTask],
    save: Callable[[CellOutcome], None],
    *,
    processes: int,
    dask: str | None,
    note: Callable[[str], None],
    resume: str,
) -> None:
    """Run cells, and save the outcome of each as it ends.

    Args:
        tasks: The cells, in the order in which they begin.
        save: Function that gets each outcome, done or failed.
        processes: Processes of this machine. 0: the cells run in this process.
        dask: Address of a Dask cluster that runs the cells instead.
        note: Function that gets a line for each process that dies.
        resume: Text that tells how to go on.

    Raises:
        StudyStopped: A reason outside the cells.
        InputError: No cluster answers.
    """
    if not tasks:
        return
    # an interrupt ends the processes at once
    with closing(_outcomes(tasks, processes, dask, note, resume)) as outcomes:
        for outcome in outcomes:
            if outcome.status == "stop":
                raise StudyStopped(f"{outcome.error}; correct that, then: {resume}")
            save(outcome)


def _outcomes(
    tasks: Sequence[CellTask], processes: int, dask: str | None, note: Callable[[str], None], resume: str
) -> Generator[CellOutcome, None, None]:
    if dask is not None:
        with _dask_client(dask) as client:
            yield from _run_on_dask(tasks, client, resume)
    elif processes:
        yield from _run_here(tasks, min(processes, len(tasks)), note)
    else:
        yield from map(execute, tasks)


def _run_here(
    tasks: Sequence[CellTask], processes: int, note: Callable[[str], None]
) -> Generator[CellOutcome, None, None]:
    """Run cells in processes. A cell whose processes die has failed."""

    def failed(task: CellTask, text: str) -> CellOutcome:
        return CellOutcome(task.key, "failed", text)

    def again(task: CellTask) -> None:
        note(f"a worker process died: {task.name} is run again at the end, alone")

    return run_safely(execute_silently, tasks, processes, again, failed)


def _run_on_dask(tasks: Sequence[CellTask], client: Any, resume: str) -> Iterator[CellOutcome]:
    """Run cells on the workers of a Dask cluster, which restarts the cells of a dead worker and waits for workers.

    Raises StudyStopped, with how to `resume`, if the scheduler of the cluster ends.
    """
    from distributed import KilledWorker

    if not client.nthreads():
        logging.getLogger(__name__).warning("the Dask cluster has no workers yet: the runs wait for them")
    ready: SimpleQueue[Any] = SimpleQueue()
    futures = {client.submit(execute, task, key=f"cell-{task.key}", pure=False): task.key for task in tasks}
    try:
        for future in futures:
            future.add_done_callback(ready.put)
        while futures:
            future = ready.get()
            key = futures.pop(future)
            yield _arrived(future, key, resume, KilledWorker)
            future.release()
    finally:
        if futures:
            client.cancel(list(futures), force=True)


def _arrived(future: Any, key: str, resume: str, killed: type[Exception]) -> CellOutcome:
    if future.status == "finished":
        outcome: CellOutcome = future.result()
        return outcome
    if future.status != "error":
        problem = f"the Dask scheduler went away (a run was {future.status})"
        raise StudyStopped(f"{problem}; nothing finished is lost; start it again, then: {resume}")
    error = future.exception()
    if isinstance(error, killed):
        return CellOutcome(key, "failed", "each worker that ran it died (killed, out of memory, or a crash)")
    text = " ".join(f"{type(error).__name__}: {error}".split())
    raise StudyStopped(f"a Dask worker cannot run cells ({text}); install the same batwatt and Python there")


def check_dask(address: str, workers: int | None = None) -> None:
    """Raise InputError for a number of workers, or a wrong address of a cluster, before the cluster is needed."""
    if workers is not None:
        hint = "leave it out: the Dask cluster has its own number"
        raise InputError(argument("workers"), "is for runs on this machine", hint)
    with extra("dask"):
        from distributed import Security
        from distributed.comm import addressing, registry

    # a client that cannot connect prints errors again when it is deleted
    try:
        scheme, place = addressing.parse_address(address)
        registry.get_backend(scheme).get_address_host(place)
        if scheme in SECURE and not Security().get_connection_args("client").get("ssl_context"):
            raise ValueError(f"{scheme} needs certificates: see `distributed.comm.tls` in Dask's configuration")
    except Exception as error:  # each scheme has errors of its own
        hint = "give it as in tcp://HOST:PORT; the log of `dask scheduler` shows it"
        raise InputError(
            argument("dask"), f"{address!r} is not an address of a Dask scheduler ({error})", hint
        ) from None


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    """Connect to the cluster at an address. Raises InputError."""
    from distributed import Client

    for name in ("distributed", "distributed.client"):  # they log tracebacks of errors that are one line here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        problem = f"no Dask scheduler answers at {address!r} ({type(error).__name__})"
        raise InputError(
            argument("dask"), problem, "start one with `dask scheduler`; its log shows the address"
        ) from None
    with client:
        yield client
