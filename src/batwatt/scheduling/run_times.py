"""Estimates of run times that a scheduler decides by: the option `run_times` (docs/explanation/run-times.md).

An estimate is made when a job is submitted. It orders the queue, makes the reservations and weighs the victims; the
request of the user bounds it, and replaces it for a job that has outrun it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from batwatt.errors import InputError
from batwatt.model.workload import ESTIMATE
from batwatt.scheduling.job import BatsimJob, JobLengths, request_s, text_in
from batwatt.scheduling.registry import register

LEAST_S: Final = 1.0
"""Least estimate in s of a prediction: logarithms and ratios need one."""
Traits: TypeAlias = tuple[list[tuple[str, str]], tuple[float, float, float]]
"""Facts of a job for a regression: user and queue, and one, the logarithms of its request and of its width."""


class Estimate(NamedTuple):
    """Run time in s that is expected of a job, and the one that it cannot exceed as far as its scheduler knows."""

    expected_s: float
    bound_s: float


class RunTimes(ABC):
    """Base of the estimates of run times; `lengths` is set before the first job arrives."""

    name: ClassVar[str] = ""
    lengths: JobLengths

    @abstractmethod
    def estimate(self, job: BatsimJob) -> Estimate:
        """Estimate the run time of a job that is submitted, in s at the nominal speed. Raises InputError."""

    def learn(self, name: str) -> None:
        """Learn from the job of an id, which has ended by itself; most estimates do not."""
        return


@register("run_times", "exact")
class ExactRunTimes(RunTimes):
    """The run time itself, which no site knows: a delay, or flops at the nominal speed."""

    def estimate(self, job: BatsimJob) -> Estimate:
        """See `RunTimes`."""
        length_s = self.lengths.described(job)[1]
        return Estimate(length_s, length_s)


@register("run_times", "walltime")
class Walltime(RunTimes):
    """The user's request: the walltime, else the field `estimate_s` of a trace, else `otherwise_s`."""

    def __init__(self, otherwise_s: float | None = None) -> None:
        if otherwise_s is not None and not 0.0 < otherwise_s <= 1e9:
            raise ValueError(f"otherwise_s must be > 0 and <= 1e9, got {otherwise_s!r}")
        self._otherwise_s = otherwise_s

    def estimate(self, job: BatsimJob) -> Estimate:
        """See `RunTimes`."""
        bound_s = self.bound_s(job)
        return Estimate(bound_s, bound_s)

    def bound_s(self, job: BatsimJob) -> float:
        """Return the request of a job in s. Raises InputError without one."""
        bound_s = request_s(job.requested_time, job.json_dict, job.id)
        if bound_s < math.inf:
            return bound_s
        if self._otherwise_s is None:
            problem = f"job {job.id} has neither a walltime nor a field {ESTIMATE!r}: no request to go by"
            hint = f'give "run_times": {{"name": "{self.name}", "otherwise_s": SECONDS}} for such jobs'
            raise InputError("workload", problem, hint)
        return self._otherwise_s


class PredictedRunTimes(Walltime):
    """Base of predictions from the jobs that have ended, in s, between `LEAST_S` and the request."""

    def __init__(self, otherwise_s: float | None = None) -> None:
        super().__init__(otherwise_s)
        self._submitted: dict[str, tuple[Any, float]] = {}
        """Facts and run time of each job that has not ended, by id; predictions learn the run time when it has."""

    def estimate(self, job: BatsimJob) -> Estimate:
        """See `RunTimes`."""
        bound_s = self.bound_s(job)
        facts = self.facts(job, bound_s)
        predicted_s = self.predict(facts)
        self._submitted[job.id] = facts, min(self.lengths.described(job)[1], bound_s)
        return Estimate(min(bound_s, max(predicted_s, LEAST_S)), bound_s)

    def learn(self, name: str) -> None:
        """See `RunTimes`."""
        facts, run_s = self._submitted.pop(name, (None, 0.0))
        if run_s > 0.0:
            self.ended(facts, run_s)

    @abstractmethod
    def facts(self, job: BatsimJob, bound_s: float) -> Any:
        """Return the facts by which a job is predicted; its request is `bound_s` s."""

    @abstractmethod
    def predict(self, facts: Any) -> float:
        """Predict a run time in s; infinite: by the request."""

    @abstractmethod
    def ended(self, facts: Any, run_s: float) -> None:
        """Learn from a job that has run for `run_s` s."""


