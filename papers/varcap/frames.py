"""Runs of the varcap dissertation's studies by case, and their samples.

workload   mira-0, long-0.8-1      the system, or the share of core-hours in long jobs; the trace
capacity   carbon-DE-2023-07-15    the grid and the day; else the columns `cap_...` describe it
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from papers.pages import FIXED, VARIES, WHERE, options_of, runs_of, table_of, with_capacities, write
from papers.statements import Samples

MAPPINGS = {"migration": "Migration", "longshort": "LongShort", "jobsize-order": "JobSize-Order", "twomode": "TwoMode"}
TERMINATIONS = {"random": "Random", "lww": "LWW", "lfd": "LFD"}
"""Values of the options `mapping` and `termination` -> names in the text."""
ANY = "Random, any machine"
"""Random without `idle_first`, which is Base's (section 7.2)."""
GOODPUT, RUNNING, SHORT, LONG = "goodput", "goodput_with_running", "goodput_short", "goodput_long"
FAILED, FAILED_SHORT, FAILED_LONG = "job_failure_rate", "job_failure_rate_short", "job_failure_rate_long"
WAIT, WAIT_SHORT, WAIT_LONG = "mean_wait_s", "mean_wait_short_s", "mean_wait_long_s"
KILLS, KILLS_LONG, MOVES, FINISHED = "terminations", "terminations_long", "migrations", "jobs_finished"
WASTED, SLOWED = "aborted_volume", "slowdown_rate"
SHARES = [GOODPUT, RUNNING, SHORT, LONG, FAILED, FAILED_SHORT, FAILED_LONG, WASTED, SLOWED]
"""Figures that are here in %."""
COUNTS = [WAIT, WAIT_SHORT, WAIT_LONG, KILLS, KILLS_LONG, MOVES, FINISHED, "useful_core_s", "capacity_core_s"]
IDLE, DONE = "idle", "completed_core_s"
"""Core seconds without work or wasted, in %, and those of completed jobs."""
FIGURES = [*SHARES, *COUNTS]
_OPTIONS: Mapping[str, object] = {
    "mapping": "base", "termination": None, "foresight_h": 0.0, "backfilling": None, "oversubscription": None,
}  # fmt: skip


class Case(NamedTuple):
    """Jobs, scheduler and capacity of runs that differ in their trace and walk only; `size` is the range.

    `step` and `period_s` are 0 where the capacity has none. A `day` names grid and date of a capacity by carbon.
    """

    system: str
    policy: str
    structure: str
    size: float = 0.0
    step: float = 0.0
    period_s: float = 0.0
    foresight_h: float = 0.0
    day: str = ""
    headroom: float = 1.0


def write_runs(results: Sequence[Path], path: Path) -> None:
    """Write the runs of studies to a file."""
    rows = pd.concat([runs_of(folder, [*WHERE, "options", *VARIES, *FIGURES]) for folder in results])
    write(path, rows)


def read_runs(path: Path) -> pd.DataFrame:
    """Read runs with the fields of `Case`, `trace` and `walk` (0 without one), and `SHARES` in %."""
    frame = with_capacities(pd.read_csv(path))
    options = options_of(frame, _OPTIONS)
    choices = options["termination"]
    terminations = choices.map(lambda choice: ANY if isinstance(choice, dict) else TERMINATIONS.get(choice))
    policy = options["mapping"].map(MAPPINGS).fillna(terminations).fillna("Base")
    policy = policy.mask(options["backfilling"].notna(), "Base, strict")
    policy = policy.mask(options["oversubscription"].notna(), "Oversubscription")
    named = frame["workload"].str.extract(r"^(?P<system>.+)-(?P<trace>\d+)$")
    german = frame["study"].str.startswith("german")
    system = named["system"].mask(frame["study"] == "oversubscribed-borg", "borg-virtual").mask(german, "german")
    days = frame["capacity"].str.extract(r"^carbon-(?P<day>[A-Z]+-\d{4}-\d\d-\d\d)")
    frame[SHARES] *= 100.0
    frame = frame.assign(
        system=system, policy=policy, size=frame["range"].fillna(0.0), step=frame["step"].fillna(0.0),
        period_s=frame["period_s"].where(days["day"].isna()).fillna(0.0), day=days["day"].fillna(""),
        foresight_h=options["foresight_h"].astype(float), headroom=frame["cap_headroom"].fillna(1.0),
        trace=named["trace"].astype(int), walk=frame["walk"].fillna(0).astype(int),
    )  # fmt: skip
    frame.loc[frame["structure"] == FIXED, "period_s"] = 0.0
    frame.loc[frame["structure"] != "walk", "step"] = 0.0
    frame[IDLE] = 100.0 - frame[RUNNING] - frame[WASTED]
    frame[DONE] = frame[GOODPUT] / 100.0 * frame["capacity_core_s"]
    return frame.drop_duplicates([*Case._fields, "trace", "walk"])


