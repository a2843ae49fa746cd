"""Make the numbers, the figure and the tables of the carbon thesis's page.

    python -m papers.carbon.tables results/carbon results/carbon-small
        write data/ from the results of study.yaml and small.yaml, then the figure and the tables
    python -m papers.carbon.tables --check
        compare the tables with data/

`data/summary.csv` has a row for each job of study.yaml, `small.csv` for each of small.yaml: carbon in g as means over
the arrivals. The scripts of these names write `real.csv`, `rolling.csv`, `solver.csv` and `fit.csv`. The other files
are tables that are too long for the page.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from batwatt.units import DAY_S, HOUR_S
from papers import pages
from papers.carbon import study
from papers.carbon.claims import CLAIMS
from papers.claims import claims_table
from papers.pages import markdown, number

HERE = Path(__file__).parent
DATA, PAGE, FIGURE = HERE / "data", HERE / "README.md", HERE / "figure.png"
CHAPTER6, FINAL, CONTRAST = "chapter6", "final", "contrast"
PERCENT, MINUTE_S = 100.0, 60.0
MUCH = 0.01
"""Largest difference in carbon, as a share, of two plans that the author calls equal."""
MEASURES = {
    "carbon_g": ("at once, g", 1),
    "one": ("one piece", 2),
    "pieces": ("pieces", 2),
    "interrupting": ("by interrupting", 2),
    "starts": ("starts", 2),
    "one_averaged": ("one piece, phases unknown", 2),
    "one_claimed": ("twin, one piece: says", 2),
    "free": ("pieces, free resumes", 2),
    "aware": ("pieces, phases unknown", 2),
    "blind": ("twin, pieces: does", 2),
    "blind_claimed": ("twin, pieces: says", 2),
    "blind_starts": ("its starts", 2),
    "late": ("it is late, %", 1),
    "late_min": ("by, min", 1),
    "phases_one": ("phases in one piece, points", 3),
    "phases": ("phases in pieces, points", 3),
    "cost": ("start-ups cost, points", 3),
    "lost": ("not to know them, points", 3),
}
"""Figures of `figures_of`: heading and decimals."""
STEPS = ("one_averaged", "one", "blind_claimed", "blind", "blind_starts", "late", "late_min", "aware", "pieces", "free")
SOME = ("one_averaged", "one", "blind_claimed", "blind", "late", "aware", "pieces")
GAINS = ("one", "pieces", "phases_one", "phases", "cost", "lost")
HEADINGS = {
    "deadline_h": "deadline, h",
    "length_h": "length, h",
    "wait_h": "wait, h",
    "startup_s": "start-up, s",
    "startup_w": "its power, W",
    "contrast": "high and low, W",
    "period_min": "phases of, min",
}
SOLVED = ("24 6", "24 12", "48 6", "48 12", "48 36", "250 120", "1,000 400", "5,000 800")
"""Slots and work of the cases of `solver` on the page."""
DRAWN = ("machine at rest, W", "standard deviation, W", "standard deviation, kJ", "start-up, s", "training, s",
         "training, W", "evaluate, s", "save, s", "save, W")  # fmt: skip
"""Rows of `fit` that hold by construction of the drawn runs: not on the page."""


@dataclass(frozen=True)
class Shares:
    """A table of shares of the carbon of immediate starts: a row for each value of `rows`; or `spread` over columns."""

    study: str
    rows: tuple[str, ...]
    measures: tuple[str, ...]
    spread: str | None = None


ON_PAGE = {
    "overall": Shares("", ("study",), ("plans", *SOME)),
    "grid": Shares(CHAPTER6, ("deadline_h", "length_h"), ("one", "pieces", "interrupting")),
}
IN_FILES = {
    "contrast": Shares(CONTRAST, ("contrast", "startup_s"), ("phases",), "period_min"),
    "studies": Shares("", ("study",), ("plans", "carbon_g", "one_claimed", *STEPS)),
    "twin": Shares(CHAPTER6, ("deadline_h",), STEPS),
    "startups": Shares(CHAPTER6, ("startup_s", "startup_w"), STEPS),
    "patterns": Shares(CHAPTER6, ("pattern",), GAINS),
    "final": Shares(
        FINAL, ("wait_h", "length_h"), ("carbon_g", "one", "pieces", "interrupting", "starts", "blind", "late")
    ),
    "final-startups": Shares(
        FINAL, ("length_h", "startup_s"), ("one", "pieces", "starts", "blind", "blind_starts", "cost", "lost")
    ),
    "final-patterns": Shares(FINAL, ("pattern",), GAINS),
    "contrast-one": Shares(CONTRAST, ("contrast", "startup_s"), ("phases_one",), "period_min"),
}


def figures_of(rows: pd.DataFrame) -> dict[str, float]:
    """Return the figures of rows of a summary or of a table: % of the carbon of immediate starts, and others."""
    weights = rows["arrivals"] if "arrivals" in rows else pd.Series(1.0, rows.index)
    sums = {name: float((rows[name] * weights).sum()) for name in rows.columns if name.endswith(("_g", "_starts"))}
    late = rows["suspend_late_share"] if "arrivals" in rows else (rows["suspend_late_s"] > 0.0).astype(float)
    late_sum, count = float((late * weights).sum()), float(weights.sum())
    base, twin = sums["immediate_g"], sums["immediate_twin_g"]

    def saved(name: str, of: float = base) -> float:
        return PERCENT * (1.0 - sums[name] / of)

    figures = {
        "plans": count,
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
    return figures | {
        "interrupting": figures["pieces"] - figures["one"],
        "phases_one": figures["one"] - figures["one_averaged"],
        "phases": figures["pieces"] - figures["aware"],
        "cost": figures["free"] - figures["pieces"],
        "lost": figures["pieces"] - figures["blind"],
    }


def shares(summary: pd.DataFrame, table: Shares) -> pd.DataFrame:
    """Return the table as texts."""
    # patterns of the study `contrast` are called HIGH-LOW-MINUTES
    parts = summary["pattern"].str.extract(r"^(\d+)-(\d+)-(\d+)$")
    part = summary.assign(contrast=parts[0] + " / " + parts[1], period_min=parts[2])
    part = part[part["study"] == table.study] if table.study else part
    # numbers by size, names as they were declared
    numeric = [name for name in table.rows if part[name].dtype.kind == "f"]
    part = part.sort_values(numeric, kind="stable") if numeric else part
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for point, rows in part.groupby([*table.rows, *([table.spread] if table.spread else [])], sort=False):
        figures = figures_of(rows)
        texts = tuple(f"{value:g}" if isinstance(value, float) else str(value) for value in point)
        row = cells.setdefault(texts[: len(table.rows)], {})
        for name in table.measures:
            if name == "plans":
                row[name] = f"{figures[name]:,.0f}"
                continue
            heading, decimals = MEASURES[name]
            row[f"{HEADINGS[table.spread]}: {texts[-1]}" if table.spread else heading] = number(figures[name], decimals)
    heads = [HEADINGS.get(name, name) for name in table.rows]
    return pd.DataFrame([dict(zip(heads, key, strict=True)) | row for key, row in cells.items()])


def author(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share of jobs of the study `final` that differ by more than 1 %: at midnight, and at all arrivals."""
    part = table[table["study"] == FINAL]
    rows = []
    for sentence, one, other, startup_s in (
        ("pieces emit less than one piece", "optimum_g", "oracle_g", -1.0),
        ("pieces emit more than one piece", "oracle_g", "optimum_g", -1.0),
        ("phases known emit less than unknown, in one piece", "oracle_g", "oracle_averaged_g", -1.0),
        ("phases known emit less than unknown, in pieces", "optimum_g", "startup_aware_g", -1.0),
        ("pieces of the twin, carried out, emit more than one piece (with a start-up)", "oracle_g", "suspend_g", 0.0),
    ):
        row = {"by more than 1 %": sentence}
        for where, some in (("at midnight of July 1", part[part["arrival_s"] == 0.0]), ("at all arrivals", part)):
            jobs = some[some["startup_s"] > startup_s]
            share = 1.0 - jobs[one] / jobs[other]
            row[f"{where}, % of jobs"] = number(PERCENT * (share > MUCH).mean(), 1)
            row[f"{where}, at most, %"] = number(PERCENT * share.max(), 1)
        rows.append(row)
    return pd.DataFrame(rows)


