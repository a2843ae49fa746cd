"""docs/reference/gym.md has the columns as they are declared, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

from batwatt.gym import OBSERVATIONS, REWARDS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "reference" / "gym.md").read_text(encoding="utf-8")


def test_all_columns_are_in_the_tables_as_declared():
    rows = {
        name: cells for name, *cells in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
    }
    observations = {
        column.name: [column.unit, column.meaning + " (of each job)" * column.of_jobs, column.normalised]
        for column in OBSERVATIONS.values()
    }
    rewards = {one.name: [one.figure.unit, one.meaning, f"`{one.figure.name}`"] for one in REWARDS.values()}
    # an empty cell has one blank only
    assert {name: [cell.strip() for cell in cells] for name, cells in rows.items()} == observations | rewards


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(block.replace("out/random", str(tmp_path / "random")), {})
    assert float(capsys.readouterr().out) >= 1.0
    assert (tmp_path / "random_metrics.json").exists()
