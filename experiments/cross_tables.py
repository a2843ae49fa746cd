"""Make the tables of docs/results/cross.md from what experiments/cross.py and adaptive.yaml have left.

python experiments/cross_tables.py out/cross results/adaptive
    writes docs/results/cross (the rows, the tables) and puts the tables on the page
python experiments/cross_tables.py --check
    needs no results, and exits 1 if the page has other tables than those rows give
"""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import doc_pages
import numpy as np
import pandas as pd

from batwatt.files import write_text
from batwatt.report.front import dominates

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "results"
PAGES, FOLDER = ("cross.md",), "cross"
PARTS = ("tune", "held")
CELL = ["log", "signal", "share"]
SAMPLE = [*CELL, "sample"]
REFERENCES = ("no limit", "constant")
"""Cases that do not follow the power."""
SLOWDOWN, WORK = "mean_full_speed_slowdown", "finished_work_fraction"
"""What the front is of."""
BASE = "varcap LWW"
OURS = "adaptive + checkpoint"
OWN = ("adaptive", "least loss", "preemption")
"""Words of cases that are made of parts of ours."""
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
"""What is done instead, before and after."""
GROUNDS = {
    "powercap": ("mean_slowdown", "lower", "Fontana de Nardin et al.: mean slowdown"),
    "riskaware-borg": ("goodput", "higher", "Perotin et al., Borg weeks: goodput"),
    "riskaware-synthetic": ("goodput", "higher", "Perotin et al., synthetic jobs: goodput"),
    "varcap-mira": ("goodput", "higher", "varcap dissertation, HPC: goodput"),
    "varcap-azure": ("goodput", "higher", "varcap dissertation, cloud: goodput"),
    "checkpoint": ("goodput", "higher", "Cendrier et al.: goodput"),
}
"""Study of adaptive.yaml -> the metric that the paper goes by, which is better, what it is called."""
FURTHER = (
    "mean_slowdown",
    "goodput",
    "mean_full_speed_slowdown",
    "max_full_speed_slowdown",
    "finished_work_fraction",
    "jobs_finished",
)
TABLES = (*(f"{name}-{part}" for part in PARTS for name in ("systems", "ideas", "front")), "grounds", "others")


