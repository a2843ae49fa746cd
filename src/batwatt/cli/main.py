"""The entry point `batwatt`: its commands, and the options of all of them."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from batwatt._version import __version__
from batwatt.cli.exits import Warnings, exit_code_of
from batwatt.cli.printing import manners
from batwatt.errors import InputError, spelling

HELP = """Simulate job schedulers on a cluster whose power, size or carbon intensity varies.

Which scheduler suits your jobs and your power? `compare` runs several of them and recommends one. The same scheduler
then decides for a real Batsim or a real Slurm.

Example:
batwatt compare -w workloads/site/jobs.sacct --machines 10 --cores 16
  --envelope constant:1047 -c 'as today' -c adaptive
"""
EXITS = "Exit codes: 0 success, 1 the run failed, 2 bad input, 130 Ctrl-C, 143 SIGTERM. Every message is one line."
COMMANDS = {
    "init": "inputs:init",
    "run": "simulate:run_command",
    "compare": "comparison:compare_command",
    "study": "study:study_command",
    "policies": "results:policies",
    "account": "account:account_command",
    "convert": "inputs:convert",
    "serve": "batsim:serve_command",
    "slurm": "slurm:slurm",
    "benchmark": "simulate:benchmark_command",
    "optimum": "plan:optimum",
    "plan": "plan:plan",
    "generate": "inputs:generate",
    "characterise": "inputs:characterise_series",
    "metrics": "results:metrics",
    "gantt": "results:gantt",
    "batsim": "batsim:batsim_command",
}
"""Command or group of commands -> module of this package, and name in it."""
FIRST = frozenset(["init", "run", "compare", "study", "policies", "account", "convert", "serve", "slurm"])
"""Commands of the short help of `batwatt`."""
ALL = frozenset(COMMANDS)
HELP_OPTIONS = ["-h", "--help"]
HELP_ALL = "--help-all"
"""Option that prints the help with all options of a command."""
SHORT: Mapping[str, str] = {
    "": "version",
    "run": "workload platform machines cores envelope capacity carbon price scheduler options window export engine "
    "as_json",
    "compare": "workload platform machines cores envelope capacity carbon price window case goal by samples export",
    "metrics": "listed workload platform machines cores envelope capacity window job_power as_json",
    "account": "workload machines cores busy_w idle_w pue carbon price by since until output page segments",
    "slurm run": "platform partition qos scheduler options envelope fallback_w operate kill once export as_json",
    "batsim": "platform workload events socket export energy master mmax mmax_workload verbosity quiet version",
}
"""Command with many options -> those of its short help, in their order: jobs, machines, power, scheduler, files."""
REST: Mapping[str, str] = {
    "": "the other commands, and options of all commands",
    "run": "logs, Batsim's switches, plugins",
    "compare": "seeds, processes, plugins, charts",
    "metrics": "dates, classes of jobs",
    "account": "time zones, dates, JSON",
    "slurm run": "signals, kills, clocks, sockets",
    "batsim": "switches, roles, and options without effect",
}
"""Command with many options -> topics of those that its short help leaves out."""
_ON = "(-p PLATFORM | --machines N)"
_HANDED_OVER = "-p PLATFORM (--partition NAME | --qos NAME)"
USAGE: Mapping[str, str] = {
    "run": f"-w JOBS {_ON}",
    "compare": f"-w JOBS {_ON}",
    "metrics": f"PREFIX -w JOBS {_ON}",
    "account": "(-w LOG | PREFIX)",
    "generate platform": "(FILE.toml | --machines N)",
    "slurm run": _HANDED_OVER,
    "slurm release": _HANDED_OVER,
}
"""Command -> its arguments and options without a default, where one of several is needed."""
METAVARS: Mapping[Any, str] = {int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}
"""Type of a value -> its name in a help, unless the option has one."""
COMPLETE = "_BATWATT_COMPLETE"
"""Variable by which a shell requests completions."""
ANYWHERE = ("verbose", "quiet", "help_all")
"""Options that may stand before and after the command."""
LINK = "batsim"
"""Name of a link to `batwatt` that is the command `batsim`."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit; an error becomes one line on stderr, and an exit code."""
    words = args
    if words is None:
        program, *words = sys.argv
        words = [LINK, *words] if Path(program).name == LINK else words
    before = spelling.set(as_option)
    try:
        sys.exit(exit_code_of(lambda: _carry_out(words)))
    finally:
        spelling.reset(before)


OPTIONS = {
    "prefix": "--export",
    "folder": "--export",
    **dict.fromkeys(("width", "tz", "fields", "unit", "master", "mmax", "mmax_workload"), ""),
    "long_s": "--long",
    "workers": "--jobs",
    "plugins": "--plugin",
}
"""Argument of a Python function -> option of the command line, where they differ in more than the dashes; "": a key."""


def as_option(name: str, value: object) -> str:
    """Return an argument as an option of the command line, with its value if there is one."""
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if not option:
        # a key behind the name of a file
        return name if value is None else f"{name}={value}"
    if value is False:
        return option.replace("--", "--no-", 1)
    return option if value is None or value is True else f"{option} {value}"


def _carry_out(words: Sequence[str]) -> Any:
    """Print the help if the last word requests it, which spares the time to parse options; else run the command."""
    manners.begin(words)
    for number, word in enumerate(words, 1):
        if not word.isascii():
            try:
                word.encode()
            except UnicodeEncodeError:
                raise InputError(f"argument {number}", f"{word!r} is not UTF-8", "write names and files so") from None
    app = application(_needed(words))
    # a shell completes every option
    commands = commands_of(app, short=HELP_ALL not in words and COMPLETE not in os.environ)
    if words and words[-1] in (*HELP_OPTIONS, HELP_ALL):
        command = commands
        context = command.context_class(command, info_name="batwatt", **command.context_settings)
        for word in words[:-1]:
            command = getattr(command, "commands", {}).get(word)
            if command is None:
                break
            context = command.context_class(command, context, word, **command.context_settings)
        else:
            command.get_help_option(context).hidden = True
            return typer.echo(context.get_help())
    return commands(args=words, prog_name="batwatt", standalone_mode=False)


