"""Make the tables and pictures of docs/results/carbon.md from the results of carbon.yaml and carbon-small.yaml.

python experiments/carbon_tables.py results/carbon results/carbon-small
    writes docs/results/carbon from the results of the first, with the summary of the second, runs the real jobs of
    carbon_real.py, and puts the tables on the page
python experiments/carbon_tables.py --check
    needs no results, and exits 1 if the page has other tables than docs/results/carbon
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import carbon_real
import doc_pages
import pandas as pd
from varcap_tables import markdown, write

from batwatt.campaign.carbon.study import SUMMARY, summary_of
from batwatt.campaign.store import TABLE
from batwatt.errors import InputError
from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.systems.carbon.figures.charts import plot_grid, plot_saved_cdf
from batwatt.units import HOUR_S

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"
PAGES = ("carbon.md",)
FOLDER = "carbon"
SMALL = "small.csv"
CHAPTER6, FINAL, CONTRAST = "chapter6", "final", "contrast"
AUTHOR, HOURS, OVERALL = "author", "hours", "overall"
PERCENT, MINUTE_S = 100.0, 60.0
MUCH = 0.01
"""The author calls what differs by less than this equal."""
FIRST_S, DAY_S = 0.0, 86_400.0


@dataclass(frozen=True)
class Measure:
    """A figure of `figures_of` as it is shown."""

    name: str
    heading: str
    decimals: int = 2


CARBON = Measure("carbon_g", "at once, g", 1)
ONE = Measure("one", "one piece")
PIECES = Measure("pieces", "pieces")
INTERRUPTING = Measure("interrupting", "by interrupting")
STARTS = Measure("starts", "starts")
ONE_AVERAGED = Measure("one_averaged", "one piece, phases unknown")
ONE_CLAIMED = Measure("one_claimed", "twin, one piece: says")
FREE = Measure("free", "pieces, free resumes")
AWARE = Measure("aware", "pieces, phases unknown")
BLIND = Measure("blind", "twin, pieces: does")
BLIND_CLAIMED = Measure("blind_claimed", "twin, pieces: says")
BLIND_STARTS = Measure("blind_starts", "its starts")
LATE = Measure("late", "it is late, %", 1)
LATE_MIN = Measure("late_min", "by, min", 1)
PHASES_ONE = Measure("phases_one", "phases in one piece, points", 3)
PHASES = Measure("phases", "phases in pieces, points", 3)
COST = Measure("cost", "start-ups cost, points", 3)
LOST = Measure("lost", "not to know them, points", 3)
STEPS = (ONE_AVERAGED, ONE, BLIND_CLAIMED, BLIND, BLIND_STARTS, LATE, LATE_MIN, AWARE, PIECES, FREE)
GAINS = (ONE, PIECES, PHASES_ONE, PHASES, COST, LOST)


@dataclass(frozen=True)
class Shares:
    """A table of shares of the carbon of starting at once: a row for each value of `rows`; or `spread` side by side."""

    name: str
    study: str
    rows: tuple[str, ...]
    measures: tuple[Measure, ...]
    spread: str | None = None


SHARES = (
    Shares("grid", CHAPTER6, ("deadline_h", "length_h"), (CARBON, ONE, PIECES, INTERRUPTING, STARTS)),
    Shares("twin", CHAPTER6, ("deadline_h",), STEPS),
    Shares("startups", CHAPTER6, ("startup_s", "startup_w"), STEPS),
    Shares("patterns", CHAPTER6, ("pattern",), GAINS),
    Shares("final", FINAL, ("wait_h", "length_h"), (CARBON, ONE, PIECES, INTERRUPTING, STARTS, BLIND, LATE)),
    Shares("final-startups", FINAL, ("length_h", "startup_s"), (ONE, PIECES, STARTS, BLIND, BLIND_STARTS, COST, LOST)),
    Shares("final-patterns", FINAL, ("pattern",), GAINS),
    Shares("contrast", CONTRAST, ("contrast", "startup_s"), (PHASES,), "period_min"),
    Shares("contrast-one", CONTRAST, ("contrast", "startup_s"), (PHASES_ONE,), "period_min"),
)
TABLES = (OVERALL, *(table.name for table in SHARES), AUTHOR, HOURS, *carbon_real.NAMES)
"""The tables of the page that are made here; each is a file of docs/results/carbon, too."""
SOLVER, ROLLING = "solver", "rolling"
"""Those that carbon_solver.py and carbon_rolling.py make."""
ALL = (*TABLES, SOLVER, ROLLING)
HEADINGS = {
    "deadline_h": "deadline, h",
    "length_h": "length, h",
    "wait_h": "wait, h",
    "startup_s": "start-up, s",
    "startup_w": "its power, W",
    "contrast": "high and low, W",
    "period_min": "phases of, min",
}


def figures_of(rows: pd.DataFrame) -> dict[str, float]:
    """The figures of some rows of a summary, or of a table: % saved of the carbon of all at once, and others."""
    weights = rows["arrivals"] if "arrivals" in rows else pd.Series(1.0, rows.index)
    sums = {name: float((rows[name] * weights).sum()) for name in rows.columns if name.endswith(("_g", "_starts"))}
    late = rows["suspend_late_share"] if "arrivals" in rows else (rows["suspend_late_s"] > 0.0).astype(float)
    late_sum, count = float((late * weights).sum()), float(weights.sum())
    base, twin = sums["immediate_g"], sums["immediate_twin_g"]

    def saved(name: str, of: float = base) -> float:
        return PERCENT * (1.0 - sums[name] / of)

    found = {
        "carbon_g": base / count,
        "one": saved("oracle_g"),
        "one_averaged": saved("oracle_averaged_g"),
        "one_claimed": saved("oracle_twin_g", twin),
        "pieces": saved("optimum_g"),
        "aware": saved("startup_aware_g"),
        "free": saved("free_g"),
        "blind": saved("suspend_g"),
        "blind_claimed": saved("suspend_twin_g", twin),
        "starts": sums["optimum_starts"] / count,
        "blind_starts": sums["suspend_starts"] / count,
        "late": PERCENT * late_sum / count,
        "late_min": float((rows["suspend_late_s"] * weights).sum()) / MINUTE_S / late_sum if late_sum else 0.0,
    }
    return found | {
        "interrupting": found["pieces"] - found["one"],
        "phases_one": found["one"] - found["one_averaged"],
        "phases": found["pieces"] - found["aware"],
        "cost": found["free"] - found["pieces"],
        "lost": found["pieces"] - found["blind"],
    }


def shares_table(summary: pd.DataFrame, table: Shares) -> str:
    """The table as Markdown."""
    part = _with_contrast(summary[summary["study"] == table.study])
    if part.empty:
        raise InputError(table.study, "is not among the results", "run all studies of carbon.yaml")
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    # numbers by size, names as they were declared
    part = part.sort_values([name for name in table.rows if part[name].dtype.kind == "f"] or "study", kind="stable")
    keys = [*table.rows, *([table.spread] if table.spread else [])]
    for point, rows in part.groupby(keys, sort=False):
        figures = figures_of(rows)
        texts = [_text(value) for value in point]
        if table.spread:
            row = cells.setdefault(tuple(texts[:-1]), {})
            row[texts[-1]] = _number(figures, table.measures[0])
        else:
            cells[tuple(texts)] = {measure.heading: _number(figures, measure) for measure in table.measures}
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    heads = [HEADINGS.get(name, name) for name in table.rows]
    shown = [f"{HEADINGS[table.spread]}: {name}" if table.spread else name for name in columns]
    rows_ = [[*key, *(row.get(name, "") for name in columns)] for key, row in cells.items()]
    return markdown([*heads, *shown], rows_)


def _with_contrast(rows: pd.DataFrame) -> pd.DataFrame:
    """Patterns called HIGH-LOW-MINUTES in parts."""
    parts = rows["pattern"].str.extract(r"^(\d+)-(\d+)-(\d+)$")
    return rows.assign(contrast=parts[0] + " / " + parts[1], period_min=parts[2])


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(figures: dict[str, float], measure: Measure) -> str:
    # no minus before zeros
    return f"{round(figures[measure.name], measure.decimals) + 0.0:.{measure.decimals}f}"


def overall_table(summary: pd.DataFrame) -> str:
    """All jobs of each study."""
    measures = (CARBON, ONE_CLAIMED, *STEPS)
    rows = []
    for study, part in summary.groupby("study", sort=False):
        figures = figures_of(part)
        rows.append([study, f"{part['arrivals'].sum():,}", *(_number(figures, measure) for measure in measures)])
    return markdown(["study", "plans", *(measure.heading for measure in measures)], rows)


def author_table(table: pd.DataFrame) -> str:
    """How many jobs of the study `final` differ by more than 1 %: at the author's midnight, and at all arrivals."""
    part = table[table["study"] == FINAL]
    rows = []
    for told, one, other, started in (
        ("pieces emit less than one piece", "optimum_g", "oracle_g", False),
        ("phases known emit less than unknown, in one piece", "oracle_g", "oracle_averaged_g", False),
        ("phases known emit less than unknown, in pieces", "optimum_g", "startup_aware_g", False),
        ("pieces of the twin, carried out, emit more than one piece", "oracle_g", "suspend_g", True),
    ):
        texts = []
        for some in (part[part["arrival_s"] == FIRST_S], part):
            chosen = some[some["startup_s"] > 0.0] if started else some
            share = 1.0 - chosen[one] / chosen[other]
            texts += [f"{PERCENT * (share > MUCH).mean():.1f}", f"{PERCENT * share.max():.1f}"]
        rows.append([told + (" (with a start-up)" if started else ""), *texts])
    heads = ["by more than 1 %", "at midnight of July 1, % of jobs", "at most, %", "at all arrivals, % of jobs"]
    return markdown([*heads, "at most, %"], rows)


