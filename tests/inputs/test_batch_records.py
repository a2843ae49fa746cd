"""Accounting records of PBS and events of the Slurm simulator, as hand-made lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.traces.convert import format_of, read_trace
from batwatt.inputs.traces.job_log import LogOptions
from batwatt.inputs.workloads.batsim_files import read_workload

TIMES = "ctime=1506830400 qtime=1506830400 etime=1506830400 start=1506830460"
PBS = f"""\
10/01/2017 00:00:00;Q;1.m1;queue=batch
10/01/2017 00:01:00;S;1.m1;user=ann group=bio queue=batch {TIMES}
10/01/2017 01:01:00;E;1.m1;user=ann group=bio jobname=a b queue=batch {TIMES} exec_host=c3/0-3,7+c4/2 \
Resource_List.nodes=2:ppn=3 Resource_List.walltime=30:00:00 unique_node_count=2 end=1506834060 \
resources_used.walltime=01:00:05
10/01/2017 01:01:01;E;2.m1;user=bob queue=long {TIMES} exec_host=n1/0*16 Resource_List.ncpus=24 \
Resource_List.nodect=1 end=1506830463 resources_used.walltime=00:00:00
not a record
10/01/2017 01:01:02;E;3.m1;user=bob queue=long {TIMES} exec_host=n1/0 end=1506830460 resources_used.walltime=00:00:00
"""
EVENTS = """\
-dt 10.5 -e submit_batch_job | -sim-walltime 3600.25 --uid=ann -J job_1 -N 2 -n 36 -t 1-02:00:00 -q high -p long a.job

-dt 20 -e submit_batch_job | -sim-walltime 60 --uid=bob -J job_1 --nodes=3 --ntasks-per-node=4 -c 2 -t 90 -A sun a.job
-dt 30 -e submit_batch_job | -sim-walltime 0 --uid=bob -J job_3 -n 1 -t 90 pseudo.job
-dt 40 -e cancel_job | -jid 3
"""


def written(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["mason.pbs", "accounting.txt"])
def test_pbs(tmp_path: Path, name: str, caplog):
    path = written(tmp_path, PBS, name)
    assert format_of(path) == "pbs"
    table = read_trace(path)
    first, second = table
    # slots 0, 1, 2, 3, 7 of c3 and 2 of c4
    assert (first.id, first.submit_s, first.run_s, first.cpus, first.requested_s) == ("1.m1", 0, 3605, 6, 108_000)
    assert dict(first.extra) == {"start_s": 60, "user": "ann", "group": "bio", "queue": "batch"}
    # a sampled walltime of 0: from start to end
    assert (second.id, second.run_s, second.cpus, second.requested_s) == ("2.m1", 3, 24, None)
    assert dict(second.extra) == {"start_s": 60, "user": "bob", "queue": "long"}
    assert table.origin_s == 1_506_830_400
    assert f"{path}: 2 jobs; 2 of 4 lines of jobs are left out: 1 malformed, 1 never ran" in caplog.text
    assert [job.cpus for job in read_trace(path, log=LogOptions(width="nodes"))] == [2, 1]


def test_pbs_without_ends(tmp_path: Path):
    path = written(tmp_path, PBS.splitlines()[0], "day.pbs")
    with pytest.raises(InputError, match=f"{path}: holds no job; give the whole file"):
        read_trace(path)


def test_events(tmp_path: Path, caplog):
    path = written(tmp_path, EVENTS, "week.events")
    table = read_trace(path)
    first, second = table
    assert (first.id, first.submit_s, first.run_s, first.cpus, first.requested_s) == ("job_1", 0, 3600.25, 36, 93_600)
    assert dict(first.extra) == {"user": "ann", "queue": "long", "qos": "high"}
    assert (second.id, second.submit_s, second.run_s, second.requested_s) == ("job_1-2", 9.5, 60, 5400)
    # 3 nodes of 4 tasks of 2 CPUs
    assert (second.cpus, dict(second.extra)) == (24, {"user": "bob", "group": "sun"})
    assert (
        table.origin_s is None and f"{path}: 2 jobs; 2 of 4 lines of jobs are left out: 1 not submitted" in caplog.text
    )
    assert [job.cpus for job in read_trace(path, log=LogOptions(width="nodes"))] == [2, 3]


@pytest.mark.parametrize("line", ["-dt x -e submit_batch_job | -n 1", "sbatch -n 1 a.job"])
def test_bad_events(tmp_path: Path, line: str):
    path = written(tmp_path, f"{EVENTS}{line}\n", "week.events")
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value) == (
        f"{path} line 6: is no event at a time >= 0 s, got {line!r}; write -dt SECONDS -e submit_batch_job | "
        "-sim-walltime SECONDS and options of sbatch"
    )


def test_jobs_of_elastisim(tmp_path: Path):
    job = (
        '{"type": "rigid", "submit_time": 0, "num_nodes": 7, "application_model": "m", "arguments": {"iterations": 9}}'
    )
    path = written(tmp_path, f'{{"jobs": [{job}]}}', "jobs.json")
    with pytest.raises(InputError, match=f"{path}: is a workload of ElastiSim.*2024_Q1_CPU-sacct-subset.csv"):
        read_workload(path)
