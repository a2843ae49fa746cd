"""The application `carbon`: jobs in phases under a carbon or price signal."""

from __future__ import annotations

import typer

from batwatt.cli.carbon_engine import account_command, workload_command

carbon = typer.Typer(
    name="carbon",
    no_args_is_help=True,
    help="""Make workloads of jobs in phases, and compute what their runs emit.

    [bold]Example:[/]
    batwatt carbon workload workloads/carbon/jobs.csv --watts 60
      --machines 20 -o out/w.json -p out/p.xml
    """,
    rich_markup_mode="rich",
)

carbon.command("workload")(workload_command)
carbon.command("account")(account_command)
