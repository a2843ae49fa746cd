"""The application `carbon`: jobs in phases under a carbon or price signal."""

from __future__ import annotations

import typer

from batwatt.cli.carbon_engine import account_command, workload_command
from batwatt.cli.carbon_plan import plan_command
from batwatt.cli.carbon_run import run_command

carbon = typer.Typer(
    name="carbon",
    no_args_is_help=True,
    help="""Shift jobs in time, and suspend them, to emit less carbon or to pay less.

    [bold]Example:[/]
    batwatt carbon run -w workloads/carbon/jobs.csv
      --carbon power_profiles/carbon/carbon-hourly.csv
      --policy phase-aware -e out/x
    """,
    rich_markup_mode="rich",
)

carbon.command("run")(run_command)
carbon.command("plan")(plan_command)
carbon.command("workload")(workload_command)
carbon.command("account")(account_command)
