"""Jobs that terminations hit, in runs whose jobs are kept (section 6.1, Figure 6.6)."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from papers.runs import table_of

SPREADS = ["longer", "larger"]


def unfairness(prefix: Path) -> dict[str, float]:
    """Return by how many points the terminations of a kept run, until the end of its window, hit some jobs more.

    These are the jobs of more than an hour, and of more than the mean cores: their share of the terminations, less that
    of the jobs.
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
    pd.DataFrame(rows).round(6).to_csv(path, index=False, lineterminator="\n")
