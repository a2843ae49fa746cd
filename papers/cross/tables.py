"""Make the numbers, the figure and the tables of the page on all systems.

    python -m papers.cross.tables out/cross results/adaptive out/estimates
        write data/*.csv from the results of `papers.cross.run`, adaptive.yaml and `papers.cross.estimates`, the figure
        and the tables
    python -m papers.cross.tables --check
        compare the tables with data/tune.csv, held.csv, grounds.csv and estimates.csv

`systems.csv`, `ideas.csv`, `front.csv` and `others.csv` in data/ are tables too long for the page.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from batwatt.results.compared import mean_of
from papers import pages
from papers.cross import knowledge
from papers.cross.frames import (
    BASE,
    CELL,
    GROUNDS,
    IDEAS,
    OURS,
    OWN,
    PARTS,
    REFERENCES,
    SAMPLE,
    SLOWDOWN,
    WORK,
    Numbers,
    beaten,
    by_log,
    difference,
    geometric,
    ground_rows,
    measured,
    pivot,
    ratios,
)
from papers.cross.measures import judged
from papers.pages import markdown, with_error
from papers.runs import table_of
from papers.statements import counts_table, statements_of, statements_table

HERE = Path(__file__).resolve().parent
PAGE, DATA, FIGURE = HERE / "README.md", HERE / "data", HERE / "figure.png"
ROWS = ["case", *SAMPLE, "seed", "jobs_total", "jobs_finished", "killed_power", SLOWDOWN, "mean_wait_s", WORK,
        "energy_j", "energy_above_cap_j", "carbon_g", "cost"]  # fmt: skip
"""Columns of the committed rows."""
ESTIMATES = ["part", "log", "way", "share", "signal", "case", "jobs_total", "jobs_finished", "killed_power",
             knowledge.BOUNDED, SLOWDOWN, "mean_wait_s", WORK, "energy_j", "carbon_g"]  # fmt: skip
"""Columns of the committed rows of the study of estimates."""
FURTHER = ["mean_slowdown", "goodput_with_running", SLOWDOWN, "max_full_speed_slowdown", WORK, "jobs_finished"]
SYSTEMS = ["case", "jobs finished", "work finished", "kills", "slowdown", "wait, h", f"carbon / {BASE}",
           "energy above the envelope", "cells on the front"]  # fmt: skip
MEASURES = {"slowdown": SLOWDOWN, "wait": "mean_wait_s", "carbon": "carbon_g", "work finished": WORK}


def systems(table: pd.DataFrame) -> list[list[str]]:
    """Return a row for each case: means over cells and their samples."""
    names = [SLOWDOWN, "mean_wait_s", "jobs_total", "jobs_finished", "killed_power", WORK, "carbon_g",
             "energy_above_cap_j", "energy_j"]  # fmt: skip
    wide = {name: pivot(table, name) for name in names}
    fronts = [case for _, cell in table.groupby(CELL) for case, by in beaten(cell).items() if not by]
    cells = table.groupby(CELL).ngroups
    rows = []
    for case in table["case"].unique():
        above = (wide["energy_above_cap_j"][case] / wide["energy_j"][case]).mean()
        rows.append(
            [
                case,
                f"{(wide['jobs_finished'][case] / wide['jobs_total'][case]).mean():.1%}",
                f"{(wide[WORK][case] / wide[WORK].max(axis=1)).mean():.1%}",
                f"{wide['killed_power'][case].mean():.0f}",
                f"{geometric(wide[SLOWDOWN][case]):.1f}",
                f"{wide['mean_wait_s'][case].mean() / 3600:.1f}",
                f"{(wide['carbon_g'][case] / wide['carbon_g'][BASE]).mean():.2f}",
                f"{above:.1%}",
                "–" if case in REFERENCES else f"{fronts.count(case)} of {cells}",
            ]
        )
    return rows


def spread(ratio: pd.Series) -> str:
    """Return the geometric mean of the logs, its 95 % interval, least and greatest cell."""
    mean, half = by_log(np.log(ratio))
    return f"{math.exp(mean):.2f} ×/÷ {math.exp(half):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"


def ideas(table: pd.DataFrame) -> list[list[str]]:
    """Return a row for each idea: the ratios of slowdown, wait, carbon and work after to before."""
    return [
        [idea, f"{before} → {after}", *(spread(ratios(table, name, before, after)) for name in MEASURES.values())]
        for idea, before, after in IDEAS
    ]


def front(table: pd.DataFrame) -> list[list[str]]:
    """Return for each cell the slowdown of `adaptive`, the best other with at least its work, and those that beat it.

    Each has the ratio of its slowdown to that of `adaptive`, geometric mean ×/÷ standard error; bold beyond two errors.
    """
    rows = []
    for (log, signal, share), cell in table.groupby(CELL, sort=False):
        wide = measured(cell)
        slowdown = wide[SLOWDOWN][OURS]
        others = [
            case for case in wide[SLOWDOWN]
            if not any(word in case for word in OWN) and difference(wide, WORK, OURS, case)[0] >= 0.0
        ]  # fmt: skip
        best = min(others, key=lambda case: difference(wide, SLOWDOWN, OURS, case)[0], default=None)
        by = [
            ("**{}**" if clear else "{}").format(ratio_to_ours(wide, case))
            for case, clear in beaten(cell)[OURS].items()
        ]
        rows.append(
            [
                f"{log}, {signal}, {share:g}",
                f"{slowdown.mean():.2f} ± {slowdown.sem():.2f}",
                "–" if best is None else ratio_to_ours(wide, best),
                f"{cell.loc[cell['case'] == OURS, 'jobs_finished'].mean():.0f}",
                ", ".join(by) or "nobody",
            ]
        )
    return rows


def ratio_to_ours(wide: pd.DataFrame, case: str) -> str:
    """Return a case with the ratio of its slowdown to that of `adaptive`."""
    mean, error = difference(wide, SLOWDOWN, OURS, case)
    return f"{case}: {math.exp(mean):.3g} ×/÷ {math.exp(error):.2f}"


def grounds(table: pd.DataFrame) -> str:
    """Return for each paper's ground the best of the others in the mean, `adaptive`, and the paired difference."""
    rows = [
        [
            row.title,
            f"{row.best}: {row.best_mean:.4g}",
            f"{row.label}: {row.mean:.4g}",
            f"{with_error(*mean_of(100.0 * row.better)[:2], 1, signed=True)} %",
            str(len(row.better)),
        ]
        for row in ground_rows(table)
    ]
    heads = ["paper, metric", "best of the others", "ours", "better by", "runs"]
    return markdown(heads, rows, texts=3)


