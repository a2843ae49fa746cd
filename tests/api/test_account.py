"""Accounts of job logs: sums by hand, and a plain second computation, minute by minute, of random logs."""

from __future__ import annotations

import csv
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

import batwatt as bw
from batwatt.errors import InputError

HEADER = "JobID|User|Account|Partition|State|Submit|Start|ElapsedRaw|AllocCPUS|NNodes|ConsumedEnergyRaw"
HAND = f"""{HEADER}
1|ann|physics|long|COMPLETED|2024-01-31T20:00:00|2024-01-31T22:00:00|14400|8|2|
2|bob|chem|short|COMPLETED|2024-01-31T22:00:00|2024-01-31T23:30:00|3600|4|1|3600000
"""
SIGNAL = """time,carbon (g/kWh),price (EUR/MWh)
2024-01-31T22:00Z,100,500
2024-01-31T23:00Z,200,-200
2024-02-01T00:00Z,400,120
2024-02-01T01:00Z,100,0
"""
FIGURES = ("jobs", "node_hours", "energy_kwh", "carbon_kg", "cost")


def written(folder: Path, text: str, name: str = "jobs.sacct") -> Path:
    (folder / name).write_text(text)
    return folder / name


def by_hand(tmp_path: Path, log: Path | None = None, **options):
    signal = written(tmp_path, SIGNAL, "signal.csv")
    signals = {"carbon": f"{signal},column=carbon (g/kWh)", "price": f"{signal},column=price (EUR/MWh)"}
    site = {"machines": 3, "cores": 4, "busy_w": 500, "idle_w": 100, "pue": 1.5}
    return bw.account(log or written(tmp_path, HAND), **({**site, **signals} | options))


def rows(account, *by: str) -> dict[tuple[str, ...], tuple[float, ...]]:
    table = account.table.set_index(["part", *by])[list(FIGURES)]
    return dict(zip(table.index, table.itertuples(index=False, name=None), strict=True))


def test_remarks_and_the_currency(tmp_path):
    account = by_hand(tmp_path, by=["user", "month"])
    assert account.currency == "EUR" and account.remarks[-1].endswith("the first submission")
    few = by_hand(tmp_path, machines=2, by=["user"])
    assert rows(few, "user")["idle", ""][1] == 0.0 and "jobs have 3 nodes at a time" in few.remarks[-1]


def test_sums_by_hand(tmp_path):
    """Job 1: 2 nodes of 500 W for 4 h; job 2, of bob: 1 kWh measured in 1 h.

    Idle: 1 node of 100 W until 23:30, none until 0:30, 1 until 2:00. Overhead: half of the sum.
    """
    month, rest = by_hand(tmp_path, by=["month"]), by_hand(tmp_path)
    assert list(rest.table.columns) == ["part", "user", "account", "partition", "month", *FIGURES]
    assert rows(month, "month")["total", ""] == rows(rest, "user")["total", ""] == (2, 12.0, 7.95, 1.725, 0.639)
    nodes = by_hand(tmp_path, by=["account"], width="nodes", cores=None, since="2024-02-01", until="2024-02-01T01:00")
    assert rows(nodes, "account")["jobs", "physics"] == (1, 2.0, 1.0, 0.4, 0.12)
    assert "2 of 2 jobs count for their hours in the period only" in " ".join(nodes.remarks)


