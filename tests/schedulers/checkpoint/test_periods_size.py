"""Plans cost what docs/explanation/checkpoint.md says: (P - U + 1) x (P + 1) cells, one per checkpoint time."""

from __future__ import annotations

import numpy as np
import pytest

from batwatt.schedulers.checkpoint import period_plan as plans
from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, TooLargeError, plan, solve


def jobs_of(*rows):
    return tuple(PeriodJob(str(n), *row) for n, row in enumerate(rows))


def test_the_size_of_a_table():
    """7 processors are free for others, and 0; they count in the largest unit that all jobs are multiples of."""
    rows = [(300, 5.0, 1.0, "running"), (400, 5.0, 1.0, "checkpointed"), (700, 5.0, 1.0, "stopped")]
    fine = Instance(100.0, 1099, jobs_of(*rows))
    coarse = Instance(100.0, 10, jobs_of(*((r[0] // 100, *r[1:]) for r in rows)))
    for instance in (fine, coarse):
        assert solve(instance, 0.0).table.shape == (1, 11)
        assert solve(instance, 5.0).table.shape == (8, 11)
    assert [act.decision for act in plan(fine).acts] == [act.decision for act in plan(coarse).acts]


def test_of_stopped_jobs_that_are_alike_only_those_count_that_can_run():
    rows = [(3, 5.0, 1.0, "stopped")] * 1000 + [(3, 5.0, 2.0, "stopped")] * 2 + [(11, 5.0, 2.0, "stopped")]
    assert len(solve(Instance(100.0, 10, jobs_of(*rows)), 0.0).jobs) == 3 + 2


def test_what_would_be_too_large_is_refused():
    rows = [(1, 5.0, 1.0, "running"), (9999, 5.0, 1.0, "stopped"), (19998, 5.0, 1.0, "stopped")]
    with pytest.raises(
        ValueError, match="3 jobs on 19999 x 20000 processors take more than 1536 MiB: let processors have a common"
    ):
        plan(Instance(100.0, 20_000, jobs_of(*rows)))
    # without what happens within the period there is a plan still: 1 and 9999 of 20000
    solution = plan(Instance(100.0, 20_000, jobs_of(*rows)), skip_large=True)
    assert [act.decision for act in solution.acts] == ["run", "wait", "recover"]


def test_what_would_take_too_long_is_refused(monkeypatch):
    rows = [(2, 5.0, 1.0, "running"), (2, 6.0, 1.0, "running"), (8, 5.0, 1.0, "stopped")]
    instance = Instance(100.0, 10, jobs_of(*rows))
    # 3 jobs, tables of 4 x 6 cells (two processors count as one) at 2 times, and one of 6 at 0
    monkeypatch.setattr(plans, "MOST_STEPS", 3 * (2 * 24 + 6))
    plan(instance)
    monkeypatch.setattr(plans, "MOST_STEPS", 3 * (2 * 24 + 6) - 1)
    with pytest.raises(TooLargeError, match="a plan with 3 times, of 3 jobs and tables of 24 cells, takes more"):
        plan(instance)
    plan(instance, skip_large=True)


@pytest.mark.parametrize("seed", range(5))
def test_in_little_memory_the_plan_is_the_same(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    drawn = (*rng.integers(1, 9, (3, 30)), rng.choice(["checkpointed", "stopped"], 30))
    rows = [(int(p), float(c), float(r), str(state)) for p, c, r, state in zip(*drawn, strict=True)]
    rows += [(2, float(c), 3.0, "running") for c in rng.integers(1, 20, 5)]
    instance = Instance(100.0, 25, jobs_of(*rows))
    solution = plan(instance)
    monkeypatch.setattr(plans, "AT_ONCE_BYTES", 0)  # the choices of a few jobs at a time
    again = plan(instance)
    assert (again.checkpoints_end_s, again.acts) == (solution.checkpoints_end_s, solution.acts)
