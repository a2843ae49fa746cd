"""Options that Batsim has, too, and that several commands share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.options import ENGINE, IgnoreCommunication
from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_xml import MASTER_HOST

if TYPE_CHECKING:
    from batwatt.engine.batsim5 import Dialect
    from batwatt.engine.config import EngineConfig
    from batwatt.inputs.platforms.host_choice import HostChoice


def _switch(names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names.split(), help=help, **({"rich_help_panel": "Batsim's switches"} | more))


_feature = partial(_switch, rich_help_panel="Batsim 5: what the scheduler asks for")


@dataclass(frozen=True, kw_only=True)
class FirstHosts:
    """Hosts of a platform that run jobs, where no workload is read."""

    master: Annotated[str, _switch("-m --master-host", "The host that runs no job.")] = MASTER_HOST
    mmax: Annotated[int, _switch("--mmax", "Use only the first hosts.", show_default="0: all")] = 0

    @property
    def choice(self) -> HostChoice:
        """Choice of hosts for the reader of the platform. Raises InputError."""
        from batwatt.inputs.platforms.host_choice import HostChoice

        return HostChoice(**vars(self))


@dataclass(frozen=True, kw_only=True)
class HostOptions(FirstHosts):
    """Hosts of a platform that run jobs, at most those of the workload."""

    mmax_workload: Annotated[bool, _switch("--mmax-workload", "Use `nb_res` hosts.")] = False


@dataclass(frozen=True, kw_only=True)
class RequestedFeatures:
    """Features that the scheduler requests of Batsim 5, whose command line has no options for them."""

    dynamic_jobs: Annotated[
        bool, _feature("--enable-dynamic-jobs", "The scheduler adds jobs.", show_default="if it needs this")
    ] = False
    acknowledge_dynamic_jobs: Annotated[bool, _feature("--acknowledge-dynamic-jobs", "Announce added jobs.")] = False
    forward_profiles_at_begin: Annotated[
        bool,
        _feature("--forward-profiles-at-begin", "All profiles, also the parts of composed ones; each must be used."),
    ] = False

    def dialect(self, scheduler: Any) -> Dialect:
        """Return the dialect of Batsim 5 for a scheduler that knows Batsim 4."""
        from batwatt.engine.batsim5 import Dialect
        from batwatt.engine.config import EngineConfig

        dynamic = self.dynamic_jobs or getattr(scheduler, "needs_dynamic_jobs", False)
        config = EngineConfig(
            compute_sharing=True,
            dynamic_jobs=dynamic,
            acknowledge_dynamic_jobs=self.acknowledge_dynamic_jobs,
            profile_reuse=dynamic,
            forward_profiles=not self.forward_profiles_at_begin,
            forward_unknown_events=True,
        )
        return Dialect(config)


@dataclass(frozen=True, kw_only=True)
class Batsim5Options:
    """Options that Batsim 5 has and Batsim 4 has not."""

    protocol: Annotated[int, _switch("--protocol", "Batsim's version, 4 or 5.", min=4, max=5)] = 4
    init: Annotated[str, _switch("--init", "Text for the scheduler. Batsim 5.")] = ""
    trace_pstate_changes: Annotated[bool, _switch("--trace-pstate-changes", "Write pstate_changes.csv. Batsim 5.")] = (
        False
    )
    role: Annotated[tuple[str, str] | None, _switch("-r --add-role", "A host and its role. Batsim 5.")] = None

    def refuse(self, event_files: int) -> None:
        """Raise InputError for an option that Batsim 4 has not."""
        options = {
            "--init": bool(self.init),
            "--trace-pstate-changes": self.trace_pstate_changes,
            "--add-role": self.role is not None,
            "several --events": event_files > 1,
        }
        for name, is_set in options.items():
            if is_set:
                raise InputError(name, "Batsim 4 has no such option", "add --protocol 5, or leave it out")


@dataclass(frozen=True, kw_only=True)
class Switches:
    """Switches of Batsim, with the choice of hosts."""

    energy: Annotated[
        bool | None,
        _switch(
            "--energy/--no-energy",
            "Account for energy.",
            show_default="if the platform has watts",
            rich_help_panel=ENGINE,
        ),
    ] = None
    compute_sharing: Annotated[bool, _switch("--enable-compute-sharing", "Jobs may share a host.")] = False
    dynamic_jobs: Annotated[bool, _switch("--enable-dynamic-jobs", "The scheduler adds jobs.")] = False
    acknowledge_dynamic_jobs: Annotated[bool, _switch("--acknowledge-dynamic-jobs", "Announce added jobs.")] = False
    profile_reuse: Annotated[bool, _switch("--enable-profile-reuse", "Keep unused profiles.")] = False
    forward_profiles: Annotated[bool, _switch("--forward-profiles-on-submission", "Send profiles with jobs.")] = False
    forward_unknown_events: Annotated[bool, _switch("--forward-unknown-events", "Pass all events on.")] = False
    ignore_communication: IgnoreCommunication = False
    hosts: HostOptions
    sched_cfg: Annotated[str | None, _switch("--sched-cfg", "Text for the scheduler.")] = None
    sched_cfg_file: Annotated[Path | None, _switch("--sched-cfg-file", "File with the text for the scheduler.")] = None

    @property
    def config(self) -> EngineConfig:
        """Options of the engine. Raises InputError."""
        from batwatt.engine.config import EngineConfig
        from batwatt.files import read_text

        if self.sched_cfg is not None and self.sched_cfg_file is not None:
            raise InputError("--sched-cfg, --sched-cfg-file", "both are given", "give one of them")
        text = self.sched_cfg or "" if self.sched_cfg_file is None else read_text(self.sched_cfg_file)
        own = {field.name for field in fields(EngineConfig)} & vars(self).keys()
        return EngineConfig(**{name: getattr(self, name) for name in own}, sched_config=text)

    def refuse_batsim_4(self) -> None:
        """Raise InputError for an option that Batsim 5 has not: its scheduler requests it in its hello."""
        names = [word.partition("=")[0] for word in self.config.batsim_args() if word != "-E"]
        if names:
            raise InputError(names[0], "Batsim 5 has no such option", "let the scheduler ask for it in its hello")
        if self.ignore_communication:
            raise InputError("--ignore-communication", "is for workloads of Batsim 4", "leave it out")