def test_what_is_left_out_is_said(tmp_path):
    lines = 2 * ["1|ann|a|p|COMPLETED|2024-01-31T21:00:00|2024-01-31T22:00:00|3600|1|1|"] + [
        "1|ann|a|p|COMPLETED|2024-01-31T23:00:00|2024-01-31T23:00:00|3600|1|1|",
        "2||a|p|COMPLETED|2024-01-31T21:00:00|2024-01-31T22:00:00|3600|1|1|",
        "3|ann|a|p|RUNNING|2024-01-31T21:00:00|2024-02-01T00:00:00|7200|1|1|",
        "4|ann|a|p|CANCELLED|2024-01-31T21:00:00|None|0|1|1|",
        "5|ann|a|p|COMPLETED|2024-01-31T21:00:00|Unknown|3600|1|1|",
        "6|ann|a|p|PENDING|2024-01-31T21:00:00|Unknown|0|1|1|",
    ]
    account = bw.account(
        written(tmp_path, "\n".join([HEADER, *lines, ""])), by=["user"], busy_w=1000, until="2024-02-01T01:00"
    )
    figures = account.table.set_index(["part", "user"])
    # the requeued job counts twice, the running one until the end of the period
    assert figures.loc[("jobs", "ann"), "energy_kwh"] == 3.0 and figures.loc[("jobs", "unknown"), "energy_kwh"] == 1.0
    said = "\n".join(account.remarks)
    for text in (
        "3 of 8 lines of jobs are left out: 1 pending, 1 never ran, 1 listed twice", "1 jobs still run",
        "1 of 5 jobs are left out: they have no start", "1 of 4 jobs have no user", "a node is a CPU",
        "1 of 4 jobs count for their hours in the period only",
    ):  # fmt: skip
        assert text in said, said


def drawn(rng: random.Random, first: datetime, zone: ZoneInfo):
    """A dump, and each run as (id and begin, user, begin, end, nodes, watts)."""
    lines, runs = [HEADER], []
    for _ in range(rng.randint(3, 14)):
        begin = first + timedelta(minutes=rng.randint(0, 4000))
        length, cpus = rng.randint(1, 900), rng.randint(1, 12)
        watts = rng.choice([None, 60 * rng.randint(1, 9)])
        user, id = rng.choice(["ann", "bob", "eve"]), rng.randint(1, 9)
        if (id, begin) in {run[0] for run in runs}:
            continue
        energy = "" if watts is None else watts * length * 60
        local = begin.astimezone(zone)
        twice = local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset()
        date = local.isoformat() if twice or rng.random() < 0.5 else local.replace(tzinfo=None).isoformat()
        lines.append(f"{id}|{user}|a|p|COMPLETED|{date}|{date}|{length * 60}|{cpus}|1|{energy}")
        runs.append(((id, begin), user, begin, begin + timedelta(minutes=length), cpus / 4, watts))
    return "\n".join([*lines, ""]), runs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("month_end", [datetime(2024, 3, 30, 20, tzinfo=UTC), datetime(2023, 10, 28, 22, tzinfo=UTC)])
