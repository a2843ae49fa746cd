"""Means of the riskaware paper's page by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from papers.pmbs23 import tables
from papers.pmbs23.frames import means_of, points_of


def test_a_mean_for_each_value_of_what_varies(tmp_path):
    """Goodputs 0.8 and 0.9 at a mean of 20 machines: 85 %, and the standard error 0.05 of the two is 5 points."""
    rows = [
        ("mavg-uniform", "target-asap", "walk-20-8-1200-0", 0.8),
        ("mavg-uniform", "target-asap", "walk-20-8-1200-1", 0.9),
        ("mavg-uniform", "target-asap", "walk-26-8-1200-0", 0.7),
        ("blurred-3types", "first-fit-aware", "walk-24-8-1200-0", 0.6),
    ]
    frame = pd.DataFrame(rows, columns=["study", "strategy", "capacity", "goodput_with_running"])
    frame = frame.assign(status="done", platform="152x24", workload="uniform-20000-0", max_full_speed_slowdown=10.0,
                         mean_full_speed_slowdown=2.0, aborted_volume=0.05, mean_aborted_time_s=1800.0,
                         completed_fraction=1.0)  # fmt: skip
    frame.to_parquet(tmp_path / "table.parquet")
    points = points_of(tmp_path)
    assert points.frame["walk"].tolist() == [0.0, 1.0, 0.0, 0.0]
    means = means_of(points)
    assert means[["study", "value", "label", "instances"]].values.tolist() == [
        ["mavg-uniform", 20.0, "TargetASAP", 2],
        ["mavg-uniform", 26.0, "TargetASAP", 1],
        ["blurred-3types", 0.0, "FirstFitAware", 1],
    ]
    assert means["goodput_percent"].tolist() == pytest.approx([85.0, 70.0, 60.0])
    assert means["goodput_percent_error"].tolist() == pytest.approx([5.0, float("nan"), float("nan")], nan_ok=True)
    assert means["aborted_h"].tolist() == pytest.approx([0.5] * 3)


def test_saved_numbers_decide_a_claim():
    claim = tables.saved(tables.CLAIMS[2], pd.DataFrame({"number": [1.0, 3.0], "verdict": ["yes", "open"],
                                                         "standard_error": [0.1, 0.2]}))  # fmt: skip
    assert claim.test(None) == ("1 of 2, 0 against; 2.0 (1.0 to 3.0) points", "yes")
