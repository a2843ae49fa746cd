"""Measure the cost and the effect of a limit of age under `adaptive`: the table of docs/explanation/adaptive.md.

    python -m papers.cross.age FOLDER [-j 2]

FOLDER has the files of data/sources.csv. Means over the samples of the part `tune` under sun at half of all power.
"""

from __future__ import annotations

import argparse
import logging
from itertools import product
from pathlib import Path

import pandas as pd
import yaml

import batwatt as bw
from batwatt.units import HOUR_S
from papers.cross.run import STUDY, envelope_of, jobs_of

LIMITS_H = (None, 168.0, 96.0, 48.0, 24.0)
SYSTEMS = {"stops no job": {}, "stops jobs": {"checkpoint_s": 60}}
LOGS = ("hpc2n", "nasa")
SAMPLES = 3


def rows_of(name: str, sample: int, data: Path, workers: int) -> pd.DataFrame:
    """Return waits in h and the mean bounded slowdown of one sample of a log, by system and limit."""
    study = yaml.safe_load(STUDY.read_text())
    log, signal = study["parts"]["tune"]["logs"][name], study["parts"]["tune"]["signals"]["solar"]
    platform = bw.Platform.machines(log["machines"], log["cores"], watts=study["host_w"] * log["cores"])
    full_w = float(len(platform) * study["host_w"])
    cases = {
        f"{system}/{limit}": bw.Case("adaptive", {**options, "age_limit_s": limit and limit * HOUR_S})
        for (system, options), limit in product(SYSTEMS.items(), LIMITS_H)
    }
    envelope = envelope_of(signal, sample, 0.5, full_w, data)
    result = bw.compare(platform, jobs_of(log, sample, data), envelope, cases, seeds=(1,), workers=workers)
    rows = result.table.set_index("case")
    table = pd.DataFrame({
        "longest wait": result.jobs.groupby("case")["wait_s"].max() / HOUR_S,
        "mean wait": rows["mean_wait_s"] / HOUR_S,
        "mean bounded slowdown": rows["mean_bounded_slowdown"],
    })  # fmt: skip
    return table.loc[list(cases)]


def main() -> None:
    """Print means over the samples of each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="FOLDER", help="folder with the files of data/sources.csv")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    arguments = parser.parse_args()
    logging.getLogger("batwatt").setLevel(logging.ERROR)
    print("| log | system | limit | longest wait | mean wait | mean bounded slowdown |\n" + "|---|---|--:|--:|--:|--:|")
    for log in LOGS:
        samples = [rows_of(log, sample, arguments.data, arguments.jobs) for sample in range(SAMPLES)]
        for label, row in (sum(samples) / SAMPLES).iterrows():
            system, _, limit = str(label).partition("/")
            limit_text = "none" if limit == "None" else f"{float(limit):g} h"
            longest, mean, slowdown = row
            print(f"| {log} | {system} | {limit_text} | {longest:.1f} h | {mean:.2f} h | {slowdown:.2f} |")


if __name__ == "__main__":
    main()
