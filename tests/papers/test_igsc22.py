"""The page of the powercap paper has the numbers of its files, and a run of the study gives these; tables by hand."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from tables_of_tests import row, save

from batwatt.inputs.google_like import REFERENCE_FLOPS
from batwatt.studies.study import carry_out, study_in
from papers.batsim import ENGINES, WHERE, table
from papers.igsc22 import figures, sources, tables
from papers.igsc22.frames import KILLS, SLOWDOWN, VIOLATIONS, Numbers, with_sums
from papers.igsc22.measures import ALL40, MEASURES, SINGLE, THIRD, area, least_over, samples_of
from papers.runs import table_of
from papers.statements import VERDICTS, Samples, statements_of, verdicts

A, B = "EBF Slow HFLD", "EBF Slow Frugal"


def cells(table: str) -> list[list[str]]:
    """The cells of the rows below the heading."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_two_files_agree():
    """Means are those of the single runs, wherever these are listed."""
    numbers = Numbers.read(tables.DATA)
    runs = numbers.instances.assign(energy_kwh=numbers.instances["energy_j"] / 3.6e6)
    grouped = pd.concat([runs, runs.assign(envelope=tables.ALL)]).groupby(["study", "label", "envelope"])
    means = grouped[tables.MEANS].mean().assign(runs=grouped.size())
    listed = numbers.summary.set_index(["study", "label", "envelope"]).loc[means.index, means.columns]
    pd.testing.assert_frame_equal(listed, means, check_dtype=False, rtol=0.0, atol=1.1e-4)
    assert len(means) >= 50


# 7 algorithms on 2 workloads, and on 3 profiles; a run of both studies is a row of either
@pytest.mark.parametrize(("only", "runs"), [(("workloads",), 21), pytest.param((), 35, marks=pytest.mark.deep)])
def test_the_small_study_gives_the_committed_numbers(tmp_path, only, runs):
    carry_out(study_in(tables.HERE / "small.yaml", tmp_path), only, lambda *_: None, jobs=2)
    frame = table_of(tmp_path / "igsc22-small")
    frame = frame[frame["status"] == "done"].set_index(tables.WHERE)
    listed = pd.read_csv(tables.DATA / "instances.csv").set_index(tables.WHERE).loc[frame.index]
    assert len(frame) == runs and frame.index.is_unique
    assert listed[tables.COUNTS].to_dict() == frame[tables.COUNTS].astype(int).to_dict()
    figures = ["mean_slowdown", "finished_work_fraction", "energy_j"]
    # the last of 15 digits may depend on how the processor adds up
    pd.testing.assert_frame_equal(listed[figures], frame[figures].astype(float), rtol=1e-12, atol=1.1e-6)


@pytest.fixture
def numbers(tmp_path):
    """Two workloads on profile3, one of them on profile1 too: two algorithms and the optimum, worked out by hand."""
    rows = []
    for n, workload in enumerate(("w0", "w1")):
        at = {"workload": workload, "envelope": "profile3", "energy_j": 3.6e6 * (n + 1)}
        bounds = {"lower_bound": 1.2 + n, "gap": 0.2, "proven_optimal": n == 0}
        rows += [
            row(A, mean_slowdown=3.0 + n, killed_power=5 + n, killed_walltime=1, violations=2, **at),
            row(B, mean_slowdown=2.0, finished_work_fraction=0.5 + n / 4, **at),
            row("Optimum", mean_slowdown=1.5 + n, **bounds, **at),
            row("EBF Asc IAFS", mean_slowdown=9.0, **at),
        ]
    for envelope in ("profile1", "profile3"):
        rows.append(row(B, violations=3, workload="w0", envelope=envelope, comparison="profiles"))
    tables.write_numbers(save(tmp_path / "results", rows), tmp_path)
    return Numbers.read(tmp_path)


def test_table2(numbers):
    assert "over the best known schedule" in tables.table2(numbers)
    assert cells(tables.table2(numbers)) == [
        # (0.3 + 0.3) / 2
        ["Optimum", "2.00 / 0.0 / 0.0", "100.0", "0.00 / 0.0 / 0.0", "+0.30", "–"],
        # slowdown 3 - 1.5 and 4 - 2.5, kills 6 and 7
        [A, "3.50 / 6.5 / 2.0", "100.0", "+1.50 / +6.5 / +2.0", "+1.80", "+2.90 / +19.0 / +3.0"],
        # slowdown 2 - 1.5 and 2 - 2.5, work 0.5 and 0.75
        [B, "2.00 / 0.0 / 0.0", "62.5", "0.00 / 0.0 / 0.0", "+0.30", "–"],
    ]


