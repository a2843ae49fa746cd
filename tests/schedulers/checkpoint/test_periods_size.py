"""Tables have (P - U + 1) x (P + 1) cells; a search looks at few of them, and chooses what a table does."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from batwatt.schedulers.checkpoint import knapsack as knapsacks
from batwatt.schedulers.checkpoint.knapsack import BOTH, NONE, SECOND, Knapsack, TooLargeError
from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, checkpoint_ends, plan, solve


def jobs_of(*rows):
    return tuple(PeriodJob(str(n), *row) for n, row in enumerate(rows))


def test_the_size_of_a_table():
    """7 processors are free for others, and 0; they count in the largest unit that all jobs are multiples of."""
    rows = [(300, 5.0, 1.0, "running"), (400, 5.0, 1.0, "checkpointed"), (700, 5.0, 1.0, "stopped")]
    fine = Instance(100.0, 1099, jobs_of(*rows))
    coarse = Instance(100.0, 10, jobs_of(*((r[0] // 100, *r[1:]) for r in rows)))
    for instance in (fine, coarse):
        assert solve(instance, 0.0).knapsack.table.shape == (1, 11)
        assert solve(instance, 5.0).knapsack.table.shape == (8, 11)
    assert [act.decision for act in plan(fine).acts] == [act.decision for act in plan(coarse).acts]


def test_of_stopped_jobs_that_are_alike_only_those_count_that_can_run():
    rows = [(3, 5.0, 1.0, "stopped")] * 1000 + [(3, 5.0, 2.0, "stopped")] * 2 + [(11, 5.0, 2.0, "stopped")]
    assert len(solve(Instance(100.0, 10, jobs_of(*rows)), 0.0).jobs) == 3 + 2


WIDE = Instance(100.0, 20_000, jobs_of((1, 5, 1, "running"), *((w, 5, 1, "stopped") for w in (9999, 19998, 20000))))
"""By hand: 1 may go on for 100 s beside 19998 for 99 s, 1,979,902 in all; for 20000 it would make room."""


def test_a_table_of_20000_processors_is_too_large_and_a_search_is_not():
    with pytest.raises(TooLargeError, match="4 jobs on 19999 x 20000 processors take more than 1536 MiB: let"):
        solve(WIDE, 5.0).best(20_000, 1)
    solution = plan(WIDE)
    assert [act.decision for act in solution.acts] == ["run", "wait", "recover", "wait"]
    assert solution.work_processor_s == 1_979_902.0


def test_a_search_that_looks_at_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(knapsacks, "MOST_CELLS", 0)
    with pytest.raises(TooLargeError, match="4 jobs on 19999 x 20000 processors have more than 0 cells near the best"):
        plan(WIDE)
    # without what happens within the period there is a plan still
    assert [act.decision for act in plan(WIDE, skip_large=True).acts] == ["run", "wait", "recover", "wait"]


def drawn_instance(rng, jobs, processors):
    """Return jobs of three states, often with equal checkpoint and recovery times, so that many sums are."""
    widths = np.maximum(1, processors * rng.uniform(0.0, 1.0, jobs) ** 3).astype(int)
    most_s = 0.0 if rng.random() < 0.5 else 50.0
    rows, held = [], 0

    def cost_s():
        return 6.0 + float(rng.choice([0.0, round(rng.uniform(0.0, most_s), 3)]))

    for width in widths.tolist():
        state = str(rng.choice(["running", "checkpointed", "stopped"]))
        held += width if state == "running" else 0
        if held > processors:
            held -= width
            state = "stopped"
        rows.append((width, cost_s(), cost_s(), state))
    return Instance(100.0, processors, jobs_of(*rows))


@pytest.mark.parametrize("seed", range(60))
def test_a_search_chooses_what_a_table_does(monkeypatch, seed):
    """Of equal sums, too, and where jobs must work: to the last bit, and to the last job."""
    rng = np.random.default_rng(seed)
    instance = drawn_instance(rng, int(rng.integers(1, 25)), int(rng.integers(1, 120)))
    must = {job.id for job in instance.jobs if rng.random() < 0.1} if seed % 3 == 0 else set()
    for end_s in checkpoint_ends(instance):
        knapsack = solve(instance, end_s, must).knapsack
        monkeypatch.setattr(knapsacks, "SMALL_CELLS", 10**9)
        by_table = knapsack.solve()
        assert by_table.worth == knapsack.table[-1, -1]
        monkeypatch.setattr(knapsacks, "SMALL_CELLS", 0)
        assert knapsack.solve() == by_table
        # what is not better than another time is not looked for
        assert knapsack.solve(by_table.worth) == knapsacks.NO_PACKING


def test_a_knapsack_by_hand():
    """Capacities 3 and 5: the second job must hold its width, and has no room in the first one beside the other."""
    worths = np.array([[0.0, 9.0, 4.0], [-np.inf, 8.0, 7.0], [0.0, 2.0, 2.0]])
    knapsack = Knapsack(np.array([2, 2, 1]), worths, 3, 5)
    assert knapsack.solve() == (9.0 + 7.0 + 2.0, [BOTH, SECOND, BOTH])
    assert Knapsack(np.array([2, 2, 1]), worths, 2, 4).solve() == (9.0 + 7.0, [BOTH, SECOND, NONE])
    # without room for what must have some there is none
    assert Knapsack(np.array([2, 2, 1]), worths, 1, 1).solve() == knapsacks.NO_PACKING


def test_growth_of_a_search_is_not_that_of_a_table(monkeypatch):
    """Twelve jobs on 100 times as many processors take as many cells, though the table has 10,000 times as many."""
    counts = []
    levels = knapsacks._Search._levels

    def counted(self, goal):
        reached = levels(self, goal)
        counts.append(sum(len(level.worth) for level in reached))
        return reached

    monkeypatch.setattr(knapsacks._Search, "_levels", counted)
    monkeypatch.setattr(knapsacks, "SMALL_CELLS", 0)
    sums = []
    for scale in (1, 100):
        counts.clear()
        rng = np.random.default_rng(3)
        base = drawn_instance(rng, 12, 100)
        # widths + 1 have no common divisor
        rows = [(job.processors * scale + scale // 100, *astuple(job)[2:5]) for job in base.jobs]
        instance = Instance(100.0, 100 * scale + 12, jobs_of(*rows))
        for end_s in checkpoint_ends(instance)[1:]:
            solve(instance, end_s).knapsack.solve()
        sums.append(sum(counts))
    assert 0 < sums[1] < 3 * sums[0]
