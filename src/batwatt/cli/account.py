"""The command `account`: energy, carbon and cost of recorded jobs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.options import Begin, CarbonText, JobFiles, PriceText
from batwatt.cli.printing import below, manners, show_table, tabular
from batwatt.errors import printable

_option = typer.Option


@tabular
def account_command(
    *,
    workload: Annotated[
        Path,
        _option(
            "-w",
            "--workload",
            help="Log with the starts of jobs (sacct -P), with keys as in jobs.sacct,width=nodes,tz=ZONE.",
        ),
    ],
    carbon: CarbonText = None,
    price: PriceText = None,
    by: Annotated[
        str | None, _option("--by", help="Columns: user,account,partition,month.", show_default="all")
    ] = None,
    output: Annotated[Path | None, _option("-o", "--output", help="Write the table as CSV, too.")] = None,
    page: Annotated[Path | None, _option("--page", help="Write a page, too (HTML).")] = None,
    machines: Annotated[int | None, _option("--machines", help="Nodes of the site, for idle ones.")] = None,
    cores: Annotated[int | None, _option("--cores", help="CPUs of a node.", show_default="1")] = None,
    busy_w: Annotated[
        float | None, _option("--busy-w", help="Power of a node in use, W, of jobs not measured.")
    ] = None,
    idle_w: Annotated[float | None, _option("--idle-w", help="Power of an idle node, W.")] = None,
    pue: Annotated[float, _option("--pue", help="Energy of the site / energy of its nodes.")] = 1.0,
    since: Annotated[str | None, _option("--since", help="Begin (a date).", show_default="the first start")] = None,
    until: Annotated[str | None, _option("--until", help="End (a date).", show_default="the last end")] = None,
    zone: Annotated[str | None, _option("--zone", help="Time zone of months.", show_default="that of dates")] = None,
    begin: Begin = None,
) -> None:
    """Account the jobs of a log: node hours, energy, carbon and cost by user, account, partition and month.

    A job counts at the carbon and the price of the hours in which it ran. Idle nodes and overhead have their own rows.

    [bold]Example:[/]
    batwatt account -w workloads/site/jobs.sacct --machines 10 --cores 16
      --busy-w 350 --idle-w 120 --pue 1.3 --by user,month
      --carbon power_profiles/carbon/carbon-hourly.csv
    """
    from batwatt.api.account import account

    # its reader has no unit of times
    jobs = JobFiles.of([workload], begin, keys=("width", "tz", "fields"))
    result = account(
        jobs.paths[0], by=None if by is None else [name.strip() for name in by.split(",")], carbon=carbon, price=price,
        machines=machines, cores=cores, busy_w=busy_w, idle_w=idle_w, pue=pue, since=since,
        until=until, zone=zone, **vars(jobs.log),
    )  # fmt: skip
    result.save(output, page, command=shlex.join(["batwatt", *manners.words]))
    records: Any = result.table.to_dict("records")
    content = {"rows": records, "currency": result.currency, "remarks": list(result.remarks)}
    show_table(result.columns, records, content)
    if files := [printable(path) for path in (output, page) if path is not None]:
        below(f"files: {', '.join(files)}")
