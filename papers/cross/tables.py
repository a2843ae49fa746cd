"""Numbers, figure and tables of the page on all systems, from the results of `papers.cross.run` and adaptive.yaml.

`tune.csv`, `held.csv`, `grounds.csv` and `estimates.csv` have the rows of runs. `systems.csv`, `ideas.csv`, `front.csv`
and `others.csv` in data/ are tables too long for the page.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure

from batwatt.results.compared import mean_of
from papers import pages
from papers.cross import measures
from papers.cross.measures import BASE, CELL, GROUNDS, IDEAS, OURS, PARTS, SAMPLE, SLOWDOWN, WORK, by_log, pivot, ratios
from papers.cross.run import ESTIMATES, EXACT, WITHOUT_RUN_TIMES
from papers.pages import NOTHING, markdown, mean_text, table_of, with_error
from papers.statements import statement_tables, statements_of

BOUNDED = "mean_bounded_slowdown"
ROBUST = ("adaptive + checkpoint", "doubling")
"""Case and way that the declaration expects to be the best without exact run times."""
HERE = Path(__file__).resolve().parent
PAGE, DATA, FIGURE = HERE / "README.md", HERE / "data", HERE / "figure.png"
ROWS = ["case", *SAMPLE, "seed", "jobs_total", "jobs_finished", "killed_power", SLOWDOWN, "mean_wait_s", WORK,
        "energy_j", "energy_above_cap_j", "carbon_g", "cost"]  # fmt: skip
"""Columns of the committed rows."""
ESTIMATED = ["part", "log", "way", "share", "signal", "case", "jobs_total", "jobs_finished", "killed_power",
             BOUNDED, SLOWDOWN, "mean_wait_s", WORK, "energy_j", "carbon_g"]  # fmt: skip
"""Columns of the committed rows of the study of estimates."""
FURTHER = ["mean_slowdown", "goodput_with_running", SLOWDOWN, "max_full_speed_slowdown", WORK, "jobs_finished"]
MEASURES = {"slowdown": SLOWDOWN, "wait": "mean_wait_s", "carbon": "carbon_g", "work finished": WORK}


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return logarithms of bounded slowdowns: a row for each sample, a column for each (case, way)."""
    sample = ["log", "signal", "share"]
    return np.log(table.pivot_table(index=sample, columns=["case", "way"], values=BOUNDED, sort=False))


def ways(table: pd.DataFrame) -> str:
    """Return a row for each case: its bounded slowdown in each way, and the work finished.

    Slowdown is the geometric mean of logs, work the mean of samples in the way with the least.
    """
    names = list(yaml.safe_load(ESTIMATES.read_text())["ways"])
    logs = wide(table)
    work = table.groupby(["case", "way"])[WORK].mean().groupby("case").min()
    rows = []
    for case in table["case"].unique():
        run = [EXACT if case in WITHOUT_RUN_TIMES else way for way in names]
        rows.append([case, *(f"{math.exp(by_log(logs[case, way])[0]):.1f}" for way in run), f"{work[case]:.1%}"])
    return markdown(["case", *names, "work finished"], rows)


