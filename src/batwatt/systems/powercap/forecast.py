"""What a scheduler may be told of the caps to come: the next N steps, with an error that the user sets."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from batwatt.model.series import Series


class EnvelopeForecast:
    """The caps of the next `steps` steps of a series, each with a random relative error.

    The forecast k steps ahead is P x (1 + error x sqrt(k) x z), at least 0 W, with z standard normal: the error is the
    standard deviation of the next step's, and grows as that of a random walk. The draws depend on `seed` and on the
    time only, so that equal questions get equal answers; 0 is an exact forecast. Raises ValueError.
    """

    def __init__(self, series: Series, steps: int, error: float = 0.0, seed: int = 0) -> None:
        if not steps >= 0:
            raise ValueError(f"steps must be >= 0, got {steps!r}")
        if not 0.0 <= error < math.inf:
            raise ValueError(f"error must be >= 0 and finite, got {error!r}")
        self.series = series
        self.steps = steps
        self.error = error
        self.seed = seed

    def after(self, now_s: float) -> tuple[float, ...]:
        """The caps in W of the next steps that begin after `now_s`, as they are forecast then."""
        horizon = self.series.steps(self.series.step_after(now_s), math.inf)
        caps = [cap_w for _, _, cap_w in islice(horizon, self.steps)]
        if not self.error:
            return tuple(caps)
        rng = np.random.default_rng((self.seed, round(now_s * 1e6)))
        spread = self.error * np.sqrt(np.arange(1, self.steps + 1))
        told = np.asarray(caps) * (1.0 + spread * rng.standard_normal(self.steps))
        return tuple(np.maximum(told, 0.0).tolist())
