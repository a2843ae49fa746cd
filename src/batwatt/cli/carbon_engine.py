"""The commands between `carbon` and the engines: `carbon workload` and `carbon account`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batwatt.cli.options import PriceText, input_option, price_of
from batwatt.cli.printing import Output, json_text, write_output


def account_command(
    prefix: Annotated[Path, typer.Argument(metavar="PREFIX", help="Prefix of the files of a run.")],
    carbon: Annotated[str, input_option("carbon")],
    price: PriceText = None,
    workload: Annotated[
        Path | None, typer.Option("-w", "--workload", help="Workload of the run, for the phases of its jobs.")
    ] = None,
    segments: Annotated[
        Path | None, typer.Option("--segments", help="Write a row for each segment of a job, too (CSV).")
    ] = None,
    output: Output = None,
) -> None:
    """Compute the emissions of a run from Batsim's files, and print them as JSON.

    [bold]Example:[/]
    batwatt convert workloads/carbon/jobs.csv --watts 60
      --machines 20 -o out/w.json -p out/p.xml
    batwatt run -p out/p.xml -w out/w.json -e out/x
      -s powercap -o response=none
    batwatt carbon account out/x -w out/w.json
      --carbon power_profiles/carbon/carbon-hourly.csv
    """
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
