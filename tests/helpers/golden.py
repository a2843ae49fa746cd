"""Replaying dialogues recorded from a real Batsim against the embedded engine, and comparing what both wrote.

tests/data/README.md says how the recordings are packed.
"""

from __future__ import annotations

import atexit
import csv
import json
import math
import shutil
import tarfile
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs.batsim_files import read_events, read_workload
from batwatt.inputs.platform_files import read_platform

ARCHIVE = Path(__file__).parents[1] / "data" / "dialogues.tar.xz"


@cache
def recordings(packed: Path = ARCHIVE) -> Path:
    """The unpacked recordings, in a folder of this process."""
    folder = Path(tempfile.mkdtemp(prefix="recordings"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with tarfile.open(packed) as archive:
        # the filter is not there before Python 3.11.4
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder


def scenarios(*kinds: str) -> list[Path]:
    """The recordings of some kinds (folders of the archive)."""
    return sorted(path for kind in kinds for path in (recordings() / kind).iterdir())


def engine_of(folder: Path, scenario: dict) -> Engine:
    config, _ = EngineConfig.of_args(scenario.get("batsim_args", []), scenario.get("energy", True))
    events = ()
    if (folder / "events.txt").exists():
        events = read_events(folder / "events.txt", forward_unknown=config.forward_unknown_events)
    files = enumerate(sorted(folder.glob("workload*.json")))
    workloads = [read_workload(path, f"w{number}") for number, path in files]
    return Engine(read_platform(folder / "platform.xml"), workloads, config, events)


def dialogue(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "messages.txt").read_text(encoding="utf-8").split("\n")
    return [(line[0], line[3:]) for line in lines if line]


class Script:
    """Answers each time's messages with what was answered at that time."""

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
    events = defaultdict(list)
    for message in messages:
        for event in message["events"]:
            data = json.loads(json.dumps(event["data"]))
            if event["type"] == "SIMULATION_BEGINS":
                data["workloads"] = None
            if event["type"] == "ANSWER":
                data = {key: f"{value:.8g}" for key, value in data.items()}
            events[event["timestamp"]].append(json.dumps([event["type"], data], sort_keys=True))
    return {time: sorted(texts) for time, texts in events.items()}


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


def assert_same_files(ours: Path, theirs: Path) -> None:
    """Files equal but for the order of rows of one time; `ours` is a prefix, `theirs` a folder.

    Of several rows at one time, machine_states and consumed_energy show the counts and power between two events of
    that time, which depend on the order of these events: only the last one and the number of rows are compared there.
    """
    stems = {path.stem for path in theirs.glob("*.csv")}
    assert {path.stem.removeprefix(f"{ours.name}_") for path in ours.parent.glob(f"{ours.name}_*.csv")} == stems
    for stem in sorted(stems):
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
