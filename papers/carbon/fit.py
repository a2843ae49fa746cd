"""Reduce power measurements of a job to phases of constant power: chapter 4 of the carbon thesis.

    python -m papers.carbon.fit
        fit the runs of measured.py, write data/fit.csv and fill the page
    python -m papers.carbon.fit FOLDER
        fit the runs of a folder, and print the job for `batwatt plan carbon` (JSON)

A run is NAME.csv (`time_s,power_w`) with NAME-events.csv (`time_s,event`): each event begins a phase,
or is `end`, `suspend` or `abort`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.model.work import Array, Phase, PhaseModel
from batwatt.protocol.job_fields import phases_json
from papers.carbon import tables
from papers.carbon.measured import ABORT, END, Run, draw
from papers.pages import number

FIRST, CHECKPOINT = "training", "save"
"""Phases: the first phase of work, and the phase of the checkpoint."""
KJ = 1e3
LISTING = {"start-up": (23.45, 60.0), "training": (8.17, 221.93), "evaluate": (1.54, 63.17), "save": (2.72, 105.1)}
"""Listing 5.6 of the thesis: duration in s and power in W."""


def read_runs(folder: Path) -> list[Run]:
    """Return the runs of a folder."""
    runs = []
    for log in sorted(folder.glob("*-events.csv")):
        samples = pd.read_csv(log.with_name(log.name.replace("-events", "")))
        marks = pd.read_csv(log).itertuples(index=False, name=None)
        runs.append(Run(samples["time_s"].to_numpy(float), samples["power_w"].to_numpy(float), tuple(marks)))
    return runs


def model_of(names: Sequence[str], durations_s: Array, energies_j: Array) -> PhaseModel:
    """Return the model of phases of these mean durations and energies."""
    phases = [Phase(name, float(s), float(j / s), name.startswith(CHECKPOINT))
              for name, s, j in zip(names, durations_s, energies_j, strict=True)]  # fmt: skip
    first = names.index(FIRST)
    return PhaseModel(tuple(phases[:first]), tuple(phases[first:]))


def fit(runs: Sequence[Run]) -> tuple[PhaseModel, float, Array]:
    """Return the model of straight runs; leaving out one run in turn, the RMSE of the power and energy errors in J.

    Phases have the mean duration and the mean power. Raises ValueError if the runs have different phases.
    """
    names = [name for name, *_ in runs[0].spans]
    if any([name for name, *_ in run.spans] != names or run.marks[-1][1] != END for run in runs):
        raise ValueError("fit straight runs of the same phases")
    durations = np.array([[end_s - begin_s for _, begin_s, end_s, _ in run.spans] for run in runs])
    energies = np.array([run.energies_j() for run in runs])
    squares, errors = [], []
    for place, run in enumerate(runs):
        others = np.arange(len(runs)) != place
        model = model_of(names, durations[others].mean(axis=0), energies[others].mean(axis=0))
        inside = (run.times_s >= run.marks[0][0]) & (run.times_s < run.marks[-1][0])
        steps = model.steps
        at = np.searchsorted(steps.edges_s, run.times_s[inside] - run.marks[0][0], "right") - 1
        squares.append((np.append(steps.watts, 0.0)[at] - run.watts[inside]) ** 2)
        errors.append(model.energy_j - energies[place].sum())
    whole = model_of(names, durations.mean(axis=0), energies.mean(axis=0))
    return whole, float(np.sqrt(np.concatenate(squares).mean())), np.array(errors)


def predicted_j(model: PhaseModel, run: Run) -> float:
    """Return the energy in J that a model predicts for a run with the interruptions of `run`.

    Each part takes a whole start-up and its phases of work. After `suspend` the next phase follows, after `abort` the
    first one after the last checkpoint; a cut phase counts with its measured duration.
    """
    next_phase, energy_j = 0, 0.0
    for name, begin_s, end_s, then in run.spans:
        if name == model.startup[0].name:
            energy_j += model.startup_steps.energy_j
            continue
        phase = model.work[next_phase]
        if phase.name != name:
            raise ValueError(f"{name} where the model has {phase.name}")
        energy_j += phase.power_w * (min(phase.duration_s, end_s - begin_s) if then == ABORT else phase.duration_s)
        next_phase += 1
        if then == ABORT:
            next_phase = max((n for n in range(1, next_phase) if model.work[n - 1].is_checkpoint), default=0)
    return energy_j


def fitted() -> pd.DataFrame:
    """Return the figures of the thesis and of the synthetic measurements."""
    runs = dict(draw())
    model, rmse_w, errors_j = fit(runs["straight"])
    rest = np.concatenate([run.watts for run in runs["idle"]])
    rows = [("machine at rest, W", 49.8, rest.mean(), 1), ("standard deviation, W", 4.4, rest.std(ddof=1), 1)]
    for name, told, thesis_kj, std_kj in (
        ("straight", "straight", 12.97, 0.04),
        ("suspended", "suspended after a save, resumed", 13.94, 0.1),
        ("aborted", "aborted before the second save, resumed", 15.72, 0.07),
    ):
        energies = np.array([run.energies_j().sum() for run in runs[name]]) / KJ
        says = np.mean([predicted_j(model, run) for run in runs[name]]) / KJ
        rows += [(f"{told}, kJ", thesis_kj, energies.mean(), 2)]
        rows += [("standard deviation, kJ", std_kj, energies.std(ddof=1), 2)]
        rows += [(f"{told}: the model says, kJ", None, says, 2)]
    for name, (duration_s, power_w) in LISTING.items():
        alike = [phase for phase in (*model.startup, *model.work) if phase.name == name]
        lasts_s = sum(phase.duration_s for phase in alike)
        rows.append((f"{name}, s", duration_s, lasts_s / len(alike), 2))
        rows.append((f"{name}, W", power_w, sum(phase.duration_s * phase.power_w for phase in alike) / lasts_s, 1))
    rows.append(("power, leaving one out: RMSE, W", 39.3, rmse_w, 1))
    rows.append(("energy, leaving one out: RMSE, kJ", None, np.sqrt((errors_j**2).mean()) / KJ, 3))
    rows.append(("energy, leaving one out: mean error, kJ", -0.1, errors_j.mean() / KJ, 1))
    cells = [(name, "" if thesis is None else f"{thesis:g}", number(value, n)) for name, thesis, value, n in rows]
    return pd.DataFrame(cells, columns=["figure", "thesis", "fitted"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(phases_json(fit(read_runs(Path(sys.argv[1])))[0], float), indent=2))
    else:
        tables.write("fit", fitted())
        tables.refill()