def others(table: pd.DataFrame) -> list[list[str]]:
    """Return means of further measures on the grounds of the papers."""
    rows = []
    for study in GROUNDS:
        means = table[table["study"] == study].groupby("label", sort=False)[FURTHER].mean()
        for label, row in means.iterrows():
            rows.append(
                [study, str(label), *("–" if row[name] != row[name] else f"{row[name]:.4g}" for name in FURTHER)]
            )
    return rows


def details(numbers: Numbers) -> dict[str, pd.DataFrame]:
    """Return the tables that are too long for the page, by file name."""
    made: dict[str, list[pd.DataFrame]] = {"systems": [], "ideas": [], "front": []}
    heads = {
        "systems": SYSTEMS,
        "ideas": ["idea", "cases", *MEASURES],
        "front": ["log, signal, share", OURS, "best other that finishes as much", "jobs finished", "beaten by"],
    }
    for part, table in numbers.parts.items():
        for name, rows in (("systems", systems(table)), ("ideas", ideas(table)), ("front", front(table))):
            frame = pd.DataFrame(rows, columns=heads[name])
            frame.insert(0, "part", part)
            made[name].append(frame)
    tables = {name: pd.concat(frames) for name, frames in made.items()}
    return tables | {"others": pd.DataFrame(others(numbers.grounds), columns=["study", "algorithm", *FURTHER])}


