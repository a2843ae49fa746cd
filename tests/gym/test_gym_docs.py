"""The example of docs/reference/gym.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "reference" / "gym.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(block.replace("out/random", str(tmp_path / "random")), {})
    assert float(capsys.readouterr().out) >= 1.0
    assert (tmp_path / "random_metrics.json").exists()
