"""The commands for a real Batsim: `serve`, a scheduler for it, and `batsim`, which has all options of Batsim."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from batwatt._version import __version__
from batwatt.cli.models import options_of
from batwatt.cli.options import (
    CapacityText,
    EnvelopeFile,
    IgnoreCommunication,
    OptionTexts,
    Plugins,
    SchedulerName,
    Timeout,
    TokenFile,
    at_most,
    hosts_of,
    patience_of,
    token_of,
)
from batwatt.cli.printing import manners, note
from batwatt.errors import DeadlockError, InputError, printable
from batwatt.files import check_place
from batwatt.inputs.platform_files import MASTER_HOST

if TYPE_CHECKING:
    from batwatt.batsim.batsim5 import Dialect
    from batwatt.inputs.platform_files import HostChoice
    from batwatt.model.timeline import Timeline


def _switch(names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names.split(), help=help, **more)


LEVELS = ("quiet", "network-only", "information", "debug")
"""Values of Batsim's `--verbosity`."""
BATSIM_VERSION, SIMGRID_VERSION = (f"{version}+batwatt.{__version__}" for version in ("v4.2.1", "3.32.0"))
"""Versions of Batsim and SimGrid that `batwatt batsim` plays, with our own."""
USAGE_CODE = 255
"""Exit code of Batsim for a command line that its usage does not have."""
DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"
INIT = "the text that Batsim has for its scheduler"
"""Place of options that Batsim 5 brings, in errors."""


@dataclass(frozen=True, kw_only=True)
class RequestedFeatures:
    """Features that the scheduler requests of Batsim 5, whose command line has no options for them."""

    dynamic_jobs: Annotated[
        bool, _switch("--enable-dynamic-jobs", "The scheduler adds jobs.", show_default="if it needs this")
    ] = False
    acknowledge_dynamic_jobs: Annotated[bool, _switch("--acknowledge-dynamic-jobs", "Announce added jobs.")] = False
    forward_profiles_at_begin: Annotated[
        bool,
        _switch("--forward-profiles-at-begin", "Send all profiles, also parts of composed ones; each must be used."),
    ] = False

    def dialect(self, scheduler: Any) -> Dialect:
        """Return the dialect of Batsim 5 for a scheduler that knows Batsim 4."""
        from batwatt.batsim.batsim4 import EngineConfig
        from batwatt.batsim.batsim5 import Dialect

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


# serve ----------------------------------------------------------------------------------------------------------------


