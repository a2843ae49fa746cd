"""The commands about many jobs: `carbon run` and `policies`; `gaia` and `lwa` by the rules of others."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.carbon_modes import GaiaRequest, LwaRequest, OwnRequest, ShiftRequest
from batwatt.cli.inputs import write_output
from batwatt.cli.options import PREFIX_HELP, Plugins
from batwatt.cli.printing import below, manners, show_described, show_table, tabular
from batwatt.errors import InputError, printable
from batwatt.units import HOUR_S, J_PER_KWH

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.systems.carbon.outcome import Outcome

BASE = "immediate"
"""The policy that savings are measured against."""
PolicyNames = Annotated[str, typer.Option("--policy", help="A name of --list; or several to compare, with commas.")]
Figures = Annotated[Path | None, typer.Option("-o", "--output", help="Write all figures as CSV, too.")]
Export = Annotated[Path | None, typer.Option("-e", "--export", help=PREFIX_HELP, show_default="out/carbon")]


def _listing(simulator: str) -> Any:
    """The option that lists a simulator's policies, whatever else is given."""

    def show(wanted: bool) -> None:
        if wanted:
            # this is looked at before other options
            manners.as_json = "--json" in manners.words
            rules = import_module(f"batwatt.systems.carbon.simulators.{simulator}")
            _show_policies(rules.POLICIES.items())
            raise typer.Exit

    return typer.Option("--list", callback=show, is_eager=True, help="List the policies.")


def _write(asked: ShiftRequest, export: Path, outcomes: list[Outcome], table: pd.DataFrame) -> str:
    """Write the files of the last outcome, compared with the first; returns their names."""
    from batwatt.results.writers import file_of
    from batwatt.systems.carbon.outcome import write_outcome

    segments, metrics = file_of(export, "segments"), file_of(export, "metrics", ".json")
    about = {
        "compat": asked.compat,
        "immediate_carbon_g": float(table["carbon_g"].iloc[0]),
        "saved_share": float(table["saved_share"].iloc[-1]),
        "inputs": asked.about,
    }
    write_outcome(segments, metrics, outcomes[-1], about)
    return printable(f"files: {metrics}, {segments}")


@tabular
def run_command(
    asked: OwnRequest,
    policy: Annotated[
        str,
        typer.Option("--policy", help="A name of `batwatt carbon policies`; or several to compare, with commas."),
    ],
    export: Export = None,
    output: Figures = None,
    plugin: Plugins = None,
) -> None:
    """Run a policy on all jobs, each on its own: figures (JSON), a row for each segment (CSV); or compare several.

    With --price machines are free unless there are --machine-prices.

    [bold]Example:[/]
    batwatt carbon run --jobs workloads/carbon/jobs.csv
      --signal power_profiles/carbon/carbon-hourly.csv
      --policy phase-aware --deadline 24 -e out/x
    """
    _run(asked, policy, export, output)


@tabular
def gaia_command(
    asked: GaiaRequest,
    policy: PolicyNames,
    export: Export = None,
    output: Figures = None,
    listing: Annotated[bool, _listing("gaia")] = False,
) -> None:
    """Run a policy by GAIA's rules and write the files of `carbon run`; or compare several.

    [bold]Example:[/]
    batwatt carbon gaia --jobs workloads/cloud/jobs.csv --length-unit hours
      --signal power_profiles/carbon/carbon-hourly.csv
      --policy suspend-resume --wait 6x24 -e out/gaia
    """
    _run(asked, policy, export, output)


@tabular
def lwa_command(
    asked: LwaRequest,
    policy: PolicyNames,
    export: Export = None,
    output: Figures = None,
    listing: Annotated[bool, _listing("lwa")] = False,
) -> None:
    """Run a policy by the rules of Let's Wait Awhile and write the files of `carbon run`; or compare several.

    [bold]Example:[/]
    batwatt carbon lwa --jobs workloads/cloud/jobs.csv --length-unit hours
      --signal power_profiles/carbon/carbon-hourly.csv
      --policy interrupting --constraint semi-weekly -e out/lwa
    """
    _run(asked, policy, export, output)


@tabular
def policies_command(plugin: Plugins = None) -> None:
    """List our policies; those of others: `carbon gaia --list`, `carbon lwa --list`.

    [bold]Example:[/] batwatt carbon policies
    """
    from batwatt.systems.carbon.simulate import described

    _show_policies(described())


def _show_policies(policies: Iterable[tuple[str, str]]) -> None:
    show_described([{"name": name, "description": line} for name, line in policies])


def _run(asked: ShiftRequest, policy: str, export: Path | None, output: Path | None) -> None:
    """Run one policy and write its files, or several; show them compared with immediate starts. Raises InputError."""
    names = [name.strip() for name in policy.split(",") if name.strip()]
    if not names:
        raise InputError("--policy", "names none", "write one name, or several with commas")
    if export is not None and len(names) > 1:
        raise InputError("--export", "is for one policy", "leave it out, or name one policy")
    run = asked.simulator()
    ran = [run(name) for name in names]
    base = next((outcome for outcome in ran if outcome.policy == BASE), None) or run(BASE)
    outcomes = [base, *(outcome for outcome in ran if outcome.policy != BASE)]
    table = _table(outcomes, base)
    written = _write(asked, export or Path("out/carbon"), outcomes, table) if len(names) == 1 else None
    if output is not None:
        write_output(table.to_csv(index=False, lineterminator="\n"), output)
    _show(table)
    if written is not None:
        below(written)


def _table(outcomes: list[Outcome], base: Outcome) -> pd.DataFrame:
    """The figures of outcomes, a row each, and which share of the base's carbon each saves."""
    import pandas as pd

    rows: list[dict[str, Any]] = [{"policy": outcome.policy, **outcome.metrics()} for outcome in outcomes]
    table = pd.DataFrame(rows)
    before = float(base.metrics()["carbon_g"])
    table.insert(2, "saved_share", 1.0 - table["carbon_g"] / before if before > 0.0 else 0.0)
    return table


def _show(table: pd.DataFrame) -> None:
    from batwatt.results.tables import Column

    records: list[dict[str, Any]] = table.astype(object).where(table.notna(), None).to_dict("records")  # type: ignore[assignment]
    shown: tuple[tuple[str, str, float, str], ...] = (
        ("carbon\ng", "carbon_g", 1.0, ".6f"),
        ("saved", "saved_share", 1.0, ".2%"),
        ("energy\nkWh", "energy_j", 1.0 / J_PER_KWH, ".4f"),
        ("cost", "cost", 1.0, ".4f"),
        ("total\nwait\nmean\nh", "mean_total_wait_s", 1.0 / HOUR_S, ".3f"),
        ("segments", "segments", 1.0, "g"),
        ("late\njobs", "late_jobs", 1.0, "g"),
    )
    columns = [Column("policy", "policy", [record["policy"] for record in records])]
    for head, key, factor, form in shown:
        columns.append(Column(head, key, [f"{record[key] * factor:{form}}" for record in records]))
    show_table(columns, records)