def hours_table(table: pd.DataFrame) -> str:
    """What one piece saves by the hour of the arrival, in UTC, as the series has it."""
    part = table[table["study"] == CHAPTER6]
    block = (part["arrival_s"] % DAY_S // (4 * HOUR_S)).astype(int)
    deadlines = list(dict.fromkeys(part["deadline_h"]))
    rows = []
    for number, some in part.groupby(block):
        shares = [figures_of(some[some["deadline_h"] == hours])["pieces"] for hours in deadlines]
        rows.append([f"{4 * number:02d}:00 to {4 * number + 4:02d}:00", *(f"{share:.1f}" for share in shares)])
    return markdown(["arrival, UTC", *(f"deadline {hours:g} h" for hours in deadlines)], rows)


def _draw(table: pd.DataFrame, folder: Path) -> None:
    planners = {"one": "in one piece", "pieces": "in pieces: the optimum", "blind": "in pieces: the twin's plan"}
    for study, rows in ((CHAPTER6, "deadline_h"), (FINAL, "wait_h")):
        points = []
        for (high, length_h), some in table[table["study"] == study].groupby([rows, "length_h"], sort=False):
            figures = figures_of(some)
            points += [
                {rows: high, "length_h": length_h, "planner": told, "saved_share": figures[name] / PERCENT}
                for name, told in planners.items()
            ]
        title = f"carbon saved against immediate starts, study {study}"
        plot_grid(pd.DataFrame(points), folder / f"{study}.png", title, rows=rows, panels="planner")
    part = table[table["study"] == FINAL]
    saved = pd.DataFrame(
        {
            "length_s": part["length_h"] * HOUR_S,
            "carbon_base_g": part["immediate_g"],
            "saved_g": part["immediate_g"] - part["optimum_g"],
            "saved_share": 1.0 - part["optimum_g"] / part["immediate_g"],
        }
    )
    plot_saved_cdf(
        saved, folder / "cdf.png", "What the optimum saves, study final", (3.0 * HOUR_S, 6.0 * HOUR_S, 12.0 * HOUR_S)
    )


def read_table(results: Path) -> pd.DataFrame:
    """The table of studies. Raises InputError."""
    path = results / TABLE
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise InputError(path, f"cannot be read ({problem})", "make it with `batwatt carbon study`") from None


def make(results: Path, small: Path, docs: Path) -> int:
    """Write docs/results/carbon and the tables of the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, ALL)
    table, folder = read_table(results), docs / FOLDER
    summary = summary_of(table)
    folder.mkdir(exist_ok=True)
    write(folder / SUMMARY, _csv(summary))
    write(folder / SMALL, _csv(summary_of(read_table(small))))
    texts = {**of_summary(summary), AUTHOR: author_table(table), HOURS: hours_table(table), **carbon_real.tables()}
    for name, text in texts.items():
        write(folder / f"{name}.md", text + "\n")
    _draw(table, folder)
    doc_pages.write(pages, tables_of(docs))
    return 0


def of_summary(summary: pd.DataFrame) -> dict[str, str]:
    """The tables that follow from the summary alone. Raises InputError."""
    return {OVERALL: overall_table(summary)} | {table.name: shares_table(summary, table) for table in SHARES}


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, lineterminator="\n")


def tables_of(docs: Path, names: Sequence[str] = ALL) -> dict[str, str]:
    """Every table. Raises InputError."""
    return {name: read_text(docs / FOLDER / f"{name}.md").strip() for name in names}


main = doc_pages.Script("carbon_tables", DOCS, PAGES, ALL, ("carbon", "carbon-small"), make, tables_of).main

if __name__ == "__main__":
    sys.exit(main())
