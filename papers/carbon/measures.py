"""The quantities of statements.csv of the carbon thesis, by the samples that decide them.

`plans`: mean carbon of the plans of chapter 6 by pattern and length of the job; a key is a column of summary.csv.
`windows`: the example of section 5.3.3 by 300 h of the signal; a key is a column of examples.csv. `cases`: quotients of
CPU times by the size of the problem. `jobs`: slots of the jobs of chapter 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from papers.carbon.study import Case, cases_of
from papers.statements import Samples, Statistic, Verdicts, statements_of, verdicts_by_kind

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
HOUR = 3600
SHORTEST_S = 1
"""Greatest common divisor in s of an hour and the phases of Listing 5.6 in whole seconds (23, 8, 2, 3)."""


def columns(frame: pd.DataFrame) -> Samples:
    """Return the values of each column."""
    return Samples({(name,): frame[name].to_numpy(float) for name in frame})


def divisor_s(case: Case) -> int:
    """Return the greatest common divisor of an hour and all phases of a job in s."""
    return math.gcd(HOUR, *(round(phase.duration_s) for phase in (*case.model.startup, *case.model.work)))


def samples_of(folder: Path = DATA) -> dict[str, Samples]:
    """Return the samples of the files of a folder, and of the jobs of study.yaml."""
    times = pd.read_csv(folder / "solver.csv").pivot(index=["slots", "work"], columns="planner", values="times")
    ended = times[times.index.get_level_values("slots") < 250]
    milp = ended["milp"]
    declared = yaml.safe_load((HERE / "study.yaml").read_text(encoding="utf-8"))
    # each job once, whatever it may wait
    jobs = {(case.pattern, case.length_h, case.startup_s): case for case in cases_of(declared)
            if case.study == "chapter6"}  # fmt: skip
    summary = pd.read_csv(folder / "summary.csv")
    plans = summary[summary["study"] == "chapter6"].groupby(["pattern", "length_h"]).mean(numeric_only=True)
    return {
        "plans": columns(plans),
        "windows": columns(pd.read_csv(folder / "examples.csv")),
        "cases": Samples({("over one piece",): (milp / ended["one piece"]).to_numpy()}),
        "jobs": Samples({("gcd",): np.array([float(divisor_s(case)) for case in jobs.values()])}),
    }


def of(key: str, over: str = "") -> Statistic:
    """Return the mean of a key, or that over the mean of another."""
    return lambda m: m(key) / (m(over) if over else 1.0)


MEASURES: Mapping[str, Mapping[int, Statistic]] = {
    "plans": {
        1: of("immediate_g", "optimum_g"),
        11: of("suspend_g", "optimum_g"),
        113: of("startup_aware_g", "optimum_g"),
        119: of("suspend_g", "optimum_g"),
    },
    "windows": {
        37: of("equal_percent"),
        38: of("resumed_g"),
        72: of("best_start_percent"),
        73: of("other_g"),
        74: of("lowest_blocks"),
        75: of("more_days"),
        76: of("shortest_percent"),
        77: of("lowest_blocks"),
        84: of("lowest_percent"),
        85: of("equal_percent"),
        89: lambda m: m("free_blocks") - m("started_blocks"),
        90: of("other_block"),
        96: lambda m: m("phased_blocks") - m("started_blocks"),
        97: lambda m: (m("free_blocks") + 2.0 * m("started_blocks")) / 3.0,
        98: of("low_less_high"),
        99: of("low_less_all"),
    },
    "cases": {114: of("over one piece")},
    "jobs": {
        109: of("gcd"),
        110: lambda m: float(m.of("gcd").max() / SHORTEST_S),
        111: lambda m: 100.0 * float((1.0 - 1.0 / m.of("gcd")).mean()) - 100.0 * (1.0 - 1.0 / SHORTEST_S),
    },
}
"""Samples -> place in statements.csv -> its quantity.

3 to 46 but for 11, 37 and 38 are measurements of the author's machine, 47 to 63 and 115 to 118 are about Slurm and the
licence of a solver, 101 to 105 about its hardware, and 108 compares slots that no solver of ours ends; the others have
no quantity, or describe the model.
"""
SINGLE = {110}
"""Places of extremes over samples."""


def judged(folder: Path = DATA) -> Verdicts:
    """Return the statements of the thesis, and what is measured of them."""
    return verdicts_by_kind(statements_of(HERE), MEASURES, samples_of(folder), SINGLE)
