"""Generate the traces that the generators of studies cannot generate, in data/.

    python -m papers.checkpoint.jobs [FOLDER]

Lengths are those of Mira' (docs/explanation/varcap.md), scaled to the mean in the name. Releases are spread over two
days at a load of 1.3 of the mean capacity, 0.7 of the machines: jobs always wait, and goodput is the work that is not
lost.

    jobs-single-2h.csv        one processor each, for 32 machines
    reference-single-2h.csv   work of these jobs by length: the reference of riskaware's categories
    jobs-costs.csv            1 to 8 processors, checkpoints of 30 s to 15 min, recoveries of half of that; 24 machines
    jobs-endless.csv          ten jobs without an end of 2 to 16 processors, 75 in all; for 32 machines
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.checks import rng_of
from batwatt.files import whole_file
from papers.generators.varcap import MEAN_CAPACITY, VarcapLike, varcap_table

FOLDER = Path(__file__).resolve().parent / "data"
HORIZON_S = 172_800.0
LOAD = 1.3
MEAN_H = 1.8
"""Mean length of Mira'."""
SINGLE_H = {"05h": 0.5, "2h": 2.0, "8h": 8.0}
WIDTHS, SHARES = (1, 2, 4, 8), (0.4, 0.3, 0.2, 0.1)
ENDLESS_S = 1e9
ENDLESS = (16, 13, 11, 9, 7, 6, 5, 3, 3, 2)


def single(mean_h: float, machines: int = 32) -> pd.DataFrame:
    """Return jobs of one processor with a mean length in h."""
    return _released(mean_h, machines, 1.0).assign(cpus=1)


def costs(machines: int = 24) -> pd.DataFrame:
    """Return jobs of 1 to 8 processors with checkpoints of their own."""
    table = _released(2.0, machines, float(np.dot(WIDTHS, SHARES)))
    rng = rng_of(8, "costs")
    checkpoints_s = np.rint(30.0 * 30.0 ** rng.random(len(table)))
    widths = rng.choice(WIDTHS, len(table), p=SHARES)
    return table.assign(cpus=widths, checkpoint_s=checkpoints_s, recovery_s=checkpoints_s / 2.0)


def endless() -> pd.DataFrame:
    """Return jobs without an end, all submitted at the begin."""
    return pd.DataFrame({"arrival_time": 0, "length": ENDLESS_S, "cpus": ENDLESS})


def _released(mean_h: float, machines: int, mean_width: float) -> pd.DataFrame:
    """Return releases and lengths in whole s."""
    count = round(LOAD * MEAN_CAPACITY * machines * HORIZON_S / (3600.0 * mean_h * mean_width))
    drawn = varcap_table(VarcapLike(like="mira", jobs=count, machines=96), 1)
    release_s = drawn["arrival_time"] * (HORIZON_S / drawn["arrival_time"].max())
    length_s = (drawn["length"] * (mean_h / MEAN_H)).round().clip(lower=1.0)
    return pd.DataFrame({"arrival_time": release_s.round().astype(int), "length": length_s.astype(int)})


def traces() -> Mapping[str, pd.DataFrame]:
    """Return all traces, and riskaware's references for those of one processor, by file name."""
    tables = {"jobs-costs": costs(), "jobs-endless": endless()}
    for name, mean_h in SINGLE_H.items():
        jobs = tables[f"jobs-single-{name}"] = single(mean_h)
        areas = jobs["length"].groupby(jobs["length"]).sum()
        tables[f"reference-single-{name}"] = areas.rename_axis("length_s").rename("area_core_s").reset_index()
    return tables


def main(words: list[str]) -> int:
    """Write the traces."""
    folder = Path(words[0]) if words else FOLDER
    for name, table in traces().items():
        with whole_file(folder / f"{name}.csv") as out:
            out.write(table.to_csv(index=False, lineterminator="\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
