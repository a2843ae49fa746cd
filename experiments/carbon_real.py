"""Real jobs for docs/results/carbon.md: those of Alibaba PAI on the German series, alone and on one finite cluster.

Both files come from elsewhere (experiments/README.md says from where): without them `tables` raises InputError.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from varcap_tables import markdown

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate as play
from batwatt.inputs.platforms.machines import machines_platform
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.inputs.workloads.batsim_json import parse_workload
from batwatt.inputs.workloads.phase_jobs import read_phase_jobs
from batwatt.inputs.workloads.phase_workload import phase_workload
from batwatt.model.phases import Phase, PhaseModel
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results.writers import write_record
from batwatt.schedulers.carbon import Carbon
from batwatt.systems.carbon.account import RunCarbon, account
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.files import read_integral
from batwatt.systems.carbon.outcome import Outcome
from batwatt.systems.carbon.simulate import ShiftOptions, simulate
from batwatt.systems.carbon.simulators import gaia
from batwatt.units import DAY_S, HOUR_S

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
JOBS, SIGNAL = DATA / "jobs" / "pai_1k.csv", DATA / "carbon" / "DE-2024-hourly.csv"
DAYS = 40.0
WAIT_H = (6.0, 24.0)
"""Hours that short (< 2 h) and long jobs may wait."""
BOTH = (
    *("immediate", "lowest", "oracle", "waiting", "cst-oracle", "cst-average"),
    *("suspend-resume", "suspend-resume-threshold"),
)
"""Policies of GAIA that there are in continuous time, too."""
STARTUP_S = 300.0
STARTED = ("immediate", "oracle", "suspend-resume", "suspend-resume-threshold", "phase-aware")
SLOT_S = 60.0
MACHINES = (200, 60, 40, 30, 25)
SHARED = ("immediate", "oracle", "suspend-resume", "phase-aware")
NAMES = ("real", "real-startups", "cluster")
PERCENT = 100.0


def tables() -> dict[str, str]:
    """All tables of real jobs. Raises InputError."""
    jobs = read_phase_jobs(JOBS)
    integral = read_integral(SignalFile(SIGNAL), DAYS * DAY_S)
    started = [_started_job(job) for job in jobs]
    return {
        "real": markdown(*_real(jobs, integral)),
        "real-startups": markdown(*_startups(started, integral)),
        "cluster": markdown(*_clusters(started, integral)),
    }


def _started_job(job: ShiftJob) -> ShiftJob:
    """The job after a start-up of STARTUP_S at its power, in whole minutes: slots of a minute are exact then."""
    [work] = job.model.work
    whole = replace(work, duration_s=SLOT_S * math.ceil(work.duration_s / SLOT_S))
    model = PhaseModel((Phase("start-up", STARTUP_S, work.power_w),), (whole,))
    return replace(job, arrival_s=SLOT_S * math.ceil(job.arrival_s / SLOT_S), model=model)


def _real(jobs: Sequence[ShiftJob], integral: SignalIntegral) -> tuple[list[str], list[list[str]]]:
    """GAIA by its own rules compared with the same policies in continuous time."""
    options = ShiftOptions(wait_h=WAIT_H)
    hourly = integral.values.tolist()
    found = [(gaia.simulate(jobs, hourly, policy=name, wait_h=WAIT_H), simulate(jobs, integral, name, options))
             for name in BOTH]  # fmt: skip
    rows = []
    for name, (theirs, ours) in zip(BOTH, found, strict=True):
        first = [f"{theirs.metrics()['carbon_g']:.6f}", *_saved(theirs, found[0][0])]
        rows.append([f"`{name}`", *first, f"{ours.metrics()['carbon_g']:.3f}", *_saved(ours, found[0][1])])
    heads = ["policy", "GAIA, g", "saved, %", "wait, h", "pieces", "continuous, g", "saved, %", "wait, h", "pieces"]
    return heads, rows


def _saved(outcome: Outcome, base: Outcome) -> list[str]:
    """Share saved, mean wait and number of pieces."""
    found, before = outcome.metrics(), base.metrics()
    share = PERCENT * (1.0 - found["carbon_g"] / before["carbon_g"])
    return [f"{share:.2f}", f"{found['mean_total_wait_s'] / HOUR_S:.2f}", f"{found['segments']}"]


def _startups(jobs: Sequence[ShiftJob], integral: SignalIntegral) -> tuple[list[str], list[list[str]]]:
    """The same jobs with a start-up, which only some policies know of."""
    options = ShiftOptions(wait_h=WAIT_H)
    found = [simulate(jobs, integral, name, options) for name in STARTED]
    rows = []
    for outcome in found:
        metrics = outcome.metrics()
        energy = PERCENT * (metrics["energy_j"] / found[0].metrics()["energy_j"] - 1.0)
        figures = [f"{metrics['carbon_g']:.3f}", *_saved(outcome, found[0]), f"{energy:.2f}", f"{metrics['late_jobs']}"]
        rows.append([f"`{outcome.policy}`", *figures])
    return ["policy", "carbon, g", "saved, %", "wait, h", "pieces", "more energy, %", "late jobs"], rows


def _clusters(jobs: Sequence[ShiftJob], integral: SignalIntegral) -> tuple[list[str], list[list[str]]]:
    """The scheduler `carbon` on fewer and fewer machines: what is saved against starting at once on as many."""
    rows = []
    for machines in MACHINES:
        runs = dict(_runs(jobs, integral, machines))
        base = runs["immediate"][0]
        row = [f"{machines}", f"{base.carbon_g:.1f}"]
        for name, (run, late) in runs.items():
            share = PERCENT * (1.0 - run.carbon_g / base.carbon_g)
            wait_h = run.metrics()["mean_total_wait_s"] / HOUR_S
            row += [f"{wait_h:.2f}"] if name == "immediate" else [f"{share:.2f}", f"{wait_h:.2f}", f"{late}"]
        rows.append(row)
    heads = ["machines", "at once, g", "wait, h"]
    heads += [f"`{name}`: {what}" for name in SHARED[1:] for what in ("saved, %", "wait, h", "late jobs")]
    return heads, rows


def _runs(
    jobs: Sequence[ShiftJob], integral: SignalIntegral, machines: int
) -> Iterator[tuple[str, tuple[RunCarbon, int]]]:
    """Name, carbon and number of late jobs of a run with each policy on the embedded engine."""
    owner, content = phase_workload(jobs, machines)
    workload = parse_workload(content, "w0", str(JOBS))
    for name in SHARED:
        engine = Engine(machines_platform(owner), [workload], EngineConfig(dynamic_jobs=True, profile_reuse=True))
        scheduler = Carbon({"signal": integral, "policy": name, "wait_h": list(WAIT_H), "slot_s": SLOT_S})
        with tempfile.TemporaryDirectory() as folder:
            write_record(play(engine, scheduler), Path(folder) / "x")
            run = account(Path(folder) / "x", integral, workload)
        yield name, (run, _late(run, jobs))


def _late(run: RunCarbon, jobs: Sequence[ShiftJob]) -> int:
    """How many jobs ended after arrival + wait + length."""
    ends_s = run.per_job().set_index("job")["end_s"]
    short = np.array([job.length_s < 2 * HOUR_S for job in jobs])
    due_s = np.array([job.arrival_s + job.length_s for job in jobs]) + HOUR_S * np.where(short, *WAIT_H)
    # times are printed to the microsecond
    return int((ends_s.loc[[job.id for job in jobs]].to_numpy() > due_s + 1e-3).sum())


if __name__ == "__main__":
    for name, text in tables().items():
        print(f"\n{name}\n\n{text}")
