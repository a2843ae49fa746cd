"""The same study on Dask: a local cluster of two worker processes, one killed on the way."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from queue import SimpleQueue

import pytest
from waiting import wait_for

from batwatt.studies import executors

distributed = pytest.importorskip("distributed")
GRID = {"order": ["fcfs", "asc", "desc"]}


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


def on_dask(small, cluster, *args):
    return small.run("--dask", cluster.scheduler_address, *args)


def test_a_worker_dies_in_the_middle(small, cluster):
    yaml = small.declare(scheduler=small.held(1), grid=GRID, keep=[{"order": "fcfs"}])
    pids = {nanny.pid for nanny in cluster.workers.values()}
    assert len(pids) == 2

    def kill() -> None:
        wait_for(small.all_held)
        os.kill(min(pids), signal.SIGKILL)
        small.release()

    killer = threading.Thread(target=kill)
    killer.start()
    ended = on_dask(small, cluster)
    killer.join()
    assert ended.code == 0, ended.err
    assert small.done_in_log() == 6
    # the nanny has replaced it
    wait_for(lambda: len({nanny.pid for nanny in cluster.workers.values() if nanny.pid} - {min(pids)}) == 2)
    assert len(list((small.out / "runs").iterdir())) == 2
    # the same bytes as in processes of this machine
    assert small.bytes() == small.undisturbed(yaml)


def test_a_run_that_kills_each_worker(small, cluster):
    die = "if self.settings.order == 'asc': os.kill(os.getpid(), signal.SIGKILL)"
    small.declare(scheduler=small.slow(then=die), workloads=["w/a.json"])
    assert on_dask(small, cluster).code == 1
    assert [row["status"] for row in small.rows()] == ["done", "failed"]
    assert "each worker that ran it died" in small.rows()[1]["error"]


def test_the_scheduler_vanishes(small, monkeypatch):
    """Runs wait for workers, but not for another scheduler."""
    small.declare()
    scheduler = "import distributed.cli.dask_scheduler as it; it.main()"
    file = small.folder / "scheduler.json"
    process = small.house.start("--port", 0, "--no-dashboard", "--scheduler-file", file, program=("-c", scheduler))
    wait_for(lambda: file.exists() and file.read_text())

    class Results(SimpleQueue):
        def get(self):
            process.kill()
            return super().get()

    monkeypatch.setattr(executors, "SimpleQueue", Results)
    ended = small.run("--dask", json.loads(file.read_text())["address"])
    warning, problem = ended.err.strip().split("\n")
    assert ended.code == 1 and "no workers yet" in warning and "went away (a run was cancelled)" in problem
    assert problem.endswith(f"then: batwatt study {small.out}")


REFUSED = [
    (("--dask", "tcp://127.0.0.1:9"), "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
    (("--dask", "tcp://x:y"), "--dask: 'tcp://x:y' is not an address of a Dask scheduler"),
]


@pytest.mark.parametrize("args, problem", REFUSED, ids=[row[1] for row in REFUSED])
def test_clusters_that_are_refused(small, monkeypatch, args, problem):
    monkeypatch.setattr("batwatt.studies.executors.CONNECT_S", 0.5)
    small.declare()
    ended = small.run(*args)
    assert ended.code == 2 and problem in ended.line


def test_the_extra_is_missing(small, monkeypatch):
    small.declare()
    monkeypatch.setitem(sys.modules, "distributed", None)
    ended = small.run("--dask", "tcp://127.0.0.1:9")
    assert ended.code == 2 and "pip install -e '.[dask]'" in ended.line
