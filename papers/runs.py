"""Rows of a study for a paper's page: the parameters of runs, and some of their figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

WHERE = ["study", "label", "platform", "workload", "capacity"]
"""Parameters of a run without options and seeds."""
VARIES = ["cap_structure", "cap_range", "cap_step", "cap_period_s", "cap_mean", "cap_headroom", "cap_seed",
          "cap_saved", "cap_gained"]  # fmt: skip
"""Parameters of a capacity that a text describes."""
FIXED = "constant"
"""Structure of a capacity that does not vary."""


def table_of(results: Path) -> pd.DataFrame:
    """Return the table of a study with the names that the files of the pages have for two of its columns."""
    table = pd.read_parquet(results / "table.parquet")
    return table.rename(columns={"comparison": "study", "case": "label"})


def runs_of(results: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Return these columns of the runs of a study that ended well, numbers to 6 decimals.

    Raises ValueError if runs failed, as means would lack them.
    """
    frame = table_of(results)
    if failed := int((frame["status"] != "done").sum()):
        raise ValueError(f"{results}: {failed} of {len(frame)} runs failed; run the study again")
    return frame[list(columns)].round(6)


def options_of(frame: pd.DataFrame, defaults: Mapping[str, object]) -> pd.DataFrame:
    """Return a column per option, read from the column `options`; a default where a run has none."""
    options = [json.loads(text) for text in frame["options"]]
    return pd.DataFrame({name: [one.get(name, usual) for one in options] for name, usual in defaults.items()},
                        index=frame.index)  # fmt: skip


def with_capacities(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with `structure`, `range` (0 of a fixed capacity), `step`, `period_s` and `walk`."""
    fixed = frame["cap_structure"] == FIXED
    return frame.assign(
        structure=frame["cap_structure"].fillna("file"),
        range=frame["cap_range"].where(~fixed, 0.0).round(6),
        step=frame["cap_step"].round(6),
        period_s=frame["cap_period_s"],
        walk=frame["cap_seed"],
    )