def rivals(logs: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the robust case in its other ways, then each further case in its best way but `EXACT`."""
    own, best = [], []
    for case in logs.columns.unique("case"):
        names = list(logs[case])
        if case == ROBUST[0]:
            own = [(case, way) for way in names if (case, way) != ROBUST]
        else:
            without = names if case in WITHOUT_RUN_TIMES else [way for way in names if way != EXACT]
            best.append((case, min(without, key=lambda way, case=case: by_log(logs[case, way])[0])))
    return own + best


def robust(table: pd.DataFrame) -> str:
    """Return the ratio of bounded slowdown of the robust case to its rivals, with the 95 % interval of logs."""
    logs = wide(table)
    rows = []
    for rival in rivals(logs):
        ratio = (logs[ROBUST] - logs[rival]).dropna()
        mean, half = by_log(ratio)
        better = (ratio.groupby(level="log").mean() < 0.0).sum()
        interval = f"{math.exp(mean - half):.2f} to {math.exp(mean + half):.2f}"
        rows.append([*rival, f"{math.exp(mean):.2f}", interval, f"{better} of {ratio.index.unique('log').size}"])
    return markdown(["compared with", "way", "ratio", "95 % interval", "logs with less"], rows, texts=2)


def systems(table: pd.DataFrame) -> list[dict[str, str]]:
    """Return a row for each case: means over cells and their samples."""
    wide = {name: pivot(table, name) for name in ROWS if name not in ("case", *SAMPLE, "seed")}
    fronts = [case for _, cell in table.groupby(CELL) for case, by in measures.beaten(cell).items() if not by]
    cells = table.groupby(CELL).ngroups
    rows = []
    for case in table["case"].unique():
        of = {name: values[case] for name, values in wide.items()}
        rows.append({
            "case": case,
            "jobs finished": f"{(of['jobs_finished'] / of['jobs_total']).mean():.1%}",
            "work finished": f"{(of[WORK] / wide[WORK].max(axis=1)).mean():.1%}",
            "kills": f"{of['killed_power'].mean():.0f}",
            "slowdown": f"{math.exp(np.log(of[SLOWDOWN]).mean()):.1f}",
            "wait, h": f"{of['mean_wait_s'].mean() / 3600:.1f}",
            f"carbon / {BASE}": f"{(of['carbon_g'] / wide['carbon_g'][BASE]).mean():.2f}",
            "energy above the envelope": f"{(of['energy_above_cap_j'] / of['energy_j']).mean():.1%}",
            "cells on the front": NOTHING if case in measures.REFERENCES else f"{fronts.count(case)} of {cells}",
        })  # fmt: skip
    return rows


def spread(ratio: pd.Series) -> str:
    """Return the geometric mean of the logs, its 95 % interval, least and greatest cell."""
    mean, half = by_log(np.log(ratio))
    return f"{math.exp(mean):.2f} ×/÷ {math.exp(half):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"


def ideas(table: pd.DataFrame) -> list[dict[str, str]]:
    """Return a row for each idea: the ratios of slowdown, wait, carbon and work after to before."""
    return [
        {"idea": idea, "cases": f"{before} → {after}"}
        | {head: spread(ratios(table, name, before, after)) for head, name in MEASURES.items()}
        for idea, before, after in IDEAS
    ]


def front(table: pd.DataFrame) -> list[dict[str, str]]:
    """Return for each cell the slowdown of `adaptive`, the best other with at least its work, and those that beat it.

    Each has the ratio of its slowdown to that of `adaptive`, geometric mean ×/÷ standard error; bold beyond two errors.
    """
    rows = []
    for (log, signal, share), cell in table.groupby(CELL, sort=False):
        wide = measures.by_sample(cell)
        slowdown = wide[SLOWDOWN][OURS]
        others = [
            case for case in wide[SLOWDOWN]
            if not any(word in case for word in measures.OWN) and measures.difference(wide, WORK, OURS, case)[0] >= 0.0
        ]  # fmt: skip
        best = min(others, key=lambda case: measures.difference(wide, SLOWDOWN, OURS, case)[0], default=None)
        by = [
            ("**{}**" if clear else "{}").format(ratio_to_ours(wide, case))
            for case, clear in measures.beaten(cell)[OURS].items()
        ]
        rows.append({
            "log, signal, share": f"{log}, {signal}, {share:g}",
            OURS: mean_text(slowdown, 2),
            "best other that finishes as much": NOTHING if best is None else ratio_to_ours(wide, best),
            "jobs finished": f"{cell.loc[cell['case'] == OURS, 'jobs_finished'].mean():.0f}",
            "beaten by": ", ".join(by) or "nobody",
        })  # fmt: skip
    return rows


def ratio_to_ours(wide: pd.DataFrame, case: str) -> str:
    """Return a case with the ratio of its slowdown to that of `adaptive`."""
    mean, error = measures.difference(wide, SLOWDOWN, OURS, case)
    return f"{case}: {math.exp(mean):.3g} ×/÷ {math.exp(error):.2f}"


def on_grounds(table: pd.DataFrame) -> str:
    """Return for each paper's ground the best of the others in the mean, `adaptive`, and the paired difference."""
    rows = [
        [
            row.title,
            f"{row.best}: {row.best_mean:.4g}",
            f"{row.label}: {row.mean:.4g}",
            f"{with_error(*mean_of(100.0 * row.better)[:2], 1, signed=True)} %",
            str(len(row.better)),
        ]
        for row in measures.ground_rows(table)
    ]
    heads = ["paper, metric", "best of the others", "ours", "better by", "runs"]
    return markdown(heads, rows, texts=3)


def others(table: pd.DataFrame) -> pd.DataFrame:
    """Return means of further measures on the grounds of the papers."""
    rows = {study: table[table["study"] == study].groupby("label", sort=False)[FURTHER].mean() for study in GROUNDS}
    texts = pd.concat(rows, names=["study", "algorithm"])
    return texts.map(lambda value: NOTHING if math.isnan(value) else f"{value:.4g}").reset_index()


def details(parts: dict[str, pd.DataFrame], grounds: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables that are too long for the page, by file name."""
    long = {
        rows.__name__: pd.concat({part: pd.DataFrame(rows(table)) for part, table in parts.items()}, names=["part"])
        for rows in (systems, ideas, front)
    }
    return {name: frame.reset_index("part") for name, frame in long.items()} | {"others": others(grounds)}


def both(frame: pd.DataFrame, columns: list[str]) -> list[list[str]]:
    """Return rows with the texts of both parts in a cell, `tune; held`."""
    one, two = (frame[frame["part"] == part] for part in PARTS)
    first = frame.columns[1]
    return [
        [left[first], *(f"{left[name]}; {right[name]}" for name in columns)]
        for (_, left), (_, right) in zip(one.iterrows(), two.iterrows(), strict=True)
    ]


def read(folder: Path) -> tuple[dict[str, pd.DataFrame], pd.DataFrame, pd.DataFrame]:
    """Return the rows of both parts of study.yaml by name, those of adaptive.yaml and those of estimates.yaml."""
    *parts, grounds, estimates = (pd.read_csv(folder / f"{name}.csv") for name in (*PARTS, "grounds", "estimates"))
    return dict(zip(PARTS, parts, strict=True)), grounds, estimates


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table of the page."""
    parts, grounds, estimates = read(folder)
    long = details(parts, grounds)
    columns = ["work finished", "slowdown", f"carbon / {BASE}", "cells on the front"]
    texts = {name: long["ideas"][name].str.replace(r" \(.*\)", "", regex=True) for name in MEASURES}
    short = long["ideas"].assign(**texts)
    for name in ("carbon", "work finished"):
        short[name] = short[name].str.replace(r" ×.*", "", regex=True)
    statements = statements_of(HERE)
    verdicts = {part: measures.judged(statements, table, grounds) for part, table in parts.items()}
    return {
        **statement_tables(verdicts, "finding"),
        "systems": markdown(["case", *columns], both(long["systems"], columns)),
        "ideas": markdown(["idea", *list(MEASURES)[::2], "work finished"],
                          both(short, [*list(MEASURES)[::2], "work finished"])),
        "grounds": on_grounds(grounds),
        "ways": ways(estimates),
        "robust": robust(estimates),
    }  # fmt: skip


def draw(parts: dict[str, pd.DataFrame]) -> Figure:
    """Draw the ratio of slowdown after to before each idea, with 95 % intervals, on both parts."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    for part, colour, shift in zip(PARTS, ("tab:blue", "tab:orange"), (0.15, -0.15), strict=True):
        for row, (_, before, after) in enumerate(reversed(IDEAS)):
            logs = np.log(ratios(parts[part], SLOWDOWN, before, after))
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
    rows = {part: collected(cross, f"{part}-*.csv")[ROWS] for part in PARTS}
    rows["grounds"] = table_of(adaptive)[["study", "label", "workload", "envelope", "capacity", *FURTHER]]
    rows["estimates"] = collected(estimates, "held-*.csv")[ESTIMATED]
    for name, frame in rows.items():
        pages.write(DATA / f"{name}.csv", frame, "%.8g")
    parts, grounds, _ = read(DATA)
    for name, frame in details(parts, grounds).items():
        pages.write(DATA / f"{name}.csv", frame)
    draw(parts).savefig(FIGURE, dpi=150)


def collected(folder: Path, pattern: str) -> pd.DataFrame:
    """Return the rows of the files of a study."""
    return pd.concat([pd.read_csv(path) for path in sorted(folder.glob(pattern))], ignore_index=True)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("cross", "adaptive", "estimates")))
