"""Which column of a file, and which part of it, is a signal by date (carbon intensity, prices, power)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Literal

from batwatt.checks import Between, Parameters, time_zone
from batwatt.errors import InputError
from batwatt.inputs.series.signal_gaps import Gaps
from batwatt.model.clock import Clock
from batwatt.units import HOUR_S

LONGEST_DAYS = 36_525.0
"""Lengths above a century are taken for a typing error."""
MAX_GAP_S = 6 * HOUR_S
"""Gaps up to this are bridged by a straight line by default."""

Kind = Literal["lifecycle", "direct"]
Wanted = Literal["carbon", "price", "power", "any"]
Dates = Literal["day-first", "month-first"]

_WHERE = "capacity"


@dataclass(frozen=True)
class SignalFile(Parameters, where=_WHERE):
    """A column of a file (CSV, JSON, XML), and the part of it that is wanted.

    `column` and `time_column` are found by their usual names if None; `kind` chooses between life-cycle and direct
    emissions where a file has both, `zone` between zones. Dates without an offset are in the time zone `tz`.

    `begin` (a date; or s in a file of `time_s`) is 0 s of the signal, None: the first row, or 0 in a file of `time_s`,
    whose first value holds before its row as well; `end` is where it ends, or `days` its length. `period_s` averages
    it. `gaps` says what missing values become, see docs/reference/signals.md.

    `wanted`: a column is refused whose name or unit says that it is of something else, and values become W, g/kWh or
    money per kWh, by the unit that the file states or by `unit` (kW, g/kWh, EUR/MWh, fraction...); without a unit they
    are refused, unless only `ratios` of them matter. `any` converts by a unit that is stated. Without `wanted` and
    `unit` they stay as they are. `sequence` chooses between auctions, `resolution` (PT15M) between series of one time,
    `dates` is for dates such as 1/2/2022. Raises InputError.
    """

    path: Path
    column: str | None = None
    time_column: str | None = None
    kind: Kind = "lifecycle"
    zone: str | None = None
    tz: str = "UTC"
    begin: str | None = None
    end: str | None = None
    days: Annotated[float | None, Between(0.0, LONGEST_DAYS, "]]")] = None
    period_s: Annotated[float | None, Between(0.0, ends="][", unit="s")] = None
    gaps: Gaps = "interpolate"
    max_gap_s: Annotated[float, Between(0.0, unit="s")] = MAX_GAP_S
    wanted: Wanted | None = None
    unit: str | None = None
    sequence: str | None = None
    dates: Dates | None = None
    resolution: str | None = None
    ratios: bool = False
    run_clock: Clock | None = None
    """Of the run, on which dates count (`on_clock`)."""
    repeats: bool = False
    """Whether it begins again after its end, on a clock also before its first row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.end is not None and self.days is not None:
            raise InputError(_WHERE, "has both 'to' and 'days'", "give one of them")
        _ = self.clock

    def on(self, clock: Clock | None, *, repeats: bool = False) -> SignalFile:
        """The same file on the clock of a run."""
        return replace(self, run_clock=clock, repeats=repeats)

    @property
    def clock(self) -> tzinfo:
        """The time zone of dates without an offset. Raises InputError."""
        return time_zone(_WHERE, "tz", self.tz)
