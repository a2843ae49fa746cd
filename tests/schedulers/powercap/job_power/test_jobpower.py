"""The scheduler jobpower on schedules worked out by hand, and its laws on random jobs."""

from __future__ import annotations

import pytest
from builders import envelope, starts
from drawing import FULL_W, IDLE_W, carried_out, drawing, figures_of, jobs_of, plain
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.schedulers.jobpower import Jobpower

# 4 hosts draw 400 W when idle: 250 W are left for jobs
ROOM_250 = envelope(650.0)


def start_times(rows, hosts=4, **options):
    workload = jobs_of(*rows, nb_res=hosts)
    record, _ = carried_out(workload, hosts, **options)
    return {name: at for name, (at, _) in starts(record).items()}


def rows_by(text):
    """Jobs of `name hosts length power`, all submitted at 0 s."""
    words = (row.split() for row in text.split(", "))
    return [drawing(name, 0, int(hosts), float(run), power_w=float(watts)) for name, hosts, run, watts in words]


# a draws 100 W above idle, b 200 W from 100 s on; c ends before; d has 40 W: 240 W with b; e has 60 W: 240 W now, but
# 300 W with b
POWER = "a 1 100 200, b 1 100 300, c 1 50 140, d 1 200 140, e 1 200 160"
# a leaves 150 W; x has 100 W, y 80 W and z 70 W
WIDER = "a 1 100 200, head 6 100 700, x 1 50 200, y 2 50 280, z 2 50 270"
MEAN = {"power_check": "mean"}


@pytest.mark.parametrize(
    ("jobs", "hosts", "caps", "options", "expected"),
    [
        (POWER, 5, (750.0,), MEAN, {"a": 0, "b": 100, "c": 0, "d": 0, "e": 200}),
        (POWER, 5, (750.0,), MEAN | {"backfilling": "first-fit"}, {"a": 0, "b": 200, "c": 0, "d": 0, "e": 0}),
        (POWER, 5, (750.0,), MEAN | {"backfilling": "none"}, {"a": 0, "b": 100, "c": 100, "d": 150, "e": 200}),
        ("a 2 100 200, head 4 100 400, short 2 100 200, long 1 101 100", 4, (9999.0,), {},
         {"a": 0, "head": 100, "short": 0, "long": 200}),
        # from 600 s on b is allowed, but has the hosts when c has ended
        ("a 1 100 200, b 4 100 1000, c 1 900 200", 4, (650.0, 650.0, 1000.0), MEAN, {"a": 0, "c": 0, "b": 900}),
        (WIDER, 6, (850.0,), MEAN, {"x": 0}),
        (WIDER, 6, (850.0,), {"power_check": "knapsack"}, {"x": 50, "y": 0, "z": 0}),
    ],
    ids=["a reservation counts power", "nobody waits for b without one", "all wait behind b without backfilling",
         "a reservation counts hosts", "a head that no cap allows delays nobody", "the first that fits",
         "a knapsack backfills the wider set"],
)  # fmt: skip
def test_starts_by_hand(jobs, hosts, caps, options, expected):
    begins = start_times(rows_by(jobs), hosts=hosts, envelope=envelope(*caps), **options)
    assert {name: begins[name] for name in expected} == expected


def test_when_the_cap_falls():
    rows = [drawing("a", 0, 1, 500, power_w=200.0), drawing("b", 10, 1, 500, power_w=200.0)]
    # 250 W above idle until 300 s, then 150 W: room for one
    caps = envelope(650.0, 550.0)
    workload = jobs_of(*rows, nb_res=4)
    going_on, scheduler = carried_out(workload, 4, envelope=caps, power_check="mean")
    assert {row[0]: (row[8], row[10]) for row in going_on.jobs} == {"a": (0.0, 500.0), "b": (10.0, 510.0)}
    assert scheduler.kills == 0
    options = {"envelope": caps, "power_check": "mean", "excess": "kill-latest"}
    lost, scheduler = carried_out(workload, 4, **options)
    assert {row[0]: (row[7], row[10]) for row in lost.jobs} == {
        "a": ("COMPLETED_SUCCESSFULLY", 500.0),
        "b": ("COMPLETED_KILLED", 300.0),
    }
    assert scheduler.kills == 1
    again, scheduler = carried_out(workload, 4, **options, victim="resubmit")
    assert {row[0]: (row[8], row[10]) for row in again.jobs} == {
        "a": (0.0, 500.0),
        "b": (10.0, 300.0),
        "b#1": (500.0, 1000.0),
    }
    # from 300 to 500 s 600 W, 50 above the cap; killed, never
    figures = figures_of(going_on, workload, 4, caps)
    assert figures["share_above"] == pytest.approx(200.0 / 510.0)
    assert figures["above_j"] == pytest.approx(200 * 50.0)
    assert figures_of(again, workload, 4, caps)["share_above"] == 0.0
    assert figures_of(again, workload, 4, caps)["killed_power"] == 1


