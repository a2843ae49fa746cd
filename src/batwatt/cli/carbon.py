"""The application `carbon`: jobs in phases under a carbon or price signal."""

from __future__ import annotations

import typer

from batwatt.cli.carbon_engine import account_command

carbon = typer.Typer(
    name="carbon",
    no_args_is_help=True,
    help="""Compute what runs emit.

    [bold]Example:[/]
    batwatt carbon account out/x --carbon power_profiles/carbon/carbon-hourly.csv
    """,
    rich_markup_mode="rich",
)

carbon.command("account")(account_command)
