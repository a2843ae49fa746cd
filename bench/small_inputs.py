"""Small inputs for `commands.py` that the repository does not have: signals and traces in each form of the readers."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from papers.generators.__main__ import GENERATORS, parameters_of, write_studies  # noqa: E402 (papers/ is not installed)

GENERATED = {
    "tng.csv": ("varcap", {"like": "tng", "jobs": 3000, "machines": 10}, 1),
    "power-jobs.json": ("pm100", {"jobs": 120}, 7),
}
"""File -> generator, parameters and seed."""
PAPERS = ("pmbs23", "varcap", "checkpoint")
"""Papers whose small studies have generated inputs, in their folders."""
HOURS = range(48)
PRICES = [round(80 - 30 * (h % 24 in range(10, 16)) + 7.25 * (h % 5), 2) for h in HOURS]
"""Prices in EUR/MWh, by the hour."""
EVENTS = [
    {"timestamp": 30, "type": "machine_unavailable", "resources": "3"},
    {"timestamp": 150, "type": "machine_available", "resources": "3"},
]
SUMMER = datetime(2024, 7, 1, tzinfo=UTC)


def write_inputs(folder: Path) -> None:
    """Write all inputs, and the inputs of the papers' small studies."""
    folder.mkdir()
    for name, text in {**dict(_signals()), **dict(_traces()), **dict(_series())}.items():
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    for name, (kind, parameters, seed) in GENERATED.items():
        (folder / name).write_text(GENERATORS[kind].text(parameters_of(kind, parameters), seed), encoding="utf-8")
    for paper in PAPERS:
        write_studies(ROOT / "papers" / paper / "inputs.yaml", ["small"])
    PM100.to_parquet(folder / "pm100.parquet")
    PM100.drop(columns="node_power_consumption").to_csv(folder / "pm100.csv", index=False)
    FDATA.to_csv(folder / "fdata.csv", index=False)


def _hours(form: str = "%Y-%m-%dT%H:%M:%SZ") -> list[str]:
    return [f"{SUMMER + timedelta(hours=h):{form}}" for h in HOURS]


def _ranges(form: str) -> list[str]:
    """Return labels of hours, from their begin to their end."""
    times = [SUMMER + timedelta(hours=h) for h in (*HOURS, len(HOURS))]
    return [f"{begin:{form}} - {end:{form}}" for begin, end in pairwise(times)]


def _rows(header: str, *columns: list, end: str = "\n", between: str = ",") -> str:
    lines = [between.join(map(str, row)) for row in zip(*columns, strict=True)]
    return end.join([header, *lines]) + end


def _signals() -> Iterator[tuple[str, str]]:
    """Yield name and content of files as grids, markets and loggers publish them."""
    grams = [250 + 40 * (h % 7) for h in HOURS]
    quoted = [f'"{label}"' for label in _ranges("%d.%m.%Y %H:%M")]
    yield "entsoe-old.csv", _rows('"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]"', quoted, PRICES)
    zones = ["BZN|BE"] * len(HOURS)
    new = '"MTU (UTC)","Area","Sequence","Day-ahead Price (EUR/MWh)"'
    yield "entsoe-new.csv", _rows(new, _ranges("%d/%m/%Y %H:%M:%S"), zones, ["Sequence 1"] * len(HOURS), PRICES)
    decimal_commas = [f"{price:.2f}".replace(".", ",") for price in PRICES]
    excel = _rows("Zeit;Day-ahead Price;Currency", _hours("%d.%m.%Y %H:%M"), decimal_commas, ["EUR"] * 48, between=";")
    yield "excel.csv", excel
    watttime = [{"point_time": time, "value": 870 - 4 * h} for h, time in enumerate(_hours("%Y-%m-%dT%H:%M:%S+00:00"))]
    yield "watttime.json", json.dumps({"data": watttime, "meta": {"units": "lbs_co2_per_mwh"}})
    yield "watttime.csv", _rows("oootime,Caiso_North", _hours("%Y-%m-%d %H:%M:%S"), grams)
    british = [
        {"from": time, "to": "x", "intensity": {"forecast": gram + 1, "actual": gram, "index": "low"}}
        for time, gram in zip(_hours("%Y-%m-%dT%H:%MZ"), grams, strict=True)
    ]
    yield "british.json", json.dumps({"data": british})
    history = [{"zone": "DE", "carbonIntensity": g, "datetime": t} for t, g in zip(_hours(), grams, strict=True)]
    yield "electricitymaps.json", json.dumps({"zone": "DE", "history": history})
    columns = "Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh (Life cycle)"
    both = (_hours("%Y-%m-%d %H:%M:%S"), ["Germany"] * 48, [gram - 90 for gram in grams], grams)
    yield "electricitymaps.csv", _rows(f"Datetime (UTC),Zone id,{columns}", *both)
    sun = [max(0.0, 400.25 - 9 * (h % 24 - 12) ** 2) for h in HOURS]
    head = "Latitude (decimal degrees):\t45.000\r\n\r\nNominal power (kWp):\t1.0\r\n\r\ntime,P,G(i)"
    table = _rows(head, _hours("%Y%m%d:%H10"), sun, [9.5] * 48, end="\r\n")
    yield "pvgis.csv", table + "\r\nP: PV system power (W)\r\n\r\nPVGIS (c) European Union, 2001-2023\r\n"
    hourly = [{"time": time, "P": power} for time, power in zip(_hours("%Y%m%d:%H10"), sun, strict=True)]
    yield "pvgis.json", json.dumps({"outputs": {"hourly": hourly}})
    yield "logger.csv", _rows(",power_kw", _hours("%m/%d/%Y %H:%M"), sun)
    gaps = ["" if 20 <= h < 23 else power for h, power in enumerate(sun)]
    yield "gaps.csv", _rows("time,load_percent", _hours("%Y-%m-%d %H:%M"), [gap and gap / 5 for gap in gaps])
    yield "prices.csv", _rows("datetime,price (EUR/MWh)", _hours(), [price - 60 for price in PRICES])


