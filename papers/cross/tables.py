"""Numbers, figure and tables of the page on all systems, from the results of `papers.cross.run` and adaptive.yaml.

`tune.csv`, `held.csv`, `grounds.csv` and `estimates.csv` have the rows of runs. `systems.csv`, `ideas.csv`, `front.csv`
and `others.csv` in data/ are tables too long for the page.

Samples of statements are the logs of a part, as cells of one log share its jobs: a key (measure, before, after) has the
mean logarithm of the ratio after to before over the cells of a log. On the grounds of the papers samples are instances.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure

from batwatt.results.compared import mean_of, sure
from papers import pages, statements
from papers.cross.run import ESTIMATES, EXACT, WITHOUT_RUN_TIMES
from papers.pages import NOTHING, markdown, mean_text, table_of, with_error
from papers.statements import Quantity, Samples, Statement, Statistic, Verdicts, mean, over, statement_tables

PARTS = ("tune", "held")
CELL = ["log", "signal", "share"]
SAMPLE = [*CELL, "sample"]
REFERENCES = ("no limit", "constant")
"""Cases that ignore the power."""
SLOWDOWN, WORK = "mean_full_speed_slowdown", "finished_work_fraction"
"""The measures of the front."""
BASE, OURS = "varcap LWW", "adaptive + checkpoint"
OWN = ("adaptive", "least loss", "preemption")
"""Words in the names of cases with parts of `adaptive`."""
IDEAS = (
    ("shortest first", "varcap LWW", "LWW + shortest first"),
    ("checkpoint for resubmit (LWW)", "varcap LWW", "LWW + checkpoint"),
    ("shortest first, of jobs with checkpoints", "LWW + checkpoint", "LWW + checkpoint + shortest first"),
    ("largest slowdown first, likewise", "LWW + checkpoint", "LWW + checkpoint + slowdown"),
    ("six hours of foresight", "varcap LWW", "LWW + foresight"),
    ("long jobs on stable machines", "varcap LWW", "varcap long-short"),
    ("the same, of jobs with checkpoints", "LWW + checkpoint", "long-short + checkpoint"),
    ("resubmit for lose (frugal)", "powercap frugal", "frugal + resubmit"),
    ("checkpoint for resubmit (frugal)", "frugal + resubmit", "frugal + checkpoint"),
    ("planned checkpoints for checkpoints on a kill", "LWW + checkpoint", "checkpoint"),
    ("waiting for less carbon (checkpoint)", "checkpoint", "checkpoint + shift"),
    ("waiting for less carbon (LWW)", "LWW + checkpoint", "LWW + checkpoint + shift"),
    ("least loss and Smith's rule", "LWW + checkpoint + shortest first", "least loss + checkpoint + Smith"),
    ("stopping jobs for shorter ones", "LWW + checkpoint + shortest first", "shortest first + preemption"),
    ("the same, first come, first served", "LWW + checkpoint", "LWW + checkpoint + preemption"),
    ("shortest first, of jobs that are stopped", "LWW + checkpoint + preemption", "shortest first + preemption"),
    ("least loss, likewise", "shortest first + preemption", OURS),
)
"""An idea, and the cases before and after it."""
GROUNDS = {
    "powercap": ("mean_slowdown", "lower", "Fontana de Nardin et al.: mean slowdown"),
    "riskaware-borg": ("goodput_with_running", "higher", "Perotin et al., Borg weeks: goodput"),
    "riskaware-synthetic": ("goodput_with_running", "higher", "Perotin et al., synthetic jobs: goodput"),
    "varcap-mira": ("goodput_with_running", "higher", "varcap dissertation, HPC: goodput"),
    "varcap-azure": ("goodput_with_running", "higher", "varcap dissertation, cloud: goodput"),
    "checkpoint": ("goodput_with_running", "higher", "Cendrier et al.: goodput"),
}
"""Study of adaptive.yaml -> the paper's metric, its better direction, and the title of the row."""


