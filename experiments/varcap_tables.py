"""Make the tables of docs/results/varcap.md from the results of varcap-part.yaml and varcap-small.yaml.

python experiments/varcap_tables.py results/varcap-part results/varcap-small
    reports the first campaign, writes docs/results/varcap, with the rows of the second, and puts its tables on the page
python experiments/varcap_tables.py --check
    needs no results, and exits 1 if the page has other tables than docs/results/varcap
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import doc_pages
import numpy as np
import pandas as pd

from batwatt.campaign.campaign import campaign_of
from batwatt.campaign.cells import Cell
from batwatt.campaign.sources import GeneratedPlatform
from batwatt.campaign.store import TABLE
from batwatt.files import whole_file
from batwatt.inputs.series.variation import Variation, vary
from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.inputs.workloads.varcap_like import MEAN_CAPACITY
from batwatt.model.workload import LONG_S
from batwatt.report.page import write_report
from batwatt.report.table import read_campaign

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"
PAGES = ("varcap.md",)
FOLDER = "varcap"
DAY_S, HOUR_S = 86_400.0, 3600.0
LOADS = "loads"
REPORTED = ("claims", "table7-3", "table7-3-longer", "table-german", "table-headroom", "table-mustang")
"""Tables of the report that the page has, too."""
PICTURES = ("fig6-4.png", "longer-7-5.png", "mustang.png")
CLAIMED = "claims-numbers.csv"
SMALL = "small.csv"
WHERE = ["study", "label", "workload", "capacity"]
FIGURES = ["goodput", "job_failure_rate", "mean_wait_s", "terminations", "migrations", "jobs_finished"]
PERCENT = 100.0


@dataclass(frozen=True)
class Measure:
    """A metric as it is shown: heading, factor of its unit, decimals."""

    name: str
    heading: str
    factor: float = 1.0
    decimals: int = 1


GOODPUT = Measure("goodput", "goodput, %", PERCENT)
SHORT = Measure("goodput_short", "of short jobs", PERCENT)
LONG = Measure("goodput_long", "of long jobs", PERCENT)
FAILURES = Measure("job_failure_rate", "failures, % of runs", PERCENT, 2)
FAILURES_LONG = Measure("job_failure_rate_long", "failures of long jobs, %", PERCENT, 2)
SLOWED = Measure("slowdown_rate", "slowed, % of runs", PERCENT)
WAIT = Measure("mean_wait_s", "wait, min", 1 / 60)


@dataclass(frozen=True)
class Means:
    """A table of means: a row for each value of `rows` of the studies that begin like `study`."""

    name: str
    study: str
    rows: tuple[str, ...]
    measures: tuple[Measure, ...] = (GOODPUT, FAILURES, WAIT)
    spread: str | None = None
    """A column whose values stand side by side instead, for the first measure only."""


MEANS = (
    Means("step", "fig5-2-", ("system", "cap_step"), spread="cap_range"),
    Means("structure", "fig5-3-", ("system", "cap_structure"), spread="cap_range"),
    Means("oversubscription", "fig5-4-", ("system", "cap_structure"), spread="cap_range"),
    Means("slowed", "fig5-4-", ("system", "cap_structure"), (SLOWED,), spread="cap_range"),
    Means("oversubscription-frequency", "fig5-7-", ("system", "cap_structure"), (GOODPUT,), spread="cap_period_h"),
    Means("frequency", "fig5-6-", ("system", "cap_structure", "cap_range"), spread="cap_period_h"),
    Means("cells", "fig5-8", ("workload",), spread="cap_range"),
    Means("spectrum", "fig5-9", ("cap_range",), (GOODPUT, SHORT, LONG, FAILURES, FAILURES_LONG, WAIT)),
    Means("dependencies", "fig5-10", ("trace", "cap_range")),
    Means("long-fraction", "fig5-11", ("trace", "cap_range")),
    Means("real", "fig5-16", ("capacity_of",)),
    Means("small-steps", "fig6-3-", ("label",)),
    Means("terminations", "fig6-4-", ("system", "label", "cap_structure"), spread="cap_range"),
    Means("failures", "fig6-4-", ("system", "label", "cap_structure"), (FAILURES,), spread="cap_range"),
    Means("foresight", "fig6-8-", ("system", "cap_structure", "cap_range"), spread="label"),
    Means("foresight-failures", "fig6-8-", ("system", "cap_structure", "cap_range"), (FAILURES,), spread="label"),
    Means("schedulers", "fig7-4", ("label", "cap_range")),
    Means("ranges", "fig7-5", ("label",), spread="cap_range"),
    Means("longer-dependencies", "longer-5-10", ("trace", "cap_range")),
    Means("longer-long-fraction", "longer-5-11", ("trace", "cap_range")),
    Means("longer-schedulers", "longer-7-4", ("label", "cap_range")),
    Means("longer-ranges", "longer-7-5", ("label",), spread="cap_range"),
    Means("errors", "errors", ("label",)),
)
TABLES = (LOADS, *(table.name for table in MEANS), *REPORTED)
"""The tables of the page that are made here; each is a file of docs/results/varcap, too."""
SINGLE = ("sentences", "fairness", "fairer")
"""Those that varcap_claims.py makes."""
PRICED = (
    "carbon-variation",
    "price-variation",
    "stranded",
    "price-cost",
    "price-sentences",
    "price-work",
    "price-real",
)
"""Those that varcap_prices.py makes."""
ALL = (*TABLES, *SINGLE, *PRICED)
HEADINGS = {
    "cap_range": "range",
    "cap_step": "largest step",
    "cap_period_h": "h between changes",
    "cap_structure": "structure",
    "capacity_of": "capacity",
    "kind": "capacity",
    "C": "C = R, s",
    "R": "R, s",
    "warning": "told before, s",
}


def rows_of(results: Path) -> pd.DataFrame:
    """The finished runs of a campaign, with what tables are ordered by. Raises InputError."""
    # which tells of what is no campaign; its frame has no columns of capacities
    read_campaign(results)
    frame = pd.read_parquet(results / TABLE)
    frame = frame[frame["status"] == "done"].copy()
    frame[["trace", "trace_seed"]] = [_halves(name) for name in frame["workload"]]
    frame["system"] = frame["study"].str.rpartition("-")[2]
    frame["cap_period_h"] = frame["cap_period_s"] / HOUR_S
    frame["kind"] = frame["cap_structure"].replace("constant", "fixed")
    frame["capacity_of"] = frame["capacity"].str.replace(r"-s\d+$", "", regex=True)
    return frame


def _halves(name: str) -> tuple[str, str]:
    """A generated workload's name without its seed, and the seed."""
    stem, _, seed = name.rpartition("-")
    return (stem, seed) if stem and seed.isdigit() else (name, "")