@options_of
def serve_command(
    *,
    scheduler: SchedulerName = "powercap",
    options: OptionTexts = None,
    plugin: Plugins = None,
    platform: Annotated[
        Path | None,
        typer.Option("-p", "--platform", help="Platform of that Batsim, with keys as for `run`."),
    ] = None,
    envelope: EnvelopeFile = None,
    capacity: CapacityText = None,
    socket: Annotated[
        str, typer.Option("--socket", metavar="ENDPOINT", help="Endpoint to listen on for Batsim.")
    ] = DEFAULT_ENDPOINT,
    token_file: TokenFile = None,
    timeout: Timeout = 0.0,
    protocol: Annotated[
        int | None,
        typer.Option("--protocol", min=4, max=5, help="Accept Batsim 4 or 5 only.", show_default="either"),
    ] = None,
    attempts: Annotated[
        Path | None,
        typer.Option("--attempts", help="Write the attempts of jobs: PREFIX_attempts.csv, beside Batsim's files."),
    ] = None,
    features: RequestedFeatures,
) -> None:
    """Schedule for a real Batsim, 4 or 5, that you start.

    Listens as its decision process, and ends with the simulation. Batsim 5 may bring options of the scheduler: a JSON
    object after its endpoint.

    Example:
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
    from batwatt.results.run_files import write_attempts
    from batwatt.run.arguments import options_from
    from batwatt.run.find_scheduler import attribute_errors, make_scheduler
    from batwatt.run.run import attempts_of

    if attempts is not None:
        check_place(attempts, "--attempts", [attempts.name])
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
    with SchedulerSocket(socket, patience_s, protocol=protocol, token=token_of(token_file)) as link:
        note(f"listening on {link.endpoint}; waiting for Batsim to connect, {at_most(patience_s)}")
        init = link.begin()
        brought = options_from([init], INIT) if init and init.strip() else {}
        if made is None or brought:
            made = make_scheduler(scheduler, {**settings, **brought}, defaults=run_options)
        if init is not None:
            link.greet(features.dialect(made))
        with attribute_errors(scheduler, made):
            Bs(made, link).start()
    if attempts is not None:
        write_attempts(attempts, attempts_of(made))


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


# batsim ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Switches:
    """Switches of Batsim on the embedded engine, with the choice of hosts."""

    compute_sharing: Annotated[bool, _switch("--enable-compute-sharing", "Jobs may share a host.")] = False
    dynamic_jobs: Annotated[bool, _switch("--enable-dynamic-jobs", "The scheduler adds jobs.")] = False
    acknowledge_dynamic_jobs: Annotated[bool, _switch("--acknowledge-dynamic-jobs", "Announce added jobs.")] = False
    profile_reuse: Annotated[bool, _switch("--enable-profile-reuse", "Keep unused profiles.")] = False
    forward_profiles: Annotated[bool, _switch("--forward-profiles-on-submission", "Send profiles with jobs.")] = False
    forward_unknown_events: Annotated[
        bool, _switch("--forward-unknown-events", "Send all events to the scheduler.")
    ] = False
    ignore_communication: IgnoreCommunication = False
    master: Annotated[str, _switch("-m --master-host", "Host that runs no job.", metavar="HOST")] = MASTER_HOST
    mmax: Annotated[int, _switch("--mmax", "Use only this number of hosts, the first.", show_default="0: all")] = 0
    mmax_workload: Annotated[bool, _switch("--mmax-workload", "Use only the `nb_res` hosts of the workload.")] = False
    sched_cfg: Annotated[str | None, _switch("--sched-cfg", "Text for the scheduler.")] = None
    sched_cfg_file: Annotated[Path | None, _switch("--sched-cfg-file", "File with the text for the scheduler.")] = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the engine's configuration. Raises InputError."""
        from batwatt.batsim.batsim4 import EngineConfig
        from batwatt.files import read_text

        if self.sched_cfg is not None and self.sched_cfg_file is not None:
            raise InputError("--sched-cfg, --sched-cfg-file", "both are given", "give one of them")
        text = self.sched_cfg or "" if self.sched_cfg_file is None else read_text(self.sched_cfg_file)
        own = {field.name for field in fields(EngineConfig)} & vars(self).keys()
        return {name: getattr(self, name) for name in own} | {"sched_config": text}

    @property
    def hosts(self) -> HostChoice:
        """Choice of hosts for the reader of the platform. Raises InputError."""
        from batwatt.inputs.platform_files import HostChoice

        return HostChoice(self.master, self.mmax, self.mmax_workload)


_refused = partial(_switch, help="Refused: the engine does not support it.")


@dataclass(frozen=True, kw_only=True)
class OtherOptions:
    """Options of Batsim that have no effect on the embedded engine, or that it refuses."""

    schedule: Annotated[bool, _switch("--disable-schedule-tracing", "No effect: the Pajé trace is never written.")] = (
        False
    )
    sg_log: Annotated[list[str] | None, _switch("--sg-log", "No effect: log of SimGrid.")] = None
    redis_hostname: Annotated[str, _switch("--redis-hostname", "Only sent to the scheduler.")] = "127.0.0.1"
    redis_port: Annotated[int, _switch("--redis-port", "Only sent to the scheduler.")] = 6379
    redis_prefix: Annotated[str, _switch("--redis-prefix", "Only sent to the scheduler.")] = "default"
    jobs_limit: Annotated[int, _switch("--workflow-jobs-limit", "No effect: jobs of workflows at once.", min=0)] = 0
    beyond: Annotated[bool, _switch("--ignore-beyond-last-workflow", "No effect: no jobs after the workflows.")] = False
    workflow: Annotated[list[Path] | None, _refused("-W --workflow")] = None
    cut_workflow: Annotated[tuple[str, str] | None, _refused("--WS --workflow-start")] = None
    enable_redis: Annotated[bool, _refused("--enable-redis")] = False
    sg_cfg: Annotated[list[str] | None, _refused("--sg-cfg")] = None
    no_sched: Annotated[bool, _refused("--no-sched")] = False

    def refuse(self) -> None:
        """Raise InputError for an option that the engine cannot carry out."""
        reasons = {
            "--workflow": (self.workflow, "workflows are not simulated"),
            "--workflow-start": (self.cut_workflow, "workflows are not simulated"),
            "--enable-redis": (self.enable_redis, "there is no Redis: jobs come in the messages"),
            "--sg-cfg": (self.sg_cfg, "the engine has no SimGrid to configure"),
            "--no-sched": (self.no_sched, "jobs need a scheduler"),
        }
        for name, (value, reason) in reasons.items():
            if value:
                raise InputError(name, reason, "leave it out, or run the real Batsim")


