"""The command `serve`: a scheduler for a real Batsim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.batsim import RequestedFeatures
from batwatt.cli.models import options_of
from batwatt.cli.options import (
    CapacityText,
    EnvelopeFile,
    OptionTexts,
    Plugins,
    SchedulerName,
    Timeout,
    at_most,
    hosts_of,
    patience_of,
)
from batwatt.cli.printing import note
from batwatt.errors import InputError

if TYPE_CHECKING:
    from batwatt.inputs.platform_files import HostChoice
    from batwatt.model.timeline import Timeline

DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"
INIT = "the text that Batsim has for its scheduler"


@options_of
def serve_command(
    *,
    scheduler: SchedulerName = "powercap",
    options: OptionTexts = None,
    plugin: Plugins = None,
    platform: Annotated[
        Path | None,
        typer.Option("-p", "--platform", help="The platform file of Batsim, with keys as for `run`."),
    ] = None,
    envelope: EnvelopeFile = None,
    capacity: CapacityText = None,
    socket: Annotated[str, typer.Option("--socket", help="Endpoint to listen on for Batsim.")] = DEFAULT_ENDPOINT,
    timeout: Timeout = 0.0,
    protocol: Annotated[
        int | None,
        typer.Option("--protocol", min=4, max=5, help="Take Batsim 4 or 5 only.", show_default="either"),
    ] = None,
    features: RequestedFeatures,
) -> None:
    """Listen as the decision process of a Batsim that you start yourself, 4.x or 5; ends with the simulation.

    Batsim 5 may bring options: the text after its endpoint is a JSON object of options.

    [bold]Example:[/]
    batwatt serve -p platforms/small.xml --envelope power_profiles/small.csv &
    batsim -p platforms/small.xml -w workloads/small.json -E -e out/x

    batwatt convert workloads/small.json --to batsim5 -o small5.json
    batwatt serve -p platforms/small.xml --envelope power_profiles/small.csv &
    batsim -p platforms/small.xml -w small5.json --energy-host -e out/x5
      -s tcp://127.0.0.1:28000 '{"order": "slowdown"}'
    """
    from batwatt.batsim.bs import Bs
    from batwatt.batsim.wire import SchedulerSocket
    from batwatt.inputs.platform_files import HostChoice, platform_of
    from batwatt.run.arguments import options_from
    from batwatt.run.find_scheduler import attribute_errors, make_scheduler

    settings, run_options = options_from(options or (), "--option"), dict[str, Any]()
    choice = HostChoice()
    if platform is not None:
        platform, choice = hosts_of(platform)
        run_options["platform"] = platform_of(platform, choice)
    if envelope is not None:
        run_options["envelope"] = str(envelope)
    if capacity is not None:
        run_options["capacity"] = _served_capacity(capacity, platform, choice)
    patience_s = patience_of(timeout)

    # errors come before the wait for Batsim, unless its text may bring a missing option
    made = None if protocol == 5 else make_scheduler(scheduler, settings, defaults=run_options)
    with SchedulerSocket(socket, patience_s, protocol=protocol) as link:
        note(f"listening on {link.endpoint}; waiting for Batsim to connect, {at_most(patience_s)}")
        init = link.begin()
        brought = options_from([init], INIT) if init and init.strip() else {}
        if made is None or brought:
            made = make_scheduler(scheduler, {**settings, **brought}, defaults=run_options)
        if init is not None:
            link.greet(features.dialect(made))
        with attribute_errors(scheduler, made):
            Bs(made, link).start()


def _served_capacity(text: str, platform: Path | None, hosts: HostChoice) -> str | Timeline:
    """Return the capacity for a workload of unknown length: a file, or the series of a text. Raises InputError."""
    from batwatt.inputs.load import capacity_of, machines_of
    from batwatt.inputs.platform_files import platform_of
    from batwatt.inputs.spec import parse_series

    spec = parse_series("machines", text)
    if spec.path is not None:
        return text
    if platform is None:
        raise InputError("--capacity", f"{text!r} is made for a number of machines", "give --platform, too, or a file")
    return capacity_of(spec, len(machines_of(platform_of(platform, hosts))))
