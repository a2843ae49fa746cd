"""Use of a site by recorded jobs: node hours, energy, carbon and cost by user, account, partition and month.

Power is constant over a job; its carbon and cost in a month are its power times the integral of the signal over its
time in that month. Overhead is a share of the energy of jobs and idle nodes, at the same times. Rounded rows add up to
the rounded total, which does not depend on the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.timeline import Timeline
from batwatt.units import HOUR_S, J_PER_KWH

BY = ("user", "account", "partition", "month")
JOBS, IDLE, OVERHEAD, TOTAL = PARTS = ("jobs", "idle", "overhead", "total")
"""Values of the column `part`."""
DECIMALS = 3
"""Decimals of node hours, kWh, kg and money."""


def usage(rows: pd.DataFrame, by: Sequence[str], signals: Mapping[str, Timeline], pue: float) -> pd.DataFrame:
    """Return the account of pieces of jobs and of idle nodes: `part`, the columns `by`, and figures.

    Args:
        rows: Pieces of `by_month`, those of a job with one index: `part`, `nodes`, their `watts`, and columns `by`.
        by: Columns of the account, of `BY`.
        signals: `carbon_kg` in g/kWh, `cost` in money per kWh; they cover the pieces.
        pue: Energy of the site / energy of its nodes, >= 1.
    """
    begin_s, end_s, watts = (rows[name].to_numpy() for name in ("begin_s", "end_s", "watts"))
    figures = {
        "jobs": (rows["part"].eq(JOBS) & ~rows.index.duplicated()).astype(int),
        "node_hours": rows["nodes"] * (end_s - begin_s) / HOUR_S,
        "energy_kwh": watts * (end_s - begin_s) / J_PER_KWH,
        **{
            name: watts * (1e-3 if name == "carbon_kg" else 1.0) * signal.per_watt(begin_s, end_s)
            for name, signal in signals.items()
        },
    }
    rows = rows.assign(**figures)
    if pue > 1.0:
        shares = {name: (pue - 1.0) * rows[name] for name in ("energy_kwh", *signals)}
        none: Any = dict.fromkeys(by, "") | {"part": OVERHEAD, "month": rows["month"], "jobs": 0, "node_hours": 0.0}
        rows = pd.concat([rows, rows.assign(**none, **shares)])
    sums = rows.groupby(["part", *by])[list(figures)].sum().reset_index()
    return _rounded(sums.sort_values("part", key=lambda parts: parts.map(PARTS.index), kind="stable"), by)


def by_month(rows: pd.DataFrame, begin_s: float, end_s: float, date_s: float, zone: tzinfo) -> pd.DataFrame:
    """Return the pieces of rows in each `month` (2024-03) of a period; times are in s from `date_s` since 1970."""
    first, last = (datetime.fromtimestamp(date_s + time_s, zone) for time_s in (begin_s, end_s))
    months = pd.period_range(f"{first:%Y-%m}", f"{last:%Y-%m}", freq="M")
    starts_s = [datetime(month.year, month.month, 1, tzinfo=zone).timestamp() - date_s for month in months[1:]]
    pieces = [
        rows.assign(month=str(month), begin_s=rows["begin_s"].clip(lower=low_s), end_s=rows["end_s"].clip(upper=high_s))
        for month, low_s, high_s in zip(months, [begin_s, *starts_s], [*starts_s, end_s], strict=True)
    ]
    return pd.concat([piece[piece["end_s"] > piece["begin_s"]] for piece in pieces])


def used_nodes(jobs: pd.DataFrame) -> pd.Series[float]:
    """Return the nodes in use by jobs (`begin_s`, `end_s`, `nodes`) from each time on, in s."""
    changes = [pd.Series(sign * jobs["nodes"].to_numpy(), jobs[at]) for sign, at in ((1.0, "begin_s"), (-1.0, "end_s"))]
    return pd.concat(changes).groupby(level=0).sum().cumsum()


def idle_nodes(jobs: pd.DataFrame, nodes: float, begin_s: float, end_s: float) -> pd.DataFrame:
    """Return the idle nodes of a site, at least 0: a row for each time in which they are constant."""
    used = used_nodes(jobs)
    times_s = np.unique(np.clip(np.append(used.index.to_numpy(), (begin_s, end_s)), begin_s, end_s))
    at = np.searchsorted(used.index.to_numpy(), times_s[:-1], "right")
    unused = np.maximum(nodes - np.append(0.0, used.to_numpy())[at], 0.0)
    return pd.DataFrame({"begin_s": times_s[:-1], "end_s": times_s[1:], "nodes": unused})


def _rounded(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Round rows and their total: the largest remainders up, until the rows add up to the rounded total."""
    last: dict[str, object] = {"part": TOTAL, **dict.fromkeys(by, "")}
    for name in rows.columns[1 + len(by) :]:
        scale = 1 if name == JOBS else 10**DECIMALS
        # sums of floats differ in their last digits
        values = np.round(rows[name].to_numpy(dtype=float) * scale, 6)
        whole, total = np.floor(values), np.rint(values.sum())
        whole[np.argsort(whole - values, kind="stable")[: round(total - whole.sum())]] += 1.0
        rows[name], last[name] = whole / scale, total / scale
    return pd.concat([rows, pd.DataFrame([last])], ignore_index=True).astype({JOBS: int})
