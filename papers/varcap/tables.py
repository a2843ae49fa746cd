"""Make the numbers, the figures and the tables of the varcap dissertation's page.

    python -m papers.varcap.tables results/varcap results/varcap-prices
        write data/ from the results of study.yaml and prices.yaml, then the figures and the tables
    python -m papers.varcap.tables --check
        compare the tables with data/

`runs.csv.gz` has the figures of each run, `fairness.csv` the measures of terminations, `months.csv` and
`capacities.csv` are of capacities by carbon and price (`prices.py`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd

from papers import batsim, pages
from papers.pages import markdown, with_error
from papers.statements import (
    NO,
    Samples,
    Verdicts,
    counts_table,
    statements_of,
    statements_table,
    verdicts,
    verdicts_by_kind,
)
from papers.varcap import figures, prices
from papers.varcap.fairness import write_fairness
from papers.varcap.frames import ANY, FAILED, GOODPUT, RUNNING, WAIT, Case, common, read_runs, write_runs
from papers.varcap.measures import (
    ANY_MACHINE,
    DEDICATED,
    EIGHTFOLD,
    HPC,
    INFORMED,
    LONGER,
    MEASURES,
    MOST_VARIATION,
    SIZES,
    TABLE_7_3,
    TNG,
    all_samples,
    case,
    held,
)

HERE = Path(__file__).parent
PAGE, DATA = HERE / "README.md", HERE / "data"
RUNS = DATA / "runs.csv.gz"
NAMES = {"mira": "Mira", "azure": "Azure", "borg": "Borg"}


def samples_in(folder: Path, runs: pd.DataFrame) -> dict[str, Samples]:
    """Return the samples of each kind, from runs and from a folder of data."""
    others = (pd.read_csv(folder / f"{name}.csv") for name in ("fairness", "months", "capacities"))
    return all_samples(runs, *others)


def judged(samples: Mapping[str, Samples]) -> dict[str, Verdicts]:
    """Return the verdicts of all statements, and those of some in two other readings."""
    statements = statements_of(HERE)
    judged_here = {"": unbounded(verdicts_by_kind(statements, MEASURES, samples))}
    for name, measures, kind in (("longer", EIGHTFOLD, "longer"), ("any", ANY_MACHINE, "systems")):
        part = [statement for statement in statements if statement.place in measures]
        judged_here[name] = unbounded(verdicts(part, measures, samples[kind]))
    return judged_here


def unbounded(judged_here: Verdicts) -> Verdicts:
    """Return the verdicts with no upper end for variations of Table 7.3 that are those of the greatest range."""
    ours = {
        place: replace(one, high=math.inf) if place in TABLE_7_3 and one.low == MOST_VARIATION else one
        for place, one in judged_here.measured.items()
    }
    return replace(judged_here, measured=ours)


def cells(means: pd.DataFrame, one: Case | None, *names: str) -> list[str]:
    """Return the mean ± standard error of figures of a case; dashes if it was not run."""
    if one is None or tuple(one) not in means.index:
        return [pages.NOTHING] * len(names)
    row = means.loc[tuple(one)]
    texts = []
    for name in names:
        places = 0 if name == WAIT else 2 if name == FAILED else 1
        texts.append(with_error(row[name, "mean"], row[name, "sem"], places))
    return texts


def terminations(means: pd.DataFrame) -> str:
    """Return goodput by termination, system and range, and with runs in progress and failures at range 0.6."""
    rows = []
    for system in DEDICATED:
        for policy in ("Random", "LWW", "LFD", *([ANY] if system == HPC else [])):
            walks = [case(system, size, policy=policy) for size in SIZES]
            goodputs = [cells(means, one, GOODPUT)[0] for one in (held(system), *walks)]
            rows.append([NAMES[system], policy, *goodputs, *cells(means, walks[-1], RUNNING, FAILED)])
    heading = ["system", "termination", "fixed", *map(str, SIZES), "0.6, with running", "0.6: failures"]
    return markdown(heading, rows, texts=2)


def foresight(means: pd.DataFrame) -> str:
    """Return goodput and failures by hours of foresight with exact run times, on walks of range 0.6."""
    rows = [
        [NAMES[system], f"{hours:g} h", *cells(means, case(system, hours=hours), GOODPUT, FAILED, WAIT)]
        for system in DEDICATED
        for hours in (0.0, 3.0, 6.0, 24.0)
    ]
    return markdown(["system", "foresight", "goodput (%)", "failures (% of runs)", "wait (s)"], rows, texts=2)


def schedulers(means: pd.DataFrame) -> str:
    """Return the schedulers of chapter 7 on walks of range 0.6: TNG, as if jobs ran longer, a cell of full size."""
    rows: list[tuple[str, float, Case, Case | None]] = [("fixed", 0.0, held(TNG), held(LONGER))]
    rows.append(("fixed, 476 machines", 0.0, held("full"), None))
    rows += [(f"{name}, 476 machines", 0.0, case("full", policy=name), None) for name in ("Base", "LongShort")]
    rows.append(("fixed, strict", 0.0, *(held(system)._replace(policy="Base, strict") for system in (TNG, LONGER))))
    for policy, hours in product(("Base", "Base, strict", "Migration", *INFORMED, "LWW", "LFD"), (0.0, 6.0, 24.0)):
        longer = case(LONGER, policy=policy, period_s=450.0, hours=hours / 8.0)
        rows.append((policy, hours, case(TNG, policy=policy, hours=hours), longer))
    heads = {GOODPUT: "goodput (%)", RUNNING: "with running (%)", FAILED: "failures (%)", WAIT: "wait (s)"}
    lines = [
        [policy, f"{hours:g} h", *cells(means, one, *heads), *cells(means, longer, GOODPUT, FAILED, WAIT)]
        for policy, hours, one, longer in rows
        if tuple(one) in means.index
    ]
    longer_heads = [f"longer: {heads[name]}" for name in (GOODPUT, FAILED, WAIT)]
    return markdown(["scheduler", "foresight", *heads.values(), *longer_heads], lines, texts=2)


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table."""
    runs = read_runs(folder / RUNS.name)
    judged_here = judged(samples_in(folder, runs))
    ours = judged_here[""]
    means = common(runs).groupby(list(Case._fields))[[GOODPUT, RUNNING, FAILED, WAIT]].agg(["mean", "sem"])
    return {
        "summary": counts_table({"": ours}),
        "longer-summary": counts_table({"": judged_here["longer"]}),
        "terminations": terminations(means),
        "batsim": batsim.table(HERE),
        "foresight": foresight(means),
        "schedulers": schedulers(means),
        "contradicted": statements_table({"here": ours}, words=(NO,)),
        "statements": statements_table({"here": ours}),
        "longer": statements_table({"here": judged_here["longer"]}),
        "any": statements_table({"here": judged_here["any"]}),
    }


def make(results: Path, priced: Path) -> None:
    """Make the numbers, the figures and the tables of the varcap page from the results of its studies."""
    write_runs((results, priced), RUNS)
    write_fairness(results, DATA / "fairness.csv")
    prices.write_numbers(DATA)
    figures.draw(read_runs(RUNS), HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("varcap", "varcap-prices")))