def hours(table: pd.DataFrame) -> pd.DataFrame:
    """Return the savings of the optimum by the hour of the arrival, in UTC as in the series."""
    part = table[table["study"] == CHAPTER6]
    block = (part["arrival_s"] % DAY_S // (4 * HOUR_S)).astype(int)
    rows = []
    for first, some in part.groupby(block):
        row = {"arrival, UTC": f"{4 * first:02d}:00 to {4 * first + 4:02d}:00"}
        for deadline_h, jobs in some.groupby("deadline_h"):
            row[f"deadline {deadline_h:g} h"] = number(figures_of(jobs)["pieces"], 1)
        rows.append(row)
    return pd.DataFrame(rows)


def rolling(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the savings of one plan and of hourly plans, and the distance from the bound; means over the seeds."""
    rows = []
    planned = runs[runs["policy"] != "immediate"]
    for (signal, load, policy), part in planned.groupby(["signal", "load", "policy"], sort=False):
        row = {"signal": signal, "load": f"{load:g}", "policy": policy}
        for name, error, again in (
            ("exact", 0.0, False), ("3 %, once", 0.03, False), ("3 %, again", 0.03, True), ("6 %, once", 0.06, False),
            ("6 %, again", 0.06, True),
        ):  # fmt: skip
            some = part[(part["error"] == error) & (part["again"] == again)]
            row[f"saved, %: {name}"] = spread(some["saved_off"])
            if name in ("exact", "6 %, again"):
                row[f"above the bound, %: {name}"] = spread(some["above_off"])
        rows.append(row)
    return pd.DataFrame(rows)


def spread(values: pd.Series) -> str:
    """Return mean and standard error."""
    return f"{number(values.mean(), 1)} ± {number(values.sem(), 1)}" if len(values) else ""


def draw(final: pd.DataFrame) -> Figure:
    """Draw the savings of the study `final` over wait and length, a panel for each planner."""
    planners = {
        "one piece": "in one piece",
        "pieces": "in pieces: the optimum",
        "twin, pieces: does": "the twin's plan",
    }
    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, 3, sharey=True), planners.items(), strict=True):
        grid = final.astype(float).pivot(index="wait, h", columns="length, h", values=name)
        axes.imshow(grid, vmin=0.0, vmax=80.0, cmap="Blues", aspect="auto")
        for (row, column), value in np.ndenumerate(grid.to_numpy()):
            axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=8)
        axes.set_xticks(range(grid.shape[1]), [f"{length:g}" for length in grid.columns])
        axes.set_yticks(range(grid.shape[0]), [f"{wait:g}" for wait in grid.index])
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlabel("length (h)")
    figure.axes[0].set_ylabel("wait (h)")
    figure.suptitle("Carbon saved against immediate starts (%), study final", fontsize=10, fontweight="bold")
    return figure


def read(name: str) -> pd.DataFrame:
    """Return the texts of a file of data/."""
    return pd.read_csv(DATA / f"{name}.csv", dtype=str, keep_default_na=False)


def write(name: str, frame: pd.DataFrame) -> None:
    """Write a file of data/."""
    frame.to_csv(DATA / f"{name}.csv", index=False, lineterminator="\n")


def detail() -> dict[str, pd.DataFrame]:
    """Return the tables that are too long for the page."""
    summary = pd.read_csv(DATA / study.SUMMARY)
    frames = {name: shares(summary, table) for name, table in IN_FILES.items()}
    return frames | {"rolling-means": rolling(pd.read_csv(DATA / "rolling.csv"))}


def shown(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows and columns of a table that are on the page."""
    if name == "rolling":
        return frame[frame["load"] == "0.6"].drop(columns="load")
    if name == "fit":
        return frame[~frame["figure"].isin(DRAWN)]
    if name == "solver":
        frame = frame[(frame["slots"] + " " + frame["work"]).isin(SOLVED)]
    dropped = {"solver": "peak", "cluster": "wait|g$", "real": " g$|pieces", "real-startups": "g$|energy"}.get(name)
    return frame.loc[:, ~frame.columns.str.contains(dropped)] if dropped else frame


def tables() -> dict[str, str]:
    """Return every table of the page, from data/."""
    summary = pd.read_csv(DATA / study.SUMMARY)
    frames = {name: shares(summary, table) for name, table in ON_PAGE.items()}
    frames |= {name: read(name) for name in ("hours", "real", "real-startups", "cluster", "solver", "fit")}
    details = detail() | {"author": read("author")}
    frames["rolling"] = details["rolling-means"]
    made = {"claims": claims_table(CLAIMS, details | frames)}
    for name in frames:
        frame = shown(name, frames[name])
        made[name] = markdown(list(frame), frame.to_numpy(), 2 if name == "rolling" else 1)
    return made


def refill() -> None:
    """Write the tables of detail and the page after data/ has changed."""
    for name, frame in detail().items():
        write(name, frame)
    print(f"{PAGE.parent.name}: new {', '.join(pages.fill(PAGE, tables())) or 'nothing'}")


def make(results: Path, small: Path) -> None:
    """Make the numbers, the figure and the tables of the carbon thesis's page from the results of study.yaml."""
    table = pd.read_parquet(results / study.TABLE)
    write("summary", study.summary_of(table))
    write("small", study.summary_of(pd.read_parquet(small / study.TABLE)))
    write("author", author(table))
    write("hours", hours(table))
    for name, frame in detail().items():
        write(name, frame)
    draw(read("final")).savefig(FIGURE, dpi=130)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("carbon", "carbon-small")))
