"""Distributions with prescribed moments: lognormals cut to bounds or to a list of values, by bisection.

Tables of traces give a mean and a standard deviation. On the values v_k of a grid the probabilities are
p_k ~ d_k exp(-(ln v_k - mu)^2 / (2 sigma^2)), a lognormal cut to the grid (d_k is the width of the cell of v_k in
ln v, 1 for values of a list); mu and sigma are such that mean and deviation *of the cut distribution* are the
prescribed ones. For a fixed sigma the mean rises with mu (an exponential family in mu), and along the mu of one mean
the deviation rises with sigma: two nested bisections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError

Floats = npt.NDArray[np.float64]
_CELLS = 2048
"""Number of cells of the grid of a continuous distribution."""
_SIGMAS = (0.05, 12.0)
_HALVINGS = 60
_WHERE = "fitted distribution"


@dataclass(frozen=True)
class FittedDistribution:
    """Probabilities `weights` of ascending `values`, in a continuous distribution the middles of cells between `edges`.

    `mu` and `sigma` are those of the lognormal before it was cut.
    """

    values: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    mu: float
    sigma: float
    edges: Floats | None = field(default=None, repr=False)

    @property
    def mean(self) -> float:
        """Mean in the unit of the values."""
        return float(self.values @ self.weights)

    @property
    def sd(self) -> float:
        """Standard deviation in the unit of the values."""
        return _sd(self.values, self.weights)

    def chance_below(self, bound: float) -> float:
        """Return the probability of a value of at most `bound`."""
        return float(self.weights[self.values <= bound].sum())

    def at(self, quantiles: Floats) -> Floats:
        """Return the values at quantiles in [0, 1[."""
        steps = self._steps()
        if self.edges is None:
            places = np.searchsorted(steps[1:], quantiles, side="right")
            return self.values[np.minimum(places, len(self.values) - 1)]
        return np.exp(np.interp(quantiles, steps, np.log(self.edges)))

    def _steps(self) -> Floats:
        steps = np.concatenate(([0.0], np.cumsum(self.weights)))
        return steps / steps[-1]


@lru_cache(maxsize=64)
def fitted_values(values: tuple[float, ...], mean: float, sd: float) -> FittedDistribution:
    """Return the distribution on a list of ascending values > 0 with a mean and a deviation. Raises InputError."""
    return _fitted(np.array(values, dtype=float), None, mean, sd, _sd)


@lru_cache(maxsize=64)
def fitted_range(low: float, high: float, mean: float, sd: float) -> FittedDistribution:
    """Return the continuous distribution on [low, high] with a mean and a deviation. Raises InputError."""
    edges = np.geomspace(low, high, _CELLS + 1)
    return _fitted(np.sqrt(edges[1:] * edges[:-1]), edges, mean, sd, _sd)


@lru_cache(maxsize=64)
def fitted_share(low: float, high: float, mean: float, bound: float, share: float) -> FittedDistribution:
    """Return the continuous distribution on [low, high] with a mean, and `share` of the sum above `bound`.

    The bound is an edge of its grid. Raises InputError.
    """
    below = max(1, min(_CELLS - 1, round(_CELLS * math.log(bound / low) / math.log(high / low))))
    lower = np.geomspace(low, bound, below + 1)
    edges = np.concatenate((lower, np.geomspace(bound, high, _CELLS - below + 1)[1:]))
    values = np.sqrt(edges[1:] * edges[:-1])
    return _fitted(values, edges, mean, share, lambda v, w: _share_above(v, w, bound))


def strata(count: int, rng: np.random.Generator) -> Floats:
    """Return ascending quantiles, one drawn from each of `count` equal parts of [0, 1[.

    With them, the moments of a trace are those of its distribution, also with a heavy tail.
    """
    return (np.arange(count) + rng.random(count)) / count


def _fitted(
    values: Floats, edges: Floats | None, mean: float, target: float, spread: Callable[[Floats, Floats], float]
) -> FittedDistribution:
    logs = np.log(values)
    cells = np.ones_like(values) if edges is None else np.diff(np.log(edges))

    def weights_of(sigma: float) -> tuple[float, Floats]:
        reach = 40.0 * sigma * sigma + 10.0
        low, high = logs[0] - reach, logs[-1] + reach
        for _ in range(_HALVINGS):
            mu = (low + high) / 2.0
            exponents = -((logs - mu) ** 2) / (2.0 * sigma * sigma)
            weights = np.exp(exponents - exponents.max()) * cells
            weights /= weights.sum()
            if values @ weights < mean:
                low = mu
            else:
                high = mu
        return mu, weights

    low, high = _SIGMAS
    for _ in range(_HALVINGS):
        sigma = (low + high) / 2.0
        mu, weights = weights_of(sigma)
        if spread(values, weights) < target:
            low = sigma
        else:
            high = sigma
    reached = spread(values, weights)
    if not (abs(values @ weights - mean) <= 1e-6 * mean and abs(reached - target) <= 1e-6 * target):
        problem = f"no lognormal cut to [{values[0]:g}, {values[-1]:g}] has mean {mean:g} and spread {target:g}"
        raise InputError(_WHERE, problem, "move the mean from the bounds or ask for another spread")
    return FittedDistribution(values, weights, mu, sigma, edges)


def _sd(values: Floats, weights: Floats) -> float:
    mean = values @ weights
    return float(np.sqrt((values - mean) ** 2 @ weights))


def _share_above(values: Floats, weights: Floats, bound: float) -> float:
    return float((values * weights)[values > bound].sum() / (values @ weights))
