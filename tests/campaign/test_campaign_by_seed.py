"""A campaign a few seeds at a time: the lists that are cut, and a run whose stages come to the whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from batwatt.campaign.store import TABLE

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"

sys.path.append(str(EXPERIMENTS))
import by_seed  # noqa: E402 (scripts are found by their folder)

TINY = """
name: tiny
defaults:
  scheduler: varcap
  label: "{termination}"
  grid: {termination: [random, lww]}
studies:
  one:
    platforms: [{machines: 4, cores: 8}]
    workloads:
      - varcap: {like: azure, jobs: 20, machines: 4}
        seeds: &traces [0, 1]
    capacities:
      - {spec: "walk:range=0.4", seeds: &walks [5, 6,
          7]}
"""


def test_lists_are_cut_and_nothing_else():
    cut = by_seed.cut(TINY, 1, 2)
    assert "seeds: &traces [0]\n" in cut and "seeds: &walks [5, 6]}\n" in cut
    assert cut.replace("[0]", "[0, 1]").replace("[5, 6]", "[5, 6,\n          7]") == TINY
    assert "&walks [5, 6, 7]" in by_seed.cut(TINY, 9, 9)


@pytest.mark.parametrize("name", ["pmbs23", "varcap", "varcap-claims", "checkpoint"])
def test_the_whole_campaigns_can_be_cut(name):
    text = (EXPERIMENTS / f"{name}.yaml").read_text()
    cut = by_seed.cut(text, 1, 2)
    assert cut.count("&traces [0]") == 1 and len(cut) < len(text)


def test_stages_come_to_the_whole(tmp_path, capfd):
    path, results = tmp_path / "tiny.yaml", tmp_path / "results"
    path.write_text(TINY)
    assert by_seed.main([str(path), "1x1", "2x1", "--", "--results", str(results), "-j", "1"]) == 0
    starts = [line for line in (results / "tiny" / "campaign.log").read_text().splitlines() if "start:" in line]
    told = ["2 of 2 runs", "2 of 4 runs", "8 of 12 runs"]
    assert [line.partition("start: ")[2].partition(" to do")[0] for line in starts] == told
    assert len(pd.read_parquet(results / "tiny" / TABLE)) == 12
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".yaml"] == ["tiny.yaml"]


@pytest.mark.parametrize(
    ("words", "told"),
    [([], "stages such as 2x10"), (["tiny.yaml", "2"], "stages such as 2x10"), (["tiny.yaml"], "cannot be read")],
)
def test_bad_words(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    assert by_seed.main(words) == 2 and told in capsys.readouterr().err


def test_a_declaration_without_such_lists(tmp_path, capsys):
    path = tmp_path / "none.yaml"
    path.write_text(TINY.replace("&walks ", ""))
    assert by_seed.main([str(path), "1x1"]) == 2 and "no list seeds: &walks" in capsys.readouterr().err
