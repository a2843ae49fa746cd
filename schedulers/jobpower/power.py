"""Power of jobs: checks of the power of running jobs under the cap, and predictors of the power of a job.

Watts are dynamic here: above what the hosts draw when idle, which they draw whether they have a job or not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from batwatt.model.platform import NOISE_W
from batwatt.model.workload import JobPower
from batwatt.protocol.job_fields import parse_estimate, parse_power
from batwatt.scheduling.registry import register

MOST_SETS: Final = 5000
"""Sets of jobs that a knapsack tries."""


@dataclass(frozen=True, slots=True)
class Load:
    """Dynamic power of a job or of several together: full watts of the hosts, mean and maximum in W, variance in W²."""

    node_w: float = 0.0
    mean_w: float = 0.0
    variance_w2: float = 0.0
    max_w: float = 0.0

    def plus(self, other: Load) -> Load:
        """Return both together: jobs are independent of each other."""
        return Load(
            self.node_w + other.node_w,
            self.mean_w + other.mean_w,
            self.variance_w2 + other.variance_w2,
            self.max_w + other.max_w,
        )

    @classmethod
    def of(cls, loads: Iterable[Load]) -> Load:
        """Return all loads together."""
        rows = [(load.node_w, load.mean_w, load.variance_w2, load.max_w) for load in loads]
        return cls(*map(math.fsum, zip(*rows, strict=True))) if rows else cls()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may be backfilled: hosts, load, and whether it runs past the reservation."""

    hosts: int
    load: Load
    late: bool


@dataclass(frozen=True, slots=True)
class Headroom:
    """Room for backfilled jobs: free hosts and the present load; past the reservation fewer, with another load.

    `cap_w` is the dynamic power that the cap leaves.
    """

    hosts: int
    load: Load
    late_hosts: int
    late_load: Load
    cap_w: float


class PowerCheck(ABC):
    """Base of power checks."""

    name: ClassVar[str] = ""

    @abstractmethod
    def bound_w(self, load: Load) -> float:
        """Return the power that jobs are taken to draw together, in W; more for more jobs."""

    def fits(self, load: Load, cap_w: float) -> bool:
        """Return whether the power of a load is within the cap."""
        return self.bound_w(load) <= cap_w + NOISE_W

    def pick(self, candidates: Sequence[Candidate], room: Headroom) -> Sequence[int]:
        """Return the candidates to try, as positions: all of them, in order."""
        return range(len(candidates))

    def after(self, job: Candidate, room: Headroom) -> Headroom | None:
        """Return the room that is left when a candidate starts, None if it may not."""
        hosts, load = room.hosts - job.hosts, room.load.plus(job.load)
        if hosts < 0 or not self.fits(load, room.cap_w):
            return None
        if not job.late:
            return Headroom(hosts, load, room.late_hosts, room.late_load, room.cap_w)
        late_hosts, late_load = room.late_hosts - job.hosts, room.late_load.plus(job.load)
        if late_hosts < 0 or not self.fits(late_load, room.cap_w):
            return None
        return Headroom(hosts, load, late_hosts, late_load, room.cap_w)


@register("power_check", "node")
class FullWatts(PowerCheck):
    """Every host with a job draws its full watts: no prediction, and never too little."""

    def bound_w(self, load: Load) -> float:
        """Return full watts."""
        return load.node_w


@register("power_check", "mean")
class SumOfMeans(PowerCheck):
    """The sum of the predicted means: about as often too little as too much."""

    def bound_w(self, load: Load) -> float:
        """Return the sum of means, in W."""
        return load.mean_w


@register("power_check", "max")
class SumOfMaxima(PowerCheck):
    """The sum of the predicted maxima, as if all jobs drew them at once."""

    def bound_w(self, load: Load) -> float:
        """Return the sum of maxima, in W."""
        return load.max_w


@register("power_check", "gaussian")
class Gaussian(PowerCheck):
    """The sum of the means and `sigma` times the root of the summed variances: a quantile of a normal distribution."""

    def __init__(self, sigma: float = 1.0) -> None:
        if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not 0.0 <= sigma <= 100.0:
            raise ValueError(f"sigma must be from 0 to 100, got {sigma!r}")
        self.sigma = float(sigma)

    def bound_w(self, load: Load) -> float:
        """Return the sum of means and a multiple of its deviation, in W."""
        return load.mean_w + self.sigma * math.sqrt(load.variance_w2)


