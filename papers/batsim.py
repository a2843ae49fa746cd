"""Run cells of the papers' main tables on a real Batsim as well: data/batsim.csv of their folders.

    python -m papers.generators papers/pmbs23/inputs.yaml study     (also of varcap and checkpoint)
    python -m papers.batsim igsc22 pmbs23 varcap checkpoint

needs Batsim 4.2.1 as `batsim` on PATH, takes 15 minutes on two cores, and is not part of `make`. A cell of batsim.yaml
is a run of the study.yaml of the folder. It runs on the embedded engine and on Batsim with the same scheduler; a row of
batsim.csv has the figures of both: `embedded_violations`, `batsim_violations`. Runs without energy accounting in the
study have none on Batsim. The carbon thesis has no cells, as its results are plans of single jobs, in which no engine
takes part.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pandas as pd
import yaml

from batwatt.batsim.wire import batsim_version
from batwatt.run.run import run
from batwatt.studies.grid import Cell
from batwatt.studies.study import study_in
from papers.pages import markdown, number

HERE = Path(__file__).parent
ENGINES: tuple[Literal["embedded", "batsim"], ...] = ("embedded", "batsim")
WHERE = ["label", "workload", "series", "batsim"]


PARTS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "batsim.yaml").read_text(encoding="utf-8"))
"""Folder -> its cells, and the figures of its table."""


def series_of(cell: Cell) -> str:
    """Return the name of the envelope or of the capacity of a cell; empty without one."""
    choice = cell.envelope or cell.capacity
    return choice.name if choice else ""


def cells_of(part: Mapping[str, Any], cells: list[Cell]) -> list[Cell]:
    """Return the declared cells of a study, in the order of the cases."""
    named = [
        cell
        for cell in cells
        if cell.comparison == part["comparison"]
        and fnmatch(cell.workload.name, part["workloads"])
        and fnmatch(series_of(cell), part["series"])
    ]
    return [cell for case in part["cases"] for cell in named if cell.case == case] if "cases" in part else named


def rows(folder: str, version: str, scratch: Path) -> Iterator[dict[str, object]]:
    """Run the cells of a folder on both engines; yield a row of figures for each."""
    part = PARTS[folder]
    study = study_in(HERE / folder / "study.yaml", scratch)
    study.need([part["comparison"]])
    for cell in cells_of(part, study.cells):
        row: dict[str, object] = dict(
            zip(WHERE, (cell.case, cell.workload.name, series_of(cell), version), strict=True)
        )
        for engine in ENGINES:
            began = time.monotonic()
            result = run(replace(cell.spec, engine=engine, prefix=scratch / engine / "run"), durable=False)
            row |= {f"{engine}_{name}": result.values[name] for name in part["figures"]}
            print(f"{folder}: {cell.case}, {cell.workload.name}, {engine} {time.monotonic() - began:.1f} s", flush=True)
        yield row


def table(folder: Path, names: Mapping[str, str] | None = None) -> str:
    """Return the means of data/batsim.csv of a paper's folder by algorithm, the embedded engine / Batsim.

    `names` are names of algorithms on the page.
    """
    figures = PARTS[folder.name]["figures"]
    frame = pd.read_csv(folder / "data" / "batsim.csv")
    [version] = frame["batsim"].unique()
    lines = []
    for label, part in frame.groupby("label", sort=False):
        means = part.drop(columns=WHERE).mean()
        cells = []
        for name, (heading, places) in figures.items():
            scale = 100.0 if "%" in heading else 1.0
            cells.append(" / ".join(number(scale * means[f"{engine}_{name}"], places) for engine in ENGINES))
        lines.append([(names or {}).get(str(label), str(label)), *cells])
    return markdown([f"embedded / Batsim {version}", *(heading for heading, _ in figures.values())], lines)


def main() -> None:
    """Run the cells of the folders that the command line names, and write their files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", choices=list(PARTS))
    folders = parser.parse_args().folders
    version, _ = batsim_version(shutil.which("batsim") or parser.error("no batsim on PATH"))
    for folder in folders:
        with TemporaryDirectory() as scratch:
            frame = pd.DataFrame(rows(folder, version, Path(scratch)))
        frame.to_csv(HERE / folder / "data" / "batsim.csv", index=False, float_format="%.6f", lineterminator="\n")


if __name__ == "__main__":
    main()
