"""Usage of each user or account, decayed, and the fairshare factor (Slurm's classic_fair_share and fair_tree)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from batwatt.units import REPORTED_S


class Fairshare:
    """Processor seconds charged to names, and the factors of names, calculated at each multiple of a period.

    Usage u of a name that holds n processors follows u' = n - u ln 2 / half life; so it halves in a half life
    without new use (PriorityDecayHalfLife). Factors hold from one multiple of `period_s` (PriorityCalcPeriod) to the
    next.
    """

    def __init__(
        self, shares: Mapping[str, float], half_life_s: float, period_s: float, tree: bool, dampening: float = 1.0
    ) -> None:
        self._shares = dict(shares)
        self._usage = dict.fromkeys(shares, 0.0)
        """Processor seconds by name, at `_since_s`."""
        self._processors = dict.fromkeys(shares, 0)
        self._since_s = 0.0
        self._rate = math.log(2.0) / half_life_s if half_life_s else 0.0
        self._period_s = period_s
        self._tree = tree
        self._dampening = dampening
        self._factors: dict[str, float] = {}
        self.calculated_s = 0.0
        """Time in s of the last calculation."""

    def add(self, name: str) -> None:
        """Let a name have one share, if it has none."""
        if name not in self._shares:
            self._shares[name], self._usage[name], self._processors[name] = 1.0, 0.0, 0

    def charge(self, name: str, processors: int, now_s: float) -> None:
        """Let a name hold more processors (or fewer, if negative) from now on; after `advance`."""
        self._accrue(now_s)
        self._processors[name] += processors

    def advance(self, now_s: float) -> None:
        """Calculate the factors of the last multiple of the period up to now, before anything else happens now."""
        time_s = math.floor((now_s + REPORTED_S) / self._period_s) * self._period_s
        if time_s > self.calculated_s:
            self._accrue(time_s)
            self.calculated_s = time_s
            self._factors = self._ranks() if self._tree else self._classic()

    def usage(self, name: str, now_s: float) -> float:
        """Return the decayed usage of a name in processor seconds."""
        self._accrue(now_s)
        return self._usage[name]

    def factor(self, name: str) -> float:
        """Return the fairshare factor of a name, 0 to 1, as last calculated; 1 before that."""
        return self._factors.get(name, 1.0)

    def _accrue(self, now_s: float) -> None:
        """Add the use since the last time, and decay."""
        elapsed_s, rate = now_s - self._since_s, self._rate
        if elapsed_s <= 0.0:
            return
        self._since_s = now_s
        left = math.exp(-rate * elapsed_s)
        per_processor_s = (1.0 - left) / rate if rate else elapsed_s
        for name, processors in self._processors.items():
            self._usage[name] = self._usage[name] * left + processors * per_processor_s

    def _classic(self) -> dict[str, float]:
        """Return F = 2^(-U/S/d): U is the share of all usage, S of all shares ("Simplified Fair-Share Formula")."""
        used, shares = math.fsum(self._usage.values()), math.fsum(self._shares.values())
        if used <= 0.0:
            return {}
        # without a share, F is 0
        return {
            name: 2.0 ** (-(self._usage[name] / used) / (share / shares) / self._dampening) if share else 0.0
            for name, share in self._shares.items()
        }

    def _ranks(self) -> dict[str, float]:
        """Return rank / number of names, the largest shares/usage first; equal ones have one rank ("Fair Tree")."""
        levels = {
            name: (share / self._usage[name] if self._usage[name] > 0.0 else math.inf) if share else 0.0
            for name, share in self._shares.items()
        }
        ordered = sorted(levels.values(), reverse=True)
        first: dict[float, int] = {}
        for place, level in enumerate(ordered):
            first.setdefault(level, place)
        return {name: (len(ordered) - first[level]) / len(ordered) for name, level in levels.items()}
