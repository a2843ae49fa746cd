"""The command `account`: energy, carbon and cost of a log of jobs, or of the files of a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.options import Begin, CarbonText, JobFiles, PriceText, price_of, refuse
from batwatt.cli.printing import below, json_text, manners, show_table, tabular, write_output
from batwatt.errors import InputError, printable

_option = typer.Option


@tabular
def account_command(
    *,
    prefix: Annotated[
        Path | None, typer.Argument(metavar="PREFIX", help="Prefix of the files of a run, in place of a log.")
    ] = None,
    workload: Annotated[
        Path | None,
        _option(
            "-w",
            "--workload",
            metavar="LOG",
            help="Log with the starts of jobs: .sacct or .swf, with keys as in jobs.sacct,width=nodes,tz=ZONE; with "
            "PREFIX the workload of that run.",
        ),
    ] = None,
    carbon: CarbonText = None,
    price: PriceText = None,
    by: Annotated[
        str | None,
        _option(
            "--by", metavar="COLUMNS", help="Columns of the table: user,account,partition,month.", show_default="all"
        ),
    ] = None,
    output: Annotated[
        Path | None, _option("-o", "--output", help="Write the table as CSV, too; with PREFIX the JSON.")
    ] = None,
    segments: Annotated[
        Path | None, _option("--segments", help="With PREFIX: write a row for each segment of a job (CSV).")
    ] = None,
    page: Annotated[Path | None, _option("--page", help="Write a page, too (HTML).")] = None,
    machines: Annotated[
        int | None, _option("--machines", help="Machines of the site, for the energy of idle ones.")
    ] = None,
    cores: Annotated[int | None, _option("--cores", help="Cores of a machine.", show_default="1")] = None,
    busy_w: Annotated[
        float | None,
        _option("--busy-w", metavar="W", help="Power of a busy machine, W, for jobs that are not measured."),
    ] = None,
    idle_w: Annotated[float | None, _option("--idle-w", metavar="W", help="Power of an idle machine, W.")] = None,
    pue: Annotated[
        float | None, _option("--pue", help="Energy of the site / energy of its machines.", show_default="1")
    ] = None,
    since: Annotated[
        str | None, _option("--since", metavar="DATE", help="Begin of the account.", show_default="the first start")
    ] = None,
    until: Annotated[
        str | None, _option("--until", metavar="DATE", help="End of the account.", show_default="the last end")
    ] = None,
    zone: Annotated[
        str | None, _option("--zone", metavar="ZONE", help="Time zone of months.", show_default="that of dates")
    ] = None,
    begin: Begin = None,
) -> None:
    """Account energy, carbon and cost of a log or of a run.

    A log: also machine hours, by user, account, partition and month. A job counts at the carbon and the price of the
    hours in which it ran; idle machines and overhead have their own rows. A run (PREFIX): one JSON object.

    Example:
    batwatt account -w workloads/site/jobs.sacct --machines 10 --cores 16
      --busy-w 350 --idle-w 120 --pue 1.3 --by user,month
      --carbon power_profiles/carbon/carbon-hourly.csv

    batwatt convert workloads/carbon/jobs.csv --watts 60
      --machines 20 -o out/w.json -p out/p.xml
    batwatt run -p out/p.xml -w out/w.json -e out/x
      -s powercap -o response=none
    batwatt account out/x -w out/w.json
      --carbon power_profiles/carbon/carbon-hourly.csv
    """
    if prefix is not None:
        of_log = {
            "by": by, "page": page, "machines": machines, "cores": cores, "busy_w": busy_w, "idle_w": idle_w,
            "pue": pue, "since": since, "until": until, "zone": zone, "begin": begin,
        }  # fmt: skip
        refuse(of_log, f"is for a log, and {prefix} is the prefix of a run")
        if carbon is None:
            raise InputError("--carbon", "is missing for a run", "give its carbon intensity, as in nl.csv")
        _account_run(prefix, workload, carbon, price, segments, output)
        return
    if workload is None:
        raise InputError("PREFIX, --workload", "neither is given", "give the prefix of the files of a run, or a log")
    refuse({"segments": segments}, "is for a run", "give the PREFIX of its files, or leave it out")

    from batwatt.api.account import account

    # its reader has no unit of times
    jobs = JobFiles.of([workload], begin, keys=("width", "tz", "fields"))
    result = account(
        jobs.paths[0], by=None if by is None else [name.strip() for name in by.split(",")], carbon=carbon, price=price,
        machines=machines, cores=cores, busy_w=busy_w, idle_w=idle_w, pue=1.0 if pue is None else pue, since=since,
        until=until, zone=zone, **vars(jobs.log),
    )  # fmt: skip
    result.save(output, page, command=shlex.join(["batwatt", *manners.words]))
    records: Any = result.table.to_dict("records")
    content = {"rows": records, "currency": result.currency, "remarks": list(result.remarks)}
    show_table(result.columns, records, content)
    if files := [printable(path) for path in (output, page) if path is not None]:
        below(f"files: {', '.join(files)}")


def _account_run(
    prefix: Path, workload: Path | None, carbon: str, price: str | None, segments: Path | None, output: Path | None
) -> None:
    """Print the emissions of a run as JSON, and write those of its segments. Raises InputError."""
    from batwatt.inputs.batsim_files import read_workload
    from batwatt.inputs.spec import parse_series
    from batwatt.model.signal import Clock, parse_date_s
    from batwatt.results.carbon import account
    from batwatt.results.run_files import file_of, metadata_of, without_formulas_in

    begin = metadata_of(prefix).get("begin")
    begin_s = None if begin is None else parse_date_s(begin, f"{file_of(prefix, 'metadata', '.json')}: begin")
    integral = parse_series("carbon", carbon).timeline(None if begin_s is None else Clock(begin_s))
    price_signal = price_of(price, integral)
    result = account(prefix, integral, None if workload is None else read_workload(workload), price=price_signal)
    if segments is not None:
        write_output(without_formulas_in(result.per_segment()).to_csv(index=False, lineterminator="\n"), segments)
    write_output(json_text(result.metrics()), output)
