"""The tables of the docs are made from the committed numbers, and a campaign that is run afresh gives these numbers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from tables_of_tests import paper, row, save

from batwatt.campaign.campaign import Backend, campaign_in, carry_out
from batwatt.report.grid import NOTHING
from batwatt.report.papers import igsc22
from batwatt.report.table import read_campaign

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "results"
SMALL = ROOT / "experiments" / "igsc22-small.yaml"
WHERE = ["study", "label", "workload", "envelope"]
COUNTS = ["killed_power", "killed_walltime", "violations"]
MEASURED = ["mean_slowdown", "finished_work_fraction", "energy_j"]


sys.path.append(str(ROOT / "experiments"))
import doc_pages  # noqa: E402
import igsc22_numbers as numbers_of_docs  # noqa: E402 (scripts are found by their folder)
import igsc22_tables as tables  # noqa: E402


@pytest.fixture
def docs(tmp_path):
    """A copy of the pages and their numbers."""
    folder = tmp_path / "docs"
    shutil.copytree(DOCS / "igsc22", folder / "igsc22")
    for page in tables.PAGES:
        shutil.copy(DOCS / page, folder / page)
    return folder


def bare(folder: Path) -> Path:
    """A folder of pages with text and empty tables."""
    folder.mkdir()
    own = ("own", "other-seeds", "paired-own")
    for page, names in (("igsc22.md", [n for n in tables.TABLES if n not in own]), ("frugal.md", own)):
        marks = "".join(f"<!-- table {name} -->\n<!-- end -->\n\nafter {name}\n\n" for name in names)
        (folder / page).write_text(f"# Title of {page}\n\n{marks}", encoding="utf-8")
    return folder


def table_of(docs: Path, name: str) -> list[list[str]]:
    """The cells of a table as it stands on its page, heading first."""
    for page in doc_pages.read_pages(docs, tables.PAGES, tables.TABLES):
        for found, begin, end in page.places:
            if found == name:
                lines = page.text[begin:end].strip().splitlines()
                return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if ":-" not in line]
    raise AssertionError(name)


# the committed files


def test_the_pages_have_the_committed_numbers(capsys):
    assert tables.main(["--check"]) == 0
    assert capsys.readouterr().out == "igsc22.md: same\nfrugal.md: same\n"


def test_the_two_files_agree():
    """The means are those of the runs, wherever these are listed."""
    numbers = tables.read_numbers(DOCS / "igsc22")
    runs = pd.concat([frame := numbers.instances, frame.assign(envelope=tables.ALL)])
    runs = runs.assign(kills=runs["killed_power"] + runs["killed_walltime"], energy_kwh=runs["energy_j"] / 3.6e6,
                       finished_work_percent=100.0 * runs["finished_work_fraction"])  # fmt: skip
    grouped = runs.groupby(["study", "label", "envelope"])
    found = grouped[list(numbers_of_docs.MEANS)].mean().assign(runs=grouped.size())
    told = numbers.summary.set_index(["study", "label", "envelope"]).loc[found.index, found.columns]
    pd.testing.assert_frame_equal(told, found, check_dtype=False, rtol=0.0, atol=1.1e-4)
    assert len(found) >= 70


# 7 algorithms on 2 workloads, and on 3 profiles; a run of both studies is a row of either
@pytest.mark.parametrize(("only", "runs"), [(("workloads",), 21), pytest.param((), 35, marks=pytest.mark.deep)])
def test_a_campaign_run_afresh_gives_the_committed_numbers(tmp_path, only, runs):
    declared = campaign_in(SMALL, tmp_path)
    carry_out(declared, Backend(jobs=2), only, lambda *_: None)
    found = read_campaign(tmp_path / "igsc22-small").done.set_index(WHERE)
    told = pd.read_csv(DOCS / "igsc22" / "instances.csv").set_index(WHERE)
    assert len(found) == runs
    assert found.index.is_unique and set(found.index) <= set(told.index)
    told = told.loc[found.index]
    assert told[COUNTS].to_dict() == found[COUNTS].to_dict()
    # the last of 15 digits may depend on how the processor adds up
    pd.testing.assert_frame_equal(told[MEASURED], found[MEASURED], rtol=1e-12, atol=1.1e-6)


# the check


def test_a_changed_number_on_a_page_is_found(docs, capsys):
    page = doc_pages.read_page(docs / "frugal.md", tables.TABLES)
    begin = next(begin for name, begin, _ in page.places if name == "own")
    cell = table_of(docs, "own")[1][2]
    changed = page.text[begin:].replace(cell, f"{float(cell) + 0.01:.2f}", 1)
    page.path.write_text(page.text[:begin] + changed, encoding="utf-8")
    assert tables.main(["--check", "--docs", str(docs)]) == 1
    assert capsys.readouterr().out == "igsc22.md: same\nfrugal.md: DIFFERENT: own\n"


def test_a_changed_number_in_a_file_is_found(docs, capsys):
    path = docs / "igsc22" / "instances.csv"
    frame = pd.read_csv(path)
    frame.loc[0, "mean_slowdown"] += 1.0
    frame.to_csv(path, index=False)
    assert tables.main(["--check", "--docs", str(docs)]) == 1
    assert "igsc22.md: DIFFERENT: table2, optimum, workloads" in capsys.readouterr().out


def test_text_around_the_tables_is_nobodys_business(docs):
    page = docs / "igsc22.md"
    page.write_text(f"# Another title\n{page.read_text(encoding='utf-8')}\nThe end.\n", encoding="utf-8")
    assert tables.main(["--check", "--docs", str(docs)]) == 0


def replaced(old: str, new: str):
    def change(docs: Path) -> None:
        page = docs / "frugal.md"
        text = page.read_text(encoding="utf-8")
        assert old in text
        page.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (replaced("<!-- table own -->", "<!-- table onw -->"), "no table 'onw'; did you mean 'own'?"),
        (replaced("<!-- table own -->", "<!-- table -->"), "no table ''"),
        (replaced("<!-- table own -->", ""), "<!-- end --> of no table"),
        (replaced("<!-- end -->", ""), "<!-- table other-seeds --> before the end of <!-- table own -->"),
        (lambda docs: (docs / "frugal.md").write_text("<!-- table own -->\n"), "<!-- table own --> has no end"),
        (
            lambda docs: (docs / "frugal.md").write_text("nothing\n"),
            "the table 'paired-own' is on none of igsc22.md, frugal.md",
        ),
        (lambda docs: (docs / "frugal.md").unlink(), "frugal.md: cannot be read"),
        (lambda docs: (docs / "igsc22" / "summary.csv").unlink(), "summary.csv: cannot be read"),
        (lambda docs: (docs / "igsc22" / "instances.csv").write_text("study,label\n"), "no column 'workload'"),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, change, told):
    docs = bare(tmp_path / "docs")
    shutil.copytree(DOCS / "igsc22", docs / "igsc22")
    change(docs)
    assert tables.main(["--check", "--docs", str(docs)]) == 2
    error = capsys.readouterr().err
    assert told in error and error.startswith("igsc22_tables: ") and error.count("\n") == 1


def test_results_or_check(capsys, tmp_path):
    for words in ([], ["--check", "results/igsc22"]):
        with pytest.raises(SystemExit) as ended:
            tables.main(words)
        assert ended.value.code == 2
    docs = bare(tmp_path / "docs")
    before = (docs / "igsc22.md").read_bytes()
    other = save(tmp_path / "other", [row("a", study="x")])
    assert tables.main([str(other), "--docs", str(docs)]) == 2
    assert "is not the campaign igsc22" in capsys.readouterr().err
    twice = save(tmp_path / "twice", [*paper(), row("FF Asc IDFS", "w0", seed=1)])
    assert tables.main([str(twice), "--docs", str(docs)]) == 2
    assert "several runs of workloads FF Asc IDFS w0 e" in capsys.readouterr().err
    assert (docs / "igsc22.md").read_bytes() == before and not (docs / "igsc22").exists()


# a campaign with an optimum, worked out by hand

A, B = "EBF Slow HFLD", "EBF Slow Frugal"


def with_optimum(proven: bool = False) -> list[dict]:
    """Two workloads on profile3, one of them on profile1 too, two algorithms, the optimum; and an algorithm more."""
    rows = []
    for n, workload in enumerate(("w0", "w1")):
        at = {"workload": workload, "envelope": "profile3", "energy_j": 3.6e6 * (n + 1)}
        rows += [
            row(A, mean_slowdown=3.0 + n, killed_power=5 + n, killed_walltime=1, violations=2, **at),
            row(B, mean_slowdown=2.0, finished_work_fraction=0.5 + n / 4, **at),
            row("Optimum", mean_slowdown=1.5 + n, lower_bound=1.2 + n, gap=0.2, proven_optimal=proven or n == 0, **at),
            row("EBF Asc IAFS", mean_slowdown=9.0, **at),
        ]
    for envelope in ("profile1", "profile3"):
        at = {"workload": "w0", "envelope": envelope, "study": "profiles"}
        rows += [
            row(B, violations=3, **at),
            row("Optimum", mean_slowdown=1.25, lower_bound=1.25, gap=0.0, proven_optimal=True, **at),
        ]
    for study in ("own", "other-seeds"):
        rows += [
            row(B, w, envelope=e, study=study, killed_power=k) for w in ("w0", "w1") for e, k in (("e1", 1), ("e2", 4))
        ]
    return rows


@pytest.fixture
def made(tmp_path):
    """The folder of pages that are made of it."""
    docs = bare(tmp_path / "docs")
    assert tables.main([str(save(tmp_path / "results", with_optimum())), "--docs", str(docs)]) == 0
    return docs


def test_what_is_made_passes_the_check(made, tmp_path, capsys):
    assert tables.main(["--check", "--docs", str(made)]) == 0
    text = (made / "igsc22.md").read_text(encoding="utf-8")
    assert (
        text.startswith("# Title of igsc22.md\n\n<!-- table table2 -->\n\n| algorithm") and "\nafter optimum\n" in text
    )
    capsys.readouterr()
    assert tables.main([str(tmp_path / "results"), "--docs", str(made)]) == 0
    assert (made / "igsc22.md").read_text(encoding="utf-8") == text
    assert capsys.readouterr().out.endswith("igsc22.md: same\nfrugal.md: same\n")


def test_table2(made):
    heading, *rows = table_of(made, "table2")
    assert heading[3:] == ["over the best known schedule", "slowdown over the lower bound", "paper: over the optimum"]
    assert rows == [
        # (0.3 + 0.3) / 2
        ["Optimum", "2.00 / 0.0 / 0.0", "100.0", "0.00 / 0.0 / 0.0", "+0.30", NOTHING],
        # slowdown 3 - 1.5 and 4 - 2.5, kills 6 and 7
        [A, "3.50 / 6.5 / 2.0", "100.0", "+1.50 / +6.5 / +2.0", "+1.80", "+2.90 / +19.0 / +3.0"],
        # slowdown 2 - 1.5 and 2 - 2.5, work 0.5 and 0.75
        [B, "2.00 / 0.0 / 0.0", "62.5", "0.00 / 0.0 / 0.0", "+0.30", NOTHING],
    ]


def test_a_proven_optimum_is_called_so(tmp_path):
    docs = bare(tmp_path / "docs")
    tables.main([str(save(tmp_path / "results", with_optimum(proven=True))), "--docs", str(docs)])
    assert table_of(docs, "table2")[0][3] == "over the optimum"


def test_the_other_tables(made):
    heading, *rows = table_of(made, "algorithms")
    assert heading == [
        "algorithm",
        "slowdown",
        "kills (jobs)",
        "violations (steps)",
        "finished work (%)",
        "energy (kWh)",
    ]
    assert [line[0] for line in rows] == ["Optimum", B, A, "EBF Asc IAFS"]
    assert rows[2] == [A, "3.50", "6.5", "2.0", "100.0", "1.5"]
    assert table_of(made, "workloads") == [
        ["workload", "Optimum", "lower bound", A, B],
        ["w0", "1.50", "1.20", "3.00 / 6 / 2", "2.00 / 0 / 0"],
        ["w1", "2.50", "2.20", "4.00 / 7 / 2", "2.00 / 0 / 0"],
        ["mean", "2.00", "1.70", "3.50 / 6.5 / 2.0", "2.00 / 0.0 / 0.0"],
    ]
    assert table_of(made, "profiles") == [
        ["algorithm", "profile1", "profile3"],
        ["Optimum", "1.25 / 0 / 0", "1.25 / 0 / 0"],
        [B, "1.00 / 0 / 3", "1.00 / 0 / 3"],
    ]
    assert table_of(made, "optimum") == [
        ["workload", "envelope", "slowdown", "lower bound", "gap (%)", "proven"],
        ["w0", "profile1", "1.250", "1.250", "0.0", "yes"],
        ["w0", "profile3", "1.500", "1.200", "20.0", "yes"],
        ["w1", "profile3", "2.500", "2.200", "20.0", "no"],
    ]
    for name in ("own", "other-seeds"):
        assert [line[:4] for line in table_of(made, name)[1:]] == [
            ["e1", B, "1.00", "1.0"],
            ["e2", B, "1.00", "4.0"],
            ["all", B, "1.00", "2.5"],
        ]


def test_the_files_have_the_runs_that_stand_out(made):
    frame = pd.read_csv(made / "igsc22" / "instances.csv")
    assert list(frame.columns) == [*WHERE, "mean_slowdown", *COUNTS, *MEASURED[1:], "lower_bound", "gap",
                                   "proven_optimal"]  # fmt: skip
    assert set(frame["label"]) == {"Optimum", A, B}
    lines = (made / "igsc22" / "instances.csv").read_text().splitlines()
    assert lines[1] == "workloads,Optimum,w0,profile3,1.500000,0,0,0,1.000000,3600000.000000,1.200000,0.200000,True"
    assert lines[3] == f"workloads,{A},w0,profile3,3.000000,5,1,2,1.000000,3600000.000000,,,"
    summary = (made / "igsc22" / "summary.csv").read_text().splitlines()
    # the means of all algorithms, also of those that do not stand out
    assert "workloads,EBF Asc IAFS,all,2,9.000000,0.000000,0.000000,0.000000,0.000000,100.000000,1.500000" in summary


def test_without_an_optimum_there_are_dashes(tmp_path, capsys):
    docs = bare(tmp_path / "docs")
    rows = [r for r in with_optimum() if r["label"] != "Optimum"]
    rows.append(row(A, "w2", envelope="profile3", status="failed", error="x"))
    assert tables.main([str(save(tmp_path / "results", rows)), "--docs", str(docs)]) == 0
    assert "1 of 17 runs failed; means are over the others" in capsys.readouterr().err
    assert table_of(docs, "table2")[1] == [A, "3.50 / 6.5 / 2.0", "100.0", NOTHING, NOTHING, "+2.90 / +19.0 / +3.0"]
    assert table_of(docs, "workloads")[1][:3] == ["w0", NOTHING, NOTHING]
    assert table_of(docs, "workloads")[-1][:3] == ["mean", NOTHING, NOTHING]
    assert table_of(docs, "optimum")[1] == ["w0", "profile1", *[NOTHING] * 4]
    assert len(table_of(docs, "workloads")) == 4
    assert tables.main(["--check", "--docs", str(docs)]) == 0


def test_columns_are_aligned(made):
    for page in doc_pages.read_pages(made, tables.PAGES, tables.TABLES):
        for _, begin, end in page.places:
            lines = page.text[begin:end].strip().splitlines()
            assert len({len(line) for line in lines}) == 1
            bars = {tuple(n for n, character in enumerate(line) if character == "|") for line in lines}
            assert len(bars) == 1


def test_labels_are_those_of_the_paper():
    declared = campaign_in(SMALL, Path("results"))
    assert set(igsc22.DISTANCES) < {cell.label for cell in declared.cells}