class BatsimCommand(TyperCommand):
    """The command `batsim`, whose words are read as Batsim reads them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; an error has Batsim's exit code."""
        try:
            return super().parse_args(ctx, list(self._whole(ctx, args)))
        except Exception as error:
            if hasattr(error, "format_message"):
                error.exit_code = USAGE_CODE  # type: ignore[attr-defined]
            raise

    def _whole(self, ctx: Any, words: Sequence[str]) -> Iterator[str]:
        """Yield the words with long names in full; refuse a second value, which Batsim does not overwrite."""
        options = {name: option for option in self.params for name in option.opts}
        seen = set()
        rest = iter(words)
        for word in rest:
            name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
            if name.startswith("--") and name not in (*options, *ctx.help_option_names):
                longer = [long for long in options if long.startswith(name)]
                if len(longer) > 1:
                    ctx.fail(f"{name} is not a unique prefix: {', '.join(longer)}")
                word = "".join((*longer, equals, value)) if longer else word
                name = longer[0] if longer else name
            yield word
            option: Any = options.get(name)
            if option is None:
                continue
            if option in seen and not option.multiple:
                ctx.fail(f"{name} is given twice")
            seen.add(option)
            if not (option.is_flag or equals or value):
                for _, more in zip(range(option.nargs), rest, strict=False):
                    yield more
        if {options["--sched-cfg"], options["--sched-cfg-file"]} <= seen:
            ctx.fail("--sched-cfg and --sched-cfg-file are both given")


def _print_version(text: str) -> Any:
    def show(wanted: bool) -> None:
        if wanted:
            print(text)
            raise typer.Exit

    return show


def _version(name: str, text: str) -> Any:
    return typer.Option(name, help="Print the version.", callback=_print_version(text), is_eager=True)