@register("run_times", "doubling")
class Doubling(Walltime):
    """Estimate of `first_s` for each job, at most its request, doubled when it is outrun, so that long runs show.

    Jobs are then ordered as by multi-level feedback (Corbató et al., 1962), without a prediction.
    """

    def __init__(self, first_s: float = 600.0, otherwise_s: float | None = None) -> None:
        super().__init__(otherwise_s)
        if not LEAST_S <= first_s <= 1e9:
            raise ValueError(f"first_s must be from {LEAST_S:g} to 1e9, got {first_s!r}")
        self._first_s = first_s

    def estimate(self, job: BatsimJob) -> Estimate:
        """See `RunTimes`."""
        bound_s = self.bound_s(job)
        return Estimate(min(self._first_s, bound_s), bound_s)


@register("run_times", "recent")
class Recent(PredictedRunTimes):
    """Mean of the last `count` run times of the user's jobs that have ended, at most the request (Tsafrir et al. 2007).

    The request counts while fewer have ended. Jobs without a field `user` are those of one user.
    """

    def __init__(self, count: int = 2, otherwise_s: float | None = None) -> None:
        super().__init__(otherwise_s)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1000:
            raise ValueError(f"count must be a whole number from 1 to 1000, got {count!r}")
        self._count = count
        self._runs: dict[str, deque[float]] = {}

    def facts(self, job: BatsimJob, bound_s: float) -> str:
        """See `PredictedRunTimes`: the user."""
        return text_in(job.json_dict, "user")

    def predict(self, facts: str) -> float:
        """See `PredictedRunTimes`."""
        runs = self._runs.get(facts, ())
        return math.inf if len(runs) < self._count else sum(runs) / self._count

    def ended(self, facts: str, run_s: float) -> None:
        """See `PredictedRunTimes`."""
        self._runs.setdefault(facts, deque(maxlen=self._count)).append(run_s)


@register("run_times", "regression")
class Regression(PredictedRunTimes):
    """Ridge regression of log(run time) on log(request), log(width), and past runs of user and queue.

    The history of a user or queue is a mean of log(run time) in which each run counts `decay` times the next one, drawn
    towards that of all jobs by the weight of one run. Recursive least squares (Haykin, Adaptive Filter Theory, ch. 10)
    with forgetting factor 1; the request counts until `least` jobs have ended.
    """

    def __init__(
        self, decay: float = 0.9, ridge: float = 1.0, least: int = 20, otherwise_s: float | None = None
    ) -> None:
        super().__init__(otherwise_s)
        if not 0.0 < decay < 1.0:
            raise ValueError(f"decay must be in ]0, 1[, got {decay!r}")
        if not 0.0 < ridge <= 1e9:
            raise ValueError(f"ridge must be > 0 and <= 1e9, got {ridge!r}")
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValueError(f"least must be a whole number >= 1, got {least!r}")
        self._decay, self._least = decay, least
        self._weights = np.zeros(5)
        self._covariance = np.eye(5) / ridge
        self._all = self._count = 0.0
        self._means: dict[tuple[str, str], tuple[float, float]] = {}
        """(sum of weights, weighted mean of the logarithms) of a user's or a queue's runs."""

    def facts(self, job: BatsimJob, bound_s: float) -> Traits:
        """See `PredictedRunTimes`: the keys of its user and queue, the logarithms of its request and width."""
        keys = [(name, text_in(job.json_dict, name)) for name in ("user", "queue")]
        return keys, (1.0, math.log(bound_s), math.log(job.requested_resources))

    def _row(self, facts: Traits) -> Any:
        """Return the regressors of a job: logarithms, those of its user and queue as differences to all jobs."""
        keys, columns = facts
        histories = []
        for key in keys:
            weight, mean = self._means.get(key, (0.0, 0.0))
            histories.append(weight / (weight + 1.0) * (mean - self._all))
        return np.array((*columns, *histories))

    def predict(self, facts: Traits) -> float:
        """See `PredictedRunTimes`."""
        if self._count < self._least:
            return math.inf
        return math.exp(min(float(self._row(facts) @ self._weights), 700.0))

    def ended(self, facts: Traits, run_s: float) -> None:
        """See `PredictedRunTimes`: update weights first, by the history as it was, then the history."""
        value = math.log(max(run_s, LEAST_S))
        row = self._row(facts)
        gain = self._covariance @ row
        gain /= 1.0 + row @ gain
        self._weights += gain * (value - row @ self._weights)
        self._covariance -= np.outer(gain, row @ self._covariance)
        self._count += 1.0
        self._all += (value - self._all) / self._count
        for key in facts[0]:
            weight, mean = self._means.get(key, (0.0, 0.0))
            total = self._decay * weight + 1.0
            self._means[key] = total, mean + (value - mean) / total
