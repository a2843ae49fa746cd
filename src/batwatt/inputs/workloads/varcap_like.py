"""Parameters of job traces like those of the varcap dissertation: its systems and Table 5.2.

The generator is `varcap_synthetic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from batwatt.checks import Between, Parameters
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.workload import LONG_S
from batwatt.protocol.numbers import MAX_INT
from batwatt.units import HOUR_S

if TYPE_CHECKING:
    from batwatt.inputs.workloads.fitted import FittedDistribution

WHERE = "varcap trace"
MEAN_CAPACITY = 0.7
"""Mean capacity as a fraction of the machines (5.1.1), the reference of loads."""
MIRA_UNIT = 96
"""Number of units of the machine of a Mira, of which its partitions consist."""
_MAX_JOBS = 20_000_000


@dataclass(frozen=True)
class System:
    """A modelled system (5.1.5): its machines, and their cores and memory in `unit`."""

    machines: int
    cores: int
    machine_memory: float
    unit: str = "GB"


SYSTEMS: dict[str, System] = {
    "mira": System(49_152, 1, 16.0),
    "azure": System(1250, 16, 128.0),
    "borg": System(630, 32, 300 / 630, "of the largest machine"),
    "tng": System(476, 32, 300 / 476, "of the largest machine"),
}
"""Mira (16 GB a node, "760 TB"), the Azure cluster (160 TB), the Borg cells (336 and 250 GCU, 300 normalised bytes)."""


@dataclass(frozen=True)
class Moments:
    """Jobs, days, mean and deviation of run time (h), cores and memory of a trace: a column of Table 5.2."""

    jobs: int
    days: float
    run_h: tuple[float, float]
    cores: tuple[float, float]
    memory: tuple[float, float]


TABLE: dict[str, Moments] = {
    "mira": Moments(6571, 30.0, (1.8, 2.9), (1705.0, 2890.0), (27_000.0, 46_000.0)),
    "azure": Moments(442_784, 7.0, (3.6, 8.8), (2.6, 2.4), (6.0, 11.0)),
    "borg": Moments(204_749, 1.0, (0.6, 3.0), (0.03 * 60, 0.02 * 60), (0.02, 0.02)),
}
"""Table 5.2, memory in the unit of the system's machines, cores of Borg' of 1/60 GCU."""
TNG_JOBS, TNG_DAYS, TNG_LOAD, TNG_LONG = 300_000, 1.0, 0.9, 0.8

BOUNDS_H = {"mira": (1 / 60, 24.0), "azure": (1 / 12, 168.0), "borg": (5 / 3600, 168.0), "tng": (5 / 3600, 24.0)}
"""Bounds of the run times in h."""


@dataclass(frozen=True)
class VarcapLike(Parameters, where=WHERE):
    """Parameters of a trace `like` mira, azure, borg or tng; None is the value of the dissertation, with its load.

    `jobs` and `machines` scale the trace: `days` None is the time that gives the load; on a smaller Mira (a multiple of
    96 nodes) jobs are narrower in proportion. `load`: core-hours / (0.7 x machines x cores x hours of the release);
    with `days`, for tng only, the mean run time follows. `long_fraction` (tng): share of the core-hours in jobs of more
    than `long_s`; `jobs` is the number at 0.8, other fractions have more or fewer. `dependencies`: share of jobs that
    depend on one released in the hour before. `cycle`: relative increase of releases at 14 h, and decrease at 2 h.

    Raises InputError.
    """

    like: str = "tng"
    jobs: Annotated[int | None, Between(1, MAX_INT)] = None
    machines: Annotated[int | None, Between(1, MAX_INT)] = None
    days: Annotated[float | None, Between(1e-3, 3650.0)] = None
    load: Annotated[float | None, Between(1e-3, 100.0)] = None
    long_fraction: Annotated[float | None, Between(0.0, 1.0)] = None
    long_s: Annotated[float, Between(60.0, 43_200.0)] = LONG_S
    dependencies: Annotated[float, Between(0.0, 1.0)] = 0.0
    cycle: Annotated[float, Between(0.0, 1.0)] = 0.2

    def __post_init__(self) -> None:
        if not isinstance(self.like, str) or self.like not in SYSTEMS:
            raise UnknownNameError(WHERE, "system", self.like, SYSTEMS, "Choose one of these.")
        super().__post_init__()
        if self.like == "mira" and self.nodes % MIRA_UNIT:
            problem = f"a Mira's machines must be a multiple of {MIRA_UNIT}, got {self.machines!r}"
            raise InputError(WHERE, problem, f"its jobs take 1/{MIRA_UNIT} of it at least: give for instance 480")
        if self.like != "tng":
            if self.long_fraction is not None:
                raise InputError(WHERE, f"a trace like {self.like} has its own share of long jobs", "take tng for it")
            if self.days is not None and self.load is not None:
                problem = f"days {self.days:g} and load {self.load:g} are both given"
                raise InputError(WHERE, problem, "give one of them, the other follows from the jobs")
        if not self.expected_jobs <= _MAX_JOBS:
            raise InputError(WHERE, f"{self.expected_jobs:g} jobs are more than {_MAX_JOBS}", "ask for fewer")

    @property
    def system(self) -> System:
        """System of the dissertation."""
        return SYSTEMS[self.like]

    @property
    def nodes(self) -> int:
        """Number of machines of the trace."""
        return self.machines if self.machines is not None else self.system.machines

    @property
    def count(self) -> int:
        """Requested number of jobs, else that of the dissertation."""
        return self.jobs or (TNG_JOBS if self.like == "tng" else TABLE[self.like].jobs)

    @property
    def core_hours(self) -> float:
        """Expected core-hours of the trace."""
        return self.count * self.mean_run_h * self.mean_cores

    @property
    def mean_cores(self) -> float:
        """Mean number of cores of a job."""
        scale = self.nodes / SYSTEMS["mira"].machines if self.like == "mira" else 1.0
        return TABLE["borg" if self.like == "tng" else self.like].cores[0] * scale

    @property
    def mean_run_h(self) -> float:
        """Mean run time in h; for tng, at a long fraction of 0.8."""
        if self.like != "tng":
            return TABLE[self.like].run_h[0]
        full_load = MEAN_CAPACITY * SYSTEMS["tng"].cores * 24.0 / self.mean_cores
        if self.days is None:
            return TNG_LOAD * full_load * SYSTEMS["tng"].machines * TNG_DAYS / TNG_JOBS
        return (TNG_LOAD if self.load is None else self.load) * full_load * self.nodes * self.days / self.count

    @property
    def released_days(self) -> float:
        """Days of the releases."""
        if self.days is not None:
            return self.days
        daily = MEAN_CAPACITY * self.nodes * self.system.cores * 24.0
        return self.core_hours / (daily * (_table_load(self.like) if self.load is None else self.load))

    @property
    def expected_jobs(self) -> float:
        """Number of jobs of the trace."""
        return float(sum(self.classes()) if self.like == "tng" else self.count)

    def classes(self) -> tuple[int, int]:
        """Return the numbers of short and of long jobs of a trace like tng."""
        share = TNG_LONG if self.long_fraction is None else self.long_fraction
        below = self.run_times().chance_below(self.long_s / HOUR_S)
        short = round(self.count * below * (1.0 - share) / (1.0 - TNG_LONG))
        return short, max(round(self.count * (1.0 - below) * share / TNG_LONG), 0 if short else 1)

    def run_times(self) -> FittedDistribution:
        """Return the distribution of run times in h; for tng, at a long fraction of 0.8."""
        from batwatt.inputs.workloads.fitted import fitted_range, fitted_share

        low, high = BOUNDS_H[self.like]
        if self.like == "tng":
            try:
                return fitted_share(low, high, self.mean_run_h, self.long_s / HOUR_S, TNG_LONG)
            except InputError:
                problem = f"jobs of {self.mean_run_h:g} h on average cannot be long by {TNG_LONG:g} of their core-hours"
                raise InputError(WHERE, problem, "give other jobs, days or load, or another long_s") from None
        return fitted_range(low, high, *TABLE[self.like].run_h)


def _table_load(like: str) -> float:
    """Return the load by the product of the means of Table 5.2, on 0.7 of the dissertation's system."""
    if like == "tng":
        return TNG_LOAD
    moments, system = TABLE[like], SYSTEMS[like]
    hours = moments.days * 24.0
    return moments.jobs * moments.run_h[0] * moments.cores[0] / (MEAN_CAPACITY * system.machines * system.cores * hours)
