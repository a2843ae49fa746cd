"""The same campaign on Dask: a local cluster of two worker processes, one killed on the way; batch systems."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from cli_house import wait_for

from batwatt.study import pools

distributed = pytest.importorskip("distributed")
# it takes SIGINT for itself where it is imported: an interrupt at the end of the process would be a SystemExit
handler = signal.getsignal(signal.SIGINT)
dask_jobqueue = pytest.importorskip("dask_jobqueue")
signal.signal(signal.SIGINT, handler)
OWN_PORT = {"dashboard_address": ":0"}
"""Of the dashboard: 8787 may be another cluster's."""
GRID = {"order": ["fcfs", "asc", "desc"]}


def test_ctrl_c_stays_what_it_is():
    code = """
        import signal
        from batwatt.study import pools
        before = signal.getsignal(signal.SIGINT)
        pools._dask("dask_jobqueue")
        assert signal.getsignal(signal.SIGINT) is before
        import importlib, sys
        sys.modules.pop("dask_jobqueue.runner")
        importlib.import_module("dask_jobqueue.runner")
        assert signal.getsignal(signal.SIGINT) is not before
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


def on_dask(small, cluster, *args):
    return small.campaign("run", small.folder / "tiny.yaml", "--dask", cluster.scheduler_address, *args)


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


def test_all_workers_vanish(small):
    """It does not wait for ever, and what was done is not done again."""
    small.declare(scheduler=small.held(2), grid=GRID)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:

        def vanish() -> None:
            wait_for(lambda: len(small.cells()) >= 2)
            cluster.scale(0)
            # a thread of it may still be at a run, whose result nobody takes
            wait_for(lambda: not cluster.workers)
            small.release()

        thread = threading.Thread(target=vanish)
        thread.start()
        ended = on_dask(small, cluster, "--worker-timeout", 0.5)
        thread.join()
        assert ended.code == 1 and "there has been no Dask worker for 0.5 s (--worker-timeout)" in ended.line
        assert ended.line.endswith(f"then: batwatt campaign resume {small.out}")
        assert 2 <= len(small.rows()) < 6
        cluster.scale(1)
        ended = small.campaign("resume", small.out, "--dask", cluster.scheduler_address)
    assert ended.code == 0, ended.err
    assert small.done_in_log() == len(small.rows()) == 6


def test_the_scheduler_vanishes(small, monkeypatch):
    small.declare()
    scheduler = "import distributed.cli.dask_scheduler as it; it.main()"
    file = small.folder / "scheduler.json"
    options = ("--port", 0, "--no-dashboard", "--scheduler-file", file)
    process = small.house.start(*options, program=("-c", scheduler))
    wait_for(lambda: file.exists() and file.read_text())
    look = pools._without_workers

    def vanish(client):
        process.kill()
        return look(client)

    monkeypatch.setattr(pools, "_without_workers", vanish)
    address = json.loads(file.read_text())["address"]
    ended = small.campaign("run", small.folder / "tiny.yaml", "--dask", address, "--worker-timeout", 2)
    assert ended.code == 1 and "the Dask scheduler " in ended.line
    assert ended.line.endswith(f"then: batwatt campaign resume {small.out}")


REFUSED = [
    (("--worker-timeout", 1), None, "--worker-timeout: is for a Dask cluster"),
    (("--dask", "tcp://127.0.0.1:9"), None, "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
    (("--dask", "tcp://x:y"), None, "--dask: 'tcp://x:y' is not an address of a Dask scheduler"),
    (("--dask-jobqueue", "q.yaml"), "cluster: SlurmCluster\njobs: 0\n", "line 1: cluster: input should be"),
    (("--dask-jobqueue", "q.yaml"), "cluster: SLURMCluster\njobs: 1\noptions: {cores: 1}\n", "options: "),
]


@pytest.mark.parametrize("args, file, problem", REFUSED, ids=[row[2] for row in REFUSED])
def test_clusters_that_are_refused(small, monkeypatch, args, file, problem):
    monkeypatch.setattr("batwatt.study.pools.CONNECT_S", 0.5)
    monkeypatch.chdir(small.folder)
    if file is not None:
        small.house.write("q.yaml", file)
    ended = small.campaign("run", small.declare(), *args)
    assert ended.code == 2 and problem in ended.line


def test_the_extra_is_missing(small, monkeypatch):
    small.declare()
    monkeypatch.setitem(sys.modules, "distributed", None)
    ended = small.campaign("run", small.folder / "tiny.yaml", "--dask", "tcp://127.0.0.1:9")
    assert ended.code == 2 and "pip install -e '.[dask]'" in ended.line


def test_workers_that_dask_jobqueue_starts(small):
    """Its LocalCluster starts the job's script as a process where others hand it to a batch system."""
    options = {"cores": 1, "memory": "1GB", "processes": 1, "scheduler_options": OWN_PORT}
    text = f"cluster: LocalCluster\njobs: 2\noptions: {options}\n"
    yaml = small.declare(grid=None)
    ended = small.campaign("run", yaml, "--dask-jobqueue", small.house.write("local.yaml", text))
    assert ended.code == 0, ended.err
    assert [row["status"] for row in small.rows()] == ["done"] * 2
