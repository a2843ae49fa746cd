"""One line that says why no job of a run finished, each worked by hand."""

from __future__ import annotations

import pytest
from builders import machine

from batwatt.protocol.workload4 import parse_workload
from batwatt.results.figures import METRICS
from batwatt.results.unfinished import why_none_finished

COUNTS = ("jobs_", "killed_", "resubmissions")
NOBODY = {metric.name: 0 if metric.name.startswith(COUNTS) else None for metric in METRICS} | {"makespan_s": 0.0}


def jobs(*rows):
    """(servers, walltime, profile); hosts of the machine do 10 flop/s at most."""
    profiles = {
        "nap": {"type": "delay", "delay": 30},
        "work": {"type": "parallel_homogeneous", "cpu": 400, "com": 0},
        "total": {"type": "parallel_homogeneous_total", "cpu": 400, "com": 0},
        "uneven": {"type": "parallel", "cpu": [100, 700], "com": [0] * 4},
        "both": {"type": "composed", "seq": ["nap", "work"], "repeat": 2},
    }
    named = [
        {"id": str(i), "subtime": 0, "res": hosts, "profile": profile} | ({"walltime": walltime} if walltime else {})
        for i, (hosts, walltime, profile) in enumerate(rows)
    ]
    return parse_workload({"nb_res": 4, "jobs": named, "profiles": profiles}, "w0", "test")


def why(workload, **ends):
    return why_none_finished(NOBODY | {"jobs_total": len(workload.jobs)} | ends, workload, machine(4))


@pytest.mark.parametrize(
    ("rows", "low", "high"),
    [
        ([(1, 10, "nap"), (1, 20, "work")], "2", "3"),  # 30 s of 10 s, 40 s of 20 s
        ([(2, 10, "total"), (2, 20, "uneven")], "2", "3.5"),  # 20 s of 10 s, 70 s of 20 s
        ([(1, 70, "both")], "2", "2"),  # 2 x (30 + 40) s of 70 s
        ([(1, 80, "work"), (1, None, "work")], "0.5", "0.5"),  # slowed down: at full speed it would make it
    ],
)
def test_jobs_at_their_walltime(rows, low, high):
    need = f"at the platform's full speed of 1e-08 Gflop/s jobs need {low} to {high} times theirs"
    said = why(jobs(*rows), killed_walltime=len(rows))
    assert said == f"none of {len(rows)} jobs finished: {len(rows)} reached their walltime ({need})"


def test_other_ends():
    workload = jobs((1, None, "nap"), (5, None, "nap"), (1, None, "nap"), (1, None, "nap"))
    assert why(workload, killed_power=1, jobs_rejected=1, jobs_failed=1, jobs_unfinished=1) == (
        "none of 4 jobs finished: 1 were killed by the scheduler; "
        "1 were rejected (1 ask for more than the platform's 4 hosts); "
        "1 failed: the return code of their profile is not 0; 1 waited or ran when the window ended"
    )
    assert why(workload) == "none of 4 jobs finished: none ran"


def test_nothing_is_said_of_other_runs():
    workload = jobs((1, 10, "nap"))
    assert why(workload, jobs_finished=1) is None
    assert why(jobs()) is None
