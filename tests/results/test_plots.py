"""Figures and Gantt charts, and the states of servers that they draw."""

from __future__ import annotations

import numpy as np
import pytest
from builders import envelope, job, machine, played
from files_of_tests import refusal

from batwatt.errors import InputError
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.timeline import Timeline
from batwatt.results.drawing import bin_edges, draw, draw_power, new_figure, plot_gantt, power_axes
from batwatt.results.host_timeline import ASLEEP, SWITCHING_OFF, SWITCHING_ON, DrawnRun, StateSegment, read_timeline
from batwatt.results.power import PowerTrace, compare
from batwatt.results.run_files import FILES, write_record
from batwatt.schedulers.easy import Easy

ENVELOPE = Timeline((0.0, 300.0, 600.0), (1000.0, 400.0, 1200.0))
TRACE = PowerTrace(np.array([0.0, 310.0, 700.0]), np.array([900.0, 300.0, 1100.0]), 7200.0)
EMPTY = PowerTrace(np.empty(0), np.empty(0), 0.0)

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def picture(path, trace=TRACE):
    """The file of a picture of a run."""

    def figure():
        made = new_figure(7.2, 2.4)
        power_axes(made.add_subplot(), "FF [$x_1$] <HFLD> & co", trace, ENVELOPE)
        return made

    return draw(path, figure)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", MAGIC)
def test_same_runs_same_bytes(tmp_path, kind):
    first = picture(tmp_path / f"new/a.{kind}").read_bytes()
    second = picture(tmp_path / f"b.{kind.upper()}").read_bytes()
    assert first.startswith(MAGIC[kind]) and first == second
    # a run without a job has a picture, too
    assert picture(tmp_path / f"c.{kind}", EMPTY).read_bytes() != first


def areas(trace, envelope, edges_s):
    """Name of each area that is drawn -> its size in kWh."""
    axes = new_figure(7.0, 3.0).add_subplot()
    draw_power(axes, trace, envelope, edges_s)
    sizes = {}
    for area in (patch for patch in axes.patches if patch.get_fill()):
        x, y = area.get_path().vertices.T
        sizes[area.get_label()] = abs(float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))) / 2.0
    return sizes


@pytest.mark.parametrize("edges_s", [bin_edges([TRACE], ENVELOPE), np.linspace(0.0, 7200.0, 4)])
def test_areas_of_the_power_are_energies(edges_s):
    pieces = compare(TRACE, ENVELOPE)
    sizes = areas(TRACE, ENVELOPE, edges_s)
    assert sizes["unused"] == pytest.approx(pieces.unused_j / 3.6e6)
    assert sizes["above the envelope"] == pytest.approx(pieces.above_j / 3.6e6) and pieces.above_j > 0.0
    # the band is there in the first of three intervals, in which the power changes twice
    assert ("least to largest" in sizes) == (len(edges_s) == 4)


def test_a_picture_of_no_known_kind_is_refused(tmp_path):
    assert "end its name with one of png, svg, pdf" in refusal(picture, tmp_path / "f.bmp")
    assert not (tmp_path / "f.bmp").exists()


OK, KILLED = "COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"
JOBS_HEAD = ",".join(column.name for column in FILES["jobs"])


def jobs(*rows):
    """Lines of jobs.csv of rows (id, state, start, end, hosts); REJECTED has no times."""
    lines = [
        f'{name},w0,p,0,1,-1,{int(state == OK)},{state},{start},{end - start},{end},{start},{end},1,{hosts},0,""'
        if state != "REJECTED"
        else f'{name},w0,p,0,1,-1,0,REJECTED,,,,,,,,,""'
        for name, state, start, end, hosts in rows
    ]
    return "\n".join([JOBS_HEAD, *lines]) + "\n"


def files(folder, jobs_text, *changes):
    (folder / "x_jobs.csv").write_text(jobs_text)
    lines = "".join(f"{time},{hosts},{pstate}\n" for time, hosts, pstate in changes)
    (folder / "x_pstate_changes.csv").write_text("time,machine_id,new_pstate\n" + lines)
    return folder / "x"


# two of the fast hosts of `builders`: 3 is asleep, 4 off, 5 on
CHANGES = ((0, "0-1", 0), (10, "0", -1), (10, "0", 2), (20, "1", -2), (30, "1", 3), (35, "0", -42), (40, "1", -1),
           (60, "1", 0), (200, "0", -1), (200, "0", 1))  # fmt: skip
