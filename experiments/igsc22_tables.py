"""Make the tables of docs/results/igsc22.md and docs/results/frugal.md from the results of igsc22.yaml.

    python experiments/igsc22_tables.py results/igsc22
        writes summary.csv and instances.csv to docs/results/igsc22, then makes the tables of the pages from these two
    python experiments/igsc22_tables.py --check
        makes the tables from the two files, needs no results, and exits 1 if a page has another one

On a page a table stands between `<!-- table NAME -->` and `<!-- end -->`, each on a line of its own; `TABLES` has the
names. Every table must be on one of the pages. What else the pages say is left alone.

The numbers themselves, and the two files, are igsc22_numbers.py's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import doc_pages
import pandas as pd
from igsc22_numbers import ALL, ENERGY, OPTIMUM, PAIRS, Numbers, numbers_of, read_numbers, write_numbers

from batwatt.report.grid import NOTHING, GridColumn
from batwatt.report.papers import igsc22
from batwatt.report.table import COMPARED, KILLS, SLOWDOWN, VIOLATIONS, WORK, Measure, read_campaign

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"
PAGES = ("igsc22.md", "frugal.md")
FOLDER = "igsc22"
LOWER_BOUND = Measure("lower_bound", "lower bound", "", "no schedule without kill and violation has less slowdown")
COLUMNS = (SLOWDOWN, KILLS, VIOLATIONS, WORK, ENERGY)
PAIRED = (SLOWDOWN, KILLS, VIOLATIONS, WORK)
BOUNDED = (SLOWDOWN, LOWER_BOUND)
TRIPLE = " / ".join(measure.title for measure in COMPARED)

TIE = 2.0
"""Means of differences that are fewer standard errors than this from 0 decide nothing."""


def shown(value: object, decimals: int, signed: bool = False) -> str:
    """A number with its decimals; a dash if it is none."""
    return GridColumn("", "", decimals=decimals, signed=signed).text(value)


def figures(row: pd.Series | None, measures: Sequence[Measure]) -> list[str]:
    """The measures of a row, a cell each; dashes without a row."""
    if row is None:
        return [NOTHING] * len(measures)
    return [shown(row[measure.name], measure.decimals) for measure in measures]


def triple(row: pd.Series | None, suffix: str = "", *, signed: bool = False, whole: bool = False) -> str:
    """Slowdown, kills and violations of a row in one cell, kills and violations of a single run `whole`."""
    if row is None:
        return NOTHING
    decimals = (SLOWDOWN.decimals, 0, 0) if whole else [measure.decimals for measure in COMPARED]
    names = [measure.name + suffix for measure in COMPARED]
    return " / ".join(shown(row[name], digits, signed) for name, digits in zip(names, decimals, strict=True))


def of(frame: pd.DataFrame, key: Any) -> pd.Series | None:
    """The row of a key, or None."""
    return frame.loc[key] if key in frame.index else None


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A Markdown table with aligned columns, of which the first `texts` are texts and the others numbers."""
    lines = [list(heading), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [c.ljust(w) if n < texts else c.rjust(w) for n, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return f"| {' | '.join(padded)} |\n"

    rule = [":" + "-" * (width - 1) if n < texts else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    return "".join(map(line, [lines[0], rule, *lines[1:]]))


def algorithms_table(numbers: Numbers) -> str:
    """All algorithms of the study of 20 workloads, by slowdown."""
    means = numbers.means(igsc22.WORKLOADS).sort_values(SLOWDOWN.name, kind="stable")
    rows = [[str(label), *figures(row, COLUMNS)] for label, row in means.iterrows()]
    return markdown(["algorithm", *(measure.axis for measure in COLUMNS)], rows)


def table2_table(numbers: Numbers) -> str:
    """The algorithms that stand out: means, and distances to the optimum of the same instance, ours and printed."""
    runs = numbers.runs(igsc22.WORKLOADS)
    best = runs[runs["label"] == OPTIMUM]
    pairs = runs.merge(best, on=["workload", "envelope"], suffixes=("", "_best"))
    names = [measure.name for measure in COMPARED]
    for name in names:
        pairs[f"{name}_over"] = pairs[name] - pairs[f"{name}_best"]
    pairs["bound_over"] = pairs[SLOWDOWN.name] - pairs["lower_bound_best"]
    distances = pairs.groupby("label")[[*(f"{name}_over" for name in names), "bound_over"]].mean()
    rows = []
    for label, row in runs.groupby("label", sort=False)[[*names, WORK.name]].mean().iterrows():
        distance, printed = of(distances, label), igsc22.DISTANCES.get(str(label))
        bound = NOTHING if distance is None else shown(distance["bound_over"], SLOWDOWN.decimals, signed=True)
        paper = None if printed is None else pd.Series(dict(zip(names, printed, strict=True)))
        ours = triple(distance, "_over", signed=True)
        rows.append([str(label), triple(row), *figures(row, [WORK]), ours, bound, triple(paper, signed=True)])
    goal = "the optimum" if best["proven_optimal"].all() else "the best known schedule"
    heading = ["algorithm", TRIPLE, WORK.axis, f"over {goal}", "slowdown over the lower bound"]
    return markdown([*heading, "paper: over the optimum"], rows)


def workloads_table(numbers: Numbers) -> str:
    """Every workload of the study of 20: a column for each algorithm that stands out, and the optimum's bound."""
    runs, means = numbers.runs(igsc22.WORKLOADS), numbers.means(igsc22.WORKLOADS)
    labels = [label for label in runs["label"].unique().tolist() if label != OPTIMUM]
    at, best = runs.set_index(["label", "workload"]), numbers.optimum(igsc22.WORKLOADS).droplevel("envelope")
    rows = [
        [
            workload,
            *figures(of(best, workload), BOUNDED),
            *(triple(of(at, (name, workload)), whole=True) for name in labels),
        ]
        for workload in sorted(runs["workload"].unique())
    ]
    bounds = figures(None if best.empty else best[[measure.name for measure in BOUNDED]].mean(), BOUNDED)
    rows.append(["mean", *bounds, *(triple(of(means, label)) for label in labels)])
    return markdown(["workload", OPTIMUM, LOWER_BOUND.title, *labels], rows)


def profiles_table(numbers: Numbers) -> str:
    """One workload under each profile."""
    study = igsc22.PROFILES
    envelopes = [name for name in numbers.envelopes(study) if name != ALL]
    means = {name: numbers.means(study, name) for name in envelopes}
    labels = numbers.means(study).index.tolist()
    whole = all((frame["runs"] == 1).all() for frame in means.values())
    rows = [[label, *(triple(of(means[name], label), whole=whole) for name in envelopes)] for label in labels]
    return markdown(["algorithm", *envelopes], rows)


def by_envelope(study: str) -> Callable[[Numbers], str]:
    """The table of a study with a row for each envelope and algorithm."""

    def table(numbers: Numbers) -> str:
        rows = [
            [name, str(label), *figures(row, COLUMNS)]
            for name in numbers.envelopes(study)
            for label, row in numbers.means(study, name).iterrows()
        ]
        return markdown(["envelope", "algorithm", *(measure.axis for measure in COLUMNS)], rows, texts=2)

    return table


def paired(*studies: str) -> Callable[[Numbers], str]:
    """The table of the differences between two algorithms: mean over the workloads, and its standard error."""

    def table(numbers: Numbers) -> str:
        rows = []
        for study, one, other in PAIRS:
            if study not in studies:
                continue
            runs = numbers.runs(study)
            for envelope in runs["envelope"].unique().tolist():
                here = runs[runs["envelope"] == envelope].set_index("workload")
                first, second = (here[here["label"] == label] for label in (one, other))
                rows.append([envelope, f"{one} − {other}", *(difference(first, second, m) for m in PAIRED)])
        return markdown(["envelope", "difference", *(measure.axis for measure in PAIRED)], rows, texts=2)

    return table


def difference(one: pd.DataFrame, other: pd.DataFrame, measure: Measure) -> str:
    """Mean and standard error of a measure's differences on the same workloads; "tie" if it may as well be 0."""
    found = (one[measure.name] - other[measure.name]).dropna()
    mean, error = found.mean(), found.sem()
    if len(found) < 2:
        return NOTHING
    text = f"{shown(mean, measure.decimals, signed=True)} ± {shown(error, measure.decimals)}"
    return f"{text} (tie)" if abs(mean) < TIE * error or mean == 0.0 else text


def optimum_table(numbers: Numbers) -> str:
    """The optimum of every workload and envelope: its slowdown, the lower bound, how far they are apart."""
    found: dict[tuple[str, str], pd.Series | None] = {}
    for study in (igsc22.WORKLOADS, igsc22.PROFILES):
        best = numbers.optimum(study)
        places = numbers.runs(study)[["envelope", "workload"]].drop_duplicates()
        for envelope, workload in places.itertuples(index=False):
            found.setdefault((envelope, workload), of(best, (workload, envelope)))
    rows = []
    for (envelope, workload), row in sorted(found.items(), key=lambda item: item[0]):
        cells = [NOTHING] * 4
        if row is not None:
            cells = [shown(row[SLOWDOWN.name], 3), shown(row["lower_bound"], 3), shown(100.0 * row["gap"], 1)]
            cells.append("yes" if row["proven_optimal"] else "no")
        rows.append([workload, envelope, *cells])
    return markdown(["workload", "envelope", "slowdown", "lower bound", "gap (%)", "proven"], rows, texts=2)


TABLES: dict[str, Callable[[Numbers], str]] = {
    "table2": table2_table,
    "algorithms": algorithms_table,
    "workloads": workloads_table,
    "profiles": profiles_table,
    "optimum": optimum_table,
    "paired": paired("readings", "resubmitted"),
    "paired-own": paired("own", "other-seeds"),
    **{study: by_envelope(study) for study in ("readings", "resubmitted", "own", "other-seeds")},
}


def make(results: Path, docs: Path) -> int:
    """Write the two files and the tables of the pages; says which pages changed."""
    pages = doc_pages.read_pages(docs, PAGES, TABLES)
    campaign = read_campaign(results)
    if len(campaign.failed):
        failed = f"{len(campaign.failed)} of {len(campaign.frame)} runs failed; means are over the others"
        print(f"igsc22_tables: {failed}", file=sys.stderr)
    for path in write_numbers(numbers_of(campaign), docs / FOLDER):
        print(f"{path.name}: written")
    # from the files, as the check does: what is lost to 6 decimals is lost here, too
    doc_pages.write(pages, tables_of(docs))
    return 0


def tables_of(docs: Path) -> dict[str, str]:
    """Every table, from the two files. Raises InputError."""
    numbers = read_numbers(docs / FOLDER)
    return {name: table(numbers) for name, table in TABLES.items()}


main = doc_pages.Script("igsc22_tables", DOCS, PAGES, TABLES, ("igsc22",), make, tables_of).main

if __name__ == "__main__":
    sys.exit(main())
