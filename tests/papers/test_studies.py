"""The small studies of three papers give the committed numbers; the pages of five have the tables of these."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from batwatt.schedulers.checkpoint.files import read_sequence
from batwatt.schedulers.checkpoint.sequence import follow
from batwatt.studies.study import carry_out, study_in
from papers import pages
from papers.checkpoint.periods import FIGURE1
from papers.generators.__main__ import write_studies
from papers.pages import table_of

PAPERS = Path(pages.__file__).parent
FOLDERS = {"pmbs23": ("pmbs23",), "checkpoint": ("checkpoint",), "varcap": ("varcap", "varcap-prices")}
PAGES = FOLDERS | {"carbon": ("carbon", "carbon-small"), "igsc22": ("igsc22",)}
FEW = {
    "pmbs23": ("mavg",),
    "checkpoint": ("figure1", "prepare", "warning", "endless"),
    "varcap": ("mira", "oversubscribed-azure", "schedulers"),
}
"""Studies with every scheduler, strategy, termination and way to plan."""
WHERE = ["study", "label", "workload", "capacity"]
NAMES = import_module("papers.pmbs23.tables").STRATEGIES


@pytest.fixture(scope="session")
def inputs():
    """Generated inputs of the small studies."""
    for folder in FOLDERS:
        write_studies(PAPERS / folder / "inputs.yaml", ["small"])


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_the_committed_numbers(name, capsys):
    tables = import_module(f"papers.{name}.tables")
    assert pages.main(tables.PAGE, tables.tables, tables.make, PAGES[name], ["--check"]) == 0
    assert capsys.readouterr().out == f"{name}: same\n"


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["few", "all"])
@pytest.mark.parametrize("name", FOLDERS)
def test_the_small_study_gives_the_committed_numbers(tmp_path, inputs, name, whole):
    declared = study_in(PAPERS / name / "small.yaml", tmp_path)
    only = () if whole else tuple(study for study in FEW[name] if study not in declared.missing)
    if whole and declared.missing:
        only = tuple(study for study in declared.study.comparisons if study not in declared.missing)
    # of two walks one is enough
    second = ("-1",) if name == "pmbs23" and not whole else ()
    declared.cells = [cell for cell in declared.cells if not cell.capacity.name.endswith(second)]
    carry_out(declared, only, lambda *_: None, jobs=2)
    frame = table_of(tmp_path / f"{name}-small")
    assert (frame["status"] == "done").all() and len(frame)
    studies = set(only) or set(frame["study"])
    listed = pd.read_csv(PAPERS / name / "data" / "small.csv", keep_default_na=False, na_values=[""])
    listed = listed[~listed["capacity"].str.endswith(second)] if second else listed
    frame, listed = (rows[rows["study"].isin(studies)] for rows in (frame, listed))
    labels = frame["label"].replace(NAMES) if name == "pmbs23" else frame["label"]
    assert frame.assign(label=labels)[WHERE].values.tolist() == listed[WHERE].values.tolist()
    for column in listed.columns.difference(WHERE):
        numbers = pytest.approx(listed[column].tolist(), rel=1e-9, abs=1e-6, nan_ok=True)
        assert frame[column].astype(float).tolist() == numbers, column
    if name == "checkpoint":
        _planned(frame)


def _planned(rows: pd.DataFrame) -> None:
    """The engine does what is planned for jobs that are new; checkpoints in time lose nothing."""
    engine = rows[rows["study"] == "figure1"].set_index("label")["goodput_with_running"]
    sequence, _ = read_sequence(FIGURE1.with_name("figure1-new.json"))
    for least in (0.0, 0.2):
        assert engine[f"min_yield {least:g}"] == pytest.approx(follow(sequence, min_yield=least).goodput, abs=1e-6)
    ours = rows["scheduler"] == "checkpoint"
    in_time = ours & (rows["study"] != "warning") & ~rows["label"].str.contains("C=1200")
    assert (rows.loc[in_time, ["aborted_volume", "terminations"]] == 0).all(axis=None)
    assert (rows.loc[~ours, ["checkpoints", "recoveries"]] == 0).all(axis=None)


def test_a_study_with_failed_runs_is_refused(tmp_path):
    pd.DataFrame({"status": ["done", "failed"]}).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="1 of 2 runs failed"):
        import_module("papers.pages").runs_of(tmp_path, ["status"])
