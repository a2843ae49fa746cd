"""Make the numbers, the figure and the tables of the powercap paper's page.

    python -m papers.igsc22.tables results/igsc22
        write data/ from the results of study.yaml, then the figure and the tables
    python -m papers.igsc22.tables --check
        compare the tables with data/

`summary.csv` has the means of each algorithm by study and envelope, and over `all` envelopes; `instances.csv` has each
run of the optimum, of the algorithms of Table II, of batwatt's own and of those in `PAIRS`; `runs.csv` has the runs
that decide the statements. Units are in the names of the columns: kills in jobs, violations in steps of the envelope.
`paired.csv` has the differences of all `PAIRS`, `decisions.csv` the decisions by Eq. 7 (`papers.igsc22.decisions`),
`batsim.csv` the algorithms of Table II on a real Batsim (`papers.batsim`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from papers import batsim, pages
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
    is_tie,
    with_sums,
)
from papers.igsc22.measures import MEASURES, SINGLE, STUDIES, samples_of
from papers.pages import NOTHING, markdown, number
from papers.runs import table_of
from papers.statements import NO, statements_of, verdicts

HERE = Path(__file__).parent
DATA, PAGE, FIGURE = HERE / "data", HERE / "README.md", HERE / "figure.png"
ENERGY = "energy_kwh"
RESPONSES = ("none", "idfs", "iafs", "idsb", "iasb", "hfld")
"""Responses of the paper."""
DISTANCES = {
    "EBF Slow no config.": (0.43, 0.0, 184.0),
    "EBF Slow HFLD": (2.90, 19.0, 3.0),
    "FF Asc IDFS": (2.91, 28.0, 3.0),
    "FF Slow HFLD": (4.48, 14.0, 3.0),
    "EBF Slow IDSB": (2.12, 23.0, 6.0),
}
"""Table II: mean increase of slowdown, kills and violations over the optimum, profile 3."""
PAIRS = (
    ("readings", "EBF Slow HFLD", "EBF Slow IDFS"),
    ("readings", "EBF Slow HFLD", "EBF Slow IDSB"),
    ("readings", "EBF Slow HFLD in turns", "EBF Slow IDSB"),
    ("readings", "EBF Slow HFLD in turns", "EBF Slow HFLD"),
    ("readings", "EBF Slow HFLD", "EBF Slow HFLD walltime"),
    ("readings", "EBF Slow HFLD", "EBF Slow HFLD exact"),
    ("readings", "FF Slow HFLD", "EBF Slow HFLD"),
    ("readings", "FF Slow HFLD in turns", "EBF Slow HFLD in turns"),
    ("resubmitted", "EBF Slow IDFS resubmitted", "EBF Slow HFLD resubmitted"),
    ("resubmitted", "EBF Slow IDSB resubmitted", "EBF Slow HFLD resubmitted"),
    ("resubmitted", "EBF Slow IDSB resubmitted", "EBF Slow HFLD in turns resubmitted"),
    ("own", "EBF Slow Frugal", "EBF Slow HFLD"),
    ("own", "EBF Slow Frugal forecast", "EBF Slow HFLD"),
    ("other-seeds", "EBF Slow Frugal", "EBF Slow HFLD"),
    ("other-seeds", "EBF Slow Frugal forecast", "EBF Slow HFLD"),
)
"""Study and two of its algorithms to compare by workload."""
HIDDEN = ("EBF Slow no config.", "EBF Slow IDFS", "FF Asc IDFS", "FF Slow IDFS", "FF Slow IDSB")
"""Rows of tables of means that are not on the page."""
TURNS = {"": "letter", " in turns": "turns"}
"""End of a label -> reading of lines 19 to 28; the other end names `work_estimate`, without a word `learned`."""
WHERE = ["study", "label", "workload", "envelope"]
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
    """Write the three files from the table of the study. Raises ValueError for another study."""
    frame = table_of(results)
    if not {"workloads", "profiles"} <= set(frame["study"]):
        raise ValueError(f"{results} is not the study of {HERE / 'study.yaml'}")
    runs = frame[frame["status"] == "done"]
    if len(runs) < len(frame):
        print(f"{len(frame) - len(runs)} of {len(frame)} runs failed; means are over the others", file=sys.stderr)
    if runs.duplicated(WHERE).any():
        raise ValueError(f"{results} has several runs of an algorithm on an instance")
    runs = with_sums(runs).assign(energy_kwh=runs["energy_j"] / 3.6e6)
    named, others = labels_of(frame)
    for column, values in (("study", frame["study"].unique()), ("label", [*named, *others])):
        runs[column] = pd.Categorical(runs[column], values, ordered=True)
    parts = []
    for part in (runs, runs.assign(envelope=ALL)):
        group = part.groupby(["study", "label", "envelope"], observed=True)
        parts.append(group[MEANS].mean().assign(runs=group.size()).reset_index())
    summary = pd.concat(parts).sort_values(["study", "label"], kind="stable")
    compared = {(study, label) for study, *pair in PAIRS for label in pair}
    listed = [
        label in named or (study, label) in compared for study, label in zip(runs["study"], runs["label"], strict=True)
    ]
    instances = runs[listed].sort_values(WHERE)[[*WHERE, *RUN]]
    instances[COUNTS] = instances[COUNTS].astype("Int64")
    deciding = runs[runs["study"].isin(STUDIES)].sort_values(WHERE)[[*WHERE, *DECIDING]]
    means = summary[["study", "label", "envelope", "runs", *MEANS]]
    for name, table in (("summary", means), ("instances", instances), ("runs", deciding)):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6f", lineterminator="\n")


def labels_of(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the optimum, the algorithms of Table II and batwatt's own; then the others, by name."""
    first = frame.drop_duplicates("label").set_index("label")
    main = set(frame.loc[frame["study"] == "workloads", "label"])
    own = [
        label
        for label, response in first["response"].items()
        if label in main and response and response not in RESPONSES
    ]
    named = [label for label in dict.fromkeys((OPTIMUM, *DISTANCES, *own)) if label in first.index]
    return named, sorted(set(first.index) - set(named))


