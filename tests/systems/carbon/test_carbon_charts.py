"""Figures of carbon plans, savings and fits: what is in them, by hand; and that they are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from carbon_talk import outcome_of
from matplotlib.collections import PolyCollection

from batwatt.errors import InputError
from batwatt.model.phases import Phase, PhaseModel
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results.style import drawing
from batwatt.systems.carbon.execution import ShiftJob, carry_out
from batwatt.systems.carbon.figures import gantt as carbon_gantt
from batwatt.systems.carbon.figures.charts import class_names, cumulative, grid_figure, plot_grid, plot_saved_cdf
from batwatt.systems.carbon.figures.fit import fit_figure, plot_fit
from batwatt.systems.carbon.figures.gantt import Piece, job_figure, jobs_figure, pieces, plot_gantt
from batwatt.systems.carbon.fit import fit_runs
from batwatt.systems.carbon.measurements import MeasuredRun
from batwatt.systems.carbon.outcome import saved

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
ONE_FORMAT = [name if name == "svg" else pytest.param(name, marks=pytest.mark.deep) for name in MAGIC]
"""Of each picture one format on a push, all of them each night."""
COURSE = SignalIntegral.regular([300.0, 100.0, 200.0, 50.0, 400.0, 100.0], 3600.0)
MODEL = PhaseModel((Phase("boot", 10.0, 30.0),), (Phase("a", 100.0, 50.0), Phase("b", 200.0, 80.0)))


def job(name="j", cpus=2, arrival_s=0.0):
    return ShiftJob(name, arrival_s, MODEL, cpus)


def suspended(name="j", cpus=2):
    """140 s from 1000 s on: the start-up, all of a and 30 s of b; the rest from 5000 s on."""
    return carry_out(job(name, cpus), [(1000.0, 1140.0), (5000.0, 9000.0)])


def test_pieces_of_a_suspended_job():
    """Power on both cpus; b is cut after 30 s, its other 170 s come after another start-up."""
    assert list(pieces(suspended())) == [
        Piece(1000.0, 1010.0, "boot", 60.0, True),
        Piece(1010.0, 1110.0, "a", 100.0, False),
        Piece(1110.0, 1140.0, "b", 160.0, False),
        Piece(5000.0, 5010.0, "boot", 60.0, True),
        Piece(5010.0, 5180.0, "b", 160.0, False),
    ]


def test_pieces_add_up_to_the_energy():
    execution = suspended(cpus=3)
    drawn = sum((piece.end_s - piece.begin_s) * piece.watts for piece in pieces(execution))
    assert drawn == pytest.approx(execution.energy_j, rel=1e-12)


def test_a_start_up_that_is_cut_short():
    found = list(pieces(carry_out(job(), [(0.0, 4.0), (100.0, 9000.0)])))
    assert found[0] == Piece(0.0, 4.0, "boot", 60.0, True)
    assert [piece.name for piece in found[1:]] == ["boot", "a", "b"]


@pytest.mark.parametrize("suffix", MAGIC)
def test_one_job_is_drawn(tmp_path, suffix):
    path = plot_gantt([suspended()], COURSE, tmp_path / f"one.{suffix}", deadlines_s={"j": 7000.0})
    assert path.read_bytes().startswith(MAGIC[suffix])


def test_what_is_in_the_picture_of_one_job():
    """Three kinds of phases; the highest box is that of b; both panels end after the deadline."""
    with drawing():
        figure = job_figure(suspended(), COURSE, 20_000.0)
    above, below = figure.axes
    kinds = [each for each in above.collections if isinstance(each, PolyCollection)]
    assert [len(kind.get_paths()) for kind in kinds] == [2, 1, 2]
    assert max(path.vertices[:, 1].max() for kind in kinds for path in kind.get_paths()) == 160.0
    # hours: 20,000 s are 5.6
    assert above.get_xlim()[1] == pytest.approx(1.015 * 20_000.0 / 3600.0)
    assert below.get_ylabel() == "carbon intensity\n(g/kWh)"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["start-up", "a", "b", "arrival", "deadline"]
    assert figure.get_suptitle().startswith("j: ") and figure.get_suptitle().endswith("g in 2 segments")


def test_many_names_of_phases_share_a_colour():
    work = tuple(Phase(f"phase {number}", 10.0, 10.0 + number) for number in range(12))
    with drawing():
        figure = job_figure(carry_out(ShiftJob("j", 0.0, PhaseModel((), work)), [(0.0, 200.0)]), COURSE, None)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [*(f"phase {number}" for number in range(6)), "other phases", "arrival"]


@pytest.mark.parametrize("count", [2, 30, 200])
def test_many_jobs_are_drawn(tmp_path, count):
    executions = [suspended(f"job {number}") for number in range(count)]
    assert plot_gantt(executions, COURSE, tmp_path / "many.png").stat().st_size > 5000
    with drawing():
        figure = jobs_figure(executions, COURSE, {"job 1": 8000.0})
    startups, work = (each for each in figure.axes[0].collections if isinstance(each, PolyCollection))
    assert (len(startups.get_paths()), len(work.get_paths())) == (2 * count, 3 * count)
    assert figure.axes[0].yaxis_inverted()


def test_a_vector_file_of_many_boxes_holds_an_image(tmp_path, monkeypatch):
    monkeypatch.setattr(carbon_gantt, "SHAPES", 10)
    text = plot_gantt([suspended("a"), suspended("b"), suspended("c")], COURSE, tmp_path / "many.svg").read_text()
    assert "<image" in text


def test_nothing_to_draw(tmp_path):
    with pytest.raises(InputError, match="has no job to show"):
        plot_gantt([], COURSE, tmp_path / "none.png")
    with pytest.raises(InputError, match="is not a kind of figure"):
        plot_gantt([suspended()], COURSE, tmp_path / "one.jpeg")
    with pytest.raises(InputError, match="has no run to show"):
        plot_fit(fit_runs([measured()]), [], tmp_path / "none.png")
    assert not list(tmp_path.iterdir())


def savings():
    """Lengths 1, 1, 3, 20 h; 100 g each before; 10, 0, 40 and -10 g saved: 40 in all."""
    table = pd.DataFrame({"length_s": [3600.0, 72000.0, 10800.0, 3600.0], "saved_g": [10.0, -10.0, 40.0, 0.0]})
    return table.assign(carbon_base_g=100.0, saved_share=table["saved_g"] / 100.0)


def test_saved_carbon_by_length_by_hand():
    shares = cumulative(savings())
    assert shares.index.tolist() == [3600.0, 10800.0, 72000.0]
    assert shares["saved_g"].tolist() == pytest.approx([0.25, 1.25, 1.0])
    assert shares["carbon_base_g"].tolist() == pytest.approx([0.5, 0.75, 1.0])
    assert shares["jobs"].tolist() == pytest.approx([0.5, 0.75, 1.0])


def test_classes_of_lengths():
    assert class_names([7200.0, 43200.0]) == ["below 2 h", "2 to 12 h", "12 h and more"]
    assert class_names([5400.0]) == ["below 1.5 h", "1.5 h and more"]
    assert class_names([]) == ["all jobs"]


@pytest.mark.parametrize("suffix", ONE_FORMAT)
def test_savings_are_drawn(tmp_path, suffix):
    path = plot_saved_cdf(savings(), tmp_path / f"cdf.{suffix}")
    assert path.read_bytes().startswith(MAGIC[suffix])


def test_savings_of_an_outcome_and_of_nothing_are_drawn(tmp_path):
    late = outcome_of("late", [suspended("a"), suspended("b")], COURSE)
    base = outcome_of("immediate", [carry_out(job(name), [(0.0, 400.0)]) for name in "ab"], COURSE)
    assert plot_saved_cdf(saved(late, base), tmp_path / "a.png").exists()
    assert plot_saved_cdf(saved(base, base), tmp_path / "b.png").exists()


def test_bad_tables_of_savings(tmp_path):
    with pytest.raises(InputError, match="no column 'saved_share'"):
        plot_saved_cdf(savings().drop(columns="saved_share"), tmp_path / "cdf.png")
    with pytest.raises(InputError, match="has no job to show"):
        plot_saved_cdf(savings().iloc[:0], tmp_path / "cdf.png")


def cells():
    rows = [(d, length, policy, 0.01 * d * length) for policy in ("x", "y") for d in (4, 12) for length in (1, 2, 3)]
    return pd.DataFrame(rows, columns=["deadline_h", "length_h", "policy", "saved_share"])


def test_a_grid_shows_each_cell_in_percent():
    grid = cells()[lambda table: table["policy"] == "x"].pivot(
        index="deadline_h", columns="length_h", values="saved_share"
    )
    grid.loc[4, 3] = np.nan
    with drawing():
        figure = grid_figure({"": grid}, "", "deadline_h", "length_h")
    assert [text.get_text() for text in figure.axes[0].texts] == ["4.0", "8.0", "–", "12.0", "24.0", "36.0"]
    assert (figure.axes[0].get_ylabel(), figure.axes[0].get_xlabel()) == ("deadline (h)", "length (h)")


@pytest.mark.parametrize("suffix", ONE_FORMAT)
def test_grids_are_drawn(tmp_path, suffix):
    path = plot_grid(cells(), tmp_path / f"grid.{suffix}", panels="policy")
    assert path.read_bytes().startswith(MAGIC[suffix])
    # some cells emit more than before, or all
    for shift in (0.2, 2.0):
        table = cells().assign(saved_share=lambda rows, less=shift: rows["saved_share"] - less)
        assert plot_grid(table, tmp_path / f"less.{suffix}", panels="policy").exists()


def test_bad_grids(tmp_path):
    with pytest.raises(InputError, match="two values for deadline_h 4, length_h 1"):
        plot_grid(cells(), tmp_path / "grid.png")
    with pytest.raises(InputError, match=r"no column 'deadline'"):
        plot_grid(cells(), tmp_path / "grid.png", rows="deadline")
    with pytest.raises(InputError, match="has no cell to show"):
        plot_grid(cells().iloc[:0], tmp_path / "grid.png")


def measured(watts=10.0):
    marks = ((1.0, "load"), (3.0, "training"), (7.0, "save"), (9.0, "end"))
    return MeasuredRun(np.arange(12.0), np.full(12, watts), marks)


@pytest.mark.parametrize("suffix", ONE_FORMAT)
def test_a_fit_is_drawn(tmp_path, suffix):
    runs = [measured(), measured(20.0)]
    path = plot_fit(fit_runs(runs), runs, tmp_path / f"fit.{suffix}")
    assert path.read_bytes().startswith(MAGIC[suffix])


def test_a_fit_shows_the_samples_from_the_beginning_of_each_run():
    """8 samples from 1 s to 8 s of each run, shown from 0 s on; the model at 15 W."""
    runs = [measured(), measured(20.0)]
    with drawing():
        figure = fit_figure(fit_runs(runs), runs)
    axes = figure.axes[0]
    assert axes.lines[0].get_xdata().tolist() == [*range(8), *range(8)]
    assert axes.patches[0].get_data().values.tolist() == [15.0]
    assert [text.get_text() for text in axes.texts] == ["load", "training", "save"]
    assert figure.texts[0].get_text() == "0.12 kJ in 8.0 s; leaving one out, RMSE 10.0 W and 0.080 kJ"
    with drawing():
        alone = fit_figure(fit_runs(runs[:1]), runs[:1])
    assert alone.texts[0].get_text() == "0.08 kJ in 8.0 s"
