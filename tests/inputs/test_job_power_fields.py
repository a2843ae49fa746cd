"""The power of jobs among the fields of a workload, and the estimates of workloads for easy-powercap."""

from __future__ import annotations

import json

import pytest
from builders import envelope, starts
from drawing import carried_out
from files_of_tests import refusal

from batwatt.inputs.batsim_files import read_workload
from batwatt.model.workload import JobPower
from batwatt.protocol.job_fields import parse_estimate, parse_power

ESTIMATES = {
    "nb_res": 4,
    "jobs": [
        {"id": "1", "subtime": 0, "res": 1, "walltime": 200, "profile": "p", "mean_power_estimation": 100.0,
         "max_power_estimation": 180},
        {"id": "2", "subtime": 0, "res": 1, "walltime": 200, "profile": "p",
         "extra_data": {"mean_power_estimation": 100.0, "max_power_estimation": 180}},
        {"id": "3", "subtime": 0, "res": 1, "walltime": 200, "profile": "p",
         "extra_data": '{"mean_power_estimation": 100.0, "max_power_estimation": 180}'},
    ],
    "profiles": {"p": {"type": "delay", "delay": 100}},
}  # fmt: skip


def test_a_workload_for_easy_powercap(tmp_path):
    """Estimates are dynamic watts: 250 W above idle are two jobs of 100 W, or one of 180 W."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(ESTIMATES))
    for field, expected in (("mean_power_estimation", [0, 0, 100]), ("max_power_estimation", [0, 100, 200])):
        options = {"predictor": {"name": "field", "field": field}, "power_check": "mean", "envelope": envelope(650.0)}
        record, scheduler = carried_out(read_workload(path), 4, **options)
        assert [starts(record)[name][0] for name in "123"] == expected
        assert scheduler.scores.mape is None


def test_power_is_that_of_the_fields():
    assert parse_power({}, "1") is None
    assert parse_power({"power_w": 100}, "1") == JobPower(100.0, 0.0, 100.0)
    assert parse_power({"power_w": 100, "power_std_w": 5, "power_max_w": 130}, "1") == JobPower(100.0, 5.0, 130.0)
    # mean (10 x 100 + 30 x 200) / 40, variance (10 x 75^2 + 30 x 25^2) / 40
    power = parse_power({"power_phases": [[10, 100], [30, 200]], "power_w": 1}, "1")
    assert (power.mean_w, power.max_w, power.phases) == (175.0, 200.0, ((10.0, 100.0), (30.0, 200.0)))
    assert power.std_w == pytest.approx(1875.0**0.5)


@pytest.mark.parametrize(
    "fields,message",
    [
        ({"power_w": -1}, "power_w must be a number >= 0 in W, got -1"),
        ({"power_w": 1, "power_max_w": "2"}, "power_max_w must be a number"),
        ({"power_phases": [[0, 100]]}, "power_phases must be a list of"),
        ({"power_phases": [[10, -1]]}, "power_phases must be a list of"),
    ],
)
def test_malformed_power(fields, message):
    line = refusal(parse_power, fields, "7")
    assert message in line and "job 7" in line
    assert "job 7 has no field 'x'" in refusal(parse_estimate, {"extra_data": "no JSON"}, "x", "7")
