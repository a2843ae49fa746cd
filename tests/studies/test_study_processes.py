"""Processes that work through a list, forked from this one."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
from contextlib import closing

import pytest

from batwatt.studies import executors
from batwatt.studies.executors import Died, cpu_count, in_processes
from batwatt.studies.store import StudyStopped


def square(number: int) -> int:
    return number * number


def deadly(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def wrong(number: int) -> int:
    raise ValueError(f"{number} is wrong")


def setting(_: int) -> tuple[bool, int, int, bool]:
    default = all(signal.getsignal(number) == signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGHUP))
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return default, logging.getLogger().level, len(logging.getLogger().handlers), blocked


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_that_dies_is_replaced_and_its_item_is_known(jobs):
    """All others are done once."""
    results = list(in_processes(deadly, range(6), jobs))
    assert [result for result in results if isinstance(result, Died)] == [Died(3)]
    assert sorted(result for result in results if not isinstance(result, Died)) == [0, 1, 2, 4, 5]
    assert list(in_processes(deadly, [], jobs)) == []


def test_none_is_left_after_an_error_or_when_no_more_is_wanted():
    with pytest.raises(ValueError, match="is wrong"):
        list(in_processes(wrong, range(4), 2))
    assert not multiprocessing.active_children()
    with closing(in_processes(square, range(9), 2)) as results:
        next(results)
        assert len(multiprocessing.active_children()) == 2
    assert not multiprocessing.active_children()


def test_no_process_begins(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(executors, "_end_with", lambda _: os._exit(1))
        with pytest.raises(StudyStopped, match="die before they run anything"):
            list(in_processes(square, range(4), 2))

    def fork():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(StudyStopped, match=r"no process can be started \(Resource temporarily unavailable\)"):
        list(in_processes(square, range(4), 2))


def test_handlers_are_not_inherited():
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    logging.getLogger().addHandler(handler := logging.StreamHandler())
    try:
        [settings] = in_processes(setting, [0], 1)
    finally:
        signal.signal(signal.SIGTERM, before)
        logging.getLogger().removeHandler(handler)
    assert settings == (True, logging.WARNING, 1, True)


@pytest.mark.parametrize(
    "files, cores",
    [
        ({}, 8),
        ({"max": "max 100000\n"}, 8),
        ({"max": "150000 100000\n"}, 2),
        ({"quota": "-1\n", "period": "100000\n"}, 8),
        ({"quota": "50000\n", "period": "100000\n"}, 1),
    ],
)
def test_cores_of_a_container(tmp_path, monkeypatch, files, cores):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(executors, "QUOTAS", tuple(tmp_path / name for name in ("max", "quota", "period")))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert cpu_count() == cores


@pytest.mark.parametrize("threads", [0, 1])
def test_an_interrupt_while_a_process_starts_leaves_none_behind(monkeypatch, threads):
    """Whichever thread receives it: the main one does not take it then."""
    started, workers = executors._started, []
    over = threading.Event()
    for _ in range(threads):
        threading.Thread(target=over.wait, daemon=True).start()

    def interrupted(*arguments):
        workers.append(started(*arguments))
        os.kill(os.getpid(), signal.SIGINT)
        # until another thread has received it
        time.sleep(0.1)
        return workers[-1]

    monkeypatch.setattr(executors, "_started", interrupted)
    # others may have set a handler of their own
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(in_processes(square, [1, 2], 2))
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
    [worker] = workers
    with pytest.raises(ValueError, match="closed"):
        worker.process.is_alive()


class Circle:
    """Garbage that only a collection finds."""

    alive = 0

    def __init__(self) -> None:
        self.itself = self
        Circle.alive += 1

    def __del__(self) -> None:
        Circle.alive -= 1


def circles(_: int) -> int:
    gc.disable()
    Circle()
    return Circle.alive


@pytest.mark.parametrize(("every_s", "alive"), [(0.0, [1, 1, 1]), (60.0, [1, 2, 3])])
def test_processes_collect_garbage_between_runs(monkeypatch, every_s, alive):
    """At most once in `COLLECT_S`: a run of a study of thousands leaves some 30 MB of it."""
    monkeypatch.setattr(executors, "COLLECT_S", every_s)
    assert list(in_processes(circles, range(3), 1)) == alive
