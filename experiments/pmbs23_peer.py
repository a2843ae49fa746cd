"""Our five strategies and the program that the riskaware paper's authors published, on the same traces and walks.

    python experiments/pmbs23_peer.py --traces 7D_864000.txt ... --walks walk-24-8-1200-0.txt ...

runs ours, takes their figures from docs/results/pmbs23/peer.csv, keeps both there and the table of goodputs in
docs/results/pmbs23/peer.md, and says in how many cases all figures are equal. Figures have 6 digits, as many as their
program prints. `--program PROGRAM` runs that program anew (compiled from github.com/lucasperotin/variableResources),
and `--tied PROGRAM` the same with the three changes of docs/results/pmbs23.md; `--shuffles N` prints how far PROGRAM's
goodputs spread when the lines of the first trace are shuffled, which changes nothing but the order of jobs released at
one time.

Ours and the changed program get the lines of a trace by release, numbered: jobs released at one time come by line.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from batwatt.files import whole_file
from batwatt.inputs.platforms.machines import MachineSpec
from batwatt.inputs.series.capacity import read_capacity
from batwatt.model.window import Window
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.systems.riskaware.reference import BORG_WEEK, read_reference

STRATEGIES = {
    "packed-target-asap": "algo 1 {quantiles} BP1 7 80 95",
    "target-asap": "algo 1 {quantiles} BS1 7 80 95",
    "target-stretch": "algo 1 {quantiles} BSS 7 80 95",
    "first-fit-aware": "FF 1 0",
    "first-fit-unaware": "FF 1 1",
}
"""Name -> the program's arguments."""
NAMES = ("PackedTargetASAP", "TargetASAP", "TargetStretch", "FirstFitAware", "FirstFitUnaware")
RANDOM = "first-fit-unaware"
"""The program seeds it by the clock."""
SLOTS, CORES, LENGTH_S = 152, 24, 604_800
DOCS = Path(__file__).resolve().parents[1] / "docs" / "results" / "pmbs23"
RECORDED = DOCS / "peer.csv"
CASE = ["trace", "walk", "strategy"]
FIGURES = ("capacity_core_s", "useful_core_s", "aborted_core_s", "max_full_speed_slowdown", "mean_full_speed_slowdown")
PROGRAM, TIED, OURS = "program", "program-tied", "ours"
"""Whose figures a row has."""


def window_of(trace: Path) -> Window:
    """The window that the name of a trace says: 7D_864000 begins at 864000 s."""
    begin_s = float(trace.stem.rpartition("_")[2])
    return Window(begin_s, begin_s + LENGTH_S)


def by_line(trace: Path, folder: Path) -> Path:
    """The trace in the order of release, jobs numbered."""
    rows = sorted((line.split() for line in trace.read_text().splitlines()), key=lambda row: float(row[1]))
    path = folder / trace.name
    path.write_text("".join(f"{line:06d} {' '.join(row[1:])}\n" for line, row in enumerate(rows)))
    return path