def pivot(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a measure: a row for each sample of a cell, a column for each case."""
    return table.pivot_table(index=SAMPLE, columns="case", values=name, sort=False)


def followed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the cases that follow the power."""
    return table[~table["case"].isin(REFERENCES)]


def by_sample(cell: pd.DataFrame) -> pd.DataFrame:
    """Return slowdown and work of each case that follows the power, a row for each sample: means over seeds."""
    return followed(cell).pivot_table(index="sample", columns="case", values=[SLOWDOWN, WORK], sort=False)


def difference(wide: pd.DataFrame, metric: str, case: str, other: str) -> tuple[float, float]:
    """Return the paired difference of another case to a case in logarithms: mean over the samples, standard error.

    Values that differ by rounding are equal; one sample has no error.
    """
    paired = np.log(wide[metric][other] / wide[metric][case]).round(8)
    return float(paired.mean()), float(paired.sem())


def beaten(cell: pd.DataFrame) -> dict[str, dict[str, bool]]:
    """Return for each case the others with at least its work and at most its slowdown, and one of the two better.

    The value of another case is True if it is better by more than two standard errors.
    """
    wide = by_sample(cell)
    cases = list(dict.fromkeys(followed(cell)["case"]))
    logs = {}
    for name in (SLOWDOWN, WORK):
        values = wide[name][cases].to_numpy()
        pairs = np.log(values[:, None, :] / values[:, :, None]).round(8)
        logs[name] = pd.DataFrame(pairs.reshape(len(values), -1))
    shape = (len(cases), len(cases))
    slower, more = (logs[name].mean().to_numpy().reshape(shape) for name in (SLOWDOWN, WORK))
    slower_error, more_error = (logs[name].sem().to_numpy().reshape(shape) for name in (SLOWDOWN, WORK))
    better = (slower <= 0.0) & (more >= 0.0) & ((slower < 0.0) | (more > 0.0))
    clear = (-slower > 2.0 * slower_error) | (more > 2.0 * more_error)
    return {case: {cases[m]: bool(clear[n, m]) for m in np.flatnonzero(better[n])} for n, case in enumerate(cases)}


def by_log(logarithms: pd.Series) -> tuple[float, float]:
    """Return the mean over logs of logarithms of ratios, and half its 95 % interval (Student's t).

    Cells of one log share its jobs, so that the mean of a log is one value.
    """
    middle, error, count = mean_of(logarithms.groupby(level="log", sort=False).mean())
    return middle, error * sure(count)


def ratios(table: pd.DataFrame, name: str, before: str, after: str) -> pd.Series:
    """Return the ratio of a measure after to before: a value for each cell, the geometric mean of its samples."""
    wide = pivot(table, name)
    # no ratio for a slowdown or a wait of 0
    some = (wide[before] > 0.0) & (wide[after] > 0.0)
    return np.exp(np.log((wide[after] / wide[before])[some]).groupby(level=CELL, sort=False).mean())


@dataclass(frozen=True)
class Ground:
    """`adaptive` on the ground of a paper: the best of the others, and how much `better` it is, a share by instance."""

    title: str
    best: str
    best_mean: float
    label: str
    mean: float
    better: pd.Series


def ground_rows(table: pd.DataFrame) -> Iterator[Ground]:
    """Yield each case of `adaptive` with the best of the others in the mean, by paper and cost of a checkpoint."""
    for study, (metric, better, title) in GROUNDS.items():
        rows = table[table["study"] == study]
        inputs = [name for name in ("workload", "envelope", "capacity") if name in rows and rows[name].notna().any()]
        wide = rows.pivot_table(index=inputs, columns="label", values=metric, sort=False)
        for cost in sorted({label.partition(" C=")[2] for label in wide}, key=lambda text: float(text or 0)):
            labels = [label for label in wide if label.partition(" C=")[2] == cost]
            means = wide[[label for label in labels if not label.startswith("adaptive")]].mean()
            best = means.idxmin() if better == "lower" else means.idxmax()
            for label in [label for label in labels if label.startswith("adaptive")]:
                relative = (wide[label] / wide[best] - 1.0).dropna()
                yield Ground(
                    title + (f", C = R = {cost} s" if cost else ""), best, means[best], label.partition(" C=")[0],
                    wide[label].mean(), relative * (-1.0 if better == "lower" else 1.0),
                )  # fmt: skip


CASES = {idea: (before, after) for idea, before, after in IDEAS} | {"carbon": (BASE, "carbon")}
CARBON, UNFINISHED, FOREIGN = "carbon_g", "unfinished_percent", "beaten_by_others"
FIRST, STOPPING, STABLE, FORESIGHT = (
    "shortest first", "stopping jobs for shorter ones", "long jobs on stable machines", "six hours of foresight"
)  # fmt: skip
KEPT, PLANNED, LATER, AGAIN = (
    "checkpoint for resubmit (LWW)", "planned checkpoints for checkpoints on a kill",
    "waiting for less carbon (checkpoint)", "resubmit for lose (frugal)",
)  # fmt: skip
ANSWERS = (FORESIGHT, STABLE, KEPT, PLANNED)
"""Ideas that answer a change of power, after LWW."""


def ratio(idea: str, measure: str = SLOWDOWN) -> Quantity:
    """Return the geometric mean of a measure after to before over the logs."""
    return Quantity(lambda m: np.exp(m(measure, *CASES[idea])))


MEASURES: dict[int, Statistic] = {
    1: 1.0 / ratio(STOPPING),
    2: 100.0 * (ratio(STOPPING, WORK) - 1.0),
    3: 1.0 / ratio("the same, first come, first served"),
    4: 1.0 / ratio(FIRST),
    5: 100.0 * (ratio(FIRST, WORK) - 1.0),
    6: over(min, map(ratio, ANSWERS)) / ratio(FIRST),
    7: 1.0 / ratio(KEPT),
    8: 1.0 / ratio(KEPT, CARBON),
    9: 1.0 / ratio(PLANNED),
    10: mean(UNFINISHED),
    11: 1.0 / ratio(STABLE),
    12: 100.0 * (1.0 - ratio(STABLE, WORK)),
    13: ratio(FORESIGHT),
    14: 100.0 * (ratio(LATER, CARBON) - 1.0),
    15: ratio(LATER),
    16: 1.0 / ratio("carbon", CARBON),
    17: ratio("carbon"),
    18: 100.0 * (ratio(AGAIN, WORK) - 1.0),
    19: ratio(AGAIN),
    20: mean(FOREIGN),
}
"""Number of a row -> its quantity; the rows after these are of the grounds."""


def samples_of(table: pd.DataFrame) -> Samples:
    """Return the values of each log of a part, in the order of its rows."""
    logs = list(dict.fromkeys(table["log"]))
    values = {
        (measure, *pair): np.log(ratios(table, measure, *pair)).groupby(level="log").mean()[logs].to_numpy()
        for measure in (SLOWDOWN, WORK, CARBON)
        for pair in CASES.values()
    }
    finished = (pivot(table, "jobs_finished") / pivot(table, "jobs_total"))["riskaware"]
    values[(UNFINISHED,)] = 100.0 * (1.0 - finished.groupby(level="log").mean()[logs].to_numpy())
    others = {
        place: sum("preemption" not in case for case in beaten(cell)[OURS]) for place, cell in table.groupby(CELL)
    }
    counts = pd.Series(others).groupby(level=0).mean()
    values[(FOREIGN,)] = counts[logs].to_numpy(float)
    return Samples(values)


def judged(listed: list[Statement], table: pd.DataFrame, grounds: pd.DataFrame) -> Verdicts:
    """Return the verdicts by the rows of a part; on the grounds of the papers, which have one part, by theirs."""
    ours = statements.verdicts(listed, MEASURES, samples_of(table)).measured
    return Verdicts(listed, ours | on_grounds(grounds))


def on_grounds(table: pd.DataFrame) -> Mapping[int, statements.Measured]:
    """Return how much better than the best of the others `adaptive` is, in %, with the paper's objective."""
    rows = (row for row in ground_rows(table) if "for slowdown" not in row.label)
    return {
        place: statements.measured(mean("better"), Samples({("better",): 100.0 * row.better.to_numpy()}))
        for place, row in enumerate(rows, len(MEASURES) + 1)
    }


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
RATIOS = {"slowdown": SLOWDOWN, "wait": "mean_wait_s", "carbon": "carbon_g", "work finished": WORK}


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
    fronts = [case for _, cell in table.groupby(CELL) for case, by in beaten(cell).items() if not by]
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
            "cells on the front": NOTHING if case in REFERENCES else f"{fronts.count(case)} of {cells}",
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
        | {head: spread(ratios(table, name, before, after)) for head, name in RATIOS.items()}
        for idea, before, after in IDEAS
    ]


