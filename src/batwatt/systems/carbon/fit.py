"""Fitting a job's phases to measurements, how well the model predicts, and what it says about interrupted runs.

Chapter 4 of the carbon thesis: each phase lasts and draws what it did on average (section 4.2, Figure 4.9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd

from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.workloads.phase_workload import phases_json
from batwatt.model.phases import Array, Phase, PhaseModel, Steps
from batwatt.systems.carbon import CHECKPOINTS, STARTUP_UNTIL
from batwatt.systems.carbon.measurements import ABORT, END, MeasuredRun

PHASE_COLUMNS: Mapping[str, str] = {
    "phase": "name of the phase",
    "kind": "startup or work",
    "is_checkpoint": "whether it ends with all saved",
    "duration_s": "mean duration, s",
    "duration_std_s": "standard deviation of the duration over the runs, s",
    "power_w": "mean energy divided by mean duration, W",
    "energy_j": "mean energy, J",
    "energy_std_j": "standard deviation of the energy over the runs, J",
}
"""Columns of `FittedModel.per_phase`: one row per phase, in order."""
RUN_COLUMNS: Mapping[str, str] = {
    "run": "where the run comes from",
    "energy_j": "energy that was measured, J",
    "predicted_j": "energy of the model that the other runs give, J",
    "error_j": "predicted less measured, J",
    "samples": "number of samples while it ran",
    "rmse_power_w": "root of the mean squared difference between samples and that model, W",
}
"""Columns of `FittedModel.per_run`: one row per run that was left out in turn."""
INTERRUPTED_COLUMNS: Mapping[str, str] = {
    "run": "where the run comes from",
    "kind": "straight, or how its parts ended: suspend, abort",
    "measured_j": "energy that was measured, J",
    "predicted_j": "energy that the model predicts, J",
    "error_j": "predicted less measured, J",
}
"""Columns of `compared`."""


@dataclass(frozen=True)
class FittedModel:
    """A model, what it is made of, and how well models of all runs but one predict that one (leave one out).

    With a single run nothing can be left out: `per_run` has NaN and the errors are None.
    """

    model: PhaseModel
    per_phase: pd.DataFrame
    per_run: pd.DataFrame

    @property
    def rmse_power_w(self) -> float | None:
        """Root mean squared error of the power over the samples of all runs, W."""
        squares = self.per_run["rmse_power_w"] ** 2 * self.per_run["samples"]
        return self._number(np.sqrt(squares.sum() / self.per_run["samples"].sum()))

    @property
    def rmse_energy_j(self) -> float | None:
        """Root mean squared error of the energy of a run, J."""
        return self._number(np.sqrt((self.per_run["error_j"] ** 2).mean()))

    @property
    def mean_energy_error_j(self) -> float | None:
        """Mean of predicted less measured energy, J: 0 but for rounding, as a mean of means has it."""
        return self._number(self.per_run["error_j"].mean())

    def metrics(self) -> dict[str, Any]:
        """The figures of the fit, as JSON takes them."""
        return {
            "runs": len(self.per_run),
            "phases": len(self.per_phase),
            "startup_s": self.model.startup_s,
            "work_s": self.model.work_s,
            "energy_j": self.model.energy_j,
            "energy_std_j": float(self.per_run["energy_j"].std()) if len(self.per_run) > 1 else None,
            "rmse_power_w": self.rmse_power_w,
            "rmse_energy_j": self.rmse_energy_j,
            "mean_energy_error_j": self.mean_energy_error_j,
        }

    def _number(self, value: float) -> float | None:
        return float(value) if len(self.per_run) > 1 else None


def fit_runs(
    runs: Sequence[MeasuredRun],
    *,
    startup_until: str = STARTUP_UNTIL,
    checkpoints: Sequence[str] = CHECKPOINTS,
    alike: bool = False,
) -> FittedModel:
    """The phases of straight runs, each with its mean duration and its mean power (mean energy / mean duration).

    Phases are known by their place in the run; `alike` gives all phases of one name the same mean instead, as in
    Listing 5.6. Work begins at the first event `startup_until`; phases whose names match a pattern of `checkpoints` end
    with all saved. Raises InputError.
    """
    if not runs:
        raise InputError("fit", "no run is given", "name at least one file of samples")
    names = _names(runs)
    if startup_until not in names:
        raise UnknownNameError(runs[0].source, "event", startup_until, set(names), "Name the first phase of work.")
    shape = _Shape(names, names.index(startup_until), tuple(checkpoints), alike)
    durations = np.array([[span.end_s - span.begin_s for span in run.parts[0].spans] for run in runs])
    energies = np.array([run.energies_j(run.parts[0]) for run in runs])
    model = shape.model(durations.mean(axis=0), energies.mean(axis=0))
    return FittedModel(model, _per_phase(model, durations, energies), _left_out(runs, shape, durations, energies))


def compared(model: PhaseModel, runs: Sequence[MeasuredRun]) -> pd.DataFrame:
    """What runs took, interrupted or not, compared with what the model predicts for them. Raises InputError."""
    rows = []
    for run in runs:
        ends = [part.end for part in run.parts if part.end != END]
        measured, predicted = run.energy_j, predicted_j(model, run)
        kind = "+".join(dict.fromkeys(ends)) or "straight"
        rows.append((run.source, kind, measured, predicted, predicted - measured))
    return pd.DataFrame(rows, columns=list(INTERRUPTED_COLUMNS))


def predicted_j(model: PhaseModel, run: MeasuredRun) -> float:
    """The energy that a model predicts for a run with the interruptions of this one, J.

    Each part takes one whole start-up and its phases of work. After `suspend` work goes on with the next phase; after
    `abort` with the first phase after the last checkpoint, and the phase that was cut counts as long as it lasted (at
    most its duration). Raises InputError if the run is no such run of the model.
    """
    done, energy_j = 0, 0.0
    for number, part in enumerate(run.parts, start=1):
        where = f"{run.source}: part {number}"
        if done == len(model.work):
            raise InputError(where, "begins when all work is done", "fit the model to runs of the same job")
        first = model.work[done].name
        at = part.names.index(first) if first in part.names else len(part.spans)
        if at == len(part.spans):
            # it was stopped while it started
            energy_j += float(model.startup_steps.energy_until(np.array(part.spans[-1].end_s - part.spans[0].begin_s)))
            if part.end == END:
                raise InputError(where, f"never works on {first!r}", "fit the model to runs of the same job")
            continue
        worked = part.spans[at:]
        expected = model.work[done : done + len(worked)]
        if part.names[at:] != tuple(phase.name for phase in expected):
            problem = f"works on {', '.join(part.names[at:])} where the model has {_listed(expected)}"
            raise InputError(where, problem, "fit the model to runs of the same job")
        done += len(worked)
        energy_j += model.startup_steps.energy_j + sum(phase.duration_s * phase.power_w for phase in expected)
        if part.end == ABORT:
            cut = expected[-1]
            lasted_s = min(cut.duration_s, worked[-1].end_s - worked[-1].begin_s)
            energy_j -= (cut.duration_s - lasted_s) * cut.power_w
            saved = [index for index, phase in enumerate(model.work[: done - 1], start=1) if phase.is_checkpoint]
            done = saved[-1] if saved else 0
    if done < len(model.work):
        problem = f"ends before its work does: {_listed(model.work[done:])} are left"
        raise InputError(run.source, problem, "fit the model to runs of the same job")
    return energy_j


def model_json(model: PhaseModel) -> dict[str, list[dict[str, Any]]]:
    """The model as Listing 4.4 has it: {"startup": [...], "work": [...]}, durations in s and powers in W."""
    return phases_json(model, float)


def drawn_w(steps: Steps, time_s: Array) -> Array:
    """The power of a run of these steps at some times since it began; 0 W when it is over."""
    index = np.searchsorted(steps.edges_s, time_s, "right") - 1
    return np.append(steps.watts, 0.0)[np.clip(index, 0, len(steps.watts))]


@dataclass(frozen=True)
class _Shape:
    """What turns mean durations and mean energies of phases into a model."""

    names: tuple[str, ...]
    first_work: int
    checkpoints: tuple[str, ...]
    alike: bool

    def model(self, durations_s: Array, energies_j: Array) -> PhaseModel:
        """The model of phases of these means."""
        if self.alike:
            keys = pd.Series([(place >= self.first_work, name) for place, name in enumerate(self.names)])
            durations_s, energies_j = (
                pd.Series(values).groupby(keys).transform("mean").to_numpy() for values in (durations_s, energies_j)
            )
        phases = tuple(
            Phase(
                name, float(length), float(energy / length), any(fnmatchcase(name, known) for known in self.checkpoints)
            )
            for name, length, energy in zip(self.names, durations_s, energies_j, strict=True)
        )
        return PhaseModel(phases[: self.first_work], phases[self.first_work :])


def _names(runs: Sequence[MeasuredRun]) -> tuple[str, ...]:
    """The names of the phases that all runs have. Raises InputError."""
    for run in runs:
        if len(run.parts) > 1 or run.parts[0].end != END:
            problem = f"was stopped ({', '.join(part.end for part in run.parts)})"
            raise InputError(run.source, problem, "fit straight runs, and compare the others with the model")
    names = runs[0].parts[0].names
    for run in runs[1:]:
        own = run.parts[0].names
        if own != names:
            place = next(
                (i for i, (a, b) in enumerate(zip(own, names, strict=False)) if a != b), min(len(own), len(names))
            )
            here, there = (listed[place] if place < len(listed) else END for listed in (own, names))
            problem = f"event {place + 1} is {here!r} where {runs[0].source} has {there!r}"
            raise InputError(run.source, problem, "fit runs of the same phases")
    return names


def _per_phase(model: PhaseModel, durations: Array, energies: Array) -> pd.DataFrame:
    phases = (*model.startup, *model.work)
    return pd.DataFrame(
        {
            "phase": [phase.name for phase in phases],
            "kind": ["startup"] * len(model.startup) + ["work"] * len(model.work),
            "is_checkpoint": [phase.is_checkpoint for phase in phases],
            "duration_s": [phase.duration_s for phase in phases],
            "duration_std_s": _spread(durations),
            "power_w": [phase.power_w for phase in phases],
            "energy_j": [phase.duration_s * phase.power_w for phase in phases],
            "energy_std_j": _spread(energies),
        }
    )


def _spread(values: Array) -> Array:
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)


def _left_out(runs: Sequence[MeasuredRun], shape: _Shape, durations: Array, energies: Array) -> pd.DataFrame:
    """One row per run: how the model of the others predicts it."""
    rows = []
    for number, run in enumerate(runs):
        spans = run.parts[0].spans
        inside = run.within(spans[0].begin_s, spans[-1].end_s)
        since, watts = run.times_s[inside] - spans[0].begin_s, run.watts[inside]
        measured, predicted, rmse = float(energies[number].sum()), np.nan, np.nan
        if len(runs) > 1:
            others = np.arange(len(runs)) != number
            model = shape.model(durations[others].mean(axis=0), energies[others].mean(axis=0))
            apart = drawn_w(model.steps, since) - watts
            predicted, rmse = model.energy_j, float(np.sqrt(np.mean(apart**2)))
        rows.append((run.source, measured, predicted, predicted - measured, len(watts), rmse))
    return pd.DataFrame(rows, columns=list(RUN_COLUMNS))


def _listed(phases: Sequence[Phase]) -> str:
    return ", ".join(phase.name for phase in phases) or "nothing"
