"""Make the numbers, the figures and the tables of the powercap paper's page.

    python -m papers.igsc22.tables results/igsc22
        write data/ from the results of study.yaml, then the figures and the tables
    python -m papers.igsc22.tables --check
        compare the tables with data/

`decisions.csv` has the decisions by Eq. 7 (`papers.igsc22.decisions`), `summary.csv` the means of each algorithm by
study and envelope, and over `all` envelopes; `instances.csv` has each run of the optimum, of the algorithms of Table II
and of batwatt's own; `runs.csv` has the runs that decide the statements, `sources.csv` those on the second set of
inputs. Units are in the names of the columns: kills in jobs, violations in steps of the envelope. `batsim.csv` has the
algorithms of Table II on a real Batsim (`papers.batsim`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from papers import batsim, pages
from papers.igsc22.figures import draw_all
from papers.igsc22.frames import (
    ALL,
    FINISHED,
    KILLS,
    OPTIMUM,
    SLOWDOWN,
    VIOLATIONS,
    WAIT,
    WORK,
    Numbers,
    with_sums,
)
from papers.igsc22.measures import MEASURES, SINGLE, STUDIES, THIRD, samples_of
from papers.pages import NOTHING, markdown, number
from papers.runs import table_of
from papers.statements import (
    NO,
    VERDICTS,
    Verdicts,
    counts_table,
    measurable,
    statements_of,
    statements_table,
    verdicts,
)

HERE = Path(__file__).parent
DATA, PAGE = HERE / "data", HERE / "README.md"
ENERGY = "energy_kwh"
DISTANCES = {
    "EBF Slow no config.": (0.43, 0.0, 184.0),
    "EBF Slow HFLD": (2.90, 19.0, 3.0),
    "FF Asc IDFS": (2.91, 28.0, 3.0),
    "FF Slow HFLD": (4.48, 14.0, 3.0),
    "EBF Slow IDSB": (2.12, 23.0, 6.0),
}
"""Table II: mean increase of slowdown, kills and violations over the optimum, profile 3."""
NAMED = (OPTIMUM, *DISTANCES, "FF Slow Frugal", "EBF Slow Frugal", "EBF Slow Frugal forecast",
         "EBF Slow Frugal misjudged")  # fmt: skip
"""The optimum, the algorithms of Table II and batwatt's own."""
TURNS = {"": "letter", " in turns": "turns"}
"""End of a label -> reading of lines 19 to 28; the other end names `work_estimate`, without a word `learned`."""
WHERE = ["study", "label", "workload", "envelope"]
SOURCES = "sources"
"""Study on inputs that are not drawn by us."""
COUNTS = ["killed_power", "killed_walltime", "violations"]
MEANS = [SLOWDOWN, "killed_power", "killed_walltime", KILLS, VIOLATIONS, WORK, ENERGY]
RUN = ["mean_slowdown", *COUNTS, "finished_work_fraction", "energy_j", "lower_bound", "gap", "proven_optimal"]
DECIDING = [SLOWDOWN, *COUNTS, "finished_work_fraction", FINISHED, WAIT]
HEADS = {
    SLOWDOWN: ("slowdown", 2),
    KILLS: ("kills (jobs)", 1),
    VIOLATIONS: ("violations (steps)", 1),
    WORK: ("finished work (%)", 1),
    ENERGY: ("energy (kWh)", 1),
}
"""Column -> heading and decimals."""
COMPARED = (SLOWDOWN, KILLS, VIOLATIONS)


