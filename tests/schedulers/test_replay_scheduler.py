"""Replays of job logs: starts to the second, what happens without room, and which hosts jobs get."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import batwatt as bw
from batwatt.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SITES = ROOT.parent / "shared" / "data" / "sites"
needs_sites = pytest.mark.skipif(not SITES.is_dir(), reason=f"no real logs in {SITES}")


def log(*rows: tuple[float, float | None, float, int]) -> bw.Workload:
    """Jobs "1", "2", ... of (submission, recorded start, length, hosts)."""
    columns = ["submission_time_s", "start_s", "length_s", "hosts"]
    return bw.Workload.from_frame(pd.DataFrame(rows, columns=columns))


def replay(workload: Any, platform: Any = None, **options: Any) -> dict[str, tuple[float, str]]:
    """By job when it started and on which hosts."""
    result = bw.simulate(platform or bw.Platform.machines(4), workload, "replay", options=options)
    columns = ("job_id", "starting_time_s", "allocated_resources")
    return {id: (start_s, hosts) for id, start_s, hosts in zip(*(result.jobs[name] for name in columns), strict=True)}


@pytest.mark.parametrize(
    ("hosts", "rows", "expected", "said"),
    [
        # 2 starts in the second in which 1 ends, and takes its hosts; 3 has no record
        (5, [(0, 10, 100, 3), (5, 110, 50, 4), (20, None, 30, 1), (20, 20, 5, 1)],
         {"1": (10, "0-2"), "2": (110, "0-3"), "3": (20, "3"), "4": (20, "4")},
         "replay: 3 of 3 recorded starts to the second; 1 without a record started at their submission"),
        # 2 has no record, so that its wait is no late start
        (4, [(0, 10, 100, 4), (20, None, 30, 1)], {"1": (10, "0-3"), "2": (110, "0")},
         "replay: 1 of 1 recorded starts to the second; 1 without"),
        # without room 2 waits until 100 s, 3 passes it; 4 waits for a fraction of a second only
        (4, [(0, 0, 100, 3), (0, 50, 25, 2), (0, 60, 10, 1), (0, 124.5, 5, 4)],
         {"1": (0, "0-2"), "2": (100, "0-1"), "3": (60, "3"), "4": (125, "0-3")},
         "replay: 3 of 4 recorded starts to the second; 1 later for want of hosts, by 50.0 s on average, w0!2 by 50 s"),
        # 2 and 3 wait for the same hosts: the one that was to start first gets them
        (4, [(0, 0, 100, 4), (0, 60, 10, 4), (0, 50, 10, 4)],
         {"1": (0, "0-3"), "2": (110, "0-3"), "3": (100, "0-3")}, "1 of 3 recorded starts"),
        # a start before the submission is at it
        (4, [(30, 10, 5, 1)], {"1": (30, "0")}, ""),
    ],
    ids=["recorded starts", "no record", "without room jobs wait", "earlier records first", "before the submission"],
)  # fmt: skip
def test_starts_by_hand(caplog, hosts, rows, expected, said):
    with caplog.at_level(logging.WARNING):
        assert replay(log(*rows), bw.Platform.machines(hosts)) == expected
    assert said in caplog.text


def test_strict():
    problem = "replay: job w0!2: no room at its recorded start 50 s; give a larger platform"
    with pytest.raises(InputError, match=problem):
        replay(log((0, 0, 100, 3), (0, 50, 25, 2)), strict=True)
    # hosts that are free from that very second on are room
    assert replay(log((0, 0, 100, 3), (0, 100, 25, 4)), strict=True)["2"] == (100, "0-3")


def test_too_wide(caplog):
    assert replay(log((0, 3, 5, 9), (0, 4, 5, 1)))["2"] == (4, "0")
    assert "1 job can never run, wider than the platform of 4 hosts" in caplog.text


def test_a_bad_record(tmp_path: Path):
    jobs = '[{"id": "a", "subtime": 0, "res": 1, "profile": "p", "start_s": "noon"}]'
    path = tmp_path / "w.json"
    path.write_text(f'{{"nb_res": 1, "jobs": {jobs}, "profiles": {{"p": {{"type": "delay", "delay": 5}}}}}}')
    with pytest.raises(InputError, match="job w0!a: start_s must be a number >= 0, got 'noon'"):
        replay(path)


ROWS = st.tuples(st.integers(0, 50), st.integers(0, 40), st.integers(1, 60), st.integers(1, 4))


@examples(150)
@given(rows=st.lists(ROWS, min_size=1, max_size=15))
def test_where_there_is_room_every_start_is_the_recorded_one(rows):
    """On as many hosts as were ever busy at once."""
    runs = [(submit_s, submit_s + wait_s, length_s, width) for submit_s, wait_s, length_s, width in rows]
    busy = max(
        sum(width for _, begin, length, width in runs if begin <= start < begin + length) for _, start, _, _ in runs
    )
    replayed = replay(log(*runs), bw.Platform.machines(-(-busy // 2), 2), strict=True)
    assert {int(id): start_s for id, (start_s, _) in replayed.items()} == {
        row: start_s for row, (_, start_s, _, _) in enumerate(runs, 1)
    }
    fewer = replay(log(*runs), bw.Platform.machines(4))
    assert all(fewer[str(row)][0] >= start_s for row, (_, start_s, _, _) in enumerate(runs, 1))


def starts_in_swf(path: Path) -> dict[str, float]:
    """By job its submission + wait, of those with a run time and processors; read without our reader."""
    lines = (re.split(r"\s+", line.strip()) for line in path.read_text().splitlines() if line.lstrip()[:1].isdigit())
    return {line[0]: float(line[1]) + float(line[2]) for line in lines if float(line[3]) > 0 and float(line[4]) > 0}


@needs_sites
def test_a_real_swf_on_its_machine():
    path = SITES / "jobs" / "hpc2n.swf"
    expected = starts_in_swf(path)
    replayed = replay(path, bw.Platform.machines(120, 2), strict=True)
    assert {id: start_s for id, (start_s, _) in replayed.items()} == expected and len(expected) == 3145
