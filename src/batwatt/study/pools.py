"""The loop of a study: cells that are missing run here or on a Dask cluster, and each is saved as it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from queue import SimpleQueue
from typing import Any

from batwatt.errors import InputError, argument, extra
from batwatt.study.execute import CellOutcome, CellTask, execute, execute_silently
from batwatt.study.processes import run_safely
from batwatt.study.store import CampaignStopped

CONNECT_S = 20.0
SECURE = ("tls", "wss")
"""Schemes of addresses that need certificates."""


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
        CampaignStopped: A reason outside the cells.
        InputError: No cluster answers.
    """
    if not tasks:
        return
    # an interrupt ends the processes at once
    with closing(_outcomes(tasks, processes, dask, note, resume)) as outcomes:
        for outcome in outcomes:
            if outcome.status == "stop":
                raise CampaignStopped(f"{outcome.error}; correct that, then: {resume}")
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

    Raises CampaignStopped, with how to `resume`, if the scheduler of the cluster ends.
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
        raise CampaignStopped(f"{problem}; nothing finished is lost; start it again, then: {resume}")
    error = future.exception()
    if isinstance(error, killed):
        return CellOutcome(key, "failed", "each worker that ran it died (killed, out of memory, or a crash)")
    text = " ".join(f"{type(error).__name__}: {error}".split())
    raise CampaignStopped(f"a Dask worker cannot run cells ({text}); install the same batwatt and Python there")


def check_dask(address: str) -> None:
    """Raise InputError for a wrong address of a cluster, before the cluster is needed."""
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