def test_minute_by_minute(tmp_path, quiet, seed, month_end):
    rng, zone = random.Random(seed), ZoneInfo("Europe/Berlin")
    text, runs = drawn(rng, month_end, zone)
    hours = [(month_end + timedelta(hours=n - 2), rng.randint(0, 700), rng.randint(-90, 300)) for n in range(100)]
    table = "".join(f"{at:%Y-%m-%dT%H:%MZ},{grams},{price}\n" for at, grams, price in hours)
    signal = written(tmp_path, f"time,carbon (g/kWh),price (EUR/MWh)\n{table}", "signal.csv")
    period: dict[str, str] = {}
    begin, end = min(run[2] for run in runs), max(run[3] for run in runs)
    if seed % 2:
        begin, end = begin - timedelta(minutes=70), end - timedelta(minutes=35)
        period = {"since": begin.isoformat(), "until": end.isoformat()}
    account = bw.account(
        written(tmp_path, text), by=["user", "month"], carbon=f"{signal},column=carbon (g/kWh)", machines=4, cores=4,
        price=f"{signal},column=price (EUR/MWh)", busy_w=350, idle_w=90, pue=1.25, tz=zone.key, **period,
    )  # fmt: skip
    values = {at: (grams, price) for at, grams, price in hours}
    sums: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def add(key: tuple[str, ...], at: datetime, nodes: float, watts: float) -> None:
        grams, price = values[at.replace(minute=0)]
        energy = watts / 60_000
        sums[key]["node_hours"] += nodes / 60
        for name, factor in {"energy_kwh": 1.0, "carbon_kg": grams / 1000, "cost": price / 1000}.items():
            sums[key][name] += energy * factor
            sums["overhead", "", key[2]][name] += 0.25 * energy * factor

    counted: set[object] = set()
    for minute in range(int((end - begin).total_seconds()) // 60):
        at = begin + timedelta(minutes=minute)
        month, used = f"{at.astimezone(zone):%Y-%m}", 0.0
        for run in runs:
            if run[2] <= at < run[3]:
                used += run[4]
                add(("jobs", run[1], month), at, run[4], run[4] * 350 if run[5] is None else run[5])
                sums["jobs", run[1], month]["jobs"] += run[0] not in counted
                counted.add(run[0])
        add(("idle", "", month), at, max(0.0, 4 - used), max(0.0, 4 - used) * 90)
    for name in FIGURES:
        sums["total", "", ""][name] = sum(row[name] for key, row in sums.items() if key[0] != "total")
    table = rows(account, "user", "month")
    assert table.keys() == sums.keys()
    for key, row in table.items():
        assert row == pytest.approx([sums[key][name] for name in FIGURES], rel=0, abs=0.001001), key
    account.save(csv=tmp_path / "out.csv")
    *parts, total = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    for name in FIGURES:
        assert sum(Decimal(row[name]) for row in parts) == Decimal(total[name])


JUST_JOBS = {"machines": None, "idle_w": None, "carbon": None, "price": None, "cores": None, "busy_w": 1}


@pytest.mark.parametrize(
    ("options", "log", "text"),
    [
        ({"busy_w": None}, HAND, "1 of 2 jobs have no measured energy; give the power of a node in use"),
        ({"machines": None}, HAND, "idle nodes need their number and their power"),
        ({"since": "March"}, HAND, "since: 'March' is not a date"),
        (
            {"since": "2024-01-31", "until": "2024-02-02"},
            HAND,
            "signal.csv: has no values for hours of the account: 2024-01-31T00:00Z to 2024-01-31T22:00Z (22 h), "
            "2024-02-01T02:00Z to 2024-02-02T00:00Z (22 h); give",
        ),
        (JUST_JOBS, "arrival_time,length,cpus\n0,60,1\n", "has no jobs with dates; give begin"),
        (JUST_JOBS | {"by": ["user"]}, HAND.replace("|ann|", "||").replace("|bob|", "||"), "no job has a user; leave"),
    ],
)
def test_refused(tmp_path, quiet, options, log, text):
    name = "x.csv" if log.startswith("arrival") else "jobs.sacct"
    with pytest.raises(InputError) as error:
        by_hand(tmp_path, written(tmp_path, log, name), **options)
    assert text in str(error.value)


def test_signals_as_objects(tmp_path, quiet):
    times = pd.date_range("2024-01-31T22:00", periods=4, freq="h", tz="UTC")
    grams = pd.Series([100.0, 200.0, 400.0, 100.0], index=times, name="carbon (g/kWh)")
    assert rows(by_hand(tmp_path, carbon=grams), "user")["total", ""][3] == 1.725
    trace = written(tmp_path, "arrival_time,start,length,cpus,user\n0,10,3600,1,ann\n", "trace.csv")
    account = bw.account(trace, busy_w=100, begin="2024-01-31T23:00", carbon=grams)
    assert account.table["carbon_kg"].iloc[-1] == pytest.approx(0.1 * (3590 * 0.2 + 10 * 0.4) / 3600, abs=0.0005)
    with pytest.raises(InputError, match="has no dates, and the jobs have"):
        bw.account(trace, busy_w=100, begin="2024-01-31T23:00", carbon=bw.Series((0, 3600), (1, 2)))
