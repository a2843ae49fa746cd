"""The command about many jobs: `carbon run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.carbon_options import (
    CarbonFile,
    CarbonWeight,
    Constraint,
    DeadlineH,
    JobsUnit,
    PriceFile,
    PriceWeight,
    Slot,
    Wait,
    Watts,
    number_of,
    parse_wait,
    price_of,
    read_jobs,
    weights_of,
)
from batwatt.cli.inputs import write_output
from batwatt.cli.options import PREFIX_HELP, Plugins
from batwatt.cli.printing import below, show_table, tabular
from batwatt.cli.shared import without_none
from batwatt.errors import InputError, printable
from batwatt.units import DAY_S, HOUR_S, J_PER_KWH

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.schedulers.carbon.simulator import Outcome, ShiftOptions

BASE = "immediate"
"""The policy that savings are measured against."""
MARGIN_S = 8 * DAY_S
"""Time in s for which the signal is read beyond the plans: constraints reach a week, and each start costs time."""
OF_SLOTS = ("wait-awhile", "wait-awhile-interrupting", "phase-aware", "phase-aware-checkpoints")
"""Policies of batwatt that use `--slot-s`."""
Figures = Annotated[Path | None, typer.Option("-o", "--output", help="Write all figures as CSV, too.")]
Export = Annotated[Path | None, typer.Option("-e", "--export", help=PREFIX_HELP, show_default="out/carbon")]


@dataclass(frozen=True, kw_only=True)
class ShiftRequest:
    """Options of `carbon run` for the simulation; None: not set."""

    carbon: CarbonFile
    workload: Annotated[
        Path,
        typer.Option("-w", "--workload", help="CSV: arrival_time,length,cpus; and name and args of their models."),
    ]
    length_unit: JobsUnit = "seconds"
    wait: Wait = None
    deadline: DeadlineH = None
    constraint: Constraint = None
    price: PriceFile = None
    carbon_weight: CarbonWeight = None
    price_weight: PriceWeight = None
    slot_s: Slot = None
    watts: Watts = None

    @property
    def about(self) -> dict[str, Any]:
        """Options that are set, as JSON."""
        values = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(self).items()
            if value not in (None, False)
        }
        return {name: values.pop(name) for name in ("carbon", "workload", "length_unit")} | values

    def simulator(self, policies: Sequence[str]) -> Callable[[str], Outcome]:
        """Read the jobs and the signals, check all options, and return a function that runs a policy by name.

        Raises InputError.
        """
        from batwatt.inputs.spec import parse_series
        from batwatt.schedulers.carbon.simulator import simulate

        spec = parse_series("carbon", self.carbon)
        options = self._options(spec.sources[0].tz)
        self._refuse_unused(policies)
        carbon_weight, price_weight = weights_of(self.price, self.carbon_weight, self.price_weight)
        jobs = read_jobs(self.workload, self.length_unit, self.watts)
        integral = spec.timeline()
        price = price_of(self.price, integral)
        options = replace(options, price=price, carbon_weight=carbon_weight, price_weight=price_weight)

        def run(policy: str) -> Outcome:
            return simulate(jobs, integral, policy, options)

        return run

    def _options(self, clock: str) -> ShiftOptions:
        """Return all options but the price and its weight."""
        from batwatt.schedulers.carbon.simulator import ShiftOptions

        ways = without_none({"--wait": self.wait, "--deadline": self.deadline, "--constraint": self.constraint})
        if len(ways) > 1:
            raise InputError(", ".join(ways), "are two ways to say how long jobs may wait", "give one of them")
        options = {
            "wait_h": None if self.wait is None else parse_wait(self.wait),
            "deadline_h": None if self.deadline is None else number_of("--deadline", self.deadline, above=True),
            "slot_s": None if self.slot_s is None else number_of("--slot-s", self.slot_s, above=True),
            "constraint": self.constraint,
            "clock": clock,
        }
        return ShiftOptions(**without_none(options))

    def _refuse_unused(self, policies: Sequence[str]) -> None:
        """Raise InputError if slots are set, all policies are ours and none of them uses slots."""
        from batwatt.schedulers.carbon.policies import policy_named

        used = [policy_named(name) for name in policies]
        ours = all(policy.choose.__module__.startswith("batwatt.") for policy in used)
        if self.slot_s is not None and ours and not {policy.name for policy in used} & set(OF_SLOTS):
            raise InputError("--slot-s", f"is for {', '.join(OF_SLOTS)}", "leave it out, or take one of these")


@tabular
def run_command(
    request: ShiftRequest,
    policy: Annotated[
        str,
        typer.Option("--policy", help="A name of `batwatt policies`; or several to compare, with commas."),
    ],
    export: Export = None,
    output: Figures = None,
    plugin: Plugins = None,
) -> None:
    """Run a policy on all jobs, each on its own: figures (JSON), a row for each segment (CSV); or compare several.

    [bold]Example:[/]
    batwatt carbon run -w workloads/carbon/jobs.csv
      --carbon power_profiles/carbon/carbon-hourly.csv
      --policy phase-aware --deadline 24 -e out/x
    """
    names = [name.strip() for name in policy.split(",") if name.strip()]
    if not names:
        raise InputError("--policy", "names none", "write one name, or several with commas")
    if export is not None and len(names) > 1:
        raise InputError("--export", "is for one policy", "leave it out, or name one policy")
    run = request.simulator(names)
    ran = [run(name) for name in names]
    base = next((outcome for outcome in ran if outcome.policy == BASE), None) or run(BASE)
    outcomes = [base, *(outcome for outcome in ran if outcome.policy != BASE)]
    table = _table(outcomes, base)
    written = _write(request, export or Path("out/carbon"), outcomes[-1], table) if len(names) == 1 else None
    if output is not None:
        from batwatt.results.run_files import without_formulas_in

        write_output(without_formulas_in(table).to_csv(index=False, lineterminator="\n"), output)
    _show(table)
    if written is not None:
        below(written)


def _write(request: ShiftRequest, export: Path, outcome: Outcome, table: pd.DataFrame) -> str:
    """Write the files of an outcome, compared with immediate starts; return their names."""
    from batwatt.results.run_files import file_of
    from batwatt.schedulers.carbon.simulator import write_outcome

    segments, metrics = file_of(export, "segments"), file_of(export, "metrics", ".json")
    about = {
        "immediate_carbon_g": float(table["carbon_g"].iloc[0]),
        "saved_share": float(table["saved_share"].iloc[-1]),
        "inputs": request.about,
    }
    write_outcome(segments, metrics, outcome, about)
    return printable(f"files: {metrics}, {segments}")


def _table(outcomes: list[Outcome], base: Outcome) -> pd.DataFrame:
    """Return the figures of outcomes, a row each, with the share of the base's carbon that each saves."""
    import pandas as pd

    rows: list[dict[str, Any]] = [{"policy": outcome.policy, **outcome.metrics()} for outcome in outcomes]
    table = pd.DataFrame(rows)
    before = float(base.metrics()["carbon_g"])
    table.insert(2, "saved_share", 1.0 - table["carbon_g"] / before if before > 0.0 else 0.0)
    return table


def _show(table: pd.DataFrame) -> None:
    from batwatt.results.tables import TableColumn

    records: list[dict[str, Any]] = table.astype(object).where(table.notna(), None).to_dict("records")  # type: ignore[assignment]
    figures: tuple[tuple[str, str, float, str], ...] = (
        ("carbon\ng", "carbon_g", 1.0, ".6f"),
        ("saved", "saved_share", 1.0, ".2%"),
        ("energy\nkWh", "energy_j", 1.0 / J_PER_KWH, ".4f"),
        ("cost", "cost", 1.0, ".4f"),
        ("total\nwait\nmean\nh", "mean_total_wait_s", 1.0 / HOUR_S, ".3f"),
        ("segments", "segments", 1.0, "g"),
        ("late\njobs", "late_jobs", 1.0, "g"),
    )
    columns = [TableColumn("policy", "policy", [record["policy"] for record in records])]
    for head, key, factor, form in figures:
        if records[0][key] is None:
            continue
        columns.append(TableColumn(head, key, [f"{record[key] * factor:{form}}" for record in records]))
    show_table(columns, records)
