"""What each server did when, from files written by hand; and the picture of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import envelope, job, machine, simulated

from batwatt.cli.main import main
from batwatt.errors import InputError
from batwatt.model.platform import Host, Platform, PState
from batwatt.results.columns import FILES
from batwatt.results.gantt import plot_gantt
from batwatt.results.timeline import ASLEEP, SWITCHING_OFF, SWITCHING_ON, DrawnRun, StateSegment, read_timeline
from batwatt.results.writers import write_record
from batwatt.systems.powercap.scheduler import EnvelopeScheduler

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
    found = read_timeline(files(tmp_path, ROWS, *CHANGES), machine(2))
    assert found.end_s == 90.0
    assert found.spans == (
        StateSegment(0, 0.0, 10.0, 0),
        StateSegment(0, 10.0, 90.0, 2),
        StateSegment(1, 0.0, 20.0, 0),
        StateSegment(1, 20.0, 30.0, SWITCHING_OFF),
        StateSegment(1, 30.0, 40.0, ASLEEP),
        StateSegment(1, 40.0, 60.0, SWITCHING_ON),
        StateSegment(1, 60.0, 90.0, 0),
    )
    assert found.runs == (DrawnRun("a", 0, 0, 5.0, 50.0, False), DrawnRun("b", 0, 1, 70.0, 90.0, True))
    # job a runs first in p-state 0, then in 2
    assert list(found.computing()) == [
        StateSegment(0, 5.0, 10.0, 0), StateSegment(0, 10.0, 50.0, 2),
        StateSegment(0, 70.0, 90.0, 2), StateSegment(1, 70.0, 90.0, 0)
    ]  # fmt: skip


def test_a_job_on_servers_apart_is_two_runs(tmp_path):
    found = read_timeline(files(tmp_path, jobs(("a", OK, 0, 9, "0-1 3")), (0, "0-3", 0)), machine(4))
    assert [(run.low, run.high) for run in found.runs] == [(0, 1), (3, 3)]


def test_the_engine_agrees_with_itself(tmp_path):
    """The time in states adds up to the servers' time, and the jobs' to what they ran."""
    scheduler = EnvelopeScheduler({"platform": machine(2, 2), "envelope": envelope(400.0, 150.0, 60.0, 400.0)})
    record = simulated(scheduler, machine(2, 2), *(job(n, 40.0 * n, 1 + n % 3, 90.0, 400.0) for n in range(9)))
    write_record(record, tmp_path / "x")
    found = read_timeline(tmp_path / "x", machine(2, 2))
    assert sum(span.end_s - span.start_s for span in found.spans) == pytest.approx(4 * found.end_s)
    ran = sum((run.high - run.low + 1) * (run.end_s - run.start_s) for run in found.runs)
    computing = list(found.computing())
    assert ran > 0.0 and sum(span.end_s - span.start_s for span in computing) == pytest.approx(ran)
    # no server computes while it sleeps; times of states have 6 digits, so a sliver may overlap
    assert sum(s.end_s - s.start_s for s in computing if isinstance(s.state, str)) < 0.1


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


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_gantt_same_run_same_bytes(tmp_path, kind):
    prefix = files(tmp_path, ROWS, *CHANGES)
    title = "<b> $x_1$ & co"
    first, second = (
        plot_gantt(prefix, machine(2), envelope(300.0), tmp_path / f"{n}.{kind}", title).read_bytes() for n in "ab"
    )
    assert first == second and len(first) > 5000


def test_gantt_of_a_thousand_servers(tmp_path):
    hosts = tuple(Host(i, f"h{i}", (PState(10.0), PState(5.0))) for i in range(1000))
    rows = jobs(*((f"j{n}", OK, n, n + 40, f"{n % 900}-{n % 900 + 90}") for n in range(500)))
    prefix = files(tmp_path, rows, (0, "0-999", 0), *((n, f"{n}", n % 2) for n in range(1000)))
    path = plot_gantt(prefix, Platform(hosts), None, tmp_path / "x.svg")
    # the many boxes are one image, not a hundred thousand shapes
    assert path.stat().st_size < 5e6 and path.read_text().count("<image") >= 1


@pytest.mark.parametrize(
    ("rows", "name", "problem"),
    [(ROWS, "x.bmp", "not a kind of figure"), (jobs(("c", "REJECTED", 0, 0, "")), "x.png", "no job ran")],
)
def test_gantt_refused(tmp_path, rows, name, problem):
    with pytest.raises(InputError, match=problem):
        plot_gantt(files(tmp_path, rows, *CHANGES), machine(2), None, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_gantt_command(tmp_path, capsys):
    root = Path(__file__).parents[2]
    platform, workload = root / "platforms" / "small.xml", root / "workloads" / "small.json"
    cap = tmp_path / "cap.csv"
    cap.write_text("time_s,power_w\n0,900\n120,150\n180,900\n")
    for words in (
        ["run", "-p", platform, "-w", workload, "--envelope", cap, "-e", tmp_path / "r"],
        ["gantt", tmp_path / "r", "-p", platform, "--envelope", cap, "-o", tmp_path / "r.svg"],
    ):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert not ended.value.code
    assert str(tmp_path / "r.svg") in capsys.readouterr().out and (tmp_path / "r.svg").stat().st_size > 10000
