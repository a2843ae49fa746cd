"""Make the synthetic measurements of a training job, to the figures of the carbon thesis (sections 4.1 and 5.3.1).

    python power_profiles/measured/make_measurements.py            writes straight/, suspended/, aborted/ and idle/
    python power_profiles/measured/make_measurements.py --check    makes them again, exits 1 if a file differs by a byte

Phases are those of Listing 5.6 but for what README.md explains; durations and samples vary as seeded random numbers
say, and each run is scaled so that mean and standard deviation of the energies are the thesis's. No file is read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from batwatt.systems.carbon.measurements import MeasuredRun

Array = npt.NDArray[np.float64]

SEED = 5
RUNS = 10
STEP_S = 0.1
AROUND_S = 3.0
"""How long the machine is measured at rest before and after each part of a run."""
IDLE_S, IDLE_W, IDLE_STD_W = 30.0, 49.8, 4.4
EPOCHS = 5
JITTER = 0.006
"""Standard deviation of a phase's duration, as a share of it."""
DIP_SHARE, DIP_W = 0.15, 145.0
"""Training: how often the processor waits for data, and how much less it draws then."""
SLOPE_W = 33.0
"""Evaluation: power falls from this above its mean to this below."""


@dataclass(frozen=True)
class Kind:
    """A phase: its mean duration in s and its mean power in W."""

    name: str
    duration_s: float
    power_w: float


STARTUP = Kind("start-up", 23.45, 60.0)
TRAINING = Kind("training", 8.17, 221.93)
EVALUATE = Kind("evaluate", 1.54, 138.67)
SAVE = Kind("save", 2.72, 105.1)
AGAIN = Kind("start-up", 19.0, 51.05)
"""The start-up of a job that is resumed: without the download of its data."""
CUT = Kind("training", 8.02, 221.93)
"""A training phase that was killed just before its end."""
EPOCH = (TRAINING, EVALUATE, SAVE)


@dataclass(frozen=True)
class Experiment:
    """Parts of a run, each with the event that ends it; mean and standard deviation of its energy in J."""

    folder: str
    parts: tuple[tuple[tuple[Kind, ...], str], ...]
    energy_j: float
    energy_std_j: float


EXPERIMENTS = (
    Experiment("straight", (((STARTUP, *EPOCH * EPOCHS), "end"),), 12970.0, 40.0),
    Experiment(
        "suspended",
        (((STARTUP, *EPOCH * 2), "suspend"), ((AGAIN, *EPOCH * (EPOCHS - 2)), "end")),
        13940.0,
        100.0,
    ),
    Experiment(
        "aborted",
        (((STARTUP, *EPOCH, CUT), "abort"), ((AGAIN, *EPOCH * (EPOCHS - 1)), "end")),
        15720.0,
        70.0,
    ),
)


def standard(values: Array) -> Array:
    """The same numbers, moved and scaled to mean 0 and standard deviation 1 over the first axis."""
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


def at_rest(rng: np.random.Generator, count: int) -> Array:
    """Noise of a machine at rest, mean 0 W: mostly a little below the mean, with peaks."""
    # a gamma distribution of shape 2, standardised
    return IDLE_STD_W * (rng.standard_gamma(2.0, count) - 2.0) / np.sqrt(2.0)


def course_w(kind: Kind, rng: np.random.Generator, count: int) -> Array:
    """Samples of a phase, whose mean is its power."""
    watts = kind.power_w + at_rest(rng, count)
    if kind.name == TRAINING.name:
        watts -= DIP_W * (rng.random(count) < DIP_SHARE)
    elif kind.name == EVALUATE.name:
        watts += np.linspace(SLOPE_W, -SLOPE_W, count)
    return watts + kind.power_w - watts.mean()


def marks_of(experiment: Experiment, lengths: Sequence[float]) -> tuple[list[tuple[float, str]], list[Kind]]:
    """Events of a run whose phases last that long, and the phases themselves."""
    marks, kinds, now, rest = [], [], AROUND_S, iter(lengths)
    for phases, end in experiment.parts:
        for kind in phases:
            marks.append((round(now, 3), kind.name))
            now += next(rest)
        marks.append((round(now, 3), end))
        now += 2.0 * AROUND_S
        kinds += phases
    return marks, kinds


def run_of(experiment: Experiment, lengths: Sequence[float], energy_j: float, rng: np.random.Generator) -> MeasuredRun:
    """One run: samples at rest, over which those of each phase are laid, scaled to that energy."""
    marks, kinds = marks_of(experiment, lengths)
    times = np.arange(round((marks[-1][0] + AROUND_S) / STEP_S)) * STEP_S
    watts, active, order = IDLE_W + at_rest(rng, len(times)), np.zeros(len(times)), iter(kinds)
    for (begin, name), (end, _) in pairwise(marks):
        if name not in ("suspend", "abort"):
            first, last = np.searchsorted(times, [begin, end], "left")
            watts[first:last] = course_w(next(order), rng, last - first)
            active[first:last] = 1.0
    # the energy is a linear function of the scale: two points of it are enough
    whole, none = (MeasuredRun(times, watts * (1.0 + (k - 1.0) * active), tuple(marks)).energy_j for k in (1.0, 0.0))
    scale = (energy_j - none) / (whole - none)
    return MeasuredRun(times, watts * (1.0 + (scale - 1.0) * active), tuple(marks))


def files() -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    for experiment in EXPERIMENTS:
        means = np.array([kind.duration_s for phases, _ in experiment.parts for kind in phases])
        lengths = means * (1.0 + JITTER * standard(rng.standard_normal((RUNS, len(means)))))
        energies = experiment.energy_j + experiment.energy_std_j * standard(rng.standard_normal(RUNS))
        for number in range(RUNS):
            run = run_of(experiment, lengths[number].tolist(), float(energies[number]), rng)
            name = f"{experiment.folder}/{number + 1:02}"
            yield f"{name}.csv", samples_text(run.times_s, run.watts)
            events = "".join(f"{time:.3f},{event}\n" for time, event in run.marks)
            yield f"{name}-events.csv", f"time_s,event\n{events}"
    count = round(IDLE_S / STEP_S)
    rest = IDLE_W + IDLE_STD_W * standard(at_rest(rng, RUNS * count))
    for number, watts in enumerate(rest.reshape(RUNS, count), start=1):
        yield f"idle/{number:02}.csv", samples_text(np.arange(count) * STEP_S, watts)


def samples_text(times: Array, watts: Array) -> str:
    """Samples as CSV; power in steps of 10 mW, as the thesis's meter gives it."""
    rows = "".join(f"{time:.1f},{power:.2f}\n" for time, power in zip(times, watts, strict=True))
    return f"time_s,power_w\n{rows}"


def main() -> int:
    """Write or check the files; the exit code is 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Make the synthetic measurements beside this script.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent, help="folder of the files")
    arguments = parser.parse_args()
    different, made = [], dict(files())
    for name, text in made.items():
        path = arguments.output / name
        if arguments.check:
            if not (path.is_file() and path.read_bytes() == text.encode()):
                different.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
    for name in different:
        print(f"{name}: DIFFERENT")
    print(f"{len(made) - len(different)} files {'are the same' if arguments.check else 'written'}")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
