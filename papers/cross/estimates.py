"""Run the study of estimates.yaml: cases with run times, walltimes or predictions, on logs with requested times.

    python -m papers.cross.estimates FOLDER [--part tune] [--only kth] [-o out/estimates] [-j 2]

FOLDER has the files of data/sources.csv, whose digests are checked. A log x way x load writes a file of rows, one for
each case and sample; a file with the declared content is not run again. `papers.cross.tables` reads these files.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import batwatt as bw
from batwatt.units import DAY_S
from papers.cross.run import HERE, check_data, envelope_of, lengths_of, run_cases, run_once

STUDY = HERE / "estimates.yaml"
EXACT = "exact"
"""Way with exact run times."""
WITHOUT_RUN_TIMES = ("checkpoint",)
"""Cases without run times, with equal rows in each way: they run in `EXACT` only."""
Declared = Mapping[str, Any]


@cache
def whole_log(file: Path) -> tuple[bw.Workload, dict[str, float]]:
    """Return the jobs of a log, times from its first submission on, and the run time of each in s."""
    whole = bw.Workload.read(file)
    return whole, lengths_of(whole)


def jobs_of(log: Declared, signal: str, data: Path) -> bw.Workload:
    """Return the jobs of the sample of a log for a signal, with users and requested times."""
    begin_s, end_s = (DAY_S * day for day in log["days"][signal])
    whole, lengths = whole_log(data / log["file"])
    width = log["machines"] * log["cores"]
    rows = []
    for job in whole.jobs:
        if begin_s <= job.submit_time_s < end_s and job.raw.get("estimate_s", 0) > 0:
            hosts = min(-(-job.hosts // log.get("block", 1)), width)
            labels = {name: job.raw.get(name) for name in ("user", "queue", "estimate_s")}
            times = {"submission_time_s": job.submit_time_s - begin_s, "length_s": lengths[job.name]}
            rows.append({"id": job.name, "hosts": hosts, **times, **labels})
    return bw.Workload.from_frame(pd.DataFrame(rows).astype({"id": str}), source=str(log["file"]))


def cases_of(declared: Declared, way: str) -> dict[str, bw.Case]:
    """Return the cases of a way; cases that shift jobs twice, with exact and with declared forecasts."""
    cases = {}
    for label, (scheduler, options) in declared["cases"].items():
        if label in WITHOUT_RUN_TIMES and way != EXACT:
            continue
        options = options | {"run_times": declared["ways"][way]}
        cases[label] = bw.Case(scheduler, options)
        if "shift" in options:
            shift = options["shift"] | declared["forecasts"]
            cases[f"{label}, forecasts"] = bw.Case(scheduler, options | {"shift": shift})
    return cases


def run_sample(
    part: Declared, log: Declared, signal: str, share: float, way: str, declared: Declared, data: Path, workers: int
) -> pd.DataFrame:
    """Return the table of a sample."""
    number, host_w = list(part["signals"]).index(signal), declared["host_w"]
    full_w = float(log["machines"] * log["cores"] * host_w)
    table = run_cases(
        log,
        jobs_of(log, signal, data),
        envelope_of(part["signals"][signal], number, share, full_w, data),
        cases_of(declared, way),
        host_w,
        carbon=f"{data / part['emissions']},repeat=yes",
        workers=workers,
    )
    return table.assign(signal=signal)


def main(words: list[str] | None = None) -> None:
    """Run the tables without an up-to-date file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="FOLDER", help="folder with the files of data/sources.csv")
    parser.add_argument("--part", default="tune", choices=("tune", "held"))
    parser.add_argument("--only", nargs="*", default=[], help="logs")
    parser.add_argument("--study", type=Path, default=STUDY)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/estimates"))
    parser.add_argument("-j", "--jobs", type=int, default=2)
    arguments = parser.parse_args(words)
    logging.getLogger("batwatt").setLevel(logging.ERROR)
    declared = yaml.safe_load(arguments.study.read_text())
    check_data(arguments.data, declared["parts"][arguments.part])
    part = declared["parts"][arguments.part]
    for (name, log), way, share in product(part["logs"].items(), declared["ways"], declared["shares"]):
        if arguments.only and name not in arguments.only:
            continue
        about = {key: value for key, value in declared.items() if key not in ("parts", "ways", "shares")}
        about |= {"way": declared["ways"][way], "share": share, "part": {**part, "logs": {name: log}}}
        path = arguments.output / f"{arguments.part}-{name}-{way}-{share:g}.csv"
        run = partial(
            run_sample, part, log, share=share, way=way, declared=declared, data=arguments.data, workers=arguments.jobs
        )
        columns = {"part": arguments.part, "log": name, "way": way, "share": share}
        run_once(path, about, f"{name}, {way}, {share:g}", run, log["days"], **columns)


if __name__ == "__main__":
    main()