def peer(program: Path, strategy: str, trace: Path, walk: Path, folder: Path) -> dict[str, float]:
    """What the program says of one run."""
    quantiles, out = folder / "quantiles.txt", folder / "out.txt"
    if not quantiles.exists():
        lengths = read_reference(BORG_WEEK).quantiles_s(1000)
        quantiles.write_text("".join(f"{length:.0f}\n" for length in lengths))
    out.unlink(missing_ok=True)
    always = int(min(read_capacity(walk, SLOTS).values))
    how = STRATEGIES[strategy].format(quantiles=quantiles)
    begin_s = window_of(trace).begin_s
    line = f"{trace.resolve()} {SLOTS} {always} {CORES} {walk.resolve()} {begin_s:.0f} {LENGTH_S} {how} {out}\n"
    (folder / "args.txt").write_text(line)
    subprocess.run([program.resolve(), "args.txt"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    capacity, _, *rest = (float(word) for word in out.read_text().split()[3:9])
    return dict(zip(FIGURES, (capacity, *rest), strict=True))


def ours(strategy: str, trace: Path, walk: Path, folder: Path) -> dict[str, float]:
    """What we say of it."""
    options = {"strategy": strategy}
    spec = RunSpec(
        MachineSpec(SLOTS, CORES), trace, "riskaware", options, folder / "x", capacity=walk, window=window_of(trace)
    )
    found = run(spec).metrics.as_dict()
    return {name: float(found[name] or 0.0) for name in FIGURES}


def measured(
    programs: dict[str, Path], traces: Sequence[Path], walks: Sequence[Path], known: pd.DataFrame, folder: Path
) -> pd.DataFrame:
    """The figures of each case: ours and those of `programs` anew, the others as `known`."""
    rows = []
    for trace in traces:
        tied = by_line(trace, folder)
        for walk in walks:
            for strategy in STRATEGIES:
                found = {OURS: ours(strategy, tied, walk, folder)}
                for of, program in programs.items():
                    found[of] = peer(program, strategy, tied if of == TIED else trace, walk, folder)
                case = (trace.stem, walk.stem, strategy)
                texts = {of: {name: f"{value:.6g}" for name, value in row.items()} for of, row in found.items()}
                rows += [dict(zip(CASE, case, strict=True)) | {"of": of} | row for of, row in texts.items()]
                print(*case, texts[OURS]["useful_core_s"], flush=True)
    new = pd.DataFrame(rows, dtype=str)
    both = pd.concat([known, new]).drop_duplicates([*CASE, "of"], keep="last")
    return both.sort_values([*CASE, "of"], kind="stable", ignore_index=True)


def table(figures: pd.DataFrame) -> str:
    """Goodput of their program, of it with the changes, and ours: a row for each trace and walk."""
    goodput = figures["useful_core_s"].astype(float) / figures["capacity_core_s"].astype(float)
    cells = figures.assign(goodput=goodput).pivot_table("goodput", ["trace", "walk"], ["strategy", "of"])
    lines = ["| trace | walk | " + " | ".join(NAMES) + " |", "| :-- | :-- |" + " --: |" * len(NAMES)]
    order = sorted(cells.index, key=lambda case: (float(case[0].rpartition("_")[2]), case[1]))
    for trace, walk in order:
        row = []
        for strategy in STRATEGIES:
            sources = (PROGRAM, OURS) if strategy == RANDOM else (PROGRAM, TIED, OURS)
            found = [cells.loc[(trace, walk)].get((strategy, of)) for of in sources]
            row.append(" / ".join("–" if value is None or pd.isna(value) else f"{value:.4f}" for value in found))
        lines.append(f"| {trace} | {walk.rpartition('-')[2]} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def remarks(figures: pd.DataFrame) -> str:
    """In how many cases of the strategies that are deterministic all figures are equal, and the largest gaps."""
    lines = []
    index = figures[figures["strategy"] != RANDOM].set_index([*CASE, "of"])
    for of in (TIED, PROGRAM):
        theirs, mine = (index.xs(one, level="of")[list(FIGURES)] for one in (of, OURS))
        theirs, mine = theirs.align(mine, join="inner", axis=0)
        goodputs = [
            rows["useful_core_s"].astype(float) / rows["capacity_core_s"].astype(float) for rows in (theirs, mine)
        ]
        gap = (goodputs[1] / goodputs[0] - 1.0).abs()
        same = int((theirs == mine).all(axis=1).sum())
        lines.append(f"{of}: {same} of {len(mine)} cases equal in every figure; largest gap of goodput {gap.max():.2%}")
    return "\n".join(lines)


def spread(program: Path, trace: Path, walks: Sequence[Path], shuffles: int, folder: Path) -> None:
    """Print how far the program's goodputs spread when the lines of the trace are shuffled."""

    def goodput(strategy: str, trace: Path, walk: Path) -> float:
        found = peer(program, strategy, trace, walk, folder)
        return found["useful_core_s"] / found["capacity_core_s"]

    lines = trace.read_text().splitlines()
    print(f"goodput of the authors' program over {shuffles} shuffles of the trace's lines: as it is, least, greatest")
    (folder / "mixed").mkdir()
    for strategy in STRATEGIES:
        if strategy == RANDOM:
            continue
        for walk in walks:
            found = []
            for seed in range(shuffles):
                mixed = list(lines)
                random.Random(seed).shuffle(mixed)
                other = folder / "mixed" / trace.name
                other.write_text("\n".join(mixed) + "\n")
                found.append(goodput(strategy, other, walk))
            plain = goodput(strategy, trace, walk)
            print(f"{strategy:>20} {walk.stem:>20} {plain:.4f} {min(found):.4f} {max(found):.4f}", flush=True)


def main() -> int:
    """Run, keep and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, nargs="*", default=[], help="job traces named 7D_BEGIN.txt")
    parser.add_argument("--walks", type=Path, nargs="*", default=[], help="capacity files")
    parser.add_argument("--program", type=Path, help="the authors' program")
    parser.add_argument("--tied", type=Path, help="the same with the three changes")
    parser.add_argument("--shuffles", type=int, default=0, help="how often to shuffle the first trace")
    given = parser.parse_args()
    programs = {of: path for of, path in ((PROGRAM, given.program), (TIED, given.tied)) if path is not None}
    figures = pd.read_csv(RECORDED, dtype=str)
    with tempfile.TemporaryDirectory() as name:
        if given.traces:
            figures = measured(programs, given.traces, given.walks, figures, Path(name))
            with whole_file(RECORDED) as out:
                out.write(figures.to_csv(index=False, lineterminator="\n"))
        if given.shuffles:
            spread(given.program, given.traces[0], given.walks, given.shuffles, Path(name))
    with whole_file(DOCS / "peer.md") as out:
        out.write(f"# Goodput: their program / with ties by line / ours\n\n{table(figures)}\n")
    print(remarks(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
