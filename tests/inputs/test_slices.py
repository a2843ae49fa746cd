"""Slices of a trace: what is in them, and what is pruned."""

from __future__ import annotations

import pytest

from batwatt.errors import InputError
from batwatt.inputs.traces.slices import slice_of
from batwatt.inputs.traces.trace import TraceJob


def names(jobs):
    return "".join(job.id for job in jobs)


def test_what_runs_at_the_begin_or_is_released_in_it_and_is_shorter_than_a_day():
    rows = {
        "a": (60, 40),
        "b": (60, 41),
        "c": (100, 5),
        "d": (200, 5),
        "e": (201, 5),
        "f": (150, 86_400),
        "g": (0, 86_399),
    }
    jobs = [TraceJob(name, float(release), float(length), 1) for name, (release, length) in rows.items()]
    # a ends as the slice begins; d is released as it ends
    assert names(slice_of(jobs, 100.0, 200.0)) == "bcdg"
    assert names(slice_of(jobs, 100.0, 200.0, shorter_s=41.0)) == "cd"


def test_pruned_to_the_work_of_some_machines():
    # 20 jobs of 4 cores x 10 s: 800 core s
    jobs = [TraceJob(chr(97 + i), 100.0 + i, 10.0, 4) for i in range(20)]
    assert names(slice_of(jobs, 100.0, 200.0, core_s=800.0)) == names(jobs)
    # one core second too many is one job too many
    assert len(slice_of(jobs, 100.0, 200.0, core_s=799.0)) == 19
    assert len(slice_of(jobs, 100.0, 200.0, core_s=120.0)) == 3
    assert len(slice_of(jobs, 100.0, 200.0, core_s=119.0)) == 2
    # at random, in their order
    drawn = [names(slice_of(jobs, 100.0, 200.0, core_s=400.0, seed=seed)) for seed in range(40)]
    assert all(len(kept) == 10 and kept == "".join(sorted(kept)) for kept in drawn)
    assert len(set(drawn)) == 40 and set("".join(drawn)) == set(names(jobs))
    assert drawn[3] == names(slice_of(jobs, 100.0, 200.0, core_s=400.0, seed=3))


def test_it_prunes_no_more_than_it_must():
    jobs = [TraceJob(str(i), 0.0, 1.0 + 37 * i % 101, 1 + i % 7) for i in range(300)]
    area = {job.id: job.run_s * job.cpus for job in jobs}
    total = sum(area.values())
    for seed, share in enumerate((0.1, 0.3, 0.5, 0.9, 0.999)):
        kept = slice_of(jobs, 0.0, 10.0, core_s=share * total, seed=seed)
        assert share * total - max(area.values()) < sum(area[job.id] for job in kept) <= share * total


@pytest.mark.parametrize(
    "begin,end,most", [(200.0, 100.0, 1e9), (-1.0, 100.0, 1e9), (500.0, 600.0, 1e9), (0.0, 100.0, 5.0)]
)
def test_refused(begin, end, most):
    with pytest.raises(InputError) as caught:
        slice_of([TraceJob("a", 20.0, 10.0, 1)], begin, end, core_s=most, source="jobs.txt")
    assert str(caught.value).startswith("jobs.txt") and "\n" not in str(caught.value)
