"""Our five strategies beside the program that the riskaware paper's authors published, on the same trace and walks.

    python experiments/pmbs23_peer.py PROGRAM --trace 7D_864000.txt walk-0.txt walk-1.txt ...

PROGRAM is that program, compiled from its source (github.com/lucasperotin/variableResources). Prints the figures of
both and the relative gap of the goodputs, and then how far the program's own goodputs spread when the lines of the
trace are shuffled, which changes nothing but the order of jobs that are released at the same date.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from batwatt.campaign.run import RunSpec, run
from batwatt.inputs.capacity import read_capacity
from batwatt.inputs.machines import Machines
from batwatt.policy.reference import BORG_WEEK, read_reference
from batwatt.results.goodput import Window

STRATEGIES = {
    "packed-target-asap": "algo 1 {quantiles} BP1 7 80 95",
    "target-asap": "algo 1 {quantiles} BS1 7 80 95",
    "target-stretch": "algo 1 {quantiles} BSS 7 80 95",
    "first-fit-aware": "FF 1 0",
    "first-fit-unaware": "FF 1 1",
}
"""Name -> the program's arguments."""
RANDOM = "first-fit-unaware"
"""The program seeds it by the clock."""
SLOTS, CORES, BEGIN_S, LENGTH_S = 152, 24, 864_000, 604_800


def peer(program: Path, strategy: str, trace: Path, walk: Path, folder: Path) -> dict[str, float]:
    """What the program says of one run."""
    quantiles, out = folder / "quantiles.txt", folder / "out.txt"
    if not quantiles.exists():
        lengths = read_reference(BORG_WEEK).quantiles_s(1000)
        quantiles.write_text("".join(f"{length:.0f}\n" for length in lengths))
    out.unlink(missing_ok=True)
    always = int(min(read_capacity(walk, SLOTS).values))
    how = STRATEGIES[strategy].format(quantiles=quantiles)
    line = f"{trace.resolve()} {SLOTS} {always} {CORES} {walk.resolve()} {BEGIN_S} {LENGTH_S} {how} {out}\n"
    (folder / "args.txt").write_text(line)
    subprocess.run([program.resolve(), "args.txt"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    capacity, _, useful, aborted, longest, mean = (float(word) for word in out.read_text().split()[3:9])
    return {"goodput": useful / capacity, "aborted_core_s": aborted, "max_stretch": longest, "mean_stretch": mean}


def ours(strategy: str, trace: Path, walk: Path, folder: Path) -> dict[str, float | int | None]:
    """What we say of it."""
    window = Window(BEGIN_S, BEGIN_S + LENGTH_S)
    options = {"strategy": strategy}
    spec = RunSpec(Machines(SLOTS, CORES), trace, "riskaware", options, folder / "x", capacity=walk, window=window)
    return run(spec).metrics.as_dict()


def compared(program: Path, trace: Path, walks: Sequence[Path], folder: Path) -> None:
    """Print the table of both."""
    names = ("goodput", "max_stretch", "mean_stretch", "aborted_core_s")
    print(f"{'':>20} {'':>20} " + " ".join(f"{name:>26}" for name in names) + f" {'gap':>7}")
    for strategy in STRATEGIES:
        for walk in walks:
            theirs, found = peer(program, strategy, trace, walk, folder), ours(strategy, trace, walk, folder)
            cells = " ".join(f"{theirs[name]:>12.6g} {found[name]:>13.6g}" for name in names)
            gap = float(found["goodput"] or 0.0) / theirs["goodput"] - 1.0
            print(f"{strategy:>20} {walk.stem:>20} {cells} {gap:>+7.2%}", flush=True)


def spread(program: Path, trace: Path, walks: Sequence[Path], shuffles: int, folder: Path) -> None:
    """Print how far the program's goodputs spread when the lines of the trace are shuffled."""
    lines = trace.read_text().splitlines()
    print(f"goodput of the authors' program over {shuffles} shuffles of the trace's lines: as it is, least, greatest")
    for strategy in STRATEGIES:
        if strategy == RANDOM:
            continue
        for walk in walks:
            found = []
            for seed in range(shuffles):
                mixed = list(lines)
                random.Random(seed).shuffle(mixed)
                (folder / "mixed.txt").write_text("\n".join(mixed) + "\n")
                found.append(peer(program, strategy, folder / "mixed.txt", walk, folder)["goodput"])
            plain = peer(program, strategy, trace, walk, folder)["goodput"]
            print(f"{strategy:>20} {walk.stem:>20} {plain:.4f} {min(found):.4f} {max(found):.4f}", flush=True)


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="the authors' program")
    parser.add_argument("walks", type=Path, nargs="+", help="capacity files")
    parser.add_argument("--trace", type=Path, required=True, help="job trace that begins at 864000 s")
    parser.add_argument("--shuffles", type=int, default=5, help="how often to shuffle (0: not)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        compared(given.program, given.trace, given.walks, Path(name))
        if given.shuffles:
            spread(given.program, given.trace, given.walks, given.shuffles, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
