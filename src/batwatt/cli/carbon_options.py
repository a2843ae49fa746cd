"""Options that several commands of `carbon` share, and their values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batwatt.checks import finite
from batwatt.cli.options import JobFiles, input_option
from batwatt.errors import InputError

if TYPE_CHECKING:
    from batwatt.model.timeline import Timeline
    from batwatt.model.work import ShiftJob

_signal, _price, _planning = (partial(typer.Option, rich_help_panel=panel) for panel in ("Signal", "Price", "Planning"))
CarbonFile = Annotated[
    str,
    _signal("--carbon", help="Carbon intensity, g/kWh: a file, then keys if needed, as in nl.csv,from=2024-07-01."),
]
PriceFile = Annotated[str | None, input_option("price", rich_help_panel="Price")]
CarbonWeight = Annotated[float | None, _price("--carbon-weight", help="Weight of a g of carbon.", show_default="1")]
PriceWeight = Annotated[float | None, _price("--price-weight", help="Weight of a unit of money.", show_default="0")]
Watts = Annotated[
    float | None, typer.Option("--watts", help="Power of a cpu of jobs without one, W.", show_default="1")
]
Slot = Annotated[
    float | None, _planning("--slot-s", help="Length of the slots of plans, s.", show_default="as they fit")
]
Checkpoints = Annotated[bool, _planning("--checkpoints", help="Suspended jobs go back to their last checkpoint phase.")]


def price_of(text: str | None, carbon: Timeline) -> Timeline | None:
    """Return the price from 0 s of the carbon signal on. Raises InputError."""
    from batwatt.inputs.spec import parse_series
    from batwatt.model.signal import Clock

    clock = None if carbon.date_s is None else Clock(carbon.date_s)
    return None if text is None else parse_series("price", text).timeline(clock)


def weights_of(price: str | None, carbon_weight: float | None, price_weight: float | None) -> tuple[float, float]:
    """Return the weights of carbon and price. Raises InputError."""
    for option, weight in (("--carbon-weight", carbon_weight), ("--price-weight", price_weight)):
        if weight is not None and price is None:
            raise InputError(option, "is for a price", "give --price, too")
    carbon = number_of("--carbon-weight", 1.0 if carbon_weight is None else carbon_weight)
    return carbon, number_of("--price-weight", price_weight or 0.0)


def read_jobs(path: Path, watts: float | None) -> list[ShiftJob]:
    """Return the jobs of a file. Raises InputError."""
    from batwatt.inputs.batsim_files import read_phase_jobs

    jobs = JobFiles.of([path], option="JOBS", keys=("unit",))
    return read_phase_jobs(jobs.paths[0], jobs.unit, watts_of(watts))


def watts_of(watts: float | None) -> float:
    """Return the power in W of a cpu of jobs without one. Raises InputError."""
    from batwatt.protocol.job_fields import MOST_W

    power_w = 1.0 if watts is None else number_of("--watts", watts)
    if not power_w <= MOST_W:
        raise InputError("--watts", f"must be <= {MOST_W:g} W, got {power_w:g}", "correct it")
    return power_w


def number_of(option: str, value: object, *, above: bool = False) -> float:
    """Return the value of an option, a finite number >= 0 (or > 0). Raises InputError."""
    try:
        number = finite(value)
    except ValueError as error:
        raise InputError(option, str(error), "give a number") from None
    if not (number > 0.0 if above else number >= 0.0):
        raise InputError(option, f"must be {'>' if above else '>='} 0, got {number:g}", "correct it")
    return number