def means_of(frame: pd.DataFrame, table: Means) -> pd.DataFrame:
    """Mean, standard error (n - 1) and count of each measure for each row of a table; empty without its study."""
    apart = table.study.endswith("-")
    part = frame[frame["study"].str.startswith(table.study) if apart else frame["study"] == table.study]
    keys = [*table.rows, *([table.spread] if table.spread else [])]
    found = []
    for point, rows in part.groupby(keys, sort=False, dropna=False):
        for measure in table.measures:
            values = rows[measure.name].dropna() * measure.factor
            if len(values):
                found.append((*point, measure.heading, float(values.mean()), _error(values), len(values)))
    return pd.DataFrame(found, columns=[*keys, "measure", "mean", "standard_error", "runs"])


def _error(values: pd.Series) -> float:
    """Standard error of the mean; NaN of one value."""
    return float(values.std()) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def means_table(frame: pd.DataFrame, table: Means) -> str:
    """The same as Markdown."""
    means = means_of(frame, table)
    heads = [HEADINGS.get(name, name) for name in table.rows]
    if means.empty:
        return "No runs."
    shown = table.measures[:1] if table.spread else table.measures
    decimals = {measure.heading: measure.decimals for measure in shown}
    means = means[means["measure"].isin(decimals)]
    over = table.spread or "measure"
    columns = list(dict.fromkeys(means[over])) if table.spread is None else _in_order(means[over])
    texts: dict[tuple[str, ...], dict[object, str]] = {}
    for row in means.to_dict("records"):
        text = with_error(row["mean"], row["standard_error"], decimals[row["measure"]])
        key = tuple(_text(row[name]) for name in table.rows)
        texts.setdefault(key, {})[_text(row[over])] = text
    named = [_text(column) for column in columns]
    if table.spread:
        heads[-1] += f" ({shown[0].heading} by {HEADINGS.get(table.spread, 'what is known')})"
    return markdown(
        [*heads, *named], [[*key, *(cells.get(name, "") for name in named)] for key, cells in texts.items()]
    )


def _in_order(values: pd.Series) -> list[object]:
    """Numbers by size, texts as they come; what has none (a fixed capacity) first."""
    unique = values.drop_duplicates().tolist()
    if all(isinstance(value, str) for value in unique):
        return unique
    return sorted(unique, key=lambda value: (not pd.isna(value), 0.0 if pd.isna(value) else value))


def _text(value: object) -> str:
    if isinstance(value, float):
        return "fixed" if math.isnan(value) else f"{value:g}"
    return str(value)


