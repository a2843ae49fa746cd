"""Numbers, figures and tables of the carbon thesis's page, from the results of study.yaml and small.yaml.

`summary.csv` has a row for each job of study.yaml, `small.csv` for each of small.yaml: carbon in g as means over the
arrivals. The scripts of these names write `examples.csv`, `real.csv`, `rolling.csv` and `solver.csv`.

Samples of statements: `plans`, mean carbon of the plans of chapter 6 by pattern and length of the job (a key is a
column of summary.csv); `windows`, the example of section 5.3.3 by 300 h of the signal (a column of examples.csv);
`cases`, quotients of CPU times by the size of the problem; `jobs`, slots of the jobs of chapter 6.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from papers import pages
from papers.carbon import examples, study
from papers.carbon.study import Case, cases_of
from papers.pages import markdown, mean_text, number
from papers.statements import Samples, Statistic, Verdicts, mean, statement_tables, statements_of, verdicts_by_kind

HERE = Path(__file__).resolve().parent
PAGE, DATA = HERE / "README.md", HERE / "data"
HOUR = 3600
SHORTEST_S = 1
"""Greatest common divisor in s of an hour and the phases of Listing 5.6 in whole seconds (23, 8, 2, 3)."""


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
        "plans": Samples.of_columns(plans),
        "windows": Samples.of_columns(pd.read_csv(folder / "examples.csv")),
        "cases": Samples({("over one piece",): (milp / ended["one piece"]).to_numpy()}),
        "jobs": Samples({("gcd",): np.array([float(divisor_s(case)) for case in jobs.values()])}),
    }


MEASURES: Mapping[str, Mapping[int, Statistic]] = {
    "plans": {
        1: mean("immediate_g") / mean("optimum_g"),
        11: mean("suspend_g") / mean("optimum_g"),
        113: mean("startup_aware_g") / mean("optimum_g"),
        119: mean("suspend_g") / mean("optimum_g"),
    },
    "windows": {
        37: mean("equal_percent"),
        38: mean("resumed_g"),
        72: mean("best_start_percent"),
        73: mean("other_g"),
        74: mean("lowest_blocks"),
        75: mean("more_days"),
        76: mean("shortest_percent"),
        77: mean("lowest_blocks"),
        84: mean("lowest_percent"),
        85: mean("equal_percent"),
        89: mean("free_blocks") - mean("started_blocks"),
        90: mean("other_block"),
        96: mean("phased_blocks") - mean("started_blocks"),
        97: lambda m: (m("free_blocks") + 2.0 * m("started_blocks")) / 3.0,
        98: mean("low_less_high"),
        99: mean("low_less_all"),
    },
    "cases": {114: mean("over one piece")},
    "jobs": {
        109: mean("gcd"),
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


PERCENT = 100.0
CHAPTER6, FINAL = "chapter6", "final"
SHARES = {
    "one_averaged": ("oracle_averaged_g", "one piece, phases unknown"),
    "one": ("oracle_g", "one piece"),
    "claimed": ("suspend_twin_g", "twin, pieces: says"),
    "does": ("suspend_g", "twin, pieces: does"),
    "aware": ("startup_aware_g", "pieces, phases unknown"),
    "pieces": ("optimum_g", "pieces"),
}
"""Plan -> column of its carbon, and heading of its savings."""
EACH = {"real": "GAIA|continuous", "real-startups": "saved|wait|pieces|late", "cluster": "saved|late"}
"""Columns of texts of data/ that are on the page, besides the first; GAIA's carbon and pieces are not."""


def saved(rows: pd.DataFrame, plan: str) -> float:
    """Return the savings of a plan in % of the carbon of immediate starts, over the sums of jobs and arrivals."""
    base = "immediate_twin_g" if plan == "claimed" else "immediate_g"
    return PERCENT * (1.0 - rows[SHARES[plan][0]].sum() / rows[base].sum())


def overall(summary: pd.DataFrame) -> str:
    """Return the savings of all plans by study."""
    rows = []
    for name, part in summary.groupby("study", sort=False):
        late = PERCENT * part["suspend_late_share"].mean()
        cells = [number(saved(part, plan), 2) for plan in SHARES]
        rows.append([str(name), f"{part['arrivals'].sum():,}", *cells[:4], number(late, 1), *cells[4:]])
    heads = [heading for _, heading in SHARES.values()]
    return markdown(["study", "plans", *heads[:4], "it is late, %", *heads[4:]], rows)


