"""The command `characterise`: range, structure, step and frequency of a capacity or a signal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.printing import show_table, tabular
from batwatt.units import DAY_S

if TYPE_CHECKING:
    from batwatt.inputs.character import Bill, Character
    from batwatt.model.timeline import Timeline

END_S = 30 * DAY_S
"""Default length in s of a capacity that varies by chance."""

KEYS = ("name", "value")
CapacityEnd = Annotated[
    float, typer.Option("--end", help="Length of a capacity without an end of its own, s.", min=1.0)
]


@tabular
def characterise_series(
    series: Annotated[
        str,
        typer.Argument(help="As for run --capacity or --envelope: a file with its keys, or walk:, carbon:, ..."),
    ],
    fixed: Annotated[float, typer.Option(help="Fixed fraction that costs are compared with.", min=0.0)] = 0.7,
    end: CapacityEnd = END_S,
) -> None:
    """Show the range, structure, step and frequency of a series; of a capacity by a budget its cost or emissions.

    [bold]Example:[/]
    batwatt characterise carbon:power_profiles/carbon/carbon-hourly.csv,budget=0.7
    """
    from batwatt.inputs.character import bill, characterise
    from batwatt.inputs.spec import parse_series, quantity_in
    from batwatt.results.tables import TableColumn

    spec = parse_series(quantity_in(series), series)
    signal = spec.timeline(end_s=end).lasting(False)
    character = characterise(signal)
    rows, content = _rows(character, signal), _content(character, signal)
    paid = spec.paid()
    if paid is not None:
        cost = bill(signal, paid, fixed)
        rows += _bill_rows(cost, paid.name)
        content |= {"signal": paid.name, "saved": cost.saved, "gained": cost.gained} | asdict(cost)
    columns = [TableColumn("", key, [row[key] for row in rows], key == "value") for key in KEYS]
    show_table(columns, rows, content)


def _content(character: Character, signal: Timeline) -> dict[str, Any]:
    """Return the character of a signal as JSON."""
    more = {"range": character.range, "frequency_per_h": character.frequency_per_h, "synthetic": character.spec}
    return {"unit": signal.name, "begin": signal.begin, "end_s": signal.end_s} | asdict(character) | more


def _rows(character: Character, signal: Timeline) -> list[dict[str, str]]:
    unit = signal.name
    rows = [
        ("values", f"{unit}, {len(signal)} rows over {signal.end_s / DAY_S:.4g} days"),
        ("begins", signal.begin or "0 s"),
        ("structure", f"{character.structure} (lag-1 correlation {character.correlation:.2f})"),
        ("range", f"{character.range:.4g} ({character.low:.4g} to {character.high:.4g})"),
        ("mean", f"{character.mean:.4g}"),
        ("step", f"{character.step_max:.4g} at most, {character.step_mean:.4g} in the mean"),
        ("period", f"{character.period_s:.10g} s"),
        ("frequency", f"{character.frequency_per_h:.4g} an hour possible, {character.changes_per_h:.4g} happened"),
    ]
    if unit == "fraction" and character.spec is not None:
        rows.append(("synthetic", character.spec))
    return [dict(zip(KEYS, row, strict=True)) for row in rows]


def _bill_rows(cost: Bill, name: str) -> list[dict[str, str]]:
    rows = [(f"sum of {name} x h", f"{cost.amount:.6g} for a full data centre of 1; fixed: {cost.amount_fixed:.6g}")]
    for label, share in (("saved", cost.saved), ("more capacity", cost.gained)):
        if share is not None:
            rows.append((label, f"{share:.1%} relative to a fixed {cost.mean_fixed:g}"))
    return [dict(zip(KEYS, row, strict=True)) for row in rows]
