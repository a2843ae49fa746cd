"""Shift the jobs of Alibaba PAI on the German series: alone by the rules of GAIA and of batwatt, and on a cluster.

    python -m papers.carbon.real pai_1k.csv DE-2024-hourly.csv
        write data/real.csv, real-startups.csv and cluster.csv, and fill the page

README.md names the sources of both files.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.batsim.adapters import simulate as play
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs.batsim_files import phase_workload, read_phase_jobs
from batwatt.inputs.series import read_on_clock
from batwatt.inputs.source import SeriesSource
from batwatt.model.platform import machines_platform
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.carbon import RunCarbon, account
from batwatt.results.run_files import write_record
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.carbon.execution import ShiftJob
from batwatt.units import HOUR_S
from papers.carbon import gaia, tables
from papers.carbon.simulator import Outcome, ShiftOptions, simulate
from papers.pages import number

DAYS = 40.0
WAIT_H = (6.0, 24.0)
"""Longest waits of short (< 2 h) and long jobs."""
STARTUP_S, SLOT_S = 300.0, 60.0
STARTED = ("immediate", "oracle", "suspend-resume", "suspend-resume-threshold", "phase-aware")
MACHINES = (200, 60, 40, 30, 25)
SHARED = ("immediate", "oracle", "suspend-resume", "phase-aware")
PERCENT = 100.0


def with_startup(job: ShiftJob) -> ShiftJob:
    """Return the job after a start-up at its power, in whole minutes, for which slots of a minute are exact."""
    [work] = job.model.work
    whole = replace(work, duration_s=SLOT_S * math.ceil(work.duration_s / SLOT_S))
    model = PhaseModel((Phase("start-up", STARTUP_S, work.power_w),), (whole,))
    return replace(job, arrival_s=SLOT_S * math.ceil(job.arrival_s / SLOT_S), model=model)


def shifted(outcome: Outcome, base: Outcome, grams: str, decimals: int) -> dict[str, str]:
    """Return carbon under the heading `grams`, the share saved, the mean wait and the number of segments."""
    figures, before = outcome.metrics(), base.metrics()
    return {
        grams: number(figures["carbon_g"], decimals),
        "saved, %": number(PERCENT * (1.0 - figures["carbon_g"] / before["carbon_g"]), 2),
        "wait, h": number(figures["mean_total_wait_s"] / HOUR_S, 2),
        "pieces": str(figures["segments"]),
    }


def alone(jobs: Sequence[ShiftJob], integral: Timeline) -> pd.DataFrame:
    """Compare GAIA by its own rules with its policies in continuous time, on the mean lengths that GAIA foresees."""
    options = ShiftOptions(wait_h=WAIT_H, foreseen=True)
    # all policies of GAIA have a form in continuous time
    theirs = [gaia.simulate(jobs, list(integral.values), name, WAIT_H) for name in gaia.POLICIES]
    ours = [simulate(jobs, integral, name, options) for name in gaia.POLICIES]
    rows = []
    for name, one, other in zip(gaia.POLICIES, theirs, ours, strict=True):
        left, right = shifted(one, theirs[0], "g", 6), shifted(other, ours[0], "g", 3)
        sides = {"GAIA": left, "continuous": right}
        cells = {f"{side}: {head}": cell for side, row in sides.items() for head, cell in row.items()}
        rows.append({"policy": f"`{name}`"} | cells)
    return pd.DataFrame(rows)


def with_startups(jobs: Sequence[ShiftJob], integral: Timeline) -> pd.DataFrame:
    """Compare policies with and without a model of start-ups on jobs that have one."""
    outcomes = [simulate(jobs, integral, name, ShiftOptions(wait_h=WAIT_H)) for name in STARTED]
    base = outcomes[0]
    rows = []
    for outcome in outcomes:
        metrics = outcome.metrics()
        more = PERCENT * (metrics["energy_j"] / base.metrics()["energy_j"] - 1.0)
        row = {"policy": f"`{outcome.policy}`"} | shifted(outcome, base, "carbon, g", 3)
        rows.append(row | {"more energy, %": number(more, 2), "late jobs": str(metrics["late_jobs"])})
    return pd.DataFrame(rows)


def clusters(jobs: Sequence[ShiftJob], integral: Timeline) -> pd.DataFrame:
    """Run the scheduler `carbon` on decreasing numbers of machines; compare with immediate starts on each."""
    rows = []
    for machines in MACHINES:
        runs = dict(engine_runs(jobs, integral, machines))
        base = runs["immediate"][0]
        row = {"machines": str(machines), "at once, g": number(base.carbon_g, 1)}
        for name, (run, late) in runs.items():
            wait_h = number(run.metrics()["mean_total_wait_s"] / HOUR_S, 2)
            if name == "immediate":
                row["wait, h"] = wait_h
                continue
            row[f"`{name}`: saved, %"] = number(PERCENT * (1.0 - run.carbon_g / base.carbon_g), 2)
            row |= {f"`{name}`: wait, h": wait_h, f"`{name}`: late jobs": str(late)}
        rows.append(row)
    return pd.DataFrame(rows)


def engine_runs(
    jobs: Sequence[ShiftJob], integral: Timeline, machines: int
) -> Iterator[tuple[str, tuple[RunCarbon, int]]]:
    """Yield the policy, the carbon and the number of late jobs of a run with each policy on the embedded engine."""
    owner, content = phase_workload(jobs, machines)
    workload = parse_workload(content, "w0", "pai")
    for name in SHARED:
        engine = Engine(machines_platform(owner), [workload], EngineConfig(dynamic_jobs=True, profile_reuse=True))
        scheduler = Carbon({"signal": integral, "policy": name, "wait_h": list(WAIT_H), "slot_s": SLOT_S})
        with tempfile.TemporaryDirectory() as folder:
            write_record(play(engine, scheduler), Path(folder) / "x")
            run = account(Path(folder) / "x", integral, workload)
        ends_s = run.per_job().set_index("job")["end_s"]
        waits_s = HOUR_S * np.where([job.length_s < 2 * HOUR_S for job in jobs], *WAIT_H)
        due_s = np.array([job.arrival_s + job.length_s for job in jobs]) + waits_s
        # times are printed to the microsecond
        yield name, (run, int((ends_s.loc[[job.id for job in jobs]].to_numpy() > due_s + 1e-3).sum()))


if __name__ == "__main__":
    read = read_phase_jobs(Path(sys.argv[1]))
    german = read_on_clock(SeriesSource(Path(sys.argv[2]), days=DAYS, gaps="line"))
    started = [with_startup(job) for job in read]
    tables.write("real", alone(read, german))
    tables.write("real-startups", with_startups(started, german))
    tables.write("cluster", clusters(started, german))
    tables.refill()