def commands_of(app: typer.Typer, *, short: bool = False) -> Any:
    """Return the commands for the parser and for the help.

    A `short` help shows the commands of `FIRST`, the options of `SHORT` and the first script of the example.
    """
    root = typer.main.get_command(app)
    anywhere = [option for option in root.params if option.name in ANYWHERE]
    for name, command in walk(root):
        own = {name for option in command.params for name in option.opts}
        common = [copy(option) for option in anywhere if not own & set(option.opts)]
        for option in common:
            option.hidden, option.expose_value = short, False  # type: ignore[attr-defined]
        options = [param for param in command.params if param.param_type_name == "option"]
        command.params = [*command.params, *common]
        for option in command.params:
            if option.name == "help_all":
                option.hidden = short and name not in SHORT
                if short and name in REST:
                    what = f"All {len(options)} options" if name else "More"
                    option.help = f"{what}: {REST[name]}."
        places = {word: place for place, word in enumerate(SHORT.get(name, "").split())}
        command.params.sort(key=lambda param, places=places: places.get(param.name, len(places)))
        if short:
            _shorten(name, command, options)
        _describe(name, command, short=short)
    return root


def _shorten(name: str, command: Any, options: Sequence[Any]) -> None:
    """Hide what is not in the short help of a command."""
    if not name:
        for word, one in command.commands.items():
            one.hidden = word not in FIRST
    if name in SHORT:
        for option in options:
            if option.name != "help_all":
                option.hidden = option.name not in SHORT[name].split()


def _describe(name: str, command: Any, *, short: bool) -> None:
    """Set the usage of a command, the names of values in its help, and its example, which can be pasted."""
    text, _, example = (command.help or "").partition("Example:")
    scripts = re.sub(r"\n(?=  \S)", r" \\\n", example.strip()).split("\n\n")
    # \b: lines as they are
    epilog = "\b\nExample:\n" + "\n\n\b\n".join(scripts[:1] if short else scripts)
    command.help = text
    command.epilog = epilog if name or short else f"{epilog}\n\n{EXITS}"
    pieces = ["COMMAND"] if hasattr(command, "commands") else []
    for param in command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None
            word = param.display_name_raw if param.required else f"[{param.display_name_raw}]"
            pieces.append(word if param.nargs == 1 else f"{word}...")
        elif not param.is_flag:
            kind = param.type_descriptor.annotation
            kind = next(iter(get_args(kind)), kind)
            param.metavar = param.metavar or METAVARS.get(kind)
            if param.required:
                pieces.append(f"{param.opts[0]} {param.metavar}")
        if isinstance(param.show_default, str):
            # typer adds brackets
            param.help, param.show_default = f"{param.help}  [default: {param.show_default}]", False
    usage = [*([USAGE[name]] if name in USAGE else pieces), "[OPTIONS]"]
    command.collect_usage_pieces = lambda ctx: usage


def walk(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a command and all commands in it, each with its name."""
    yield name, command
    for word, one in getattr(command, "commands", {}).items():
        yield from walk(one, f"{name} {word}".strip())


def _needed(words: Sequence[str]) -> Container[str]:
    """Return the commands to build: the one that is named, none for the version, `FIRST` for the help, else all."""
    if COMPLETE in os.environ:
        # the line so far, as the shell gives it; the command may still be typed
        line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        _, *words = re.split(r"\s", line)
        return (words[0],) if len(words) > 1 and words[0] in ALL else ALL
    first = next((word for word in words if not word.startswith("-")), None)
    if first is None:
        return () if "--version" in words else FIRST if not words or words[-1] in HELP_OPTIONS else ALL
    return (first,) if first in ALL and words[0] not in (*HELP_OPTIONS, HELP_ALL) else ALL


def application(needed: Container[str] = ALL) -> typer.Typer:
    """Return the application with the commands that are needed; to import and build all of them takes a while."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=needed is ALL or COMPLETE in os.environ,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": HELP_OPTIONS},
        help=HELP,
    )
    app.callback()(_common)
    for name, place in COMMANDS.items():
        if name in needed:
            module, _, attribute = place.partition(":")
            command = getattr(import_module(f"batwatt.cli.{module}"), attribute)
            if isinstance(command, typer.Typer):
                app.add_typer(command)
            else:
                app.command(name, cls=getattr(command, "command_class", None))(command)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"batwatt {__version__}")
        raise typer.Exit


def _show_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(context.get_help())
        raise typer.Exit


def _set_verbose(count: int) -> int:
    """Raise the level of messages by the number of -v at this place of the command line."""
    manners.verbose += count
    logging.getLogger().setLevel(manners.level)
    return count


def _set_quiet(wanted: bool) -> bool:
    manners.quiet |= wanted
    logging.getLogger().setLevel(manners.level)
    return wanted


def _common(
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            show_default=False,
            callback=_set_verbose,
            help="Log more (-vv: debug). Accepted before or after the command, as --quiet.",
        ),
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option("-q", "--quiet", callback=_set_quiet, help="Print results and errors only: no notes or bars."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    help_all: Annotated[
        bool,
        typer.Option(HELP_ALL, callback=_show_help, is_eager=True, help="Print the help with all options."),
    ] = False,
) -> None:
    handler = Warnings()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=manners.level, handlers=[handler], force=True)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