def write_numbers(results: Path, folder: Path) -> None:
    """Write the four files from the table of the study. Raises ValueError for another study."""
    frame = table_of(results)
    if not {"workloads", "profiles"} <= set(frame["study"]):
        raise ValueError(f"{results} is not the study of {HERE / 'study.yaml'}")
    runs = frame[frame["status"] == "done"]
    if len(runs) < len(frame):
        print(f"{len(frame) - len(runs)} of {len(frame)} runs failed; means are over the others", file=sys.stderr)
    if runs.duplicated(WHERE).any():
        raise ValueError(f"{results} has several runs of an algorithm on an instance")
    sources = runs[runs["study"] == SOURCES].sort_values(WHERE)[[*WHERE, *DECIDING]]
    runs = with_sums(runs[runs["study"] != SOURCES]).assign(energy_kwh=lambda rows: rows["energy_j"] / 3.6e6)
    labels = [*NAMED, *sorted(set(frame["label"]) - set(NAMED))]
    for column, values in (("study", frame["study"].unique()), ("label", labels)):
        runs[column] = pd.Categorical(runs[column], values, ordered=True)
    parts = []
    for part in (runs, runs.assign(envelope=ALL)):
        group = part.groupby(["study", "label", "envelope"], observed=True)
        parts.append(group[MEANS].mean().assign(runs=group.size()).reset_index())
    summary = pd.concat(parts).sort_values(["study", "label"], kind="stable")
    instances = runs[runs["label"].isin(NAMED)].sort_values(WHERE)[[*WHERE, *RUN]]
    instances[COUNTS] = instances[COUNTS].astype("Int64")
    deciding = runs[runs["study"].isin(STUDIES)].sort_values(WHERE)[[*WHERE, *DECIDING]]
    means = summary[["study", "label", "envelope", "runs", *MEANS]]
    for name, table in (("summary", means), ("instances", instances), ("runs", deciding), (SOURCES, sources)):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6f", lineterminator="\n")


def cells(row: pd.Series, columns: Sequence[str] = tuple(HEADS)) -> list[str]:
    """Return a cell for each column of a row."""
    return [number(row[name], HEADS[name][1]) for name in columns]


def triple(row: pd.Series, suffix: str = "", *, signed: bool = False) -> str:
    """Return slowdown, kills and violations of a row as one cell."""
    return " / ".join(number(row[name + suffix], HEADS[name][1], signed) for name in COMPARED)


def table2(numbers: Numbers) -> str:
    """Return Table II: means, and distances to the optimum of the same instance, measured and of the paper."""
    runs = numbers.runs("workloads")
    best = runs[runs["label"] == OPTIMUM]
    pairs = runs.merge(best, on=["workload", "envelope"], suffixes=("", "_best"))
    for name in COMPARED:
        pairs[f"{name}_over"] = pairs[name] - pairs[f"{name}_best"]
    pairs["bound_over"] = pairs[SLOWDOWN] - pairs["lower_bound_best"]
    distances = pairs.groupby("label")[[*(f"{name}_over" for name in COMPARED), "bound_over"]].mean()
    rows = []
    for label, row in runs.groupby("label", sort=False)[[*COMPARED, WORK]].mean().iterrows():
        ours = [NOTHING, NOTHING]
        if label in distances.index:
            distance = distances.loc[label]
            ours = [triple(distance, "_over", signed=True), number(distance["bound_over"], 2, signed=True)]
        printed = DISTANCES.get(str(label))
        paper = NOTHING if printed is None else triple(pd.Series(printed, COMPARED), signed=True)
        rows.append([str(label), triple(row), *cells(row, [WORK]), *ours, paper])
    goal = "the optimum" if len(best) and best["proven_optimal"].all() else "the best known schedule"
    heading = ["algorithm", "slowdown / kills / violations", "finished work (%)", f"over {goal}"]
    return markdown([*heading, "slowdown over the lower bound", "paper: over the optimum"], rows)


def means(numbers: Numbers, study: str) -> str:
    """Return the means of a study over all its workloads and envelopes."""
    rows = [[str(label), *cells(row)] for label, row in numbers.means(study).iterrows()]
    return markdown(["algorithm", *(head for head, _ in HEADS.values())], rows)


