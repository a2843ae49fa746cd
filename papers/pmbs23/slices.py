"""A slice of a job trace, pruned to the capacity of some machines (section 5.2 of the riskaware paper).

    python -m papers.pmbs23.slices TRACE BEGIN_S END_S [--machines N] [--cores N] [--seed N]

prints the jobs as lines of id, release, length (s) and cores. The paper's page takes the authors' own slices.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from batwatt.checks import rng_of
from batwatt.errors import InputError
from batwatt.inputs.traces.convert import read_trace
from batwatt.inputs.traces.riskaware_text import to_riskaware
from batwatt.inputs.traces.trace import TraceJob
from batwatt.units import DAY_S


def slice_of(
    jobs: Iterable[TraceJob],
    begin_s: float,
    end_s: float,
    *,
    core_s: float = math.inf,
    shorter_s: float = DAY_S,
    seed: int = 0,
    source: object = "<memory>",
) -> list[TraceJob]:
    """Return the jobs shorter than `shorter_s` with begin - length < release <= end, in order, pruned to `core_s`.

    The sum of length x cores of the remaining jobs is at most `core_s` core seconds: the paper has 26 machines of 24
    cores busy all the time from begin to end. The paper does not state the removed jobs; here they are drawn at random
    with equal probability until the rest fits. Raises InputError, which names `source`.
    """
    if not 0.0 <= begin_s < end_s < math.inf:
        problem = f"a slice must satisfy 0 <= begin < end, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "correct the two times")
    rng = rng_of(seed, source)
    selected = [job for job in jobs if begin_s - job.run_s < job.submit_s <= end_s and job.run_s < shorter_s]
    area = np.array([job.run_s * job.cpus for job in selected])
    order = rng.permutation(len(selected))
    excess = float(area.sum()) - core_s
    gone = int(np.searchsorted(np.cumsum(area[order]), excess)) + 1 if excess > 0.0 else 0
    if gone >= len(selected):
        problem = f"no job of the slice [{begin_s:g}, {end_s:g}] s is left, of {len(selected)}"
        raise InputError(source, problem, "move the slice, allow longer jobs or more machines")
    return [selected[row] for row in sorted(order[gone:].tolist())]


def main() -> None:
    """Print the slice of a trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("begin_s", type=float)
    parser.add_argument("end_s", type=float)
    parser.add_argument("--machines", type=float, default=math.inf, help="prune to the work of this many machines")
    parser.add_argument("--cores", type=int, default=24, help="cores of a machine")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    core_s = arguments.machines * arguments.cores * (arguments.end_s - arguments.begin_s)
    jobs = read_trace(arguments.trace, window=True)
    kept = slice_of(
        jobs, arguments.begin_s, arguments.end_s, core_s=core_s, seed=arguments.seed, source=arguments.trace
    )
    print(to_riskaware(kept), end="")


if __name__ == "__main__":
    main()