def both(frame: pd.DataFrame, columns: list[str]) -> list[list[str]]:
    """Return rows with the texts of both parts in a cell, `tune; held`."""
    one, two = (frame[frame["part"] == part] for part in PARTS)
    first = frame.columns[1]
    return [
        [left[first], *(f"{left[name]}; {right[name]}" for name in columns)]
        for (_, left), (_, right) in zip(one.iterrows(), two.iterrows(), strict=True)
    ]


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table of the page."""
    numbers = Numbers.read(folder)
    estimates = pd.read_csv(folder / "estimates.csv")
    long = details(numbers)
    columns = ["work finished", "slowdown", f"carbon / {BASE}", "cells on the front"]
    texts = {name: long["ideas"][name].str.replace(r" \(.*\)", "", regex=True) for name in MEASURES}
    short = long["ideas"].assign(**texts)
    for name in ("carbon", "work finished"):
        short[name] = short[name].str.replace(r" ×.*", "", regex=True)
    statements = statements_of(HERE)
    parts = {part: judged(statements, table, numbers.grounds) for part, table in numbers.parts.items()}
    return {
        "summary": counts_table(parts),
        "statements": statements_table(parts, "finding"),
        "systems": markdown(["case", *columns], both(long["systems"], columns)),
        "ideas": markdown(["idea", *list(MEASURES)[::2], "work finished"],
                          both(short, [*list(MEASURES)[::2], "work finished"])),
        "grounds": grounds(numbers.grounds),
        "ways": knowledge.ways(estimates),
        "robust": knowledge.robust(estimates),
    }  # fmt: skip


def draw(numbers: Numbers) -> Figure:
    """Draw the ratio of slowdown after to before each idea, with 95 % intervals, on both parts."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    for part, colour, shift in zip(PARTS, ("tab:blue", "tab:orange"), (0.15, -0.15), strict=True):
        for row, (_, before, after) in enumerate(reversed(IDEAS)):
            logs = np.log(ratios(numbers.parts[part], SLOWDOWN, before, after))
            mean, error = by_log(logs)
            low, high = np.exp(mean) - np.exp(mean - error), np.exp(mean + error) - np.exp(mean)
            name = part if row == 0 else None
            axes.errorbar(np.exp(mean), row + shift, xerr=[[low], [high]], fmt="o", ms=4, color=colour, label=name)
    axes.set_yticks(range(len(IDEAS)), [idea for idea, _, _ in reversed(IDEAS)], fontsize=8)
    axes.set_xscale("log")
    ticks = [0.03, 0.1, 0.3, 1, 3]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set(xlabel="slowdown after / before, with 95 % intervals of logs", title="What each idea does to slowdown")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False)
    return figure


def make(cross: Path, adaptive: Path, estimates: Path) -> None:
    """Make the numbers, the figure and the tables of the page on all systems."""
    for part in PARTS:
        write_rows(part, collected(cross, f"{part}-*.csv")[ROWS])
    columns = ["study", "label", "workload", "envelope", "capacity", *FURTHER]
    write_rows("grounds", table_of(adaptive)[columns])
    write_rows("estimates", collected(estimates, "held-*.csv")[ESTIMATES])
    write_details(Numbers.read(DATA))


def collected(folder: Path, pattern: str) -> pd.DataFrame:
    """Return the rows of the files of a study."""
    return pd.concat([pd.read_csv(path) for path in sorted(folder.glob(pattern))], ignore_index=True)


def write_rows(name: str, table: pd.DataFrame) -> None:
    """Write rows to a file of data/."""
    table.to_csv(DATA / f"{name}.csv", index=False, float_format="%.8g", lineterminator="\n")


def write_details(numbers: Numbers) -> None:
    """Write the long tables and the figure."""
    for name, frame in details(numbers).items():
        frame.to_csv(DATA / f"{name}.csv", index=False, lineterminator="\n")
    draw(numbers).savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("cross", "adaptive", "estimates")))