def common(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs without the traces and walks of a TNG cell that only some cases have."""
    return frame[(frame["system"] != "tng") | (frame["trace"] < 2) & (frame["walk"] < 3)]


def samples_of(
    frame: pd.DataFrame, traces: Iterable[int], walks: Iterable[int], figures: Sequence[str] = (*FIGURES, IDLE, DONE)
) -> Samples:
    """Return figures by (case, figure) in each pair of a trace and a walk; a case that lacks a pair is left out.

    A run without a walk has its value in all pairs of its trace.
    """
    pairs = list(product(traces, walks))
    values: dict[Hashable, np.ndarray] = {}
    for fields, rows in frame.groupby(list(Case._fields), sort=False):
        # pandas types the keys of groups as one object
        case = Case(*fields)  # type: ignore[arg-type]
        by_pair = rows.set_index(["trace", "walk"])[list(figures)]
        keys = [pair if pair in by_pair.index else (pair[0], 0) for pair in pairs]
        if all(key in by_pair.index for key in keys):
            table = by_pair.loc[keys]
            values |= {(case, name): table[name].to_numpy(float) for name in figures if table[name].notna().all()}
    return Samples(values)


SPREADS = ["longer", "larger"]


def unfairness(prefix: Path) -> dict[str, float]:
    """Return by how many points the terminations of a kept run, until the end of its window, hit some jobs more.

    See section 6.1 and Figure 6.6. These are the jobs of more than an hour, and of more than the mean cores: their
    share of the terminations, less that of the jobs.
    """
    end_s = json.loads(Path(f"{prefix}_metadata.json").read_text())["window_s"][1]
    classes = pd.read_csv(f"{prefix}_classes.csv", dtype={"from_h": float})
    jobs = pd.read_csv(f"{prefix}_jobs.csv")
    cores = jobs["requested_number_of_resources"]
    first = cores[~jobs["job_id"].astype(str).str.contains("#")]
    killed = cores[(jobs["final_state"] == "COMPLETED_KILLED") & (jobs["finish_time"] <= end_s)]
    counts = classes[["jobs", "terminations"]]
    shares = 100.0 * counts[classes["from_h"] >= 1.0].sum() / counts.sum()
    wide = first.mean()
    return {
        "longer": float(shares["terminations"] - shares["jobs"]),
        "larger": 100.0 * float((killed > wide).mean() - (first > wide).mean()),
    }


def write_fairness(results: Path, path: Path) -> None:
    """Write a row per kept run of the terminations on walks of range 0.6."""
    frame = table_of(results)
    frame = frame[frame["study"].isin(["mira", "azure"]) & (frame["cap_structure"] == "walk")]
    rows = []
    columns = ["study", "label", "workload", "cap_seed", "key"]
    for system, policy, workload, walk, key in frame.loc[frame["cap_range"] == 0.6, columns].to_numpy():
        names = {"system": system, "policy": policy, "trace": int(workload.split("-")[-1]), "walk": int(walk)}
        rows.append(names | unfairness(results / "runs" / key / "run"))
    write(path, pd.DataFrame(rows).round(6))
