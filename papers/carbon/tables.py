"""Make the numbers, the figure and the tables of the carbon thesis's page.

    python -m papers.carbon.tables results/carbon results/carbon-small
        write data/ from the results of study.yaml and small.yaml, then the figure and the tables
    python -m papers.carbon.tables --check
        compare the tables with data/

`summary.csv` has a row for each job of study.yaml, `small.csv` for each of small.yaml: carbon in g as means over the
arrivals. The scripts of these names write `examples.csv`, `real.csv`, `rolling.csv` and `solver.csv`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from papers import pages
from papers.carbon import figures, study
from papers.carbon.measures import DATA, HERE, judged
from papers.pages import markdown, number, with_error
from papers.statements import counts_table, statements_table

PAGE = HERE / "README.md"
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
        cells = [with_error(some.mean(), some.sem(), 1) for some in (*(some for _, some in plans), above)]
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
    frame.to_csv(DATA / f"{name}.csv", index=False, lineterminator="\n")


def tables() -> dict[str, str]:
    """Return every table of the page, from data/."""
    summary, verdicts = pd.read_csv(DATA / study.SUMMARY), judged()
    return {
        "summary": counts_table({"": verdicts}),
        "grid": grid(summary, CHAPTER6, "deadline_h", "deadline, h"),
        "final": grid(summary, FINAL, "wait_h", "may wait, h"),
        "overall": overall(summary),
        **{name: texts(name) for name in EACH},
        "rolling": rolling(pd.read_csv(DATA / "rolling.csv")),
        "solver": solver(pd.read_csv(DATA / "solver.csv")),
        "statements": statements_table({"here": verdicts}),
    }


def refill() -> None:
    """Write the page after data/ has changed."""
    print(f"{PAGE.parent.name}: new {', '.join(pages.fill(PAGE, tables())) or 'nothing'}")


def make(results: Path, small: Path) -> None:
    """Make the numbers, the figure and the tables of the carbon thesis's page from the results of study.yaml."""
    table = pd.read_parquet(results / study.TABLE)
    write("summary", study.summary_of(table))
    write("small", study.summary_of(pd.read_parquet(small / study.TABLE)))
    figures.draw(HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("carbon", "carbon-small")))
