"""The application `carbon`: jobs in phases under a carbon or price signal."""

from __future__ import annotations

import typer

from batwatt.cli.carbon_engine import account_command, workload_command
from batwatt.cli.carbon_plan import plan_command

carbon = typer.Typer(
    name="carbon",
    no_args_is_help=True,
    help="""Plan jobs in phases, make workloads of them, and compute what their runs emit.

    [bold]Example:[/]
    batwatt carbon plan workloads/carbon/job.json
      --carbon power_profiles/carbon/carbon-hourly.csv
      --deadline 86400
    """,
    rich_markup_mode="rich",
)

carbon.command("plan")(plan_command)
carbon.command("workload")(workload_command)
carbon.command("account")(account_command)