def test_a_real_batsim_gives_the_committed_runs():
    """Both engines, every run of Table II that is no optimum."""
    listed = pd.read_csv(tables.DATA / "batsim.csv")
    figures = [name.removeprefix("batsim_") for name in listed if name.startswith("batsim_")]
    runs = pd.read_csv(tables.DATA / "runs.csv").query("study == 'workloads'")
    listed = listed.merge(runs, left_on=["label", "workload", "series"], right_on=["label", "workload", "envelope"])
    assert len(listed) == 20 * len(tables.DISTANCES)
    for engine in ENGINES:
        ours = listed[[f"{engine}_{name}" for name in figures]].set_axis(figures, axis=1)
        pd.testing.assert_frame_equal(ours, listed[figures], check_dtype=False, rtol=0.0, atol=1.1e-6)


def test_the_table_of_engines_has_means_by_algorithm(tmp_path):
    (tmp_path / "checkpoint" / "data").mkdir(parents=True)
    names = ("goodput", "checkpoint_volume", "aborted_volume")
    columns = [f"{engine}_{name}" for engine in ENGINES for name in names]
    rows = [
        ["DP", "jobs-0", "walk", "4.2.1", 0.5, 0.0, 0.1, 0.5, 0.01, 0.1],
        ["DP", "jobs-1", "walk", "4.2.1", 0.7, 0.0, 0.1, 0.9, 0.03, 0.1],
        ["subset sum", "jobs-0", "walk", "4.2.1", 0.25, 0.0, 0.0, 0.25, 0.0, 0.0],
    ]
    pd.DataFrame(rows, columns=[*WHERE, *columns]).to_csv(tmp_path / "checkpoint" / "data" / "batsim.csv", index=False)
    lines = table(tmp_path / "checkpoint", {"DP": "dynamic programming"})
    assert lines.startswith("| embedded / Batsim 4.2.1 | goodput (%) |")
    assert cells(lines) == [
        ["dynamic programming", "60.000 / 70.000", "0.000 / 2.000", "10.000 / 10.000"],
        ["subset sum", "25.000 / 25.000", "0.000 / 0.000", "0.000 / 0.000"],
    ]


def test_the_list_of_papers_has_the_counts_of_the_page():
    """Of 131 statements, as the page's table counts them."""
    judged = verdicts(statements_of(tables.HERE), MEASURES, samples_of(pd.read_csv(tables.DATA / "runs.csv")), SINGLE)
    counts = judged.counts()
    yes, direction, no, still = (counts[word] for word in VERDICTS)
    text = f"{yes} of {len(judged.statements)} statements come out, {direction} in direction only, {no} do not, {still}"
    assert text in (tables.HERE.parent / "README.md").read_text()
    assert set(MEASURES) <= {statement.place for statement in judged.statements}


def test_the_findings_on_both_inputs():
    """Verdicts that the page's first lines name, on the inputs that we drew and on those that we did not."""
    listed = statements_of(tables.HERE)
    drawn = verdicts(listed, MEASURES, samples_of(pd.read_csv(tables.DATA / "runs.csv")), SINGLE)
    measured = tables.on_sources(tables.DATA)
    words = {place: (drawn.verdict(listed[place - 1]), measured.verdict(listed[place - 1])) for place in MEASURES}
    assert {words[place] for place in (3, 19, 24, 57, 64, 82, 84)} == {("yes", "yes")}
    assert words[27] == ("no", "no")
    assert {words[place] for place in (1, 21, 22)} == {("no", "yes")}
    assert {words[place] for place in (71, 83, 85)} == {("open", "yes")}
    assert {words[place] for place in (32, 90, 93)} == {("yes", "no")}
    assert words[41] == ("yes", "direction only") and words[91] == ("yes", "open")
    # no optimum: Table II's distances are of one set
    assert not {38, 42, 56} & set(measured.measured)


def test_frugal_on_the_inputs_that_are_not_drawn():
    runs = with_sums(pd.read_csv(tables.DATA / "sources.csv"))
    means = runs.groupby("label")[[KILLS, VIOLATIONS, SLOWDOWN]].mean()
    ours, forecast, theirs = (means.loc[label] for label in (B, f"{B} forecast", A))
    assert abs(ours[KILLS] / theirs[KILLS] - 1.0) < 0.05 and ours[VIOLATIONS] > theirs[VIOLATIONS]
    assert ours[SLOWDOWN] < theirs[SLOWDOWN] < forecast[SLOWDOWN]
    assert 0.6 < forecast[KILLS] / theirs[KILLS] < 0.72 and forecast[VIOLATIONS] < 1.0


