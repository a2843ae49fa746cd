"""Make the numbers, the figure and the tables of the riskaware paper's page.

    python -m papers.pmbs23.tables results/pmbs23
        write data/means.csv and data/claims.csv from the results of study.yaml, then the figure and the tables
    python -m papers.pmbs23.tables --check
        compare the tables with these files and data/peer.csv

`means.csv` has the means of each strategy at each point, `claims.csv` every number that decides a claim.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from papers import pages
from papers.claims import Claim, claims_table
from papers.pairs import Decided, all_numbers
from papers.pmbs23 import peer
from papers.pmbs23.claims import CLAIMS
from papers.pmbs23.frames import MEASURES, STRATEGIES, means_of, points_of

HERE = Path(__file__).parent
PAGE, FIGURE = HERE / "README.md", HERE / "figure.png"
MEANS, NUMBERS = HERE / "data" / "means.csv", HERE / "data" / "claims.csv"
TYPES = {"borg": "Borg", "uniform": "SyntheticUniform", "log-scale": "log-scale", "3types": "Synthetic3types"}


def saved(claim: Claim, numbers: pd.DataFrame) -> Claim:
    """Return a claim whose test reads its saved numbers, if pairs of runs decide it."""
    test = claim.test
    return replace(claim, test=lambda _: test.outcome(numbers)) if isinstance(test, Decided) else claim


def goodput(rows: pd.DataFrame) -> pd.Series:
    """Return goodput with its standard error as texts, in %."""
    return rows["goodput_percent"].map("{:.1f}".format) + " ± " + rows["goodput_percent_error"].map("{:.1f}".format)


def across(rows: pd.DataFrame, by: str, over: str) -> str:
    """Return a table of goodput: a row per value of `by`, a column per value of `over`."""
    wide = rows.assign(text=goodput(rows)).pivot(index=by, columns=over, values="text").loc[rows[by].unique()]
    lines = [[name, *cells] for name, cells in zip(wide.index, wide.values.tolist(), strict=True)]
    return pages.markdown([by, *map(str, wide.columns)], lines)


def by_type(means: pd.DataFrame) -> str:
    """Return the mean goodput of each strategy at the usual range, by type."""
    rows = means[means["study"].str.startswith("range-") & (means["value"] == 8.0)]
    kinds = pd.Categorical(rows["study"].str.removeprefix("range-").map(TYPES), TYPES.values(), ordered=True)
    return across(rows.assign(jobs=kinds, strategy=rows["label"]), "strategy", "jobs")


def others(means: pd.DataFrame) -> str:
    """Return the four metrics of Figure 4 on Borg at the usual range."""
    rows = means[(means["study"] == "range-borg") & (means["value"] == 8.0)]
    lines = [
        [row["label"], *(pages.number(row[name], 0 if "slowdown" in name else 1 if "percent" in name else 2) for name
                         in MEASURES)]
        for _, row in rows.iterrows()
    ]  # fmt: skip
    return pages.markdown(["strategy", *MEASURES.values()], lines)


def blurred(means: pd.DataFrame) -> str:
    """Return the mean goodput on Synthetic3types with lengths as in the text and blurred."""
    words = {"range-3types": "as in the text", "blurred-3types": "blurred by 5 %"}
    rows = means[means["study"].isin(words) & means["value"].isin([0.0, 8.0])]
    return across(rows.assign(lengths=rows["study"].map(words), strategy=rows["label"]), "strategy", "lengths")


def often(means: pd.DataFrame) -> str:
    """Return the mean goodput of the first fits on SyntheticUniform at a period of 400 s, by reading."""
    words = {
        "period-uniform": "a load of 26 machines",
        "moving-uniform": "walks that always move",
        "longer-uniform": "jobs of 209,664 / n hours",
    }
    rows = means[means["study"].isin(words) & means["value"].isin([0.0, 400.0])]
    rows = rows[rows["label"].str.startswith("FirstFit")]
    return across(rows.assign(reading=rows["study"].map(words)), "reading", "label")


def draw(means: pd.DataFrame) -> Figure:
    """Draw goodput of every strategy by the range of the number of machines, a panel per type of jobs."""
    figure = Figure(figsize=(7.2, 5.0), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flat
    for axes, (kind, name) in zip(panels, TYPES.items(), strict=True):
        rows = means[means["study"] == f"range-{kind}"]
        for turn, label in enumerate(STRATEGIES.values()):
            line = rows[rows["label"] == label]
            axes.errorbar(line["value"], line["goodput_percent"], line["goodput_percent_error"], label=label,
                          marker="osD^v"[turn], markersize=4, color=mpl.colormaps["tab10"](turn),
                          linewidth=1.2)  # fmt: skip
        axes.set_title(name, fontsize=10)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("range of the number of machines", fontsize=10)
    figure.supylabel("goodput (%)", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def tables(folder: Path = MEANS.parent) -> dict[str, str]:
    """Return every table, from the files."""
    means, numbers = pd.read_csv(folder / MEANS.name), pd.read_csv(folder / NUMBERS.name)
    claims = [saved(claim, numbers[numbers["claim"] == place]) for place, claim in enumerate(CLAIMS, 1)]
    return {
        "claims": claims_table(claims, means),
        "peer": peer.table(STRATEGIES),
        "types": by_type(means),
        "metrics": others(means),
        "blurred": blurred(means),
        "often": often(means),
    }


def make(results: Path) -> None:
    """Make the numbers, the figure and the tables of the riskaware paper's page from the results of study.yaml."""
    points = points_of(results)
    all_numbers(points, CLAIMS).round(6).to_csv(NUMBERS, index=False, lineterminator="\n")
    means = means_of(points)
    means.to_csv(MEANS, index=False, lineterminator="\n")
    draw(means).savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("pmbs23",)))
