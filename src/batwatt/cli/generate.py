"""The commands that make inputs: `generate` a platform, machines, a workload, a capacity, an envelope."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batwatt.cli.capacity import END_S, CapacityEnd
from batwatt.cli.inputs import Output, Seed, write_output
from batwatt.errors import InputError
from batwatt.model.platform import MachineSpec

generate = typer.Typer(
    name="generate",
    no_args_is_help=True,
    help="""Make a platform, a workload, a capacity or an envelope.

    [bold]Example:[/] batwatt generate workload --seed 7 -o workload.json
    """,
    rich_markup_mode="rich",
)


@generate.command("platform")
def generate_platform(
    servers: Annotated[Path, typer.Argument(help="TOML file of server types; platforms/grid5000.toml is an example.")],
    output: Output = None,
) -> None:
    """Write a SimGrid platform for your own servers: speeds, watts, sleep states.

    [bold]Example:[/] batwatt generate platform platforms/grid5000.toml -o my.xml
    """
    from batwatt.inputs.servers import read_platform_xml

    write_output(read_platform_xml(servers), output)


@generate.command("workload")
def generate_workload(
    seed: Seed = 0,
    jobs_per_hour: Annotated[int, typer.Option(help="Arrivals an hour.")] = 12,
    hours: Annotated[int, typer.Option(help="Hours of arrivals.")] = 24,
    mean_runtime: Annotated[float, typer.Option(help="Mean run time on the reference server, s.")] = 1500.0,
    sigma: Annotated[float, typer.Option(help="Shape of the lognormal run times.")] = 1.0,
    max_servers: Annotated[int, typer.Option(help="Widest job.")] = 8,
    servers: Annotated[int, typer.Option(help="Servers of the platform (nb_res).")] = 20,
    output: Output = None,
) -> None:
    """Write a Google-like workload: by default 288 jobs, 12 arrivals an hour for a day.

    [bold]Example:[/] batwatt generate workload --seed 7 -o workloads/google-288-07.json
    """
    from batwatt.inputs.google_like import GoogleLike, google_like, to_text

    params = GoogleLike(
        jobs_per_hour=jobs_per_hour,
        hours=hours,
        mean_runtime_s=mean_runtime,
        sigma=sigma,
        max_servers=max_servers,
        nb_res=servers,
    )
    write_output(to_text(google_like(params, seed)), output)


@generate.command("machines")
def generate_machines(
    machines: Annotated[int, typer.Option(help="Machine slots.")],
    cores: Annotated[int, typer.Option(help="Cores of a machine; each is a host.")],
    core_watts: Annotated[float, typer.Option(help="Power of a core that is on, busy or not, W.")] = MachineSpec.core_w,
    core_speed: Annotated[str, typer.Option(help="Speed of a core.")] = str(MachineSpec.core_flops),
    speeds: Annotated[
        bool, typer.Option("--speeds", help="Cores can be slower and faster, as the scheduler oversubscribed needs.")
    ] = False,
    output: Output = None,
) -> None:
    """Write a SimGrid platform of like machines, each core a host with the property machine.

    [bold]Example:[/] batwatt generate machines --machines 152 --cores 24 -o machines.xml
    """
    from batwatt.inputs.servers import machines_xml
    from batwatt.model.platform import SpeedMachineSpec

    kind = SpeedMachineSpec if speeds else MachineSpec
    write_output(machines_xml(kind(machines, cores, core_w=core_watts, core_flops=core_speed)), output)


@generate.command("capacity")
def generate_capacity(
    capacity: Annotated[str, typer.Argument(help="As for run --capacity: walk:, uniform:, carbon:FILE, ...")],
    machines: Annotated[
        int | None, typer.Option("--machines", help="Number of machines.", min=1, show_default="fractions")
    ] = None,
    end: CapacityEnd = END_S,
    output: Output = None,
) -> None:
    """Write the machines alive over time, or the fraction of them, that a text describes, as CSV.

    [bold]Example:[/]
    batwatt generate capacity walk:range=0.6,seed=1 --machines 1000 -o walk.csv
    """
    from batwatt.inputs.signal import to_csv
    from batwatt.inputs.spec import parse_series

    series = parse_series("fraction" if machines is None else "machines", capacity).timeline(None, end, machines)
    write_output(to_csv(series.upto(end) if series.repeats else series), output)


@generate.command("envelope")
def generate_envelope(
    envelope: Annotated[
        list[str],
        typer.Argument(help="Terms that add up: power:FILE, constant:W, carbon:FILE, ...; battery:", metavar="TERM..."),
    ],
    full_power: Annotated[
        float | None,
        typer.Option("--full-w", help="Power of the whole machine, for terms that are shares of it, W.", min=0.0),
    ] = None,
    end: Annotated[
        float | None,
        typer.Option("--end", help="Length of the envelope, s.", min=1.0, show_default="as the longest file"),
    ] = None,
    charge: Annotated[
        Path | None,
        typer.Option("--state-of-charge", help="File of the state of charge.", show_default="none"),
    ] = None,
    output: Output = None,
) -> None:
    """Write the power that a text describes over time, as CSV: sun, wind, a grid cap, with a battery behind them.

    [bold]Example:[/]
    batwatt generate envelope "power:power_profiles/small.csv + constant:200"
      -o envelope.csv
    """
    from batwatt.inputs.signal import to_csv
    from batwatt.inputs.spec import parse_series

    text = " + ".join(envelope)
    spec = parse_series("power", text)
    if charge is not None and spec.battery is None:
        raise InputError("--state-of-charge", "there is no battery", "add for instance battery:capacity_kwh=40")
    end_s = end or spec.length_s(full_power) or END_S
    write_output(to_csv(spec.timeline(None, end_s, full_power).upto(end_s)), output)
    if charge is not None:
        write_output(to_csv(spec.dispatch(None, end_s, full_power).state_of_charge(text)), charge)
