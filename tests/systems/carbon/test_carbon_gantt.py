"""Pictures of carbon plans: what is in them, by hand; and that they are drawn."""

from __future__ import annotations

import pytest
from matplotlib.collections import PolyCollection

from batwatt.errors import InputError
from batwatt.model.phases import Phase, PhaseModel
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results.style import drawing
from batwatt.systems.carbon.execution import ShiftJob, carry_out
from batwatt.systems.carbon.gantt import Piece, job_figure, pieces, plot_gantt

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
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
    path = plot_gantt(suspended(), COURSE, tmp_path / f"one.{suffix}", 7000.0)
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
        figure = job_figure(carry_out(ShiftJob("j", 0.0, PhaseModel((), work)), [(0.0, 200.0)]), COURSE, 300.0)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [*(f"phase {number}" for number in range(6)), "other phases", "arrival", "deadline"]


def test_no_kind_of_figure(tmp_path):
    with pytest.raises(InputError, match="is not a kind of figure"):
        plot_gantt(suspended(), COURSE, tmp_path / "one.jpeg", 7000.0)
    assert not list(tmp_path.iterdir())