ROWS = jobs(("a", OK, 5, 50, "0"), ("b", KILLED, 70, 90, "0-1"), ("c", "REJECTED", 0, 0, ""))


def test_timeline_by_hand(tmp_path):
    timeline = read_timeline(files(tmp_path, ROWS, *CHANGES), machine(2))
    assert timeline.end_s == 90.0
    assert timeline.spans == (
        StateSegment(0, 0.0, 10.0, 0),
        StateSegment(0, 10.0, 90.0, 2),
        StateSegment(1, 0.0, 20.0, 0),
        StateSegment(1, 20.0, 30.0, SWITCHING_OFF),
        StateSegment(1, 30.0, 40.0, ASLEEP),
        StateSegment(1, 40.0, 60.0, SWITCHING_ON),
        StateSegment(1, 60.0, 90.0, 0),
    )
    assert timeline.runs == (DrawnRun("a", 0, 0, 5.0, 50.0, False), DrawnRun("b", 0, 1, 70.0, 90.0, True))
    # job a runs first in p-state 0, then in 2
    assert list(timeline.computing()) == [
        StateSegment(0, 5.0, 10.0, 0), StateSegment(0, 10.0, 50.0, 2),
        StateSegment(0, 70.0, 90.0, 2), StateSegment(1, 70.0, 90.0, 0)
    ]  # fmt: skip


def test_the_engine_agrees_with_itself(tmp_path):
    """The time in states adds up to the servers' time, and the jobs' to what they ran."""
    scheduler = Easy({"platform": machine(2, 2), "envelope": envelope(400.0, 150.0, 60.0, 400.0)})
    record = played(scheduler, machine(2, 2), *(job(n, 40.0 * n, 1 + n % 3, 90.0, 400.0) for n in range(9)))
    write_record(record, tmp_path / "x")
    timeline = read_timeline(tmp_path / "x", machine(2, 2))
    assert sum(span.end_s - span.start_s for span in timeline.spans) == pytest.approx(4 * timeline.end_s)
    ran = sum((run.high - run.low + 1) * (run.end_s - run.start_s) for run in timeline.runs)
    computing = list(timeline.computing())
    assert ran > 0.0 and sum(span.end_s - span.start_s for span in computing) == pytest.approx(ran)
    # no server computes while it sleeps; times of states have 6 digits, so a sliver may overlap
    assert sum(s.end_s - s.start_s for s in computing if isinstance(s.state, str)) < 0.1
    assert plot_gantt(tmp_path / "x", machine(2, 2), envelope(400.0), tmp_path / "x.svg").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("rows", "changes", "problem"),
    [
        (jobs(("a", OK, 0, 9, "7")), [(0, "0-1", 0)], r"x_jobs\.csv: row 1: host 7 is not one of the 2"),
        (jobs(("a", OK, 0, 9, "0-")), [(0, "0-1", 0)], "not a host id"),
        (ROWS, [(0, "0-1", 9)], r"x_pstate_changes\.csv: row 1: f000 has no p-state 9"),
        (ROWS, [(0, "0-5", 0)], "host 5 is not one of the 2"),
    ],
)
def test_files_of_another_platform(tmp_path, rows, changes, problem):
    with pytest.raises(InputError, match=problem):
        read_timeline(files(tmp_path, rows, *changes), machine(2))


def test_gantt_of_many_servers(tmp_path):
    hosts = tuple(Host(i, f"h{i}", (PState(10.0), PState(5.0))) for i in range(300))
    # each job on servers apart is two runs
    rows = jobs(*((f"j{n}", OK, n, n + 40, f"{n % 200}-{n % 200 + 90} 299") for n in range(200)))
    prefix = files(tmp_path, rows, (0, "0-299", 0), *((n, f"{n}", n % 2) for n in range(300)))
    runs = read_timeline(prefix, Platform(hosts)).runs
    assert [(run.low, run.high) for run in runs[:2]] == [(0, 90), (299, 299)]
    path = plot_gantt(prefix, Platform(hosts), None, tmp_path / "x.svg")
    # the many boxes are one image, not a shape each
    assert path.stat().st_size < 2e6 and path.read_text().count("<image") >= 1


def test_no_gantt_of_nothing(tmp_path):
    prefix = files(tmp_path, jobs(("c", "REJECTED", 0, 0, "")), *CHANGES)
    assert "no job ran" in refusal(plot_gantt, prefix, machine(2), None, tmp_path / "x.png")
