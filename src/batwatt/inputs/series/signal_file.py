"""Choice of the column and of the part of a file that are a signal by date (carbon intensity, prices, power)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Literal

from batwatt.checks import Between, Parameters, time_zone
from batwatt.errors import InputError
from batwatt.model.signal import Clock

LONGEST_DAYS = 36_525.0
"""Greatest length in days, a century; more are taken for a typing error."""

Kind = Literal["lifecycle", "direct"]
Wanted = Literal["carbon", "price", "power", "any"]
Dates = Literal["day-first", "month-first"]
Gaps = Literal["hold", "line"]
Stamp = Literal["begin", "end"]

_WHERE = "capacity"


@dataclass(frozen=True)
class SignalFile(Parameters, where=_WHERE):
    """A column of a file (CSV, JSON), and its requested part.

    `column` and `time_column` have usual names if None; `kind` chooses between life-cycle and direct emissions where a
    file has both, `zone` between zones. Dates without an offset are in the time zone `tz`.

    `begin` (a date; or s in a file of `time_s`) is 0 s of the signal, None: the first row, or 0 in a file of `time_s`,
    whose first value holds before its row, too; `end` is its end, or `days` its length. `period_s` is a period of
    averages.

    `wanted` refuses a column with a name or a unit of another kind, and converts values to W, g/kWh or money per kWh,
    by the unit of the file or by `unit` (kW, g/kWh, EUR/MWh, fraction...); it refuses values without a unit, unless
    only their `ratios` matter. `any` converts by a stated unit. Without `wanted` and `unit`, values do not change.
    `stamp` says whether times are begins or ends of rows; None: as the name of their column says, else begins. In gaps
    the value before holds, or with `gaps` = `line` (not of power or machines) they are filled by neighbours.
    `sequence` chooses between auctions, `resolution` (PT15M) between series of one time, `dates` is the order of day
    and month in dates such as 1/2/2022. Raises InputError.
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
    wanted: Wanted | None = None
    unit: str | None = None
    sequence: str | None = None
    dates: Dates | None = None
    resolution: str | None = None
    stamp: Stamp | None = None
    gaps: Gaps = "hold"
    ratios: bool = False
    run_clock: Clock | None = None
    """Clock of the run for dates (`on_clock`)."""
    repeats: bool = False
    """True if the signal repeats after its end, and on a clock also before its first row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.end is not None and self.days is not None:
            raise InputError(_WHERE, "has both 'to' and 'days'", "give one of them")
        _ = self.clock

    def on(self, clock: Clock | None, *, repeats: bool = False) -> SignalFile:
        """Return the file on the clock of a run."""
        return replace(self, run_clock=clock, repeats=repeats)

    @property
    def clock(self) -> tzinfo:
        """The time zone of dates without an offset. Raises InputError."""
        return time_zone(_WHERE, "tz", self.tz)
