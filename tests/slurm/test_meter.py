"""`batwatt slurm run --watts-command` with scripts that measure, fail and hang."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from slurm_session import Session
from toy_cluster import ToyCluster
from waiting import wait_for

FCFS = ("-s", "powercap", "-o", '{"response": "none", "order": "fcfs"}')
IDLE_W, BUSY_W = 101.0, 311.0
METER = f"sinfo -h -N -p green -o %T | awk '{{w += /alloc|mix/ ? {BUSY_W:g} : {IDLE_W:g}}} END {{print w, \"W\"}}'"
"""Watts that the model of the platform never has: it has 95 and 200 W."""
SOMETIMES = f"""\
read calls < "$0.calls"; calls=$((calls + 1)); echo $calls > "$0.calls"
case $((calls % 4)) in
0) exit 1;;
1) echo no meter;;
2) {METER};;
3) [ $calls = 3 ] && sleep 10; {METER};;
esac"""

pytestmark = [pytest.mark.deep, pytest.mark.toy(nodes=2)]


def script(platform: Path, text: str) -> str:
    """Write a script beside a platform; returns its path."""
    path = platform.parent / "meter"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    path.with_name("meter.calls").write_text("0\n")
    return str(path)


def column(platform: Path, name: str = "watts") -> list[float]:
    """Return a column of the account of power."""
    with (platform.parent / "session_power.csv").open() as file:
        return [float(row[name]) for row in csv.DictReader(file) if row[name]]


@pytest.mark.parametrize("mode", ["--operate", "shadow"])
def test_measured_watts_are_in_the_account(cluster: ToyCluster, platform: Path, mode: str) -> None:
    operate = mode == "--operate"
    words = (*FCFS, *([mode] if operate else []), "--once", "--watts-command", script(platform, METER))
    with Session(platform, *words) as session:
        wait_for(lambda: bool(session.rows("exchange")), 20.0, "it begins")
        number = cluster.submit(2.0, 2)
        if not operate:
            cluster.command("scontrol", "release", number)
        session.ends()
    measured = {2 * IDLE_W, 2 * BUSY_W}
    # of a shadow the scheduler's power is that of the model
    assert set(column(platform, "watts" if operate else "slurm_watts")) == measured
    assert set(column(platform)).isdisjoint(measured) is not operate


def test_a_meter_that_fails_now_and_then_is_used_when_it_answers(cluster: ToyCluster, platform: Path) -> None:
    numbers = [cluster.submit(1.5, 2) for _ in range(3)]
    words = (*FCFS, "--operate", "--once", "--watts-command", script(platform, SOMETIMES))
    with Session(platform, *words) as session:
        session.ends(90.0)
    assert [cluster.job(number)["JobState"] for number in numbers] == ["COMPLETED"] * 3
    watts = set(column(platform))
    assert {2 * BUSY_W, 400.0} <= watts <= {2 * IDLE_W, 2 * BUSY_W, IDLE_W + BUSY_W, 190.0, 295.0, 400.0}
    assert "the model of the platform counts" in session.log.read_text()


def test_a_meter_that_hangs_does_not_stop_a_session(cluster: ToyCluster, platform: Path) -> None:
    numbers = [cluster.submit(0.5, 2) for _ in range(2)]
    path = script(platform, "sleep 1234")
    with Session(platform, *FCFS, "--operate", "--once", "--watts-command", path) as session:
        session.ends(90.0)
    assert [cluster.job(number)["JobState"] for number in numbers] == ["COMPLETED"] * 2
    assert set(column(platform)) <= {190.0, 295.0, 400.0}
    assert not [words for words in commands() if words in (["sleep", "1234"], ["/bin/sh", path])]


def test_a_meter_that_hangs_delays_no_start(cluster: ToyCluster, platform: Path) -> None:
    numbers = [cluster.submit(0.5, 2) for _ in range(4)]
    with Session(platform, *FCFS, "--operate", "--watts-command", script(platform, "sleep 1234")):
        # a start takes Slurm 2 to 3 s, a meter has 5 s to answer
        wait_for(lambda: cluster.job(numbers[-1])["JobState"] == "COMPLETED", 20.0, "the last ends")


def commands() -> list[list[str]]:
    """Return the words of all processes."""
    lines = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            lines.append([os.fsdecode(word) for word in (place / "cmdline").read_bytes().split(b"\0")[:-1]])
        except OSError:
            continue
    return lines
