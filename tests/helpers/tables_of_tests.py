"""Small studies: a table made by hand, and kept runs made by the embedded engine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from batwatt.report.study import COLUMNS
from batwatt.results.figures import METRICS
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

HOSTILE = "</script><img src=x onerror=alert(1)> $x_1$ %{y} {{ 7 * 7 }} & \"'"
ROOT = Path(__file__).parents[2]
PARTS = {"HFLD": "hfld", "IDFS": "idfs", "IDSB": "idsb", "no config.": "none"}
BACKFILLINGS = {"EBF": "easy", "FF": "first-fit"}
ORDERS = {"Slow": "slowdown", "Asc": "asc", "FCFS": "fcfs"}
STEP_S, DROP_S = 60.0, 120.0
"""Steps of the envelopes of the kept runs, and when they drop, for one step."""


def row(label: str, workload: str = "w0", **values: Any) -> dict[str, Any]:
    """A row of a finished run; the parts of an algorithm follow from its label, unless they are given."""
    words = label.split(" ", 2)
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"comparison": "workloads", "case": label, "platform": "p", "workload": workload, "envelope": "e",
            "scheduler": "powercap", "options": "{}", "engine": "embedded", "status": "done",
            "key": f"{label}-{workload}".encode().hex()}  # fmt: skip
    if len(words) == 3 and words[0] in BACKFILLINGS:
        row |= {"backfilling": BACKFILLINGS[words[0]], "order": ORDERS[words[1]],
                "response": PARTS.get(words[2], words[2].lower())}  # fmt: skip
    if label == "Optimum":
        row |= {"scheduler": "optimum", "proven_optimal": True, "gap": 0.0}
    if values.get("status") != "failed":
        row |= {metric.name: 0 for metric in METRICS}
        row |= {"mean_slowdown": 1.0, "mean_run_time_stretch": 1.0, "mean_full_speed_slowdown": 1.0}
        row |= {"mean_bounded_slowdown": None}
        row |= {"finished_work_fraction": 1.0, "jobs_total": 10, "jobs_finished": 10, "makespan_s": 3600.0}
        # two fifths of what ignores the envelope are above it
        row |= {"energy_j": 1e6, "energy_above_cap_j": 4e5 if row["response"] == "none" else 0.0}
    return row | values


def save(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A folder of results with these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame["seed"] = frame["seed"].astype("Int64")
    frame.to_parquet(folder / "table.parquet")
    return folder


def paper(workloads: int = 3) -> list[dict[str, Any]]:
    """The algorithms of the paper's Table II, one of our own, the optimum, and one run that failed."""
    labels = ["EBF Slow no config.", "EBF Slow HFLD", "FF Asc IDFS", "FF Slow HFLD", "EBF Slow IDSB", "EBF Slow OWN"]
    rows = [
        row(label, f"w{n}", mean_slowdown=2.0 + place + n / 10, killed_power=3 * place, killed_walltime=n,
            violations=200 if place == 0 else 7 - place, finished_work_fraction=0.9 - place / 50)
        for place, label in enumerate(labels)
        for n in range(workloads)
    ]  # fmt: skip
    rows += [
        row("Optimum", f"w{n}", mean_slowdown=1.4, lower_bound=1.2, gap=1 / 7, proven_optimal=False)
        for n in range(workloads)
    ]
    return [*rows, row("EBF Asc HFLD", "w0", status="failed", error="<b>it broke</b>")]


def further() -> list[dict[str, Any]]:
    """A study `own` of two algorithms on 2 workloads x 2 envelopes, without the run of the second on the last."""
    rows = [
        row(label, workload, comparison="own", envelope=envelope, mean_slowdown=first + n, killed_power=2 * n,
            killed_walltime=place, violations=n, finished_work_fraction=1.0 - n / 10)
        for place, (label, first) in enumerate((("EBF Slow HFLD", 4.0), ("EBF Slow OWN", 2.0)))
        for n, (envelope, workload) in enumerate((("e1", "w0"), ("e1", "w1"), ("e2", "w0"), ("e2", "w1")))
    ]  # fmt: skip
    return [*rows[:-1], rows[-1] | {"status": "failed", "error": "no room"}]


def kept(folder: Path, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of study `profiles` with their files: the small machine under two envelopes that drop."""
    rows = []
    workload, platform = ROOT / "workloads" / "small.json", ROOT / "platforms" / "small.xml"
    for name, low in (("drop", 120.0), ("step", 260.0)):
        envelope = folder / f"{name}.csv"
        envelope.parent.mkdir(parents=True, exist_ok=True)
        steps = "".join(f"{n * STEP_S},{low if n * STEP_S == DROP_S else 900.0}\n" for n in range(12))
        envelope.write_text(f"time_s,power_w\n{steps}")
        for label in labels:
            made = row(label, "small", comparison="profiles", platform="small", envelope=name)
            made["key"] += name
            prefix = folder / "runs" / made["key"] / "run"
            options = {part: made[part] for part in ("backfilling", "order", "response")}
            if made["response"] not in PARTS.values():
                options["response"] = "idfs"
            spec = RunSpec(platform=platform, workloads=(workload,), envelope=envelope, options=options, prefix=prefix)
            made |= run(spec).metrics
            rows.append(made)
    return rows


def whole(folder: Path, workloads: int = 3) -> Path:
    """A folder with all studies, made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    labels = ["EBF Slow no config.", "EBF Slow HFLD", "FF Asc IDFS", "EBF Slow OWN"]
    return save(folder, [*paper(workloads), *kept(folder, labels), *further()])


def plots_of(page: str) -> dict[str, str]:
    """Id -> SVG of each chart of a page."""
    return dict(re.findall(r'class="plot" id="([^"]*)".*?(<svg.*?</svg>)', page, re.DOTALL))


def check_plots(plots: dict[str, str]) -> None:
    """Each chart is a well-formed drawing with marks and finite numbers, and its ids are its own."""
    assert plots
    ids: list[str] = []
    for name, svg in plots.items():
        root = ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))
        assert len(list(root.iter("path"))) > 5 and list(root.iter("text")), name
        assert not re.search(r"\b(nan|inf)\b", re.sub(r"<t(itle|ext).*?</t", "", svg, flags=re.DOTALL)), name
        ids += re.findall(r' id="([^"]*)"', svg)
    assert len(ids) == len(set(ids))


def visible(page: str) -> str:
    """The page without scripts and styles."""
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)


def words(page: str) -> str:
    """The text of the page."""
    return re.sub(r"<[^>]+>", "", visible(page))
