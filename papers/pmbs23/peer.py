"""Compare batwatt's five strategies with the published program of the riskaware paper's authors, on equal inputs.

    python -m papers.pmbs23.peer --traces 7D_864000.txt ... --walks walk-24-8-1200-0.txt ... [--program P --tied P]

runs batwatt, writes its figures to data/peer.csv and prints the number of cases with equal figures. Figures have 6
digits, as printed by the program. `--program` also runs the program (compiled from
github.com/lucasperotin/variableResources), `--tied` the program with the three changes of the page. Batwatt and the
changed program read the lines of a trace by release, numbered: jobs released at one time are in the order of lines.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from itertools import product
from pathlib import Path

import pandas as pd

import batwatt as bw
from batwatt.inputs.formats import read_reference
from batwatt.schedulers.riskaware.scheduler import BORG_WEEK
from papers.pages import markdown, number, write

PEER = Path(__file__).parent / "data" / "peer.csv"
ARGUMENTS = {
    "packed-target-asap": "algo 1 {quantiles} BP1 7 80 95",
    "target-asap": "algo 1 {quantiles} BS1 7 80 95",
    "target-stretch": "algo 1 {quantiles} BSS 7 80 95",
    "first-fit-aware": "FF 1 0",
    "first-fit-unaware": "FF 1 1",
}
"""Strategy -> the program's arguments."""
RANDOM = "first-fit-unaware"
"""Strategy with a seed from the clock in the program."""
SLOTS, CORES, LENGTH_S = 152, 24, 604_800
CASE = ["trace", "walk", "strategy"]
FIGURES = ["capacity_core_s", "useful_core_s", "aborted_core_s", "max_full_speed_slowdown", "mean_full_speed_slowdown"]
PROGRAM, TIED, OURS = "program", "program-tied", "ours"
"""Sources of the figures of a row."""


def begin_of(trace: Path) -> float:
    """Return the begin of the window in s, from the name of a trace: 7D_864000."""
    return float(trace.stem.rpartition("_")[2])


def by_line(trace: Path, folder: Path) -> Path:
    """Write the trace in the order of release, jobs numbered."""
    rows = sorted((line.split() for line in trace.read_text().splitlines()), key=lambda row: float(row[1]))
    path = folder / trace.name
    path.write_text("".join(f"{line:06d} {' '.join(row[1:])}\n" for line, row in enumerate(rows)))
    return path


def theirs(program: Path, strategy: str, trace: Path, walk: Path, folder: Path) -> list[float]:
    """Run the program and return its printed figures."""
    quantiles, out = folder / "quantiles.txt", folder / "out.txt"
    if not quantiles.exists():
        lengths = read_reference(BORG_WEEK).quantiles_s(1000)
        quantiles.write_text("".join(f"{length:.0f}\n" for length in lengths))
    out.unlink(missing_ok=True)
    always = min(int(float(line.split()[-1])) for line in walk.read_text().splitlines() if line.strip())
    how = ARGUMENTS[strategy].format(quantiles=quantiles)
    line = f"{trace.resolve()} {SLOTS} {always} {CORES} {walk.resolve()} {begin_of(trace):.0f} {LENGTH_S} {how} {out}\n"
    (folder / "args.txt").write_text(line)
    subprocess.run([program.resolve(), "args.txt"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    capacity, _, *rest = (float(word) for word in out.read_text().split()[3:9])
    return [capacity, *rest]


def ours(strategy: str, trace: Path, walk: Path) -> list[float]:
    """Run batwatt and return the figures of the program."""
    begin_s = begin_of(trace)
    result = bw.simulate(
        bw.Platform.machines(SLOTS, CORES), trace, "riskaware",
        options={"strategy": strategy, "as_published": True}, capacity=walk,
        window=(begin_s, begin_s + LENGTH_S), begin=0, energy=False,
    )  # fmt: skip
    return [float(result.metrics[name] or 0.0) for name in FIGURES]


def equal(figures: pd.DataFrame, of: str) -> pd.DataFrame:
    """Return, by case, True if all figures are equal to batwatt's, and the difference of the goodputs in points."""
    rows = figures.set_index([*CASE, "of"])
    one, mine = (rows.xs(name, level="of")[FIGURES] for name in (of, OURS))
    one, mine = one.align(mine, join="inner", axis=0)
    goodputs = [
        100.0 * part["useful_core_s"].astype(float) / part["capacity_core_s"].astype(float) for part in (one, mine)
    ]
    return pd.DataFrame({"same": (one == mine).all(axis=1), "gap": (goodputs[0] - goodputs[1]).abs()})


def table(names: dict[str, str]) -> str:
    """Return the number of equal cases of each strategy, and the distance of the unchanged program from batwatt."""
    figures = pd.read_csv(PEER, dtype=str)
    changed, plain = (equal(figures, of).groupby(level="strategy") for of in (TIED, PROGRAM))
    same = changed["same"].agg(["sum", "size"])
    rows = []
    for strategy, name in names.items():
        words = "{} of {}".format(*same.loc[strategy]) if strategy in same.index else "random in both"
        gaps = plain["gap"].agg(["mean", "max"]).loc[strategy]
        rows.append([name, words, *(number(gap, 2) for gap in gaps)])
    means = "unchanged: mean gap of goodput (points)"
    return markdown(["strategy", "equal in every digit, with the changes", means, "largest"], rows, texts=2)


def main() -> None:
    """Run the cases, write their figures and print a report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, nargs="+", required=True, help="job traces named 7D_BEGIN.txt")
    parser.add_argument("--walks", type=Path, nargs="+", required=True, help="capacity files")
    parser.add_argument("--program", type=Path, help="the authors' program")
    parser.add_argument("--tied", type=Path, help="the same with the three changes")
    words = parser.parse_args()
    programs = {of: path for of, path in ((PROGRAM, words.program), (TIED, words.tied)) if path is not None}
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for trace, walk, strategy in product(words.traces, words.walks, ARGUMENTS):
            numbered = by_line(trace, folder)
            figures = {OURS: ours(strategy, numbered, walk)}
            for of, program in programs.items():
                figures[of] = theirs(program, strategy, numbered if of == TIED else trace, walk, folder)
            for of, values in figures.items():
                rows.append([trace.stem, walk.stem, strategy, of, *(f"{value:.6g}" for value in values)])
            print(trace.stem, walk.stem, strategy, flush=True)
    both = pd.concat([pd.read_csv(PEER, dtype=str), pd.DataFrame(rows, columns=[*CASE, "of", *FIGURES])])
    both = both.drop_duplicates([*CASE, "of"], keep="last").sort_values([*CASE, "of"], kind="stable")
    write(PEER, both)
    print(f"{int(equal(both[both['strategy'] != RANDOM], TIED)['same'].sum())} cases equal")


if __name__ == "__main__":
    main()
