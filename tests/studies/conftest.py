"""What the tests of studies share: a tiny study worked out by hand, and schedulers that misbehave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from builders import TWO
from cli_house import SMALL, Done, House

# two jobs of all four hosts, 10 s each, both there at 0: slowdowns 1 and (10 + 10) / 10, the second ends at 20 s
SLOW = """
import os, signal, time
from pathlib import Path
from batwatt.schedulers.powercap import Powercap

class Slow(Powercap):
    def onSimulationBegins(self):
        {wait}
        super().onSimulationBegins()
        {then}
"""
HELD = """Path({folder!r}, "begun", f"{{os.getpid()}}-{{time.monotonic_ns()}}").touch()
        # the cells of runs that have ended may be written late: few runs begin before these are there
        late = len(list(Path({folder!r}, "begun").iterdir())) > {saved} + 1
        enough = lambda: late or len(list(Path({cells!r}).glob("*.json"))) >= {saved}
        while enough() and not Path({folder!r}, "released").exists():
            Path({folder!r}, "held", str(os.getpid())).touch()
            time.sleep(0.02)"""


class Small:
    """A folder with a declared study of 2 orders x 2 workloads, and its results."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.folder = house.folder
        self.results = house.folder / "results"
        self.out = self.results / "tiny"
        (self.folder / "w").mkdir()
        for name, nap in (("a", 10), ("b", 20)):
            jobs = {"nb_res": 4, "jobs": TWO, "profiles": {"nap": {"type": "delay", "delay": nap}}}
            house.write(f"w/{name}.json", json.dumps(jobs))
        house.write("p.xml", SMALL.read_text())
        self.study: dict[str, Any] = {
            "platforms": ["p.xml"],
            "workloads": ["w/*.json"],
            "envelopes": ["envelope.csv"],
            "options": {"response": "none"},
            "grid": {"order": ["fcfs", "asc"]},
        }

    def declare(self, name: str = "tiny.yaml", **changes: Any) -> Path:
        """Write the study; `changes` of its study, None removes."""
        study = {key: value for key, value in (self.study | changes).items() if value is not None}
        return self.declare_all({"only": study}, name)

    def declare_all(self, studies: dict[str, Any], name: str = "tiny.yaml", **more: Any) -> Path:
        """Write a study of several studies."""
        return self.house.write(name, yaml.safe_dump({"name": "tiny", "comparisons": studies, **more}, sort_keys=False))

    def slow(self, wait: str = "", then: str = "", name: str = "slow.py") -> str:
        """Write a scheduler that waits, then does something; returns its name."""
        self.house.write(name, SLOW.format(wait=wait, then=then))
        return name

    def held(self, saved: int) -> str:
        """Write a scheduler whose runs wait from `saved` saved cells on, until `release`; returns its name."""
        for name in ("begun", "held"):
            (self.folder / name).mkdir()
        return self.slow(HELD.format(folder=str(self.folder), cells=str(self.out / "cells"), saved=saved))

    def all_held(self) -> bool:
        """Whether two processes wait in a run, and all other runs that have begun are saved."""
        begun, held = (len(list((self.folder / name).iterdir())) for name in ("begun", "held"))
        return held == 2 and begun - len(self.cells()) == 2

    def release(self) -> None:
        """Let runs of a held scheduler, whose file and so whose keys stay the same, go on."""
        (self.folder / "released").touch()

    def batwatt(self, part: str, *args: object) -> Done:
        """`batwatt study` of the folder of results, in this process, to `resume` it or with `--status`, `--clean`."""
        return self.house.batwatt("study", self.out, *([] if part == "resume" else [f"--{part}"]), *args)

    def run(self, *args: object, yaml: Path | None = None) -> Done:
        """Run the study in one process, but with `--dask` among the words."""
        processes = () if {"--dask", "-j"} & set(args) else ("-j", 1)
        words = (yaml or self.folder / "tiny.yaml", *processes, *args, "--results", self.results)
        return self.house.batwatt("study", *words)

    def rows(self) -> list[dict[str, Any]]:
        return pq.read_table(self.out / "table.parquet").to_pylist()

    def bytes(self, name: str = "tiny") -> bytes:
        return (self.results / name / "table.parquet").read_bytes()

    def cells(self) -> list[Path]:
        return sorted((self.out / "cells").glob("*.json"))

    def log(self) -> str:
        return (self.out / "study.log").read_text()

    def state(self, study: str = "only") -> list[int]:
        """The numbers of done, failed and missing runs that `status` tells."""
        lines = self.batwatt("status").out.splitlines()
        return [int(word) for word in next(line for line in lines if line.startswith(study)).split()[1:]]

    def done_in_log(self) -> int:
        """How many runs were carried out over all commands."""
        return self.log().count("Z done ")

    def undisturbed(self, yaml: Path | None = None) -> bytes:
        """The table of the same study under another name."""
        assert self.run("-n", "calm", yaml=yaml).code in (0, 1)
        return self.bytes("calm")


@pytest.fixture
def small(house: House) -> Small:
    return Small(house)
