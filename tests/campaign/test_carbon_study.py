"""Studies of shifted jobs: what planners say and do, worked out by hand; what is declared; what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from batwatt.campaign.carbon import study as carbon_study
from batwatt.campaign.carbon.study import CODE, WHO, carry_out_studies, studies_in
from batwatt.campaign.carbon.study_plans import FIGURES, PlanTask, plans_of
from batwatt.campaign.carbon.study_spec import Arrivals, CarbonStudies, Pattern, PlanStudy
from batwatt.campaign.cells import sources_of
from batwatt.campaign.store import CampaignStopped
from batwatt.campaign.yaml_model import parse_declared
from batwatt.cli.main import main
from batwatt.errors import InputError
from batwatt.model.signal_integral import SignalIntegral

SMALL = Path(__file__).resolve().parents[2] / "experiments" / "carbon-small.yaml"
HOURS = [400.0, 100.0, 300.0, 100.0, 500.0, 500.0, 200.0, 300.0]
STUDY: dict[str, Any] = {
    "patterns": {"even": {"high_w": 200, "high_min": 60, "low_w": 100, "low_min": 60}},
    "length_h": [2],
    "startup_s": [0, 1800],
    "startup_w": [200],
    "deadline_h": [4, 5],
}


def quiet(*_: object) -> None:
    """Reports nothing."""


@pytest.fixture
def declare(tmp_path):
    """Writes a signal of 72 h and a study; returns the YAML file."""
    lines = (f"{3600 * hour},{value}" for hour, value in enumerate(HOURS * 9))
    (tmp_path / "signal.csv").write_text("\n".join(["time_s,carbon_intensity", *lines]) + "\n")

    def write(study: dict[str, Any] | None = None, **more: Any) -> Path:
        content = {"name": "tiny", "signal": "signal.csv", "arrivals": {"every_h": 5, "days": 1}}
        path: Path = tmp_path / "tiny.yaml"
        content |= {"studies": {"one": {**STUDY, **(study or {})}}} | more
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    return write


def carried_out(path: Path, jobs: int = 1, *only: str) -> Path:
    """The folder of its results."""
    declaration = studies_in(path, path.parent / "results")
    carry_out_studies(declaration, jobs, only, quiet)
    return declaration.store.folder


def batwatt(*words: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


def figures(startup_s: float) -> dict[str, float]:
    """Those of a job of 2 h (1 h at 200 W, 1 h at 100 W) that arrives at 0 and has 4 h."""
    study = PlanStudy.model_validate({**STUDY, "startup_s": [startup_s], "deadline_h": [4]})
    [permutation] = study.permutations("one", "x")
    found = plans_of(PlanTask("k", permutation, (0.0,), SignalIntegral.regular(HOURS)))
    assert list(found) == list(FIGURES)
    return {name: values[0] for name, values in found.items()}


# what is worked out


def test_without_a_start_up():
    assert figures(0.0) == pytest.approx(
        {
            "arrival_s": 0.0,
            # 0.2 kW at 400 + 0.1 kW at 100 g/kWh; the twin draws 0.15 kW
            "immediate_g": 90.0,
            "immediate_twin_g": 75.0,
            # from hour 1: 0.2 x 100 + 0.1 x 300; the twin cannot tell hour 1 from hour 2 and takes the first
            "oracle_g": 50.0,
            "oracle_averaged_g": 50.0,
            "oracle_twin_g": 60.0,
            # hours 1 and 3
            "optimum_g": 30.0,
            "optimum_starts": 2,
            "startup_aware_g": 30.0,
            "startup_aware_starts": 2,
            "free_g": 30.0,
            "suspend_g": 30.0,
            "suspend_twin_g": 30.0,
            "suspend_starts": 2,
            "suspend_late_s": 0.0,
        }
    )


def test_with_a_start_up_of_half_an_hour():
    assert figures(1800.0) == pytest.approx(
        {
            "arrival_s": 0.0,
            # start-up 0.1 kWh at 400; high: half at 400, half at 100; low: half at 100, half at 300
            "immediate_g": 40.0 + 50.0 + 20.0,
            # 0.4 kWh in 2.5 h: 0.16 kW at 400, 100 and half an hour at 300
            "immediate_twin_g": 0.16 * (400.0 + 100.0 + 150.0),
            # from hour 1: 10, then 10 + 30, then 15 + 5
            "oracle_g": 70.0,
            "oracle_averaged_g": 70.0,
            "oracle_twin_g": 0.16 * (100.0 + 300.0 + 50.0),
            # a second start-up costs more than hour 2
            "optimum_g": 70.0,
            "optimum_starts": 1,
            "startup_aware_g": 70.0,
            "startup_aware_starts": 1,
            # start-up and half of high in hour 1, the other half from 2:00, low in hour 3
            "free_g": 10.0 + 10.0 + 30.0 + 10.0,
            # 1:00 to 2:30 and from 3:00: 10, 10 + 30; 10 for starting again, 5 until 4:00 and 25 after that
            "suspend_g": 90.0,
            "suspend_twin_g": 0.16 * (100.0 + 150.0 + 100.0),
            "suspend_starts": 2,
            "suspend_late_s": 1800.0,
        }
    )


def test_laws_of_the_small_study(tmp_path):
    declaration = studies_in(SMALL, tmp_path)
    summaries = carry_out_studies(declaration, 2, (), quiet)
    table = pd.read_parquet(declaration.store.folder / "table.parquet")
    slack = 1e-9
    assert list(summaries) == ["chapter6", "final", "contrast"] and len(table) == 50 * 10
    for less, more in (
        ("free_g", "optimum_g"),
        ("optimum_g", "startup_aware_g"),
        ("optimum_g", "oracle_g"),
        ("oracle_g", "oracle_averaged_g"),
        ("oracle_averaged_g", "immediate_g"),
        ("suspend_twin_g", "oracle_twin_g"),
        ("oracle_twin_g", "immediate_twin_g"),
    ):
        # what is planned for the twin may emit more than nothing planned
        if more == "immediate_g":
            assert table[less].mean() < table[more].mean()
        else:
            assert (table[less] <= table[more] + slack).all(), (less, more)
    # nothing is late without start-ups, and the one who pays for none is late with them
    assert not table.loc[table["startup_s"] == 0.0, "suspend_late_s"].any()
    assert table.loc[table["startup_s"] > 0.0, "suspend_late_s"].max() > 0.0


# what is declared


def test_permutations():
    study = PlanStudy.model_validate({**STUDY, "startup_s": [0, 60, 300], "startup_w": [100, 200], "length_h": [1, 2]})
    found = list(study.permutations("one", "x"))
    starts = [(each.startup_s, each.startup_w) for each in found if each.length_h == 1.0 and each.deadline_h == 4.0]
    # no start-up is one job whatever its power
    assert starts == [(0.0, 0.0), (60.0, 100.0), (60.0, 200.0), (300.0, 100.0), (300.0, 200.0)]
    assert len(found) == 2 * 5 * 2
    assert {each.wait_s for each in found if each.length_h == 2.0 and each.startup_s == 300.0} == {6900.0, 10500.0}


def test_a_pattern_goes_on_until_the_work_is_done():
    pattern = Pattern(high_w=200.0, high_min=60.0, low_w=100.0, low_min=30.0)
    assert [(each.name, each.duration_s) for each in pattern.phases(2.25 * 3600.0)] == [
        ("high", 3600.0),
        ("low", 1800.0),
        ("high", 2700.0),
    ]


def test_arrivals():
    assert Arrivals(every_h=5.0, days=1.0, first_h=3.0).times_s.tolist() == [3600.0 * h for h in (3, 8, 13, 18, 23)]


@pytest.mark.parametrize(
    ("study", "more", "told"),
    [
        ({"deadline_h": [2]}, {}, "a job of 2.5 h (start-up included) has a deadline of 2 h; let deadlines be longer"),
        ({"wait_h": [1]}, {}, "studies.one: must have one of `deadline_h` and `wait_h`"),
        ({"length_h": [2, 2]}, {}, "'length_h' must be a list of different values, got 2.0, 2.0"),
        ({"length_h": [1, 1e15]}, {}, "studies.one: patterns.even has more than 100000 phases in 1e+15 h"),
        (
            {"patterns": {"x": {"high_w": 2, "high_min": 60, "low_w": 1, "low_min": 1e-20}}},
            {},
            "carbon study: a phase of 6e-19 s vanishes at 3600 s; give longer phases",
        ),
        ({"length_h": [0]}, {}, "line 15: studies.one.length_h[0]: input should be greater than 0, got 0"),
        ({"length_h": [True]}, {}, "studies.one.length_h[0]: input should be a valid number, got true"),
        ({"startup_w": [float("nan")]}, {}, "startup_w[0]: input should be a"),
        ({"patterns": {}}, {}, "studies.one.patterns: dictionary should have at least 1 item"),
        ({"patterns": {"a b": STUDY["patterns"]["even"]}}, {}, "the name 'a b' must be of letters"),
        ({"pattern": {}}, {}, "no key 'pattern'; did you mean 'patterns'?"),
        ({}, {"arrivals": {"every_h": 5, "days": 1, "first_h": 24}}, "must be 1 to 100000 arrivals, got 0"),
        ({}, {"signal": "other.csv"}, "the signal 'other.csv' is not there"),
        ({}, {"arrivals": {"every_h": 5, "days": 3}}, "the signal ends at 259200 s, before 270000 s"),
        ({}, {"name": "a/b"}, "the name 'a/b' must be of letters"),
    ],
)
def test_bad_declarations_are_one_line(declare, tmp_path, capsys, study, more, told):
    path = declare(study, **more)
    assert batwatt("carbon", "study", path, "--results", tmp_path / "results") == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


def test_a_pattern_is_high_then_low(declare):
    path = declare({"patterns": {"x": {"high_w": 1, "high_min": 1, "low_w": 2, "low_min": 1}}})
    with pytest.raises(InputError, match="high_w must be >= low_w, got 1 and 2"):
        parse_declared(path.read_text(), path, CarbonStudies)


def test_the_example_of_the_docs():
    text = (SMALL.parents[1] / "docs" / "reference" / "campaigns.md").read_text(encoding="utf-8")
    example = text.partition("## Studies of plans")[2].partition("```yaml\n")[2].partition("```")[0]
    found = parse_declared(example, "docs", CarbonStudies)
    assert (found.name, list(found.studies)) == ("example", ["one"])


def test_columns_are_in_the_docs():
    text = (SMALL.parents[1] / "docs" / "reference" / "campaigns.md").read_text(encoding="utf-8")
    names = [*FIGURES, *WHO, "length_s", "energy_j", "arrivals", "suspend_late_share"]
    assert [name for name in names if f"`{name}`" not in text] == []


# what is kept


def test_the_sources_of_the_key_are_there():
    assert len(sources_of(CODE)) == len(CODE)


def test_the_tables_do_not_depend_on_the_processes(declare, tmp_path):
    path = declare()
    one = carried_out(path, 1)
    kept = {name: (one / name).read_bytes() for name in ("table.parquet", "summary.csv")}
    for cell in (one / "cells").iterdir():
        cell.unlink()
    two = carried_out(path, 2)
    assert {name: (two / name).read_bytes() for name in kept} == kept
    summary = pd.read_csv(two / "summary.csv")
    # 2 start-ups x 2 deadlines, at 0, 5, 10, 15 and 20 h
    assert summary["arrivals"].tolist() == [5] * 4
    assert len(pd.read_parquet(two / "table.parquet")) == 20
    table = pd.read_parquet(two / "table.parquet").query("startup_s == 1800 and deadline_h == 4")
    row = summary.query("startup_s == 1800 and deadline_h == 4").iloc[0]
    assert row["suspend_g"] == pytest.approx(table["suspend_g"].mean(), abs=1e-6)
    assert row["suspend_late_share"] == pytest.approx((table["suspend_late_s"] > 0.0).mean(), abs=1e-6)


def test_it_goes_on_where_it_was_interrupted(declare, monkeypatch):
    path = declare()
    whole = (carried_out(path) / "summary.csv").read_bytes()
    declaration = studies_in(path, path.parent / "again")
    written: list[float] = []

    def plans(task: PlanTask) -> dict[str, Any]:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(task.permutation.wait_s)
        return plans_of(task)

    monkeypatch.setattr(carbon_study, "plans_of", plans)
    with pytest.raises(KeyboardInterrupt):
        carry_out_studies(declaration, 1, (), quiet)
    assert len(list(declaration.store.cells.glob("*.json"))) == 2
    monkeypatch.setattr(carbon_study, "plans_of", plans_of)
    carry_out_studies(declaration, 1, (), quiet)
    log = (declaration.store.folder / "campaign.log").read_text()
    assert "start: 4 of 4 jobs" in log and "start: 2 of 4 jobs" in log
    assert (declaration.store.folder / "summary.csv").read_bytes() == whole


@pytest.mark.parametrize("damage", ["", "{}", '{"key": 1, "figures": {}}', "shorter"])
def test_a_damaged_part_is_worked_out_again(declare, damage):
    path = declare()
    folder = carried_out(path)
    whole = (folder / "table.parquet").read_bytes()
    cell = sorted((folder / "cells").iterdir())[1]
    content = json.loads(cell.read_text())
    content["figures"]["optimum_g"].pop()
    cell.write_text(json.dumps(content) if damage == "shorter" else damage)
    assert carried_out(path) == folder
    assert (folder / "table.parquet").read_bytes() == whole
    log = (folder / "campaign.log").read_text()
    assert f"cells/{cell.name} is damaged" in log and "start: 1 of 4 jobs" in log


def test_another_signal_or_room_is_another_job(declare):
    path = declare()
    folder = carried_out(path)
    carried_out(declare({"deadline_h": [4, 6]}))
    assert "start: 2 of 4 jobs" in (folder / "campaign.log").read_text().splitlines()[-2]
    signal = path.parent / "signal.csv"
    signal.write_text(signal.read_text().replace("3600,100.0", "3600,101.0"))
    carried_out(path)
    assert "start: 4 of 4 jobs" in (folder / "campaign.log").read_text().splitlines()[-2]


def test_one_study_of_several(declare, tmp_path, capsys):
    path = declare(studies={"one": STUDY, "two": {**STUDY, "length_h": [1]}})
    words = ("carbon", "study", path, "--results", tmp_path / "results", "-j", 1)
    assert batwatt(*words, "--only", "two") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[:3] for line in lines[:2]] == [["study", "jobs", "plans"], ["two", "4", "20"]]
    assert batwatt(*words) == 0
    assert "start: 4 of 8 jobs" in (tmp_path / "results" / "tiny" / "campaign.log").read_text()
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[1:3]] == ["one", "two"]
    assert batwatt(*words, "--only", "three") == 2
    assert "no study 'three'" in capsys.readouterr().err


def test_a_study_that_cannot_be_written_says_how_to_go_on(declare, tmp_path):
    path = declare()
    (tmp_path / "results").write_text("a file")
    with pytest.raises(CampaignStopped, match="cannot be written"):
        carry_out_studies(studies_in(path, tmp_path / "results"), 1, (), quiet)