def test_a_history_learns_when_a_run_has_ended():
    # unknown, a job is taken to draw 200 W above idle: one at a time. In truth it is 50 W, so from then on all may run
    rows = [drawing(i, 0, 1, 100, user="u", power_w=150.0) for i in range(4)]
    workload = jobs_of(*rows, nb_res=4)
    record, scheduler = carried_out(workload, 4, envelope=ROOM_250, predictor="user", power_check="mean")
    assert {name: at for name, (at, _) in starts(record).items()} == {"0": 0, "1": 100, "2": 100, "3": 100}
    # 300 W for 150 W is 100 %, the others are right
    assert scheduler.scores.mape == pytest.approx(0.25)
    assert scheduler.scores.mape_known == 0.0 and scheduler.scores.blind_share == 0.25


def test_what_a_job_will_draw_is_hidden():
    def schedule(last_w):
        rows = [drawing(i, 30 * i, 1, 100, user=f"u{i % 2}", power_w=150.0 + 10 * i) for i in range(8)]
        rows.append(drawing("last", 40, 1, 1000, user="u1", power_w=last_w))
        return start_times(rows, envelope=envelope(700.0), predictor="history", power_check="gaussian")

    assert schedule(101.0) == schedule(299.0)


def test_a_run_cut_at_its_walltime_is_learnt_as_far_as_it_went():
    phases = [[40, 150.0], [100, 250.0]]
    rows = [
        drawing("a", 0, 1, 100, user="u", power_phases=phases) | {"walltime": 40},
        drawing("b", 50, 1, 100, user="u", power_phases=phases),
    ]
    _, scheduler = carried_out(jobs_of(*rows, nb_res=4), 4, envelope=ROOM_250, predictor="user")
    # "a" draws 150 W, as "b" is predicted to; it draws (40 x 150 + 60 x 250) / 100 = 210 W
    assert scheduler.scores.blind == [pytest.approx((300.0 - 150.0) / 150.0)]
    assert scheduler.scores.errors == [pytest.approx((210.0 - 150.0) / 210.0)]


@pytest.mark.parametrize("backfilling", ["none", "first-fit", "easy"])
def test_a_job_that_can_never_start_is_rejected_and_the_ones_behind_it_run(backfilling, caplog):
    rows = [drawing("a", 0, 1, 10, power_w=290.0), drawing("b", 0, 1, 10, power_w=110.0), drawing("c", 0, 9, 10)]
    workload = jobs_of(*rows, nb_res=4)
    record, _ = carried_out(workload, 4, envelope=envelope(500.0), power_check="mean", backfilling=backfilling)
    states = {row[0]: row[7] for row in record.jobs}
    assert states == {"a": "REJECTED", "b": "COMPLETED_SUCCESSFULLY", "c": "REJECTED"}
    assert "not started under the last cap of 500.0 W" in caplog.text
    assert "wider than the platform of 4 hosts" in caplog.text


@pytest.mark.parametrize(
    "options,words",
    [
        ({"power_check": "maxx"}, "no power_check 'maxx'; did you mean 'max'"),
        ({"excess": "kill"}, 'one of "keep", "kill-latest"'),
        ({"envelope": envelope(1.0), "platform": None}, "for the watts of its hosts"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(InputError, match=words):
        Jobpower({"platform": plain(2), **options})


# laws ---------------------------------------------------------------------------------------------------------------

jobs = st.lists(
    st.tuples(
        st.integers(0, 900),  # submission
        st.integers(1, 3),  # hosts
        st.integers(1, 400),  # run time
        st.integers(0, 2),  # user
        st.lists(st.tuples(st.integers(1, 200), st.integers(100, 300)), min_size=1, max_size=3),  # W of a host
    ),
    min_size=1,
    max_size=12,
)
caps = st.lists(st.integers(300, 1300), min_size=1, max_size=6)


def rows_of(drawn):
    return [
        drawing(i, at, hosts, run, user=f"u{user}", queue="q", power_phases=[[s, w * hosts] for s, w in phases])
        for i, (at, hosts, run, user, phases) in enumerate(drawn)
    ]


@examples(40)
@given(drawn=jobs, levels=caps, check=st.sampled_from(["max", "node"]), kill=st.booleans())
def test_power_of_which_enough_is_known_stays_under_the_cap(drawn, levels, check, kill):
    """With the true maxima, or full watts, no cap that rises is exceeded, and with kills no cap at all."""
    levels = levels if kill else sorted(levels)
    cap = envelope(*map(float, levels), 4 * FULL_W)
    workload = jobs_of(*rows_of(drawn), nb_res=4)
    options = {"excess": "kill-latest", "victim": "resubmit"} if kill else {}
    record, _ = carried_out(workload, 4, envelope=cap, power_check=check, predictor="exact", **options)
    if min(levels) >= 4 * IDLE_W:
        figures = figures_of(record, workload, 4, cap)
        assert figures["share_above"] == 0.0 and figures["above_j"] == pytest.approx(0.0, abs=1e-3)
