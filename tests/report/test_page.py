"""The report as files: all are there, equal for equal results, and no label breaks out of its place."""

from __future__ import annotations

import re

from files_of_tests import refusal
from tables_of_tests import check_plots, further, kept, plots_of, row, save, visible

from batwatt.report.page import write_report


def test_every_file_is_there(results):
    folder, written = results
    names = {path.name for path in written}
    studies = ("workloads", "profiles", "own")
    expected = {f"means-{name}.csv" for name in studies} | {"index.html", "summary.csv"}
    assert names == expected == {path.name for path in (folder / "report").iterdir()}
    assert written[0].read_bytes().startswith(b"<!DOCTYPE html>")


def test_same_results_same_bytes(tmp_path):
    one, two = (write_report(save(tmp_path / name / "r", further())) for name in "ab")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two] and len(one) > 2


def test_the_page_lists_what_failed(results):
    html = visible(results[1][0].read_text())
    assert "2 runs failed" in html
    assert re.search("<td[^>]*>EBF Asc HFLD</td><td[^>]*>w0 e</td><td[^>]*>&lt;b&gt;it broke&lt;/b&gt;</td>", html)


def test_plots_are_whole_and_the_page_is_light(results):
    page = results[1][0].read_text()
    plots = plots_of(page)
    panels = [f"plot-{name}-{n}" for name in ("workloads", "profiles", "own") for n in range(5)]
    # of four cases that were kept
    powers = [f"plot-power-{n}" for n in range(4)]
    assert list(plots) == ["plot-front-1", "plot-front-0", *powers, *panels]
    check_plots(plots)
    assert len(page.encode()) < 1.5e6


def test_charts_as_files(tmp_path):
    """The charts of the page as PNG next to it; an unknown format is named before anything is written."""
    rows = [row("x", w, envelope=None, violations=None, backfilling=None) for w in "ab"]
    folder = save(tmp_path / "r", rows)
    assert "gif" in refusal(write_report, folder, ["gif"]) and not (folder / "report").exists()
    written = write_report(folder, ["png"])
    plots = plots_of(written[0].read_text())
    # without an envelope there are no violations
    titles = ["slowdown", "kills", "finished work (%)", "mean wait (min)"]
    studies = [svg for name, svg in plots.items() if name.startswith("plot-workloads")]
    assert all(f">{title}</text>" in svg for title, svg in zip(titles, studies, strict=True))
    pictures = {path.stem: path.read_bytes() for path in written if path.suffix == ".png"}
    assert pictures.keys() == plots.keys() and all(data.startswith(b"\x89PNG") for data in pictures.values())
    # a later report without them leaves none
    write_report(folder)
    assert not list((folder / "report").glob("*.png"))


def test_damaged_kept_files_are_named(tmp_path):
    folder = save(tmp_path / "r", kept(tmp_path / "r", ["EBF Slow HFLD"]))
    for energy in (folder / "runs").glob("*/run_consumed_energy.csv"):
        energy.write_text("time,energy\n0,1\n")
    assert "run_consumed_energy.csv: is not the file that run_metadata.json names" in refusal(write_report, folder)
