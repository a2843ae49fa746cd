"""What it costs that checkpoints end together if they take different times: a table in Markdown.

    python experiments/checkpoint_alignment.py [INSTANCES]

Random small instances of each kind, the plan of each against every schedule on a grid of seconds (checkpoint_grid.py).
A loss is the share of the useful work of the best schedule that the plan does not have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from checkpoint_grid import schedules

from batwatt.inputs.workloads.seeds import rng_of
from batwatt.systems.checkpoint.instance import Instance, PeriodJob, State
from batwatt.systems.checkpoint.period_plan import plan

INSTANCES = 1000
PROCESSORS, JOBS = 8, 5
RECOVERIES_S = 2
"""Recoveries take 0 to this many s."""
HEADER = (
    "| period (s) | checkpoints (s) | instances | that lose | mean loss | largest "
    "| refilled: that lose | mean loss | largest |",
    "| ---: | :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


@dataclass(frozen=True)
class Kind:
    """Instances with a period of `period_s` and checkpoints of 1 s to `longest_s`; `alike`: all of a time."""

    period_s: int
    longest_s: int
    alike: bool = False

    @property
    def checkpoints(self) -> str:
        """Their times in words."""
        return f"all alike, 1 to {self.longest_s}" if self.alike else f"1 to {self.longest_s}"


KINDS = (Kind(10, 4, alike=True), Kind(10, 2), Kind(10, 4), Kind(20, 2), Kind(20, 4), Kind(20, 8), Kind(40, 8))


@dataclass(frozen=True)
class Row:
    """What instances of a kind lose, without and with refill: how many plans do, the mean and the largest loss."""

    kind: Kind
    instances: int
    lose: int
    mean_loss: float
    most_loss: float
    lose_refilled: int
    mean_loss_refilled: float
    most_loss_refilled: float


def instances(kind: Kind, count: int) -> Iterator[Instance]:
    """Random instances: jobs of 1 to all processors in any state, at least two that run without a checkpoint."""
    rng = rng_of(1, kind)
    states: tuple[State, ...] = ("checkpointed", "running", "stopped")
    found = 0
    while found < count:
        jobs = tuple(
            PeriodJob(str(i), int(width), float(checkpoint_s), float(recovery_s), states[state])
            for i, (width, checkpoint_s, recovery_s, state) in enumerate(_draws(rng, kind))
        )
        running = [job for job in jobs if job.state == "running"]
        if len(running) >= 2 and sum(job.processors for job in running) <= PROCESSORS:
            found += 1
            yield Instance(float(kind.period_s), PROCESSORS, jobs)


def _draws(rng: np.random.Generator, kind: Kind) -> np.ndarray:
    checkpoints = rng.integers(1, kind.longest_s + 1, JOBS)
    if kind.alike:
        checkpoints[:] = checkpoints[0]
    widths, recoveries = rng.integers(1, PROCESSORS + 1, JOBS), rng.integers(0, RECOVERIES_S + 1, JOBS)
    return np.column_stack((widths, checkpoints, recoveries, rng.integers(0, 3, JOBS)))


def loss(instance: Instance) -> tuple[float, float]:
    """The share of the best schedule's useful work that the plan does not have, and the same with refill."""
    without, refilled = (plan(instance, refill=refill).work_processor_s for refill in (False, True))
    most = schedules(instance, known=int(refilled))
    return (1.0 - without / most, 1.0 - refilled / most) if most else (0.0, 0.0)


def rows(count: int = INSTANCES, kinds: Sequence[Kind] = KINDS) -> list[Row]:
    """A row for each kind of instances."""
    found = []
    for kind in kinds:
        losses = [loss(instance) for instance in instances(kind, count)]
        without, refilled = zip(*losses, strict=True)
        found.append(Row(kind, count, *_figures(without), *_figures(refilled)))
    return found


def _figures(losses: Sequence[float]) -> tuple[int, float, float]:
    return sum(loss > 0.0 for loss in losses), fmean(losses), max(losses)


def markdown(table: Sequence[Row]) -> str:
    """The rows as a table."""
    return "\n".join((*HEADER, *(_line(row) for row in table)))


def _line(row: Row) -> str:
    plain = f"{row.lose} | {row.mean_loss:.3%} | {row.most_loss:.1%}"
    refilled = f"{row.lose_refilled} | {row.mean_loss_refilled:.3%} | {row.most_loss_refilled:.1%}"
    return f"| {row.kind.period_s} | {row.kind.checkpoints} | {row.instances} | {plain} | {refilled} |"


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    count = int(arguments[0]) if arguments else INSTANCES
    if count < 1:
        raise SystemExit(f"error: the number of instances must be >= 1, got {count}")
    print(markdown(rows(count)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