def cells(row: pd.Series, columns: Sequence[str] = tuple(HEADS)) -> list[str]:
    """Return a cell for each column of a row."""
    return [number(row[name], HEADS[name][1]) for name in columns]


def triple(row: pd.Series, suffix: str = "", *, signed: bool = False, whole: bool = False) -> str:
    """Return slowdown, kills and violations of a row as one cell; kills and violations without decimals if `whole`."""
    digits = (2, 0, 0) if whole else (2, 1, 1)
    return " / ".join(number(row[name + suffix], places, signed) for name, places in zip(COMPARED, digits, strict=True))


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


def profiles(numbers: Numbers) -> str:
    """Return the figures of one workload under each profile."""
    study = "profiles"
    envelopes = sorted(set(numbers.runs(study)["envelope"]))
    means = [numbers.means(study, envelope) for envelope in envelopes]
    rows = [
        [label, *(triple(one.loc[label], whole=True) if label in one.index else NOTHING for one in means)]
        for label in numbers.means(study).index
    ]
    return markdown(["algorithm", *envelopes], rows)


def means(numbers: Numbers, study: str) -> str:
    """Return the means of a study over all its workloads and envelopes, without `HIDDEN` algorithms."""
    table = numbers.means(study)
    table = table[~table.index.isin(HIDDEN)]
    rows = [[str(label), *cells(row)] for label, row in table.iterrows()]
    return markdown(["algorithm", *(head for head, _ in HEADS.values())], rows)


