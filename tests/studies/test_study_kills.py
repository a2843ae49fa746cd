"""Whatever dies: nothing finished is lost, and the completed table is byte for byte that of a quiet study."""

from __future__ import annotations

import os
import signal

import pytest
from cli_house import alive, children
from waiting import wait_for

GRID = {"order": ["fcfs", "asc", "desc"]}


def start(small, *args):
    """The study as a process of its own with two workers."""
    command = ("study", small.folder / "tiny.yaml", "--results", small.results, "-j", 2, *args)
    return small.house.start(*command, start_new_session=True)


def descendants(pid: int) -> list[int]:
    below = children(pid)
    return below + [process for child in below for process in descendants(child)]


def test_kill_9_of_the_study(small):
    yaml = small.declare(scheduler=small.held(2), grid=GRID, keep=[{"order": "fcfs"}])
    process = start(small)
    wait_for(small.all_held)
    workers = descendants(process.pid)
    process.kill()
    process.wait()
    saved = small.cells()
    assert 2 <= len(saved) < 6
    small.release()
    wait_for(lambda: not any(alive(pid) for pid in workers))
    # hidden folders of a killed process stay
    [scratch] = small.out.glob(".batwatt-*")
    assert small.state()[0] == len(saved)
    assert small.batwatt("resume").code == 0
    assert small.log().count("Z start: ") == 2 and f"start: {6 - len(saved)} of 6 runs to do" in small.log()
    assert set(saved) < set(small.cells()) and len(small.cells()) == 6
    assert {path.name for path in small.out.glob(".*")} == {".lock", scratch.name}
    assert not [*small.out.glob("cells/.*"), *small.out.glob("runs/.*")]
    cleaned = small.batwatt("clean")
    assert cleaned.code == 0 and f"{scratch}: left by a process that was killed; remove it if" in cleaned.err
    assert scratch.is_dir() and small.bytes() == small.undisturbed(yaml)


@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.deep)]
)
def test_signals_end_it_in_order(small, number, code):
    small.declare(scheduler=small.held(2), grid=GRID)
    process = start(small)
    wait_for(small.all_held)
    workers = descendants(process.pid)
    # a terminal interrupts all processes of the group
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    ended = small.house.end(process)
    assert ended.code == code and ended.line.startswith("batwatt: ended by SIG")
    wait_for(lambda: not any(alive(pid) for pid in workers))
    done = len(small.cells())
    assert 2 <= done < 6 and len(small.rows()) == done and "Z stopped: interrupted" in small.log()
    assert not list(small.out.glob(".batwatt-*"))
    small.release()
    assert small.batwatt("resume").code == 0
    assert small.done_in_log() == len(small.rows()) == 6


def test_kill_9_of_a_worker(small):
    yaml = small.declare(scheduler=small.held(2), grid=GRID)
    process = start(small)
    wait_for(small.all_held)
    workers = descendants(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    small.release()
    ended = small.house.end(process)
    assert ended.code == 0, ended.err
    assert "a worker process died" in small.log()
    assert small.done_in_log() == 6
    assert small.bytes() == small.undisturbed(yaml)


@pytest.mark.deep
def test_a_run_that_kills_its_process_each_time(small):
    die = "if self.settings.order == 'asc': os.kill(os.getpid(), signal.SIGKILL)"
    small.declare(scheduler=small.slow(then=die), grid={"order": ["fcfs", "asc", "desc"]}, workloads=["w/a.json"])
    process = start(small)
    ended = small.house.end(process, 60)
    assert ended.code == 1 and "1 runs failed" in ended.err
    assert [row["status"] for row in small.rows()] == ["done", "failed", "done"]
    assert small.rows()[1]["error"].startswith("the process that ran it died 3 times")