def with_error(mean: float, error: float, decimals: int) -> str:
    """A mean ± its standard error, if there is one."""
    return f"{mean:.{decimals}f}" + ("" if math.isnan(error) else f" ± {error:.{decimals}f}")


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def loads_table(cells: Sequence[Cell]) -> str:
    """What the workloads ask for: jobs, their load on 0.7 of the machines, and what is too wide for a fixed 0.7."""
    rows, seen = [], set()
    for cell in cells:
        workload, platform = cell.workload, cell.platform
        name = (platform.name, _halves(workload.name)[0])
        if name in seen or workload.path.suffix != ".csv" or not isinstance(platform, GeneratedPlatform):
            continue
        seen.add(name)
        machines = platform.machines
        jobs = pd.read_csv(StringIO(workload.text) if workload.text else workload.path)
        jobs[["arrival_time", "length"]] *= HOUR_S if workload.length_unit[0] == "h" else 1.0
        asked = _asked(jobs, machines.machines * machines.cores * MEAN_CAPACITY, cell)
        mean_h = f"{jobs['length'].mean() / HOUR_S:.2f}"
        rows.append([*name, *asked, mean_h, f"{_failures(jobs, machines.cores):.1%}"])
    heads = ["machines", "workload", "jobs", "days of releases", "load", "load of the window", "long", "too wide"]
    return markdown([*heads, "mean run, h", "first runs that fail by arithmetic"], rows)


def _failures(jobs: pd.DataFrame, cores: int) -> float:
    """First runs of jobs that fail if machines leave at random, whatever runs there, in walks of range 0.6.

    In an hour a machine leaves with the mean probability p = E max(0, 1 - R(t + 1 h) / R(t)), so a run of L hours on n
    machines fails with 1 - (1 - p)^(n L).
    """
    values = [np.array(vary(Variation("walk", seed=seed), 365 * DAY_S).values) for seed in (1, 2, 3)]
    leaving = np.mean([np.maximum(0.0, 1.0 - walk[1:] / walk[:-1]).mean() for walk in values])
    machines = np.ceil(jobs["cpus"] / cores)
    return float(np.mean(1.0 - (1.0 - leaving) ** (machines * jobs["length"] / HOUR_S)))


def _asked(jobs: pd.DataFrame, cores: float, cell: Cell) -> list[str]:
    work = jobs["length"] * jobs["cpus"]
    end_s = jobs["arrival_time"].max()
    window = cell.workload.window
    begin, end = (window.begin_s, window.end_s) if window else (0.0, end_s)
    # each as if it began when it was released
    inside = (jobs["arrival_time"] + jobs["length"]).clip(upper=end) - jobs["arrival_time"].clip(lower=begin)
    asked = (inside.clip(lower=0.0) * jobs["cpus"]).sum()
    shares = [work.sum() / (cores * end_s), asked / (cores * (end - begin))]
    shares += [float(work[mask].sum() / work.sum()) for mask in (jobs["length"] > LONG_S, jobs["cpus"] > cores)]
    return [f"{len(jobs):,}", f"{end_s / DAY_S:.1f}", *(f"{share:.1%}" for share in shares)]


def small_rows(results: Path) -> pd.DataFrame:
    """Where each run of a campaign stands, and its figures to 6 decimals. Raises InputError."""
    return read_campaign(results).frame[WHERE + FIGURES].round(6)


def make(results: Path, small: Path, docs: Path) -> int:
    """Write docs/results/varcap and the tables of the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, ALL)
    frame, cells = rows_of(results), campaign_of(results).cells
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    report = write_report(results)[0].parent
    for name in (*(f"{table}.md" for table in REPORTED), *PICTURES, CLAIMED):
        shutil.copyfile(report / name, folder / name)
    write(folder / f"{LOADS}.md", loads_table(cells) + "\n")
    for table in MEANS:
        write(folder / f"{table.name}.md", means_table(frame, table) + "\n")
    means = pd.concat([means_of(frame, table).assign(table=table.name) for table in MEANS])
    means = means[["table", *(name for name in means if name != "table")]].round(6)
    write(folder / "means.csv", means.to_csv(index=False, lineterminator="\n"))
    write(folder / SMALL, small_rows(small).to_csv(index=False, lineterminator="\n"))
    doc_pages.write(pages, tables_of(docs))
    return 0


def write_tables(docs: Path, texts: Mapping[str, str]) -> int:
    """Write these tables, and all tables of docs/results/varcap to the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, ALL)
    for name, text in texts.items():
        write(docs / FOLDER / f"{name}.md", text + "\n")
    doc_pages.write(pages, tables_of(docs))
    return 0


def write(path: Path, text: str) -> None:
    """Write a whole file."""
    with whole_file(path) as out:
        out.write(text)


def tables_of(docs: Path) -> dict[str, str]:
    """Every table, those of the report without their titles. Raises InputError."""
    texts = {name: read_text(docs / FOLDER / f"{name}.md") for name in ALL}
    return {name: (text.partition("\n")[2] if text.startswith("# ") else text).strip() for name, text in texts.items()}


main = doc_pages.Script("varcap_tables", DOCS, PAGES, ALL, ("varcap-part", "varcap-small"), make, tables_of).main

if __name__ == "__main__":
    sys.exit(main())