@options_of
def batsim_command(
    *,
    platform: Annotated[Path, _switch("-p --platform", "Platform of SimGrid (.xml 4.1).", metavar="PLATFORM")],
    workload: Annotated[
        list[Path] | None, _switch("-w --workload", "Jobs: .json (Batsim); repeatable.", metavar="JOBS")
    ] = None,
    events: Annotated[
        list[Path] | None, _switch("--events", "External events, one JSON object a line; repeatable.")
    ] = None,
    socket: Annotated[
        str, _switch("-s --socket-endpoint", "Endpoint of the scheduler, which may listen later.", metavar="ENDPOINT")
    ] = "tcp://localhost:28000",
    export: Annotated[str, _switch("-e --export", "Prefix of the output files.", metavar="PREFIX")] = "out",
    energy: Annotated[bool, _switch("-E --energy", "Compute energy.")] = False,
    roles: Annotated[
        list[str] | None,
        _switch(
            "-r --add-role-to-hosts", "HOST,...:ROLE: master, storage or compute_node; repeatable.", metavar="ROLES"
        ),
    ] = None,
    switches: Switches,
    storage: Annotated[bool, _switch("--disable-storage-sharing", "Only sent to the scheduler.")] = False,
    machine_states: Annotated[
        bool, _switch("--disable-machine-state-tracing", "Write no PREFIX_machine_states.csv.")
    ] = False,
    dump: Annotated[
        bool, _switch("--dump-execution-context", "Print endpoint and prefix as JSON; run nothing.")
    ] = False,
    verbosity: Annotated[
        str, _switch("-v --verbosity", f"Messages: {', '.join(LEVELS[:-1])} or {LEVELS[-1]}.", metavar="LEVEL")
    ] = LEVELS[2],
    quiet: Annotated[bool, _switch("-q --quiet", "Print errors only.")] = False,
    other: OtherOptions,
    version: Annotated[bool, _version("--version", BATSIM_VERSION)] = False,
    simgrid_version: Annotated[bool, _version("--simgrid-version", SIMGRID_VERSION)] = False,
) -> None:
    """Play Batsim 4.2.1 for a scheduler in any language.

    Has its options, messages, files and exit codes, without Batsim; by a link named `batsim`, `batwatt` is this
    command. Exit codes are Batsim's: 0 also after a deadlock, 1 or 2 for missing files, 255 for other options. Where
    Batsim aborts with 134, it is 2 for an input and 1 for a decision of the scheduler.

    Example:
    batwatt serve -o response=none &
    batwatt batsim -p platforms/small.xml -w workloads/small.json -E -e out/x
    """
    redis = {name: value for name, value in vars(other).items() if name.startswith("redis_")}
    if dump:
        context = {"socket_endpoint": socket, "redis_enabled": other.enable_redis, **redis, "export_prefix": export}
        print(json.dumps(context | {"external_scheduler": not other.no_sched}, separators=(",", ":")))
        return
    other.refuse()
    workloads, lists = workload or [], events or []
    _refuse_missing(platform, [*workloads, *lists])
    if verbosity not in LEVELS:
        raise InputError("--verbosity", f"{verbosity!r} is none", f"give {', '.join(LEVELS[:-1])} or {LEVELS[-1]}")
    if quiet or verbosity == "quiet":
        manners.quiet = True
    elif verbosity == "debug":
        manners.verbose = 2
    logging.getLogger().setLevel(manners.level)
    if switches.profile_reuse and not switches.dynamic_jobs:
        raise InputError("--enable-profile-reuse", "is for dynamic jobs", "add --enable-dynamic-jobs, or leave it out")

    from batwatt.run.batsim import BatsimConfig, play_batsim

    settings = switches.settings | {"energy": energy, "storage_sharing": not storage, **redis}
    if not lists:
        settings["forward_unknown_events"] = False
    config = BatsimConfig(**settings)

    try:
        play_batsim(
            platform,
            workloads,
            lists,
            socket,
            lambda: note(f"asking the scheduler at {printable(socket)}; waiting for its answer for ever"),
            config=config,
            prefix=export,
            hosts=switches.hosts,
            roles=_parse_roles(roles or []),
            machine_states=not machine_states,
            ignore_communication=switches.ignore_communication,
        )
    except DeadlockError as error:
        # Batsim ends well, with its files
        print(f"batwatt: deadlock: {error}", file=sys.stderr)
    if not other.schedule:
        note(f"{printable(export)}_schedule.trace (Pajé) is not written; --disable-schedule-tracing expects none")


batsim_command.command_class = BatsimCommand  # type: ignore[attr-defined]


def _refuse_missing(platform: Path, others: Sequence[Path]) -> None:
    """Raise InputError for files that are missing; its exit code has Batsim's bit 1 for the platform, 2 for others."""
    missing = [path for path in (platform, *others) if not path.exists()]
    if missing:
        error = InputError(", ".join(map(str, missing)), "cannot be read", "check the path")
        error.exit_code = (platform in missing) + 2 * (not set(missing) <= {platform})
        raise error


def _parse_roles(texts: Sequence[str]) -> dict[str, str]:
    """Return the roles of hosts by their names. Raises InputError."""
    roles: dict[str, str] = {}
    for text in texts:
        names, colon, role = text.partition(":")
        if not colon or ":" in role:
            raise InputError("--add-role-to-hosts", f"{text!r} has not one ':'", "write HOST,HOST:ROLE")
        roles |= dict.fromkeys(names.split(","), role)
    return roles
