"""Make the numbers, the figures and the tables of the varcap dissertation's page.

    python -m papers.varcap.tables results/varcap results/varcap-claims results/varcap-prices
        write data/ from the results of study.yaml, claims.yaml and prices.yaml, then the figure and the tables
    python -m papers.varcap.tables --check
        compare the tables with data/

`runs.csv`, `claims-runs.csv` and `prices-runs.csv` have the figures of each run of the three studies, `claims.csv`
every number that decides a claim of the first two tables, `sentences.csv` the sentences that a single number decides,
`fairness.csv` the measures of terminations; `variation.csv`, `stranded.csv`, `cost.csv` and `ranges.csv` are of
capacities by carbon and price (`prices.py`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from papers import pages
from papers.claims import claims_table
from papers.pages import markdown, number
from papers.pairs import Points, all_numbers, interval
from papers.runs import FIXED
from papers.varcap import prices, sentences
from papers.varcap.claims import CLAIMS, GENERAL, tng_table
from papers.varcap.frames import CONVENTIONAL, read_points, write_runs

HERE = Path(__file__).parent
PAGE, DATA, FIGURE = HERE / "README.md", HERE / "data", HERE / "figure.png"
RUNS, SINGLE, PRICED = DATA / "runs.csv", DATA / "claims-runs.csv", DATA / "prices-runs.csv"
FAIRNESS, SENTENCES = DATA / "fairness.csv", DATA / "sentences.csv"
LIMITS = (5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)
"""Tolerable losses of goodput of Table 7.3, in %."""
PRINTED = {"Base": (0, 0, 0, 3, 6, 6, 9), "LongShort": (1, 49, 60, 63, 69, 74, 83),
           "TwoMode": (1, 51, 60, 66, 74, 83, 91)}  # fmt: skip
"""Table 7.3: acceptable variation in % of the mean capacity, for each of `LIMITS`."""
HEADS = {"goodput_percent": "goodput (%)", "failure_percent": "failures (% of runs)", "wait_min": "wait (min)",
         "work_percent": "useful work (% of fixed)", "saved_percent": "carbon saved (%)",
         "gained_percent": "more capacity (%)", "slowed_percent": "runs longer than their length (%)"}  # fmt: skip


def of_study(points: Points, study: str) -> pd.DataFrame:
    """Return the points of a study."""
    return points.frame[points.frame["study"] == study]


def cell(values: pd.Series) -> str:
    """Return the mean ± standard error of some values."""
    mean, error, _ = interval(values)
    return number(mean, 1) + ("" if math.isnan(error) else f" ± {number(error, 1)}")


def means(rows: pd.DataFrame, by: Sequence[str], names: Sequence[str]) -> str:
    """Return mean ± standard error of some figures for each value of some columns."""
    lines = [
        [*map(str, where), *(cell(part[name]) for name in names)] for where, part in rows.groupby(list(by), sort=False)
    ]
    return markdown([*by, *(HEADS[name] for name in names)], lines, texts=len(by))


def terminations(points: Points) -> str:
    """Return goodput by termination, system and range, and the failures at range 0.6 (Figures 6.4 and 6.5)."""
    rows = points.frame[points.frame["study"].str.startswith("fig6-4-")]
    rows = rows[rows["structure"].isin([FIXED, "walk"])]
    lines = []
    for (study, label), part in rows.groupby(["study", "label"], sort=False):
        by_range = part.groupby("range")
        goodputs = [cell(values) for _, values in by_range["goodput_percent"]]
        failures = cell(by_range.get_group(0.6)["failure_percent"])
        lines.append([sentences.SYSTEMS[str(study).removeprefix("fig6-4-")], str(label), *goodputs, failures])
    ranges = ["fixed", "0.2", "0.4", "0.6"]
    return markdown(["system", "termination", *ranges, "failures at 0.6 (% of runs)"], lines, texts=2)


def acceptable(points: Points, study: str) -> pd.DataFrame:
    """Return the acceptable variation in % of the mean capacity by limit and algorithm, infinite if no more was run."""
    rows = of_study(points, study)
    fixed = rows.loc[(rows["structure"] == FIXED) & rows["label"].isin(CONVENTIONAL), "goodput_percent"].mean()
    limits = {}
    for label, part in rows.groupby("label", sort=False):
        lost = 100.0 * (1.0 - part.groupby("range")["goodput_percent"].mean() / fixed)
        mean = float(part["cap_mean"].mean())
        limits[str(label)] = [100.0 * crossing(lost, limit) / mean for limit in LIMITS]
    return pd.DataFrame(limits, index=pd.Index(LIMITS, name="limit"))


def crossing(lost: pd.Series, limit: float) -> float:
    """Return the range at which the loss reaches a limit, on a straight line between two ranges."""
    before: tuple[float, float] | None = None
    for size, loss in lost.sort_index().items():
        if loss >= limit:
            if before is None:
                return 0.0
            return before[0] + (float(size) - before[0]) * (limit - before[1]) / (loss - before[1])  # type: ignore[arg-type]
        before = float(size), float(loss)  # type: ignore[arg-type]
    return math.inf


def table73(points: Points) -> str:
    """Return Table 7.3 as if jobs ran longer, and as printed."""
    frame = acceptable(points, "longer-7-5")
    columns = [
        (name, frame[label])
        for name in PRINTED
        for label in frame
        if label.split(" ")[0] == name and "sized" not in label
    ]
    lines = []
    for place, limit in enumerate(LIMITS):
        cells = ["all" if math.isinf(values[limit]) else f"{values[limit]:.0f}" for _, values in columns]
        lines.append([f"{limit:g}", *cells, *(str(printed[place]) for printed in PRINTED.values())])
    heading = ["loss (%)", *(name for name, _ in columns), *(f"{name}, printed" for name in PRINTED)]
    return markdown(heading, lines)


def german(points: Points) -> str:
    """Return the German days of each algorithm: mean work over the days, the worst day, failures and waits."""
    rows = of_study(points, "german")
    days = (
        rows[rows["structure"] != FIXED]
        .groupby(["label", "day"], sort=False)[["work_percent", "failure_percent", "wait_min"]]
        .mean()
    )
    lines = [
        [
            str(label),
            *(number(part[name].mean(), 1) for name in days),
            number(part["work_percent"].min(), 1),
            number(part["work_percent"].max(), 1),
        ]
        for label, part in days.groupby(level="label", sort=False)
    ]
    return markdown(["algorithm", *(HEADS[name] for name in days), "worst day", "best day"], lines)


def headroom(points: Points) -> str:
    """Return work, carbon and capacity of LWW by the most capacity (Figure 6.12)."""
    rows = of_study(points, "german-headroom").sort_values("headroom", ascending=False)
    rows = rows[rows["headroom"].isin([1.0, 0.9, 0.8, 0.7])]
    return means(rows.assign(most=rows["headroom"].map("{:g}".format)).rename(columns={"most": "most capacity"}),
                 ["most capacity"], ["work_percent", "saved_percent", "gained_percent"])  # fmt: skip


def oversubscription(points: Points) -> str:
    """Return goodput and lengthened runs of oversubscribed machines, fixed and of range 0.8 (Figure 5.4)."""
    rows = points.frame[points.frame["study"].str.startswith("fig5-4-") & points.frame["range"].isin([0.0, 0.8])]
    rows = rows.assign(
        system=rows["study"].str.removeprefix("fig5-4-").map(sentences.SYSTEMS),
        capacity=rows["structure"].replace(FIXED, "fixed"),
    )
    return means(rows, ["system", "capacity"], ["goodput_percent", "slowed_percent"])


def mustang(points: Points) -> str:
    """Return goodput of the real jobs on the fixed capacity, and goodput, failures and waits on the German one."""
    lines = []
    for label, part in of_study(points, "mustang").groupby("label", sort=False):
        fixed, german = part[part["structure"] == FIXED], part[part["structure"] != FIXED]
        names = ("goodput_percent", "failure_percent", "wait_min")
        lines.append([str(label), cell(fixed["goodput_percent"]), *(cell(german[name]) for name in names)])
    heading = ["fixed: goodput (%)", *(f"Germany: {HEADS[name]}" for name in names)]
    return markdown(["algorithm", *heading], lines)


def draw(points: Points) -> Figure:
    """Draw goodput by range: terminations on Mira and Azure, and schedulers of a TNG cell as if jobs ran longer."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    parts = (
        ("fig6-4-mira", "Mira", {"Random": 0, "LWW": 2, "LFD": 1}),
        ("fig6-4-azure", "Azure", {"Random": 0, "LWW": 2, "LFD": 1}),
        ("longer-7-5", "TNG, longer jobs", {"Base": 0, "LongShort": 4, "TwoMode 3 h": 6}),
    )
    for axes, (study, title, labels) in zip(panels, parts, strict=True):
        rows = of_study(points, study)
        rows = rows[rows["structure"].isin([FIXED, "walk"])]
        for label, turn in labels.items():
            values = rows[rows["label"] == label].groupby("range")["goodput_percent"].agg(["mean", "sem"])
            axes.errorbar(
                values.index,
                values["mean"],
                values["sem"],
                label=label,
                marker="osD^v<>"[turn],
                markersize=4,
                color=mpl.colormaps["tab10"](turn),
            )
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("range of the walk")
        axes.set_ylim(0, 100)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8, frameon=False, loc="lower left")
    panels[0].set_ylabel("goodput (%)")
    return figure


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table."""
    points = read_points(folder / RUNS.name)
    return {
        "claims": claims_table(GENERAL, points),
        "tng": tng_table(points),
        "sentences": sentences.counts_table(pd.read_csv(folder / SENTENCES.name)),
        "fairer": sentences.fairness_table(folder / FAIRNESS.name),
        "prices": prices.sentences_table(),
        "terminations": terminations(points),
        "table73": table73(points),
        "oversubscription": oversubscription(points),
        "german": german(points),
        "headroom": headroom(points),
        "mustang": mustang(points),
    }


def make(results: Path, single: Path, priced: Path) -> None:
    """Make the numbers, the figure and the tables of the varcap page from the results of its studies."""
    for folder, path in ((results, RUNS), (single, SINGLE), (priced, PRICED)):
        write_runs(folder, path)
    sentences.write_fairness(single, FAIRNESS)
    sentences.outcomes(read_points(SINGLE)).to_csv(SENTENCES, index=False, lineterminator="\n")
    prices.write_numbers(read_points(PRICED))
    points = read_points(RUNS)
    all_numbers(points, CLAIMS).round(4).to_csv(DATA / "claims.csv", index=False, lineterminator="\n")
    draw(points).savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("varcap", "varcap-claims", "varcap-prices")))
