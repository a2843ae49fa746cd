"""Options that Batsim has, too, and that several commands share: declared once, given to a command as one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli_options import ENGINE
from batwatt.engine.config import EngineConfig
from batwatt.errors import InputError
from batwatt.inputs.batsim_json import read_text
from batwatt.inputs.host_choice import HostChoice
from batwatt.inputs.platform_xml import MASTER_HOST

SWITCHES = "Batsim's switches"
HOSTS = ("master_host", "mmax", "mmax_workload")
"""The options that choose hosts."""


@dataclass(frozen=True)
class BatsimWords:
    """What these options say; a command has all of them or some."""

    energy: bool | None = None
    sharing: bool = False
    dynamic: bool = False
    acknowledge: bool = False
    reuse: bool = False
    forward: bool = False
    unknown: bool = False
    master_host: str = MASTER_HOST
    mmax: int = 0
    mmax_workload: bool = False
    sched_cfg: str | None = None
    sched_cfg_file: Path | None = None

    @property
    def hosts(self) -> HostChoice:
        """The choice of hosts. Raises InputError."""
        return HostChoice(self.master_host, self.mmax, self.mmax_workload)

    @property
    def config(self) -> EngineConfig:
        """What the engine is told. Raises InputError."""
        if self.sched_cfg is not None and self.sched_cfg_file is not None:
            raise InputError("--sched-cfg, --sched-cfg-file", "both are given", "give one of them")
        text = read_text(self.sched_cfg_file) if self.sched_cfg_file is not None else self.sched_cfg or ""
        switches = (self.sharing, self.dynamic, self.acknowledge, self.reuse, self.forward, self.unknown)
        return EngineConfig(self.energy, *switches, text)


def _switch(kind: Any, name: str, help: str, **more: Any) -> Any:
    return Annotated[kind, typer.Option(*name.split(), help=help, **({"rich_help_panel": SWITCHES} | more))]


_TYPES = {
    "energy": _switch(
        bool | None,
        "--energy/--no-energy",
        "Account for energy.",
        show_default="if the platform has watts",
        rich_help_panel=ENGINE,
    ),
    "sharing": _switch(bool, "--enable-compute-sharing", "Jobs may share a host."),
    "dynamic": _switch(bool, "--enable-dynamic-jobs", "The scheduler adds jobs."),
    "acknowledge": _switch(bool, "--acknowledge-dynamic-jobs", "Announce added jobs."),
    "reuse": _switch(bool, "--enable-profile-reuse", "Keep unused profiles."),
    "forward": _switch(bool, "--forward-profiles-on-submission", "Send profiles with jobs."),
    "unknown": _switch(bool, "--forward-unknown-events", "Pass all events on."),
    "master_host": _switch(str, "-m --master-host", "The host that runs no job."),
    "mmax": _switch(int, "--mmax", "Use only the first hosts.", show_default="0: all"),
    "mmax_workload": _switch(bool, "--mmax-workload", "Use `nb_res` hosts."),
    "sched_cfg": _switch(str | None, "--sched-cfg", "Text for the scheduler."),
    "sched_cfg_file": _switch(Path | None, "--sched-cfg-file", "The same in a file."),
}


def batsim_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A command whose parameter `words` is made of these options (none named: of all)."""
    added = names or tuple(_TYPES)

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(**given: Any) -> Any:
            return command(words=BatsimWords(**{name: given.pop(name) for name in added}), **given)

        signature = inspect.signature(command, eval_str=True)
        kind = inspect.Parameter.KEYWORD_ONLY
        own = [entry.replace(kind=kind) for name, entry in signature.parameters.items() if name != "words"]
        usual = BatsimWords()
        more = [inspect.Parameter(n, kind, default=getattr(usual, n), annotation=_TYPES[n]) for n in added]
        # typer reads both
        called.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        called.__annotations__ = {entry.name: entry.annotation for entry in own + more}
        return called

    return decorated