def test_the_workloads_of_the_second_set_are_those_of_the_trace():
    """Widths and proportions of lengths are those of Google's day, with our mean work; 12 jobs arrive an hour."""
    table = np.loadtxt(sources.BORG)
    rows = {(row[2], row[3]) for row in table.tolist()}
    for seed in sources.SEEDS:
        data = sources.workload(seed)
        lengths_s = [data["profiles"][job["profile"]]["cpu"] / REFERENCE_FLOPS for job in data["jobs"]]
        shorter = min(lengths_s) / table[:, 2].min()
        drawn = [(round(length_s / shorter), job["res"]) for length_s, job in zip(lengths_s, data["jobs"], strict=True)]
        assert set(drawn) <= rows and len(drawn) == 288
        assert all(job["walltime"] >= length_s for job, length_s in zip(data["jobs"], lengths_s, strict=True))
        assert np.bincount([int(job["subtime"] // 3600) for job in data["jobs"]]).tolist() == [12] * 24
        assert shorter * (table[:, 2] * table[:, 3]).mean() == pytest.approx(sources.WORK_S, rel=1e-9)


def test_the_measured_envelope_has_the_mean_of_profile_3():
    ours = pd.read_csv(tables.DATA / "measured.csv")
    drawn = pd.read_csv(sources.PROFILE)
    assert ours["time_s"].tolist() == drawn["time_s"].tolist()
    assert ours["power_w"].mean() == pytest.approx(drawn["power_w"].mean(), abs=0.1)
    assert ours["power_w"].min() >= sources.STORAGE_W and ours["power_w"].max() == sources.LIMIT_W


def test_envelope_by_hand(tmp_path):
    """A day of calm and dark, then one with 11 m/s at the hub and no sun in its first 12 hours."""
    row = [0.0] * 48
    lines = []
    for minute in range(2880):
        row[sources.WIND] = 11.0 / sources.HUB if 1440 <= minute < 2160 else 0.0
        lines.append(" ".join(map(str, row)))
    (tmp_path / "days.dat").write_text("\n".join(["station", "place", *lines]))
    power = pd.read_csv(StringIO(sources.envelope([tmp_path / "days.dat"])))["power_w"]
    # begins 5 h later: the wind is from 19 h to 31 h
    windy = power.index.to_series().between(19 * 12, 31 * 12 - 1)
    assert (power[~windy] == sources.STORAGE_W).all()
    assert power[windy].nunique() == 1 and power[windy].iloc[0] == sources.LIMIT_W


def test_both_fates_of_killed_jobs(tmp_path):
    """Means of lost jobs are of the study `workloads`, of `readings` where that lacks the algorithm."""
    again = "resubmitted"
    at = {"workload": "w0", "envelope": "profile3"}
    rows = [
        row(A, mean_slowdown=3.0, killed_power=4, **at),
        row(f"{A} in turns", killed_power=2, comparison="readings", **at),
        row(f"{A} {again}", mean_slowdown=5.0, killed_power=6, killed_walltime=1, comparison=again, **at),
        row(f"{A} in turns {again}", killed_power=3, comparison=again, **at),
        row(A, comparison="profiles", **at),
    ]
    tables.write_numbers(save(tmp_path / "results", rows), tmp_path)
    first, second = sorted(cells(tables.victims(Numbers.read(tmp_path))))
    assert first[:3] == [A, "3.00 / 5.00", "4.0 / 7.0"]
    assert second[0] == f"{A} in turns" and second[2] == "2.0 / 3.0"


def test_figures_are_those_of_the_data(tmp_path):
    """Every figure is drawn again with the same bytes, each below 60 kB."""
    (tmp_path / "data").symlink_to(tables.DATA)
    figures.draw_all(tmp_path)
    for number in range(2, 7):
        name = f"figure-{number}.svg"
        assert len((tmp_path / name).read_bytes()) < 60_000
        assert (tmp_path / name).read_text() == (tables.HERE / name).read_text(), name


def test_a_radar_is_inverted_and_scaled():
    """The best of an axis is at the rim, the worst in the middle; equal values are best."""
    names = {VIOLATIONS: [1.0, 1.0], SLOWDOWN: [2.0, 6.0], KILLS: [9.0, 5.0]}
    values = pd.DataFrame(names, index=["one", "other"])
    axes = Figure().subplots()
    figures.radar(
        axes, values, pd.concat([values, pd.DataFrame({VIOLATIONS: [1.0], SLOWDOWN: [4.0], KILLS: [1.0]})]), ""
    )
    one, other = (np.hypot(*line.get_xydata()[:3].T) for line in axes.lines[-2:])
    assert one.tolist() == pytest.approx([1.0, 1.0, 0.0]) and other.tolist() == pytest.approx([1.0, 0.0, 0.5])


def test_quantities_by_hand():
    """All 40 algorithms are level but for two: the first is best in all, the last worst, with equal steps of a half."""
    best, worst = ALL40[0], ALL40[-1]
    values = {
        (label, figure, THIRD): np.array([level, level])
        for label in ALL40
        for figure in (SLOWDOWN, KILLS, VIOLATIONS)
        for level in [1.0 if label == best else 3.0 if label == worst else 2.0]
    }
    samples = Samples(values)
    # a radar of three axes of 1, 0.5 and 0 has the areas 1, 0.25 and 0 of the largest triangle
    assert [area(samples, label) for label in (best, ALL40[1], worst)] == [1.0, 0.25, 0.0]
    assert least_over(KILLS, ALL40[1:3], (best, worst))(samples) == -1.0


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (22, "IDSB has a higher number"),
        (67, "Besides no server"),
        (104, "IDFS is second-worst"),
        (131, "It is essential"),
    ],
)
def test_measures_are_of_the_rows_that_they_count(place, words):
    assert statements_of(tables.HERE)[place - 1].statement.startswith(words)
