"""Predictions and their scores, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.model.workload import JobPower
from batwatt.schedulers.jobpower.power import PowerHistory, Prediction, Scores, Submitted
from batwatt.scheduling.registry import make


def predictor(choice):
    made = make("predictor", choice)
    made.node_w, made.idle_w = 300.0, 100.0
    return made


def job(hosts=1, user="u1", queue="q1", **fields):
    return Submitted("w0!1", hosts, {"user": user, "queue": queue, **fields})


def figures(prediction):
    return pytest.approx(tuple(prediction[:3]))


@examples(40)
@given(
    rows=st.lists(st.tuples(st.floats(1.0, 1e4), st.floats(0.0, 1e3), st.integers(1, 9)), min_size=1, max_size=12),
    decay=st.floats(0.1, 1.0),
)
def test_a_history_is_what_its_weights_say(rows, decay):
    past = PowerHistory()
    for mean_w, std_w, hosts in rows:
        past.add(JobPower(mean_w * hosts, std_w * hosts, mean_w * hosts), hosts, decay)
    means, stds = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    weights = decay ** np.arange(len(rows))[::-1]
    mean = np.average(means, weights=weights)
    variance = np.average((means - mean) ** 2, weights=weights) + np.average(stds**2, weights=weights)
    prediction = past.prediction(1)
    assert prediction.mean_w == pytest.approx(mean)
    assert prediction.variance_w2 == pytest.approx(variance, abs=1e-6 * mean**2)
    assert prediction.max_w == pytest.approx(means.max())


def test_the_chain_of_a_history():
    model = predictor("history")
    assert model.predict(job(2)) == Prediction(600.0, 0.0, 600.0, is_estimate=False)
    model.learn(job(1, "u1", "q1"), JobPower(110.0))
    model.learn(job(2, "u1", "q1"), JobPower(240.0))
    model.learn(job(4, "u1", "q2"), JobPower(520.0))
    model.learn(job(1, "u2", "q3"), JobPower(200.0))
    means = {
        ("u1", "q1", 1): 110.0,  # the very user, queue and width
        ("u1", "q1", 3): 3 * (0.9 * 110.0 + 120.0) / 1.9,  # user and queue
        ("u1", "q9", 1): (0.81 * 110.0 + 0.9 * 120.0 + 130.0) / 2.71,  # the user
        ("u9", "q3", 1): 200.0,  # the queue
        ("u9", "q9", 1): (0.729 * 110.0 + 0.81 * 120.0 + 0.9 * 130.0 + 200.0) / 3.439,  # anybody
    }
    for (user, queue, hosts), mean_w in means.items():
        assert model.predict(job(hosts, user, queue)).mean_w == pytest.approx(mean_w), (user, queue, hosts)
    alone = predictor("user-queue-width")
    alone.learn(job(1, "u1", "q1"), JobPower(110.0))
    assert alone.predict(job(1, "u1", "q1")).mean_w == 110.0
    assert not alone.predict(job(2, "u1", "q1")).is_estimate
    assert not alone.predict(job(1, "u1", "q2")).is_estimate


def test_a_level_counts_from_its_least_number_of_runs():
    model = predictor({"name": "history", "least": 2})
    model.learn(job(1, "u1", "q1"), JobPower(110.0))
    assert not model.predict(job(1, "u1", "q1")).is_estimate
    model.learn(job(1, "u2", "q2"), JobPower(210.0))
    # the user has one run, everybody together two
    assert model.predict(job(1, "u1", "q1")).mean_w == pytest.approx((0.9 * 110.0 + 210.0) / 1.9)


def test_exact_is_what_the_fields_say():
    model = predictor("exact")
    assert model.oracle
    fields = {"power_w": 250.0, "power_std_w": 10.0, "power_max_w": 280.0}
    assert figures(model.predict(job(**fields))) == (250.0, 100.0, 280.0)
    # 20 s of 150 W and 30 s of 250 W: mean 210, variance (20 x 60^2 + 30 x 40^2) / 50 = 2400
    phases = [[20.0, 150.0], [30.0, 250.0]]
    assert figures(model.predict(job(power_phases=phases))) == (210.0, 2400.0, 250.0)
    assert not model.predict(job()).is_estimate


def test_estimates_of_a_workload_are_above_idle():
    model = predictor("field")
    assert figures(model.predict(job(2, mean_power_estimation=50.0))) == (250.0, 0.0, 250.0)
    more = predictor({"name": "field", "field": "mean", "std_field": "std", "max_field": "max"})
    assert figures(more.predict(job(2, mean=50.0, std=5.0, max=80.0))) == (250.0, 25.0, 280.0)
    with pytest.raises(InputError, match="job w0!1 has no field 'mean'"):
        more.predict(job())


def test_the_score_of_three_runs():
    scores = Scores()
    assert scores.mape is None and scores.mape_known is None and scores.blind_share is None
    scores.add(Prediction(100.0, 0.0, 100.0), 80.0)  # 25 %
    scores.add(Prediction(90.0, 0.0, 90.0), 120.0)  # 25 %
    scores.add(Prediction(300.0, 0.0, 300.0, is_estimate=False), 100.0)  # 200 %
    scores.add(Prediction(300.0, 0.0, 300.0), 0.0)  # cannot be scored
    assert scores.mape == pytest.approx(2.5 / 3.0)
    assert scores.mape_known == pytest.approx(0.25)
    assert scores.blind_share == pytest.approx(1.0 / 3.0)


@pytest.mark.parametrize(
    "choice,words",
    [
        ({"name": "user", "decay": 0.0}, "decay must be in"),
        ({"name": "history", "least": 0}, "least must be a whole number"),
        ({"name": "field", "field": ""}, "field must be a name"),
    ],
)
def test_wrong_parameters(choice, words):
    with pytest.raises(InputError, match=words):
        make("predictor", choice)


def test_a_curve_cut_short():
    power = JobPower.of_phases([(20.0, 150.0), (30.0, 250.0)])
    assert power.until(10.0) == JobPower(150.0, 0.0, 150.0, ((10.0, 150.0),))
    assert power.until(40.0).mean_w == 200.0
    # the last phase goes on
    assert power.pieces(100.0) == [(0.0, 20.0, 150.0), (20.0, 100.0, 250.0)]
    assert JobPower(150.0).until(10.0) == JobPower(150.0)
    assert JobPower(150.0).pieces(10.0) == [(0.0, 10.0, 150.0)]
    assert JobPower(150.0, 0.0, 100.0).max_w == 150.0
    for mean_w in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="mean_w must be"):
            JobPower(mean_w)
    with pytest.raises(ValueError, match="phases must be"):
        JobPower.of_phases([(0.0, 100.0)])