def readings(numbers: Numbers, decisions: pd.DataFrame) -> str:
    """Return a row for each reading of Algorithm 1: means of its runs, and shares of its decisions by Eq. 7."""
    means, counts = numbers.means("readings"), decisions.drop(columns="envelope").groupby("label").sum()
    rows = []
    for backfilling in ("EBF", "FF"):
        for turns, lines in TURNS.items():
            for estimate in ("learned", "walltime", "exact"):
                label = f"{backfilling} Slow HFLD{turns}" + ("" if estimate == "learned" else f" {estimate}")
                row, count = means.loc[label], counts.loc[label]
                shares = [
                    count["vacuous"] / count["decisions"], count["slowing"] / count["decisions"],
                    count["kept"] / count["slowed_jobs"], count["finished"] / count["jobs"],
                ]  # fmt: skip
                kills = f"{number(row['killed_power'], 1)} + {number(row['killed_walltime'], 1)}"
                figures = [number(row[SLOWDOWN], 2), kills, number(row[VIOLATIONS], 1), number(row[WORK], 1)]
                decided = number(count["decisions"] / count["runs"], 0)
                cells = [*figures, decided, *(number(100.0 * share, 1) for share in shares)]
                rows.append([backfilling, lines, estimate, *cells])
    heading = [
        "backfilling", "lines 19 to 28", "work", "slowdown", "kills: power + walltime", "violations",
        "finished work (%)", "decisions a run", "fastest (%)", "slow down (%)", "slowed jobs that end well (%)",
        "jobs that end well (%)",
    ]  # fmt: skip
    return markdown(heading, rows, texts=3)


def paired(numbers: Numbers) -> pd.DataFrame:
    """Return the differences of two algorithms on the same workloads: mean and standard error, by envelope."""
    columns = (*COMPARED, WORK)
    rows = []
    for study, one, other in PAIRS:
        for envelope in numbers.runs(study)["envelope"].unique():
            differences = numbers.paired(study, envelope, one, other)
            changes = [difference(differences[name], HEADS[name][1]) for name in columns]
            rows.append([envelope, f"{one} − {other}", *changes])
    return pd.DataFrame(rows, columns=["envelope", "difference", *(HEADS[name][0] for name in columns)])


def difference(values: pd.Series, decimals: int) -> str:
    """Return mean and standard error of paired differences; "tie" if the mean is less than two errors from 0."""
    if len(values) < 2:
        return NOTHING
    text = f"{number(values.mean(), decimals, signed=True)} ± {number(values.sem(), decimals)}"
    return f"{text} (tie)" if is_tie(values) else text


def draw(numbers: Numbers) -> Figure:
    """Draw kills over slowdown of every algorithm under profile 3, one colour for each response."""
    table = numbers.means("workloads")
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    names = ("Optimum", "no config.", "Frugal", "HFLD", "IDSB", "IDFS", "IASB", "IAFS")
    for turn, name in enumerate(names):
        rows = table[[name in str(label) for label in table.index]]
        colour = mpl.colormaps["tab10"](turn)
        axes.scatter(rows[SLOWDOWN], rows[KILLS], color=colour, marker="oXDs^vP*"[turn], s=28, label=name)
    axes.set_xscale("log")
    ticks = [1.5, 2, 3, 5, 10, 20, 30]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set(xlabel="mean slowdown", ylabel="kills (jobs of 288)", title="52 algorithms and the optimum, profile 3")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table, from the files of a folder."""
    numbers = Numbers.read(folder)
    judged = verdicts(statements_of(HERE), MEASURES, samples_of(pd.read_csv(folder / "runs.csv")), SINGLE)
    differences = paired(numbers)
    of_hfld = differences[differences["difference"].str.fullmatch("EBF Slow HFLD( in turns)? − EBF Slow IDSB")]
    return {
        "summary": judged.counts_table(),
        "contradicted": judged.table((NO,)),
        "statements": judged.table(),
        "table2": table2(numbers),
        "batsim": batsim.table(HERE),
        "readings": readings(numbers, pd.read_csv(folder / "decisions.csv")),
        "paired": markdown(list(of_hfld), of_hfld.to_numpy(), texts=2),
        "resubmitted": means(numbers, "resubmitted"),
        "profiles": profiles(numbers),
        "own": means(numbers, "own"),
        "other-seeds": means(numbers, "other-seeds"),
    }


def make(results: Path) -> None:
    """Make the numbers, the figure and the tables of the powercap paper's page from the results of study.yaml."""
    write_numbers(results, DATA)
    paired(Numbers.read(DATA)).to_csv(DATA / "paired.csv", index=False, lineterminator="\n")
    draw(Numbers.read(DATA)).savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("igsc22",)))