@register("power_check", "knapsack")
class KnapsackCheck(SumOfMeans):
    """Backfills the set of jobs that uses most hosts within hosts and predicted means.

    Branch and bound over the first `depth` candidates of the queue, the earlier ones first among equals; it stops
    after `MOST_SETS` sets that were tried, with the best one so far.
    """

    def __init__(self, depth: int = 32) -> None:
        if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= 1_000_000:
            raise ValueError(f"depth must be a whole number from 1 to 1000000, got {depth!r}")
        self.depth = depth

    def pick(self, candidates: Sequence[Candidate], room: Headroom) -> list[int]:
        """Return the best set, as positions."""
        jobs = candidates[: self.depth]
        # what all jobs from here on could add
        rest = [sum(job.hosts for job in jobs[index:]) for index in range(len(jobs) + 1)]
        best: list[int] = []
        most = tried = 0
        todo: list[tuple[int, int, Headroom, list[int]]] = [(0, 0, room, [])]
        while todo and tried < MOST_SETS:
            index, hosts, left, subset = todo.pop()
            tried += 1
            if hosts > most:
                most, best = hosts, subset
            if index == len(jobs) or hosts + min(rest[index], left.hosts) <= most:
                continue
            # that without the job is looked at later
            todo.append((index + 1, hosts, left, subset))
            after = self.after(jobs[index], left)
            if after is not None:
                todo.append((index + 1, hosts + jobs[index].hosts, after, [*subset, index]))
        return best


Key = tuple[str, ...]


class Prediction(NamedTuple):
    """Power of all hosts of a job: mean and maximum in W, variance in W²; `is_estimate` unless it is full watts."""

    mean_w: float
    variance_w2: float
    max_w: float
    is_estimate: bool = True


class Submitted(NamedTuple):
    """A job as a predictor sees it: its fields, without what it will draw unless the predictor is an `oracle`."""

    id: str
    hosts: int
    raw: Mapping[str, Any]

    def label(self, name: str) -> str:
        """Return the user, group or queue; empty if unknown."""
        return str(self.raw.get(name, ""))


class Predictor(ABC):
    """Base of predictors; `node_w` and `idle_w` are the full and the idle watts of a host, set before the first job."""

    name: ClassVar[str] = ""
    oracle: ClassVar[bool] = False
    """True if the predictor sees the real power of a job, which is not known in advance."""
    node_w = 0.0
    idle_w = 0.0

    @abstractmethod
    def predict(self, job: Submitted) -> Prediction:
        """Predict the power of a job."""

    def learn(self, job: Submitted, power: JobPower) -> None:
        """Learn the power of a run that has ended by itself."""
        return

    def nothing_known(self, job: Submitted) -> Prediction:
        """Return the full watts of all hosts of a job."""
        full_w = job.hosts * self.node_w
        return Prediction(full_w, 0.0, full_w, is_estimate=False)


@register("predictor", "exact")
class Exact(Predictor):
    """The real power of the job, not known in advance: mean, deviation over time and maximum."""

    oracle = True

    def predict(self, job: Submitted) -> Prediction:
        """Predict by the fields of the job; its hosts' full watts without them."""
        power = parse_power(job.raw, job.id)
        return self.nothing_known(job) if power is None else Prediction(power.mean_w, power.std_w**2, power.max_w)


@register("predictor", "field")
class Field(Predictor):
    """An estimate that the workload carries, as those for easy-powercap: dynamic W of the job, above idle hosts."""

    def __init__(self, field: str = "mean_power_estimation", std_field: str = "", max_field: str = "") -> None:
        if not (isinstance(field, str) and field):
            raise ValueError(f"field must be a name, got {field!r}")
        self.field, self.std_field, self.max_field = field, std_field, max_field

    def predict(self, job: Submitted) -> Prediction:
        """Predict the estimate plus the power of idle hosts; without other fields no deviation, the mean as maximum."""
        idle_w = job.hosts * self.idle_w
        mean_w = idle_w + parse_estimate(job.raw, self.field, job.id)
        std_w = parse_estimate(job.raw, self.std_field, job.id) if self.std_field else 0.0
        max_w = idle_w + parse_estimate(job.raw, self.max_field, job.id) if self.max_field else mean_w
        return Prediction(mean_w, std_w**2, max(mean_w, max_w))


