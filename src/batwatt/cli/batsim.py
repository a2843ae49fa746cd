"""Options that Batsim has, too, and that several commands share: declared once, given to a command as one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.options import ENGINE
from batwatt.engine.config import EngineConfig
from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import HostChoice
from batwatt.inputs.workloads.batsim_json import read_text

SWITCHES = "Batsim's switches"


@dataclass(frozen=True)
class Switches:
    """What these options say; a command has all of them or some."""

    config: EngineConfig
    hosts: HostChoice


def _switch(kind: Any, name: str, help: str, **more: Any) -> Any:
    return Annotated[kind, typer.Option(*name.split(), help=help, **({"rich_help_panel": SWITCHES} | more))]


_CONFIG = {
    "energy": _switch(
        bool | None,
        "--energy/--no-energy",
        "Account for energy.",
        show_default="if the platform has watts",
        rich_help_panel=ENGINE,
    ),
    "compute_sharing": _switch(bool, "--enable-compute-sharing", "Jobs may share a host."),
    "dynamic_jobs": _switch(bool, "--enable-dynamic-jobs", "The scheduler adds jobs."),
    "acknowledge_dynamic_jobs": _switch(bool, "--acknowledge-dynamic-jobs", "Announce added jobs."),
    "profile_reuse": _switch(bool, "--enable-profile-reuse", "Keep unused profiles."),
    "forward_profiles": _switch(bool, "--forward-profiles-on-submission", "Send profiles with jobs."),
    "forward_unknown_events": _switch(bool, "--forward-unknown-events", "Pass all events on."),
}
"""By the names of EngineConfig."""
_HOSTS = {
    "master": _switch(str, "-m --master-host", "The host that runs no job."),
    "mmax": _switch(int, "--mmax", "Use only the first hosts.", show_default="0: all"),
    "mmax_workload": _switch(bool, "--mmax-workload", "Use `nb_res` hosts."),
}
"""By the names of HostChoice."""
_TEXTS = {
    "sched_cfg": _switch(str | None, "--sched-cfg", "Text for the scheduler."),
    "sched_cfg_file": _switch(Path | None, "--sched-cfg-file", "The same in a file."),
}
_TYPES = _CONFIG | _HOSTS | _TEXTS
HOSTS = tuple(_HOSTS)
"""The options that choose hosts."""


def _switches(given: dict[str, Any]) -> Switches:
    """Raises InputError."""
    config = EngineConfig(
        **{name: given[name] for name in _CONFIG if name in given},
        sched_config=_sched_config(given.get("sched_cfg"), given.get("sched_cfg_file")),
    )
    return Switches(config, HostChoice(**{name: given[name] for name in _HOSTS if name in given}))


def _sched_config(text: str | None, file: Path | None) -> str:
    if text is not None and file is not None:
        raise InputError("--sched-cfg, --sched-cfg-file", "both are given", "give one of them")
    return read_text(file) if file is not None else text or ""


def batsim_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A command whose parameter `switches` is made of these options (none named: of all)."""
    added = names or tuple(_TYPES)
    usual = asdict(EngineConfig()) | asdict(HostChoice())

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(**given: Any) -> Any:
            return command(switches=_switches({name: given.pop(name) for name in added}), **given)

        signature = inspect.signature(command, eval_str=True)
        kind = inspect.Parameter.KEYWORD_ONLY
        own = [entry.replace(kind=kind) for name, entry in signature.parameters.items() if name != "switches"]
        more = [inspect.Parameter(n, kind, default=usual.get(n), annotation=_TYPES[n]) for n in added]
        # typer reads both
        called.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        called.__annotations__ = {entry.name: entry.annotation for entry in own + more}
        return called

    return decorated
