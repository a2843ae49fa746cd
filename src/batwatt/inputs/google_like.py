"""Generator of a day of a Google-like cluster: many short narrow jobs, a few long or wide ones, steady arrivals."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from batwatt.checks import parameters, rng_of
from batwatt.errors import InputError
from batwatt.model.platform import MAX_HOSTS
from batwatt.units import REFERENCE_SPEED, speed_flops

if TYPE_CHECKING:
    import numpy as np

_WHERE = "google-like workload"
REFERENCE_FLOPS = speed_flops(REFERENCE_SPEED)
_Count = Annotated[int, Field(ge=1)]
_NORMAL = NormalDist()
MIN_RUNTIME_S, MAX_RUNTIME_S = 60.0, 21_600.0
WIDTH_EXPONENT = -0.55
WALLTIME_FACTORS = (1.2, 4.0)
_REACH = 5.0  # spreads by which the untruncated median may lie outside the bounds
_MAX_JOBS = 1_000_000


@parameters(_WHERE)
class GoogleLike:
    """Parameters of `google_like`.

    `mean_runtime_s` is the mean after truncation to 1 min..6 h, `sigma` the spread of the logarithm before it. Raises
    InputError.
    """

    jobs_per_hour: _Count = 12
    hours: _Count = 24
    mean_runtime_s: Annotated[float, Field(gt=MIN_RUNTIME_S, lt=MAX_RUNTIME_S)] = 1500.0
    sigma: Annotated[float, Field(gt=0.0)] = 1.0
    max_servers: _Count = 8
    nb_res: Annotated[int, Field(ge=1, le=MAX_HOSTS)] = 20

    def __post_init__(self) -> None:
        if not self.jobs_per_hour * self.hours <= _MAX_JOBS:
            problem = f"jobs_per_hour x hours must be <= {_MAX_JOBS}, got {self.jobs_per_hour} x {self.hours}"
            raise InputError(_WHERE, problem, "ask for fewer jobs")
        if not self.max_servers <= self.nb_res:
            problem = f"max_servers {self.max_servers!r} is more than nb_res {self.nb_res!r}"
            raise InputError(_WHERE, problem, "a job wider than the platform never starts")


def google_like(params: GoogleLike | None = None, seed: int = 0) -> dict[str, Any]:
    """Generate a Batsim workload as JSON data: `jobs_per_hour` x `hours` jobs (288 by default) of one day.

    Arrivals (s, to the ms): exactly `jobs_per_hour` in each hour, uniform in the hour. Run time on one reference server
    (18.4 Gflop/s): lognormal, truncated to 1 min..6 h, mean 25 min. Servers: 1..8, n with a frequency of n to the power
    of -0.55 (24 % of the jobs on one server, 16 % on two, ..., 8 % on eight; mean 3.7 servers). Work:
    `parallel_homogeneous`, run time x reference speed flops per server, no communication. Walltime: run time x
    uniform(1.2, 4) rounded up to the second, so that it suffices on reference servers at full speed, but not always on
    slower ones. All draws are independent and come from PCG64(seed): same seed, same bytes.

    The powercap paper (section VI.C) takes its jobs from the Google traces (Reiss, Wilkes, Hellerstein: Google
    cluster-usage traces: format + schema, 2011) through the generator of Da Costa, Grange and De Courchelle (Modeling,
    classifying and generating large-scale Google-like workload, SUSCOM 19, 2018), and states only their number,
    their rate, and that sizes and arrivals vary. This generator is calibrated, not fitted: it has that number and
    rate and the general shape of the traces (most jobs short and narrow, a heavy tail), but no parameter is an estimate
    from the traces; there is no day/night rhythm and no correlation between width and run time.

    Raises InputError for a seed that is not a whole number >= 0.
    """
    import numpy as np

    params = params or GoogleLike()
    median_s = _median_s(params)
    weights = [n**WIDTH_EXPONENT for n in range(1, params.max_servers + 1)]
    shares = np.cumsum(weights) / sum(weights)
    rng = rng_of(seed, _WHERE)
    low, high = WALLTIME_FACTORS
    jobs: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    for submit_s in _arrivals_s(params, rng):
        run, width, factor = (float(x) for x in rng.random(3))
        runtime_s = _runtime_s(params, median_s, run)
        servers = min(int(np.searchsorted(shares, width, side="right")) + 1, params.max_servers)
        stretch = low + factor * (high - low)
        name = str(len(jobs) + 1)
        walltime_s = math.ceil(runtime_s * stretch)
        jobs.append({"id": name, "subtime": submit_s, "res": servers, "walltime": walltime_s, "profile": name})
        # rounded, but never above the walltime
        flops = min(round(runtime_s * REFERENCE_FLOPS), math.floor(walltime_s * REFERENCE_FLOPS))
        profiles[name] = {"type": "parallel_homogeneous", "cpu": flops, "com": 0}
    return {
        "description": f"google-like, seed {seed}: {len(jobs)} jobs, {params.jobs_per_hour} an hour",
        "nb_res": params.nb_res,
        "jobs": jobs,
        "profiles": profiles,
    }


def to_text(workload: Mapping[str, Any]) -> str:
    """Return the workload as JSON with one job and one profile per line, for short files and readable diffs.

    Raises InputError for values that JSON cannot hold (NaN, infinities, foreign types).
    """
    parts = []
    for key, value in workload.items():
        if key == "jobs":
            lines = ",\n".join(_json(job) for job in value)
            text = f"[\n{lines}\n]" if lines else "[]"
        elif key == "profiles":
            lines = ",\n".join(f"{_json(name)}: {_json(profile)}" for name, profile in value.items())
            text = f"{{\n{lines}\n}}" if lines else "{}"
        else:
            text = _json(value)
        parts.append(f"{_json(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: object) -> str:
    try:
        return json.dumps(value, separators=(", ", ": "), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InputError("workload", f"not writable as JSON ({error})", "use finite numbers, texts, lists") from None


def _arrivals_s(params: GoogleLike, rng: np.random.Generator) -> list[float]:
    """Return ascending submission times in s, rounded down to the ms so that each stays in its hour."""
    arrivals: list[float] = []
    for hour in range(params.hours):
        in_hour_ms = sorted(math.floor(x * 3_600_000) for x in rng.random(params.jobs_per_hour))
        arrivals.extend((hour * 3_600_000 + ms) / 1000 for ms in in_hour_ms)
    return arrivals


def _bounds(params: GoogleLike, median_s: float, spreads: float = 0.0) -> tuple[float, float]:
    """Return the truncation bounds, shifted down by some spreads, as quantiles of the untruncated distribution."""
    low = _NORMAL.cdf(math.log(MIN_RUNTIME_S / median_s) / params.sigma - spreads)
    high = _NORMAL.cdf(math.log(MAX_RUNTIME_S / median_s) / params.sigma - spreads)
    return low, high


def _truncated_mean_s(params: GoogleLike, median_s: float) -> float:
    """Return the mean of the truncated lognormal, E[X | a < X < b], by a shift of both bounds by one spread."""
    low, high = _bounds(params, median_s)
    shifted_low, shifted_high = _bounds(params, median_s, params.sigma)
    whole = median_s * math.exp(params.sigma**2 / 2.0)
    return whole * (shifted_high - shifted_low) / (high - low) if high > low else math.nan


def _median_s(params: GoogleLike) -> float:
    """Return the median of the untruncated lognormal whose truncated mean is `mean_runtime_s`. Raises InputError."""
    try:
        low = math.log(MIN_RUNTIME_S) - _REACH * params.sigma
        high = math.log(MAX_RUNTIME_S) + _REACH * params.sigma
        reachable = _truncated_mean_s(params, math.exp(low)), _truncated_mean_s(params, math.exp(high))
        if not reachable[0] <= params.mean_runtime_s <= reachable[1]:
            raise OverflowError
        for _ in range(80):
            middle = (low + high) / 2.0
            if _truncated_mean_s(params, math.exp(middle)) < params.mean_runtime_s:
                low = middle
            else:
                high = middle
        return math.exp(low)
    except (OverflowError, ZeroDivisionError):
        raise InputError(
            _WHERE,
            f"no lognormal of sigma {params.sigma!r} within [{MIN_RUNTIME_S:g}, {MAX_RUNTIME_S:g}] s "
            f"has the mean {params.mean_runtime_s!r} s",
            "move the mean from the bounds or change sigma",
        ) from None


def _runtime_s(params: GoogleLike, median_s: float, uniform: float) -> float:
    """Return the run time in s, to the ms, of a uniform draw by the inverse of the truncated distribution."""
    low, high = _bounds(params, median_s)
    quantile = low + uniform * (high - low)
    spreads = _NORMAL.inv_cdf(quantile) if 0.0 < quantile < 1.0 else math.copysign(40.0, quantile - 0.5)
    value = median_s * math.exp(params.sigma * spreads) if params.sigma * spreads < 700.0 else math.inf
    return round(min(max(value, MIN_RUNTIME_S), MAX_RUNTIME_S), 3)