class PowerHistory:
    """The runs of a group, per host: weighted mean and variance, and the maximum of all.

    The last run has the weight 1, the one before `decay`, then `decay`², ... The variance is that of the power at a
    random time of a random run: the mean of the variances over time, and the variance of the means.
    """

    __slots__ = ("between_w2", "max_w", "mean_w", "runs", "weight", "within_w2")

    def __init__(self) -> None:
        self.runs = 0
        self.weight = self.mean_w = self.between_w2 = self.within_w2 = self.max_w = 0.0

    def add(self, power: JobPower, hosts: int, decay: float) -> None:
        """Take in a run."""
        old = decay * self.weight
        self.runs += 1
        self.weight = old + 1.0
        share = 1.0 / self.weight
        away_w = power.mean_w / hosts - self.mean_w
        self.mean_w += share * away_w
        self.between_w2 = (1.0 - share) * (self.between_w2 + share * away_w**2)
        self.within_w2 += share * ((power.std_w / hosts) ** 2 - self.within_w2)
        self.max_w = max(self.max_w, power.max_w / hosts)

    def prediction(self, hosts: int) -> Prediction:
        """Return the prediction for a job of `hosts` hosts, which draw alike."""
        return Prediction(hosts * self.mean_w, hosts**2 * (self.between_w2 + self.within_w2), hosts * self.max_w)


class PastRuns(Predictor):
    """Power of earlier runs of the same group; the first of `LEVELS` with enough of them counts.

    A level is what jobs of a group have in common. The hosts' full watts count as long as no level has `least` runs.
    """

    LEVELS: ClassVar[tuple[Key, ...]] = ()

    def __init__(self, decay: float = 0.9, least: int = 1) -> None:
        if isinstance(decay, bool) or not isinstance(decay, int | float) or not 0.0 < decay <= 1.0:
            raise ValueError(f"decay must be in ]0, 1], got {decay!r}")
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValueError(f"least must be a whole number >= 1, got {least!r}")
        self.decay, self.least = float(decay), least
        self._groups: dict[Key, PowerHistory] = {}

    def _keys(self, job: Submitted) -> Iterator[Key]:
        for level in self.LEVELS:
            yield (*level, *[str(job.hosts) if name == "width" else job.label(name) for name in level])

    def predict(self, job: Submitted) -> Prediction:
        """Predict by the first level that has enough runs."""
        for key in self._keys(job):
            past = self._groups.get(key)
            if past is not None and past.runs >= self.least:
                return past.prediction(job.hosts)
        return self.nothing_known(job)

    def learn(self, job: Submitted, power: JobPower) -> None:
        """Count a run in its group of each level."""
        for key in self._keys(job):
            self._groups.setdefault(key, PowerHistory()).add(power, job.hosts, self.decay)


@register("predictor", "user")
class ByUser(PastRuns):
    """Weighted mean and variance of the user's earlier runs, per host; full watts for the first."""

    LEVELS = (("user",),)


@register("predictor", "user-queue-width")
class ByUserQueueWidth(PastRuns):
    """Weighted mean and variance of the user's earlier runs of that queue and width; full watts for the first."""

    LEVELS = (("user", "queue", "width"),)


@register("predictor", "history")
class History(PastRuns):
    """Earlier runs of the user, queue and width, else of user and queue, user, queue, all users; else full watts."""

    LEVELS = (("user", "queue", "width"), ("user", "queue"), ("user",), ("queue",), ())


class Scores:
    """Errors of the predicted means, as shares of the power that runs have drawn."""

    def __init__(self) -> None:
        self.errors: list[float] = []
        """Errors of predictions from known runs or fields."""
        self.blind: list[float] = []
        """Errors of predictions of full watts."""

    def add(self, predicted: Prediction, drawn_w: float) -> None:
        """Score a run; one that drew nothing cannot be."""
        if drawn_w > 0.0:
            error = abs(predicted.mean_w - drawn_w) / drawn_w
            (self.errors if predicted.is_estimate else self.blind).append(error)

    @property
    def mape(self) -> float | None:
        """Mean absolute percentage error of all runs as a fraction, None without a run."""
        return _mean([*self.errors, *self.blind])

    @property
    def mape_known(self) -> float | None:
        """Mean absolute percentage error of the runs with an estimate, as a fraction."""
        return _mean(self.errors)

    @property
    def blind_share(self) -> float | None:
        """Share of runs without an estimate."""
        runs = len(self.errors) + len(self.blind)
        return len(self.blind) / runs if runs else None


def _mean(errors: list[float]) -> float | None:
    return math.fsum(errors) / len(errors) if errors else None