def readings(numbers: Numbers, decisions: pd.DataFrame) -> str:
    """Return a row for each reading of Algorithm 1: means of its runs, and shares of its decisions by Eq. 7."""
    means, counts = numbers.means("readings"), decisions.drop(columns="envelope").groupby("label").sum()
    rows = []
    for backfilling, (turns, lines), estimate in product(
        ("EBF", "FF"), TURNS.items(), ("learned", "walltime", "exact")
    ):
        label = f"{backfilling} Slow HFLD{turns}" + ("" if estimate == "learned" else f" {estimate}")
        row, count = means.loc[label], counts.loc[label]
        kills = f"{number(row['killed_power'], 1)} + {number(row['killed_walltime'], 1)}"
        figures = [number(row[SLOWDOWN], 2), kills, number(row[VIOLATIONS], 1), number(row[WORK], 1)]
        shares = (count["vacuous"] / count["decisions"], count["slowing"] / count["decisions"])
        rows.append([backfilling, lines, estimate, *figures, *(number(100.0 * share, 1) for share in shares)])
    heading = ["backfilling", "lines 19 to 28", "work", "slowdown", "kills: power + walltime", "violations"]
    return markdown([*heading, "finished work (%)", "fastest (%)", "slow down (%)"], rows, texts=3)


def victims(numbers: Numbers) -> str:
    """Return the figures of both fates of killed jobs, lost / submitted again, under profile 3."""
    again = numbers.means("resubmitted", THIRD)
    lost = pd.concat([numbers.means("workloads", THIRD), numbers.means("readings", THIRD)])
    lost = lost[~lost.index.duplicated()]
    rows = []
    for name, row in again.iterrows():
        label = str(name).removesuffix(" resubmitted")
        pairs = zip(cells(lost.loc[label]), cells(row), strict=True)
        rows.append([label, *(" / ".join(pair) for pair in pairs)])
    return markdown(["lost / submitted again", *(head for head, _ in HEADS.values())], rows)


def on_sources(folder: Path) -> Verdicts:
    """Return the verdicts on the inputs that are not drawn by us, which stand for profile 3 and its workloads."""
    samples = samples_of(pd.read_csv(folder / "sources.csv").assign(envelope=THIRD))
    measures = measurable(MEASURES, samples)
    return verdicts(statements_of(HERE), measures, samples, set(SINGLE) & set(measures))


def both_inputs(judged: Verdicts, other: Verdicts) -> tuple[str, str]:
    """Return the counts of verdicts on both inputs, of rows measured on both, and the rows whose verdicts differ."""
    shared = [(statement, judged.verdict(statement), other.verdict(statement))
              for statement in judged.statements if statement.place in other.measured]  # fmt: skip
    drawn, measured = "profile 3, drawn jobs", "measured weather, Google's jobs"
    words = {
        drawn: [here for _, here, _ in shared],
        measured: [there for _, _, there in shared],
        "the same on both": [here for _, here, there in shared if here == there],
    }
    counts = [[name, str(len(of)), *(str(of.count(word)) for word in VERDICTS)] for name, of in words.items()]
    rows = []
    for statement, *both in shared:
        if both[0] != both[1]:
            values = (number(side.measured[statement.place].value, 2) for side in (judged, other))
            cells_of_both = [f"{value}, {word}" for value, word in zip(values, both, strict=True)]
            rows.append([str(statement.place), statement.statement, statement.unit, *cells_of_both])
    changed = markdown(["#", "the document", "unit", drawn, measured], rows, 5)
    return markdown(["inputs", "measured on both", *VERDICTS], counts), changed


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table, from the files of a folder."""
    numbers = Numbers.read(folder)
    judged = verdicts(statements_of(HERE), MEASURES, samples_of(pd.read_csv(folder / "runs.csv")), SINGLE)
    sources, changed = both_inputs(judged, on_sources(folder))
    return {
        "summary": counts_table({"": judged}),
        "contradicted": statements_table({"here": judged}, words=(NO,)),
        "statements": statements_table({"here": judged}),
        "table2": table2(numbers),
        "batsim": batsim.table(HERE),
        "readings": readings(numbers, pd.read_csv(folder / "decisions.csv")),
        "sources": sources,
        "changed": changed,
        "victims": victims(numbers),
        "own": means(numbers, "own"),
        "other-seeds": means(numbers, "other-seeds"),
    }


def make(results: Path) -> None:
    """Make the numbers, the figures and the tables of the powercap paper's page from the results of study.yaml."""
    write_numbers(results, DATA)
    draw_all(HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("igsc22",)))