def front(table: pd.DataFrame) -> list[dict[str, str]]:
    """Return for each cell the slowdown of `adaptive`, the best other with at least its work, and those that beat it.

    Each has the ratio of its slowdown to that of `adaptive`, geometric mean ×/÷ standard error; bold beyond two errors.
    """
    rows = []
    for (log, signal, share), cell in table.groupby(CELL, sort=False):
        wide = by_sample(cell)
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
    mean, error = difference(wide, SLOWDOWN, OURS, case)
    return f"{case}: {math.exp(mean):.3g} ×/÷ {math.exp(error):.2f}"


def grounds_table(table: pd.DataFrame) -> str:
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
    texts = {name: long["ideas"][name].str.replace(r" \(.*\)", "", regex=True) for name in RATIOS}
    short = long["ideas"].assign(**texts)
    for name in ("carbon", "work finished"):
        short[name] = short[name].str.replace(r" ×.*", "", regex=True)
    listed = statements.statements_of(HERE)
    verdicts = {part: judged(listed, table, grounds) for part, table in parts.items()}
    return {
        **statement_tables(verdicts, "finding"),
        "systems": markdown(["case", *columns], both(long["systems"], columns)),
        "ideas": markdown(["idea", *list(RATIOS)[::2], "work finished"],
                          both(short, [*list(RATIOS)[::2], "work finished"])),
        "grounds": grounds_table(grounds),
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
