"""The options that several commands of `carbon` share, as typer sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from batwatt.checks import finite
from batwatt.cli.shared import one_of
from batwatt.errors import InputError
from batwatt.inputs.series.signal_csv import Kind, SignalFile
from batwatt.inputs.workloads.phase_jobs import MOST_W
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.files import read_integral

SIGNAL, PRICE, PLANNING, WAITING, PEERS, MACHINES = "Signal", "Price", "Planning", "Waiting", "Peers", "Machines"
JobsPath = Annotated[
    Path, typer.Option("--jobs", help="CSV: arrival_time,length,cpus; and name and args of their models.")
]
JobsUnit = Annotated[str, typer.Option("--length-unit", help="Times of the jobs are in seconds or hours.")]
SignalPath = Annotated[
    Path, typer.Option("--signal", help="Carbon intensity, g/kWh (CSV with dates or time_s).", rich_help_panel=SIGNAL)
]
Begin = Annotated[
    str | None,
    typer.Option("--begin", help="Date of 0 s.", show_default="the first row", rich_help_panel=SIGNAL),
]
Zone = Annotated[str | None, typer.Option("--zone", help="Zone, if the file has several.", rich_help_panel=SIGNAL)]
ColumnName = Annotated[
    str | None, typer.Option("--column", help="Its column.", show_default="by its name", rich_help_panel=SIGNAL)
]
Clock = Annotated[
    str, typer.Option("--tz", help="Time zone of dates without an offset, and of people.", rich_help_panel=SIGNAL)
]
KindName = Annotated[
    str, typer.Option("--kind", help="lifecycle or direct, if the file has both.", rich_help_panel=SIGNAL)
]
PricePath = Annotated[
    Path | None, typer.Option("--price", help="Price of energy, per kWh (CSV).", rich_help_panel=PRICE)
]
PriceColumn = Annotated[
    str | None, typer.Option("--price-column", help="Its column.", show_default="by its name", rich_help_panel=PRICE)
]
CarbonWeight = Annotated[
    float | None,
    typer.Option("--carbon-weight", help="Weight of a g of carbon.", show_default="1", rich_help_panel=PRICE),
]
PriceWeight = Annotated[
    float | None,
    typer.Option("--price-weight", help="Weight of a unit of money.", show_default="0", rich_help_panel=PRICE),
]
Slot = Annotated[
    float | None,
    typer.Option(
        "--slot-s", help="Length of the slots of plans, s.", show_default="as they fit", rich_help_panel=PLANNING
    ),
]
MaxStarts = Annotated[
    int | None, typer.Option("--max-starts", help="Most starts of a job.", min=1, rich_help_panel=PLANNING)
]
Checkpoints = Annotated[
    bool,
    typer.Option(
        "--checkpoints", help="Suspended jobs go back to their last checkpoint phase.", rich_help_panel=PLANNING
    ),
]
Watts = Annotated[
    float | None, typer.Option("--watts", help="Power of a cpu of jobs that say none, W.", show_default="1")
]

Compat = Annotated[
    str | None,
    typer.Option("--compat", help="gaia or lwa: by that simulator's rules.", rich_help_panel=PEERS),
]
CarbonPolicy = Annotated[
    str | None,
    typer.Option(
        "--carbon-policy",
        help="What the policies carbon and carbon-cost start by.",
        show_default="oracle",
        rich_help_panel=PEERS,
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        help="Hours that short (< 2 h) and long jobs may wait, or all.",
        show_default="6x24",
        rich_help_panel=WAITING,
    ),
]
DeadlineH = Annotated[
    float | None,
    typer.Option("--deadline", help="Instead: hours from arrival to completion.", rich_help_panel=WAITING),
]
Constraint = Annotated[
    str | None,
    typer.Option("--constraint", help="Instead: next-workday or semi-weekly.", rich_help_panel=WAITING),
]
ForecastError = Annotated[
    float | None,
    typer.Option(
        "--forecast-error",
        help="Policies see the signal with errors of this share of its mean.",
        show_default="0",
        rich_help_panel=SIGNAL,
    ),
]
Repetitions = Annotated[
    int | None,
    typer.Option("--repetitions", help="Drawn so often.", min=1, show_default="10", rich_help_panel=SIGNAL),
]
ErrorSeed = Annotated[
    int | None, typer.Option("--seed", help="Of the errors.", min=0, show_default="0", rich_help_panel=SIGNAL)
]
Reserved = Annotated[
    int | None, typer.Option("--reserved", help="Reserved cpus.", min=0, show_default="0", rich_help_panel=MACHINES)
]
MachinePrices = Annotated[
    str | None,
    typer.Option(
        "--machine-prices",
        help="Per cpu and hour on demand, on spot; share of a reserved one.",
        show_default="0.0624,0.01248,0.4; 0 with --price",
        rich_help_panel=MACHINES,
    ),
]
Averaged = Annotated[
    bool,
    typer.Option("--averaged", help="Plan as if each job drew its mean power.", rich_help_panel=PLANNING),
]
SavingsPicture = Annotated[
    Path | None, typer.Option("--savings", help="Draw which jobs save what: .png, .svg or .pdf.")
]


def signal_file(path: Path, begin: str | None, zone: str | None, column: str | None, tz: str, kind: str) -> SignalFile:
    """The signal that these options tell of. Raises InputError."""
    chosen = one_of("--kind", "kind of emissions", kind, get_args(Kind))
    return SignalFile(path, column=column, kind=chosen, zone=zone, tz=tz, begin=begin, wanted="carbon")


def price_integral(
    path: Path | None, column: str | None, signal: SignalFile, carbon: SignalIntegral, until: float | str | None
) -> SignalIntegral | None:
    """The price from the date at which the carbon signal begins. Raises InputError."""
    if path is None:
        if column is not None:
            raise InputError("--price-column", "is for a price", "give --price, too")
        return None
    begin = carbon.begin or signal.begin
    return read_integral(SignalFile(path, column=column, tz=signal.tz, begin=begin, wanted="price"), until)


def weights_of(carbon: float | None, price: float | None, priced: bool) -> tuple[float, float]:
    """The weights of carbon and price. Raises InputError."""
    if price is not None and not priced:
        raise InputError("--price-weight", "is for a price", "give --price, too")
    weights = 1.0 if carbon is None else carbon, price or 0.0
    for option, weight in zip(("--carbon-weight", "--price-weight"), weights, strict=True):
        number_of(option, weight)
    if not sum(weights) > 0.0:
        raise InputError("--carbon-weight, --price-weight", "are both 0", "let one of them be > 0")
    return weights


def watts_of(watts: float | None) -> float:
    """The power of a cpu of jobs that say none, W. Raises InputError."""
    found = 1.0 if watts is None else number_of("--watts", watts)
    if not found <= MOST_W:
        raise InputError("--watts", f"must be <= {MOST_W:g} W, got {found:g}", "correct it")
    return found


def number_of(option: str, value: object, *, above: bool = False) -> float:
    """A finite number >= 0 (or > 0) that an option gives. Raises InputError."""
    try:
        number = finite(value)
    except ValueError as error:
        raise InputError(option, str(error), "give a number") from None
    if not (number > 0.0 if above else number >= 0.0):
        raise InputError(option, f"must be {'>' if above else '>='} 0, got {number:g}", "correct it")
    return number
