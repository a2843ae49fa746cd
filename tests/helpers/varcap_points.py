"""Rows of varied campaigns for tests of their report."""

from __future__ import annotations

import json

from tables_of_tests import row, save

from batwatt.report.papers import varcap
from batwatt.report.papers.varcap_figures import drawn_of
from batwatt.report.papers.varcap_plans import hours_apart
from batwatt.report.table import read_campaign

HOSTILE = "</script><img src=x onerror=alert(1)> %{y} {{ 7 * 7 }}"
OPTIONS = {"Random": {"termination": "random"}, "LWW": {"termination": "lww"}, "LFD": {"termination": "lfd"},
           "Base": {"mapping": "base"}, "LongShort": {"mapping": "longshort"},
           "TwoMode": {"mapping": "twomode"}}  # fmt: skip


def run(
    study, label="Random", *, size=0.6, walk=1, trace=0, structure="walk", step=None, period=3600.0, options=None,
    workload=None, **given,
):  # fmt: skip
    """A run on a walk of that range (or another structure); 0 is the fixed capacity."""
    if size == 0:
        structure = "constant"
    step = (size / 4 if step is None else step) if structure == "walk" else None
    name = {"constant": "constant-0.7", "walk": f"walk-{size}-{step}-{period:g}-s{walk}"}.get(
        structure, f"{structure}-{size}-{period:g}-s{walk}"
    )
    fixed = structure == "constant"
    found = row(label, workload or f"tng-{trace}", study=study, platform="25x32", envelope=None, scheduler="varcap",
                capacity=name, options=json.dumps(OPTIONS.get(label, {}) if options is None else options))  # fmt: skip
    found |= {
        "cap_structure": structure, "cap_range": float(size) if structure != "carbon" else None, "cap_step": step,
        "cap_period_s": None if fixed else period, "cap_mean": 0.7, "cap_seed": None if fixed else walk,
        "goodput": 0.5, "job_failure_rate": 0.1, "mean_wait_s": 120.0, "capacity_core_s": 1e6, "useful_core_s": 5e5,
    }  # fmt: skip
    found |= given
    found["key"] = f"{study} {label} {found['workload']} {found['capacity']}".encode().hex()
    return found


def carbon(study, day, label="Random", headroom=1.0, **given):
    told = {"capacity": f"carbon-DE-{day}" + (f"-{headroom}" if "headroom" in study else ""), "cap_headroom": headroom}
    return run(study, label, size=None, structure="carbon", walk=None, **(told | given))


def pointed(folder, rows):
    declared = read_campaign(save(folder, rows))
    campaign = varcap.named(declared, hours_apart(declared.studies))
    return campaign, varcap.points(campaign, declared)


def drawn(folder, rows):
    """Study's stem -> its panels."""
    campaign, frame = pointed(folder, rows)
    looks = varcap.plan_of(campaign).looks(campaign.labels)
    return {plan.stem: panels for plan, panels in drawn_of(frame, looks)}


def shown(panel):
    """Series -> value of x -> mean."""
    return {curve.key.name: dict(zip(curve.points["x"], curve.points["mean"].round(6), strict=True))
            for curve in panel.curves}  # fmt: skip
