"""Replaying dialogues recorded from a real Batsim against the embedded engine, and comparing what both wrote."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs.batsim_json import read_workload
from batwatt.inputs.events import read_events
from batwatt.inputs.platform_xml import read_platform

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
GOLDEN = SHARED / "batsim-golden"
OWN = ROOT / "tests" / "data" / "dialogues"
needs_golden = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="the recordings of the real Batsim are not beside the project"
)


def scenarios(base: Path, kind: str) -> list[Path]:
    folder = base / kind if kind else base
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def engine_of(folder: Path, scenario: dict, exact_name: bool = True) -> Engine:
    args = scenario.get("batsim_args", [])
    config = EngineConfig(
        energy=scenario.get("energy", True),
        compute_sharing="--enable-compute-sharing" in args,
        dynamic_jobs="--enable-dynamic-jobs" in args,
        acknowledge_dynamic_jobs="--acknowledge-dynamic-jobs" in args,
        profile_reuse="--enable-profile-reuse" in args,
        forward_profiles="--forward-profiles-on-submission" in args,
        forward_unknown_events="--forward-unknown-events" in args,
    )
    events = ()
    if (folder / "events.txt").exists():
        events = read_events(folder / "events.txt", forward_unknown=config.forward_unknown_events)
    return Engine(read_platform(folder / "platform.xml"), [read_workload(folder / "workload.json")], config, events)


def dialogue(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "messages.txt").read_text().splitlines()
    return [(line[0], line[3:]) for line in lines if line]


class Script:
    """Answers each date's messages with what was answered at that date."""

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        self.answers: dict[float, list[str]] = defaultdict(list)
        now = 0.0
        for who, text in lines:
            if who == "B":
                now = json.loads(text)["now"]
            else:
                self.answers[now].append(text)

    def answer(self, now: float) -> str:
        queue = self.answers.get(now)
        return queue.pop(0) if queue else json.dumps({"now": now, "events": []})


def by_date(messages: list[dict]) -> dict[float, list[str]]:
    found = defaultdict(list)
    for message in messages:
        for event in message["events"]:
            data = json.loads(json.dumps(event["data"]))
            if event["type"] == "SIMULATION_BEGINS":
                data["workloads"] = None
            if event["type"] == "ANSWER":
                data = {key: f"{value:.8g}" for key, value in data.items()}
            found[event["timestamp"]].append(json.dumps([event["type"], data], sort_keys=True))
    return {date: sorted(events) for date, events in found.items()}


def numbers_close(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    try:
        a, b = float(ours), float(theirs)
    except ValueError:
        return False
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1.0000001e-6)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


WALL_CLOCK = {"batsim_version", "scheduling_time", "simulation_time"}
TIME_COLUMN = {"machine_states": "time", "pstate_changes": "time", "consumed_energy": "time", "jobs": "finish_time"}


def assert_same_files(
    ours: Path, theirs: Path, stems=("jobs", "schedule", "machine_states", "pstate_changes", "consumed_energy")
):
    """Files equal but for the order of rows of one date; `ours` is a prefix, `theirs` a folder.

    Of several rows at one date, machine_states and consumed_energy show the counts and power between two events of
    that date, which depend on the order of these events: only the last one and the number of rows are compared there.
    """
    for stem in stems:
        mine = rows_of(ours.with_name(f"{ours.name}_{stem}.csv"))
        real = rows_of(theirs / f"{stem}.csv")
        assert [list(row) for row in mine[:1]] == [list(row) for row in real[:1]], stem
        assert len(mine) == len(real), f"{stem}: {len(mine)} rows, Batsim has {len(real)}"
        column = TIME_COLUMN.get(stem)
        mine, real = grouped(mine, column), grouped(real, column)
        for group, (left, right) in enumerate(zip(mine, real, strict=True)):
            where = f"{stem}, date {right[0].get(column or '', '')} (group {group})"
            assert len(left) == len(right), where
            if len(right) > 1 and stem in ("machine_states", "consumed_energy"):
                assert sorted(row.get("event_type", "") for row in left) == sorted(
                    row.get("event_type", "") for row in right
                ), where
                left, right = [settled(left[-1])], [settled(right[-1])]
            elif len(right) > 1:
                left, right = (sorted(side, key=lambda row: list(row.values())) for side in (left, right))
            for one, other in zip(left, right, strict=True):
                for name in other:
                    if name not in WALL_CLOCK:
                        assert numbers_close(one[name], other[name]), f"{where}, {name}: {one[name]} != {other[name]}"


def settled(row: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if name not in ("event_type", "epower", "wattmin")}


def grouped(rows: list[dict[str, str]], column: str | None) -> list[list[dict[str, str]]]:
    groups: list[list[dict[str, str]]] = []
    for row in rows:
        if groups and column and groups[-1][0][column] == row[column]:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups
