"""The tables of docs/results/carbon.md are those of the committed files, and the small study gives its numbers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from batwatt.campaign.carbon.study import carry_out_studies, studies_in

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "results"
SMALL = ROOT / "experiments" / "carbon-small.yaml"

sys.path.append(str(ROOT / "experiments"))
import carbon_rolling as rolling  # noqa: E402 (scripts are found by their folder)
import carbon_tables as tables  # noqa: E402


def test_the_page_has_the_tables(capsys):
    assert tables.main(["--check"]) == 0, capsys.readouterr().out


def test_the_tables_are_those_of_the_committed_summary():
    summary = pd.read_csv(DOCS / tables.FOLDER / tables.SUMMARY)
    # patterns x lengths x start-ups x rooms
    assert len(summary) == 4 * 3 * 10 * 3 + 3 * 5 * 7 * 5 + 12 * 2 * 2 * 2 and set(summary["arrivals"]) == {144}
    made = tables.of_summary(summary)
    assert made == {name: text for name, text in tables.tables_of(DOCS).items() if name in made}
    assert set(tables.TABLES) - set(made) == {tables.AUTHOR, tables.HOURS, *tables.carbon_real.NAMES}


def test_another_number_on_the_page_is_found(tmp_path, capsys):
    shutil.copytree(DOCS / tables.FOLDER, tmp_path / tables.FOLDER)
    text = (DOCS / "carbon.md").read_text(encoding="utf-8")
    begin = text.index("<!-- table twin -->")
    digit = next(i for i in range(begin, len(text)) if text[i] == "9")
    (tmp_path / "carbon.md").write_text(f"{text[:digit]}8{text[digit + 1 :]}", encoding="utf-8")
    assert tables.main(["--check", "--docs", str(tmp_path)]) == 1
    assert "DIFFERENT: twin" in capsys.readouterr().out


def test_the_small_study_gives_the_committed_numbers(tmp_path):
    declaration = studies_in(SMALL, tmp_path)
    found = pd.concat(carry_out_studies(declaration, 2, (), lambda *_: None).values(), ignore_index=True)
    expected = pd.read_csv(DOCS / tables.FOLDER / tables.SMALL)
    assert list(found) == list(expected) and len(found) == 50
    for name in expected:
        values = expected[name].tolist()
        if expected[name].dtype.kind == "f":
            # the last of 6 digits may depend on how the processor adds up
            assert found[name].tolist() == pytest.approx(values, rel=1e-9, abs=1.1e-6), name
        else:
            assert found[name].tolist() == values, name


def test_figures_by_hand():
    """Two jobs: what is saved is a share of the sum, and who is late is late by the mean of the late ones."""
    zeros = dict.fromkeys(("oracle_twin_g", "startup_aware_g", "free_g", "startup_aware_starts"), 1.0)
    rows = pd.DataFrame(
        [
            {"immediate_g": 100.0, "oracle_g": 50.0, "optimum_g": 40.0, "suspend_late_s": 0.0, **zeros},
            {"immediate_g": 300.0, "oracle_g": 250.0, "optimum_g": 240.0, "suspend_late_s": 120.0, **zeros},
        ]
    ).assign(immediate_twin_g=200.0, oracle_averaged_g=160.0, suspend_g=180.0, suspend_twin_g=150.0,
             optimum_starts=[1, 2], suspend_starts=2)  # fmt: skip
    found = tables.figures_of(rows)
    expected = {
        "carbon_g": 200.0,
        "one": 25.0,
        "pieces": 30.0,
        "interrupting": 5.0,
        "one_averaged": 20.0,
        "blind": 10.0,
    }
    expected |= {"blind_claimed": 25.0, "lost": 20.0, "starts": 1.5, "late": 50.0, "late_min": 2.0}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    summary = rows.assign(arrivals=3, suspend_late_share=[0.0, 1.0])
    assert tables.figures_of(summary) == pytest.approx(found)


@pytest.mark.parametrize(("folder", "told"), [("nothing", "cannot be read"), ("partial", "run all studies")])
def test_results_that_are_not_there(tmp_path, capsys, folder, told):
    shutil.copy(DOCS / "carbon.md", tmp_path / "carbon.md")
    if folder == "partial":
        (tmp_path / folder).mkdir()
        summary = pd.read_csv(DOCS / tables.FOLDER / tables.SMALL)
        part = summary[summary["study"] == tables.CHAPTER6].assign(arrival_s=0.0)
        part.drop(columns=["arrivals", "suspend_late_share"]).to_parquet(tmp_path / folder / "table.parquet")
    results = str(tmp_path / folder)
    assert tables.main([results, results, "--docs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


def test_planning_once_and_anew_next_to_the_bound(tmp_path, monkeypatch):
    """What is saved and how far from the bound agree, with hosts off and on; the table has a row a case."""
    dates = pd.date_range(rolling.BEGINS[1], periods=8 * 24, freq="h").strftime("%Y-%m-%d %H:%M:%S")
    rows = [f"{date},{300 + 200 * (hour % 24 in (11, 12, 13)) - hour % 7}" for hour, date in enumerate(dates)]
    (tmp_path / rolling.SIGNALS["CAISO"]).write_text("\n".join(["Time,Carbon Intensity", *rows]) + "\n")
    monkeypatch.setattr(rolling, "JOB_DAYS", 1.0)
    cases = (rolling.AT_ONCE, ("oracle", 0.0, False), ("oracle", 0.06, False), ("oracle", 0.06, True))
    monkeypatch.setattr(rolling, "CASES", cases)
    found = pd.DataFrame(rolling.results(rolling.Setting("CAISO", 0.3, 1), tmp_path))
    assert found["saved_off"][0] == found["saved_on"][0] == found["late"].max() == 0.0
    assert (found["above_off"] >= -1e-6).all() and found["saved_off"][1] > found["saved_on"][1] > 0.0
    emitted = 1.0 - found["saved_off"] / 100.0
    assert (emitted / (1.0 + found["above_off"] / 100.0)).tolist() == pytest.approx(
        [emitted[0] / (1.0 + found["above_off"][0] / 100.0)] * 4
    )
    lines = rolling.table(found).splitlines()
    assert [line.split(" | ")[2:4] for line in lines[2:]] == [["immediate", ""], ["oracle", "exact"], ["oracle", "6 %"]]
    once, anew = found["saved_off"][2:]
    assert lines[-1].endswith(f" | {anew - once:.1f} |") and lines[3].endswith(" |  |  |  |  |  |  |")
