"""The command `carbon plan`: the plan of one job with the least emissions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batwatt.cli.carbon_options import (
    CarbonFile,
    CarbonWeight,
    Checkpoints,
    PriceFile,
    PriceWeight,
    Slot,
    Watts,
    number_of,
    price_of,
    watts_of,
    weights_of,
)
from batwatt.cli.inputs import Output, write_output
from batwatt.cli.printing import json_text
from batwatt.model.workload import MOST_CPUS


def plan_command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Start-up and work of the job in phases (JSON).")],
    carbon: CarbonFile,
    deadline: Annotated[str, typer.Option("--deadline", help="Latest end of the job: s of the signal, or a date.")],
    start: Annotated[str, typer.Option("--start", help="Earliest start of the job: s of the signal, or a date.")] = "0",
    price: PriceFile = None,
    carbon_weight: CarbonWeight = None,
    price_weight: PriceWeight = None,
    slot_s: Slot = None,
    checkpoints: Checkpoints = False,
    cpus: Annotated[int, typer.Option("--cpus", help="Cpus of the job.", min=1, max=MOST_CPUS)] = 1,
    watts: Watts = None,
    output: Output = None,
) -> None:
    """Plan when one job runs and is suspended so that it emits least, each start-up paid; print the plan as JSON.

    [bold]Example:[/]
    batwatt carbon plan workloads/carbon/job.json
      --carbon power_profiles/carbon/carbon-hourly.csv
      --start 2024-07-01T06:00 --deadline 2024-07-02T06:00
    """
    from batwatt.inputs.batsim_files import read_model
    from batwatt.inputs.series import seconds_of
    from batwatt.inputs.spec import parse_series
    from batwatt.schedulers.carbon.optimum import plan_job

    weights = weights_of(price, carbon_weight, price_weight)
    if slot_s is not None:
        number_of("--slot-s", slot_s, above=True)
    model = read_model(job, watts_of(watts))
    spec = parse_series("carbon", carbon)
    signal = spec.timeline()
    start_s, deadline_s = (
        seconds_of(option, text, signal, spec.sources[0])
        for option, text in (("--start", start), ("--deadline", deadline))
    )
    price_signal = price_of(price, signal)
    limits = {"slot_s": slot_s, "checkpoints": checkpoints}
    content = plan_job(model, signal, price_signal, weights, (start_s, deadline_s), cpus, limits)
    write_output(json_text(content), output)