def frame_of(folder: Path, part: str) -> pd.DataFrame:
    """The rows of a part, as cross.py wrote them."""
    return pd.concat([pd.read_csv(path) for path in sorted(folder.glob(f"{part}-*.csv"))], ignore_index=True)


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    """A table; the first column is text."""
    lines = [columns, [":--", *["--:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def geometric(values: pd.Series) -> float:
    """The geometric mean."""
    return math.exp(float(np.log(values).mean()))


def followed(table: pd.DataFrame) -> pd.DataFrame:
    """The cases that follow the power."""
    return table[~table["case"].isin(REFERENCES)]


def measured(cell: pd.DataFrame) -> pd.DataFrame:
    """Slowdown and work of each case that follows the power, a row for each sample: means over seeds."""
    return followed(cell).pivot_table(index="sample", columns="case", values=[SLOWDOWN, WORK], sort=False)


def difference(wide: pd.DataFrame, metric: str, case: str, other: str) -> tuple[float, float]:
    """Paired difference of another case to a case in logarithms: the mean over the samples, and its standard error.

    What differs by rounding is equal; of one sample there is no error.
    """
    paired = np.log(wide[metric][other] / wide[metric][case]).round(8)
    return float(paired.mean()), float(paired.sem())


def beaten(cell: pd.DataFrame) -> dict[str, dict[str, bool]]:
    """Case -> those that finish at least as much work with at most its slowdown, and one of them better, in the mean.

    With each, whether it is better by more than two standard errors.
    """
    wide = measured(cell)
    cases = list(dict.fromkeys(followed(cell)["case"]))
    found: dict[str, dict[str, bool]] = {case: {} for case in cases}
    for case, other in itertools.permutations(cases, 2):
        slower, slower_error = difference(wide, SLOWDOWN, case, other)
        more, more_error = difference(wide, WORK, case, other)
        if dominates((slower, -more), (0.0, 0.0)):
            found[case][other] = -slower > 2.0 * slower_error or more > 2.0 * more_error
    return found


def systems(table: pd.DataFrame) -> str:
    """A row for each case: means over cells and their samples."""
    wide = {name: table.pivot_table(index=SAMPLE, columns="case", values=name, sort=False) for name in
            (SLOWDOWN, "mean_wait_s", "jobs_total", "jobs_finished", "killed_power", WORK, "carbon_g",
             "energy_above_cap_j", "energy_j")}  # fmt: skip
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
    heads = ["case", "jobs finished", "work finished", "kills", "slowdown", "wait, h", f"carbon / {BASE}",
             "energy above the envelope", "cells on the front"]  # fmt: skip
    return markdown(heads, rows)


def ideas(table: pd.DataFrame) -> str:
    """What an idea does to slowdown, wait, carbon and work: geometric means of the ratios of cells, least and greatest.

    The ratio of a cell is the geometric mean of those of its samples.
    """
    wide = {name: table.pivot_table(index=SAMPLE, columns="case", values=name, sort=False)
            for name in (SLOWDOWN, "mean_wait_s", "carbon_g", WORK)}  # fmt: skip
    rows = []
    for idea, before, after in IDEAS:
        cells = [idea, f"{before} → {after}"]
        for name in wide:
            # where nobody waited before, there is no ratio
            some = (wide[name][before] > 0.0) & (wide[name][after] > 0.0)
            each = np.log((wide[name][after] / wide[name][before])[some])
            ratio = np.exp(each.groupby(level=CELL, sort=False).mean())
            error = math.exp(float(np.log(ratio).sem()))
            cells.append(f"{geometric(ratio):.2f} ×/÷ {error:.2f} ({ratio.min():.2f} to {ratio.max():.2f})")
        rows.append(cells)
    return markdown(["idea", "cases", "slowdown", "wait", "carbon", "work finished"], rows)


def front(table: pd.DataFrame) -> str:
    """For each cell: the slowdown of ours, the best of the others that finish no less work, and who beats ours.

    With each the ratio of its slowdown to ours, geometric mean ×/÷ standard error; in bold what is beyond two of these.
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
        by = [("**{}**" if clearly else "{}").format(shown(wide, case)) for case, clearly in beaten(cell)[OURS].items()]
        rows.append(
            [
                f"{log}, {signal}, {share:g}",
                f"{slowdown.mean():.2f} ± {slowdown.sem():.2f}",
                "–" if best is None else shown(wide, best),
                f"{cell.loc[cell['case'] == OURS, 'jobs_finished'].mean():.0f}",
                ", ".join(by) or "nobody",
            ]
        )
    heads = ["log, signal, share", OURS, "best other that finishes as much", "jobs finished", "beaten by"]
    return markdown(heads, rows)


def shown(wide: pd.DataFrame, case: str) -> str:
    """A case with the ratio of its slowdown to ours."""
    mean, error = difference(wide, SLOWDOWN, OURS, case)
    return f"{case}: {math.exp(mean):.3g} ×/÷ {math.exp(error):.2f}"


def paired(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric of a study: a row for each input, a column for each label."""
    inputs = [name for name in ("workload", "envelope", "capacity") if name in table and table[name].notna().any()]
    return table.pivot_table(index=inputs, columns="label", values=metric, sort=False)


def grounds(table: pd.DataFrame) -> str:
    """On each paper's own ground: the best of the others in the mean, ours, and the paired difference."""
    rows = []
    for study, (metric, better, title) in GROUNDS.items():
        wide = paired(table[table["study"] == study], metric)
        classes = sorted({label.partition(" C=")[2] for label in wide}, key=lambda text: float(text or 0))
        for cost in classes:
            columns = [label for label in wide if label.partition(" C=")[2] == cost]
            others = [label for label in columns if not label.startswith("adaptive")]
            means = wide[others].mean()
            best = means.idxmin() if better == "lower" else means.idxmax()
            for label in [label for label in columns if label.startswith("adaptive")]:
                relative = (wide[label] / wide[best] - 1.0).dropna()
                worse = float(relative.mean()) * (1 if better == "lower" else -1)
                error = float(relative.sem())
                rows.append(
                    [
                        title + (f", C = R = {cost} s" if cost else ""),
                        f"{best}: {means[best]:.4g}",
                        f"{label.partition(' C=')[0]}: {wide[label].mean():.4g}",
                        f"{relative.mean():+.1%} ± {error:.1%}",
                        str(len(relative)),
                        "yes" if worse <= 0.01 else "no",
                    ]
                )
    heads = ["paper, metric", "best of the others", "ours", "difference", "runs", "within 1 % or better"]
    return markdown(heads, rows)


def others(table: pd.DataFrame) -> str:
    """What else becomes of jobs there."""
    rows = []
    for study in GROUNDS:
        means = table[table["study"] == study].groupby("label", sort=False)[list(FURTHER)].mean()
        for label, row in means.iterrows():
            cells = ["–" if row[name] != row[name] else f"{row[name]:.4g}" for name in FURTHER]
            rows.append([study, str(label), *cells])
    return markdown(["study", "algorithm", *FURTHER], rows)


def tables_of(docs: Path) -> dict[str, str]:
    """Every table, from the committed rows."""
    found = {}
    for part in PARTS:
        table = pd.read_csv(docs / FOLDER / f"{part}.csv")
        for make in (systems, ideas, front):
            found[f"{make.__name__}-{part}"] = make(table)
    rows = pd.read_csv(docs / FOLDER / "grounds.csv")
    return found | {"grounds": grounds(rows), "others": others(rows)}


def make(cross: Path, adaptive: Path, docs: Path) -> int:
    """Write rows and tables."""
    pages = doc_pages.read_pages(docs, PAGES, TABLES)
    kept = ["case", *SAMPLE, "seed", "jobs_total", "jobs_finished", "killed_power", SLOWDOWN, "mean_wait_s",
            WORK, "energy_j", "energy_above_cap_j", "carbon_g", "cost"]  # fmt: skip
    (docs / FOLDER).mkdir(exist_ok=True)
    for part in PARTS:
        text = frame_of(cross, part)[kept].to_csv(index=False, float_format="%.8g", lineterminator="\n")
        write_text(docs / FOLDER / f"{part}.csv", text)
    table = pd.read_parquet(adaptive / "table.parquet")
    rows = table[["study", "label", "workload", "envelope", "capacity", *FURTHER]]
    write_text(docs / FOLDER / "grounds.csv", rows.to_csv(index=False, float_format="%.8g", lineterminator="\n"))
    doc_pages.write(pages, tables_of(docs))
    return 0


SCRIPT = doc_pages.Script("cross_tables", DOCS, PAGES, TABLES, ("cross", "adaptive"), make, tables_of)

if __name__ == "__main__":
    sys.exit(SCRIPT.main())