def _traces() -> Iterator[tuple[str, str]]:
    """Yield name and content of logs and traces of jobs."""
    swf = "; UnixStartTime: 1719792000\n; TimeZoneString: UTC\n; MaxProcs: 16\n" + "".join(
        f"{n} {60 * n} {n % 4} {200 + 70 * n % 900} {1 + n % 8} -1 -1 {1 + n % 8} {1200} 2048 1 {n % 5} 3 1 {n % 2}"
        " -1 -1 -1\n"
        for n in range(1, 61)
    )
    yield "jobs.swf", swf
    yield "jobs.swf.gz", swf
    yield (
        "fields.txt",
        "JobID|User|Partition|State|Submit|Start|ElapsedRaw|AllocCPUS|NNodes|Timelimit|ConsumedEnergyRaw",
    )
    yield (
        "dump.sacct",
        "".join(
            f"{n}|u{n % 3}|p|COMPLETED|2024-07-01T00:{n % 60:02}:00|2024-07-01T01:{n % 60:02}:00|{600 + n}|"
            f"{1 + n % 8}|1|01:00:00|{90_000 + n}\n"
            for n in range(1, 40)
        ),
    )
    yield (
        "jobs.pbs",
        "".join(
            f"07/01/2024 02:{n:02}:00;E;{n}.m;user=u{n % 3} group=g queue=q{n % 2} ctime={1719792000 + 60 * n} "
            f"start={1719792300 + 60 * n} end={1719794000 + 61 * n} exec_host=c1/0-{n % 4}+c2/0 unique_node_count=2 "
            f"Resource_List.walltime=01:00:00 resources_used.walltime=00:{n % 60:02}:00\n"
            for n in range(1, 40)
        ),
    )
    yield (
        "azure.csv",
        "".join(f"v{n},s,d,{300 * n},{300 * n + 900},90,10,50.5,U,{2 ** (n % 3)},>64\n" for n in range(40)),
    )
    header = "time,type,collection_id,scheduling_class,collection_type,instance_index,machine_id,resource_request.cpus,"
    borg = [
        (1_000_000 * (600 + 10 * n + shift), kind, n, 2, 0, 0, 7, 0.05, 0.02)
        for n in range(1, 30)
        for shift, kind in ((0, "SUBMIT"), (1, "SCHEDULE"), (90 + n, ("FINISH", "KILL", "EVICT")[n % 3]))
    ]
    lines = [",".join(map(str, row)) for row in sorted(borg)]
    yield "borg.csv", "\n".join([f"{header}resource_request.memory", *lines]) + "\n"
    collections = "time,type,collection_id,parent_collection_id,start_after_collection_ids\n"
    yield "collections.csv", collections + '0,SUBMIT,2,,\n1,SUBMIT,9,2,"[1, 3]"\n'
    rich = [
        (60 * n, 300 + 90 * n % 2000, 1 + n % 8, f"u{n % 4}", f"q{n % 2}", 30 * (1 + n % 8), 700 + 90 * n % 2000, 4)
        for n in range(80)
    ]
    names = "arrival_time,length,cpus,user,queue,power_w,estimate,memory"
    yield "rich.csv", _rows(names, *map(list, zip(*rich, strict=True)))
    chain = [(10 * n, 100 + n, 2, n - 1 if n % 3 == 2 else "", 20, 15) for n in range(40)]
    names = "arrival_time,length,cpus,depends_on,checkpoint_s,recovery_s"
    yield "chain.csv", _rows(names, *map(list, zip(*chain, strict=True)))
    names = "arrival_time,length,cpus,checkpoint_s,recovery_s"
    yield "rigid.csv", _rows(names, *map(list, zip(*[(*row[:3], 20, 15) for row in chain], strict=True)))
    used = [(30 * n, 600 + 7 * n, 1 + n % 4, 2 + n % 3, round(0.3 + n % 6 / 10, 1)) for n in range(60)]
    yield "used.csv", _rows("arrival_time,length,cpus,memory,use", *map(list, zip(*used, strict=True)))


