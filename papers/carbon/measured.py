"""Draw synthetic measurements of a training job, to the figures of the carbon thesis (sections 4.1 and 5.3.1).

No value was measured. Phases are those of Listing 5.6 but for `EVALUATE` and `AGAIN`, as README.md explains;
durations and samples are seeded random numbers, and each run is scaled so that mean and standard deviation of the
energies are the thesis's. Times are in s, to the ms; power in W, to 10 mW as by the thesis's meter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from batwatt.model.work import Array, Phase

END, SUSPEND, ABORT = ENDS = ("end", "suspend", "abort")
"""The job has finished, was suspended with all of its work, or was killed: work since the last checkpoint is lost."""
SEED, RUNS, STEP_S = 5, 10, 0.1
AROUND_S = 3.0
"""Time at rest before and after each part of a run."""
IDLE_S, IDLE_W, IDLE_STD_W = 30.0, 49.8, 4.4
EPOCHS = 5
JITTER = 0.006
"""Standard deviation of a phase's duration, as a share of it."""
DIP_SHARE, DIP_W = 0.15, 145.0
"""Training: share of the time in which the processor waits for data, and the reduction of its power in that time."""
SLOPE_W = 33.0
"""Evaluation: power falls from this above its mean to this below."""
STARTUP, AGAIN = Phase("start-up", 23.45, 60.0), Phase("start-up", 19.0, 51.05)
"""First start-up, and start-up of a resumed job, without the download of its data."""
TRAINING, EVALUATE, SAVE = Phase("training", 8.17, 221.93), Phase("evaluate", 1.54, 138.67), Phase("save", 2.72, 105.1)
CUT = Phase("training", 8.02, 221.93)
"""A training phase that was killed just before its end."""
EPOCH = (TRAINING, EVALUATE, SAVE)


@dataclass(frozen=True)
class Run:
    """Samples of power, and marks (time, event): a mark begins a phase, which lasts until the next, or is of ENDS."""

    times_s: Array
    watts: Array
    marks: tuple[tuple[float, str], ...]

    @property
    def spans(self) -> list[tuple[str, float, float, str]]:
        """Name, begin and end of each phase, and the event that ends it."""
        return [(name, begin_s, end_s, then) for (begin_s, name), (end_s, then) in pairwise(self.marks)
                if name not in ENDS]  # fmt: skip

    def energy_until(self, time_s: Array) -> Array:
        """Energy from the first sample on, J: power is a straight line between two samples (trapezoids)."""
        reached_j = np.concatenate([(0.0,), np.cumsum(np.diff(self.times_s) * (self.watts[1:] + self.watts[:-1]) / 2)])
        index = np.clip(np.searchsorted(self.times_s, time_s, "right") - 1, 0, len(self.times_s) - 2)
        power_w = np.interp(time_s, self.times_s, self.watts)
        return reached_j[index] + (time_s - self.times_s[index]) * (self.watts[index] + power_w) / 2.0

    def energies_j(self) -> Array:
        """Energy of each phase, J; the power while the job is stopped is left out."""
        begins, ends = np.array([(begin_s, end_s) for _, begin_s, end_s, _ in self.spans]).T
        return self.energy_until(ends) - self.energy_until(begins)


@dataclass(frozen=True)
class Experiment:
    """Parts of a run, each with the event that ends it; mean and standard deviation of its energy in J."""

    parts: tuple[tuple[tuple[Phase, ...], str], ...]
    energy_j: float
    energy_std_j: float


EXPERIMENTS = {
    "straight": Experiment((((STARTUP, *EPOCH * EPOCHS), END),), 12970.0, 40.0),
    "suspended": Experiment((((STARTUP, *EPOCH * 2), SUSPEND), ((AGAIN, *EPOCH * (EPOCHS - 2)), END)), 13940.0, 100.0),
    "aborted": Experiment((((STARTUP, *EPOCH, CUT), ABORT), ((AGAIN, *EPOCH * (EPOCHS - 1)), END)), 15720.0, 70.0),
}


def standard(values: Array) -> Array:
    """Return the values scaled to mean 0 and standard deviation 1 over the first axis."""
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


def at_rest(rng: np.random.Generator, count: int) -> Array:
    """Draw the noise of a machine at rest, mean 0 W: mostly a little below the mean, with peaks."""
    # a gamma distribution of shape 2, standardised
    return IDLE_STD_W * (rng.standard_gamma(2.0, count) - 2.0) / np.sqrt(2.0)


def samples(phase: Phase, rng: np.random.Generator, count: int) -> Array:
    """Draw the samples of a phase, whose mean is its power."""
    watts = phase.power_w + at_rest(rng, count)
    if phase.name == TRAINING.name:
        watts -= DIP_W * (rng.random(count) < DIP_SHARE)
    elif phase.name == EVALUATE.name:
        watts += np.linspace(SLOPE_W, -SLOPE_W, count)
    return watts + phase.power_w - watts.mean()


def run_of(experiment: Experiment, lengths_s: Array, energy_j: float, rng: np.random.Generator) -> Run:
    """Draw a run: samples at rest, replaced by those of each phase, scaled to `energy_j`."""
    marks: list[tuple[float, str]] = []
    now, rest = AROUND_S, iter(lengths_s.tolist())
    for phases, end in experiment.parts:
        for phase in phases:
            marks.append((round(now, 3), phase.name))
            now += next(rest)
        marks.append((round(now, 3), end))
        now += 2.0 * AROUND_S
    times = np.arange(round((marks[-1][0] + AROUND_S) / STEP_S)) * STEP_S
    watts, active = IDLE_W + at_rest(rng, len(times)), np.zeros(len(times))
    order = (phase for phases, _ in experiment.parts for phase in phases)
    for (begin_s, name), (end_s, _) in pairwise(marks):
        if name not in ENDS:
            first, last = np.searchsorted(times, [begin_s, end_s], "left")
            watts[first:last] = samples(next(order), rng, last - first)
            active[first:last] = 1.0
    # the energy is a linear function of the scale: two points define it
    whole, none = (Run(times, watts * (1.0 + (k - 1.0) * active), tuple(marks)).energies_j().sum() for k in (1.0, 0.0))
    scale = (energy_j - none) / (whole - none)
    return Run(times.round(1), (watts * (1.0 + (scale - 1.0) * active)).round(2), tuple(marks))


def draw() -> Iterator[tuple[str, list[Run]]]:
    """Yield the name of each experiment and its runs, last `idle` without marks."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    for name, experiment in EXPERIMENTS.items():
        means = np.array([phase.duration_s for phases, _ in experiment.parts for phase in phases])
        lengths = means * (1.0 + JITTER * standard(rng.standard_normal((RUNS, len(means)))))
        energies = experiment.energy_j + experiment.energy_std_j * standard(rng.standard_normal(RUNS))
        yield name, [run_of(experiment, lengths[n], float(energies[n]), rng) for n in range(RUNS)]
    count = round(IDLE_S / STEP_S)
    rest = IDLE_W + IDLE_STD_W * standard(at_rest(rng, RUNS * count))
    yield "idle", [Run(np.arange(count) * STEP_S, watts.round(2), ()) for watts in rest.reshape(RUNS, count)]