def grid(summary: pd.DataFrame, name: str, down: str, heading: str) -> str:
    """Return the savings in one piece and in pieces: rows by a limit in h, columns by length."""
    part = summary[summary["study"] == name]
    lengths = sorted(part["length_h"].unique())
    rows = []
    for limit_h, some in part.groupby(down):
        cells = [[number(saved(some[some["length_h"] == length], plan), 1) for plan in ("one", "pieces")]
                 for length in lengths]  # fmt: skip
        rows.append([f"{limit_h:g}", *(" / ".join(pair) for pair in cells)])
    return markdown([heading, *(f"{length:g} h" for length in lengths)], rows)


def rolling(runs: pd.DataFrame) -> str:
    """Return the savings of one plan and of hourly plans at a load of 0.6, and the distance from the bound."""
    planned = runs[(runs["policy"] != "immediate") & (runs["load"] == 0.6)]
    rows = []
    for (signal, policy), part in planned.groupby(["signal", "policy"], sort=False):
        plans = part[(part["error"] > 0.0) | ~part["again"]].groupby(["error", "again"])["saved_off"]
        above = part.loc[(part["error"] == 0.0) & ~part["again"], "above_off"]
        cells = [mean_text(some, 1) for some in (*(some for _, some in plans), above)]
        rows.append([signal, policy, *cells])
    heads = [f"saved, %: {name}" for name in ("exact", "3 %, once", "3 %, again", "6 %, once", "6 %, again")]
    return markdown(["signal", "policy", *heads, "above the bound, %: exact"], rows, 2)


def solver(cases: pd.DataFrame) -> str:
    """Return CPU times over that of the dynamic programme in the first case, and the memory that plans add."""
    rows = []
    for (slots, work), part in cases.groupby(["slots", "work"], sort=False):
        cells = []
        for planner in ("milp", "dynamic", "one piece"):
            some = part[part["planner"] == planner]
            cells += [
                f"{'> ' * row.stopped}{row.times:,.{0 if row.times > 10.0 else 1}f}" for row in some.itertuples()
            ] or [""]
            if planner != "one piece":
                cells += [number(added, 0) for added in some["added_mib"]] or [""]
        rows.append([f"{slots:,}", f"{work}", *cells])
    heads = ["MILP: time", "MILP: added, MiB", "dynamic programme: time", "dynamic programme: added, MiB"]
    return markdown(["slots", "work", *heads, "one piece: time"], rows)


def texts(name: str) -> str:
    """Return the columns of a file of texts that are on the page."""
    frame = pd.read_csv(DATA / f"{name}.csv", dtype=str, keep_default_na=False)
    first, others = frame.columns[0], frame.columns[1:]
    headings = [first, *others[others.str.contains(EACH[name]) & ~others.str.contains(": g$|: pieces$")]]
    return markdown(headings, frame[headings].to_numpy().tolist())


def write(name: str, frame: pd.DataFrame) -> None:
    """Write a file of data/."""
    pages.write(DATA / f"{name}.csv", frame)


def tables() -> dict[str, str]:
    """Return every table of the page, from data/."""
    summary, verdicts = pd.read_csv(DATA / study.SUMMARY), judged()
    return {
        **statement_tables({"": verdicts}),
        "grid": grid(summary, CHAPTER6, "deadline_h", "deadline, h"),
        "final": grid(summary, FINAL, "wait_h", "may wait, h"),
        "overall": overall(summary),
        **{name: texts(name) for name in EACH},
        "rolling": rolling(pd.read_csv(DATA / "rolling.csv")),
        "solver": solver(pd.read_csv(DATA / "solver.csv")),
    }


def refill() -> None:
    """Write the page after data/ has changed."""
    print(f"{PAGE.parent.name}: new {', '.join(pages.fill(PAGE, tables())) or 'nothing'}")


def make(results: Path, small: Path) -> None:
    """Make the numbers, the figure and the tables of the carbon thesis's page from the results of study.yaml."""
    table = pd.read_parquet(results / study.TABLE)
    write("summary", study.summary_of(table))
    write("small", study.summary_of(pd.read_parquet(small / study.TABLE)))
    examples.draw(HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("carbon", "carbon-small")))