def _series() -> Iterator[tuple[str, str]]:
    """Yield name and content of limits over time, and of events."""
    yield "machines.csv", "time_s,machines\n0,10\n1800,4\n5400,8\n9000,2\n12600,10\n"
    yield "falls.csv", "time_s,power_w\n0,600\n100,250\n200,60\n300,600\n"
    yield "events.txt", "".join(json.dumps(event) + "\n" for event in EVENTS)
    estimates = {"mean_power_estimation": 700, "max_power_estimation": 900}
    jobs = [{"id": n, "subtime": 60 * n, "res": 1 + n % 6, "profile": f"nap{n % 3}", **estimates} for n in range(60)]
    profiles = {f"nap{n}": {"type": "delay", "delay": 600 * (1 + n)} for n in range(3)}
    yield "estimated.json", json.dumps({"nb_res": 48, "jobs": jobs, "profiles": profiles})
    yield (
        "two.json",
        json.dumps(
            {
                "nb_res": 4,
                "jobs": [{"id": n, "subtime": 20 * n, "res": 1 + n % 2, "profile": "nap"} for n in range(5)],
                "profiles": {"nap": {"type": "delay", "delay": 35}},
            }
        ),
    )


PM100 = pd.DataFrame(
    {
        "job_id": range(11, 31),
        "job_state": ["COMPLETED", "TIMEOUT"] * 10,
        "submit_time": pd.date_range("2020-05-01 11:00", periods=20, freq="7min", tz="UTC"),
        "start_time": pd.date_range("2020-05-01 11:10", periods=20, freq="7min", tz="UTC"),
        "end_time": pd.date_range("2020-05-01 11:40", periods=20, freq="7min", tz="UTC"),
        "run_time": [1800] * 20,
        "time_limit": ["90", "INFINITE"] * 10,
        "num_cores_alloc": [32, 8] * 10,
        "num_nodes_alloc": [2, 1] * 10,
        "user_id": [7, 8, 7, 9, 9] * 4,
        "group_id": [1] * 20,
        "partition": ["a", "b"] * 10,
        "node_power_consumption": [[1000, 1500, 1100], [500, 520]] * 10,
    }
)
FDATA = pd.DataFrame(
    {
        "jid": [f"x{n}" for n in range(20)],
        "usr": ["u1", "u2", "u3", "u1"] * 5,
        "adt": [f"2023-01-01 00:{n:02}:00" for n in range(20)],
        "sdt": [f"2023-01-01 00:{n + 5:02}:00" for n in range(20)],
        "edt": [f"2023-01-01 01:{n:02}:40" for n in range(20)],
        "duration": [3340.0, float("nan")] * 10,
        "elpl": [3600.0, 0.0] * 10,
        "cnumat": [96, 48] * 10,
        "cnumr": [96, 48] * 10,
        "nnuma": [2, 1] * 10,
        "avgpcon": [120.5, 99.0] * 10,
        "exit state": ["completed", "failed"] * 10,
    }
)
