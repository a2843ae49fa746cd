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
from typing import Annotated, Any

import typer

from batwatt._version import __version__
from batwatt.cli.exits import Warnings, exit_code_of
from batwatt.cli.printing import manners
from batwatt.errors import InputError, spelling

HELP = """Schedule parallel jobs on machines whose power varies: a Batsim-compatible scheduler with its own engine.

[bold]Example:[/]
batwatt run -p platforms/small.xml -w workloads/small.json
  -o response=none -e out/small
"""
COMMANDS = {
    "Begin": {"init": "inputs:init"},
    "Simulate": {
        "run": "simulate:run_command",
        "compare": "comparison:compare_command",
        "benchmark": "simulate:benchmark_command",
        "study": "study:study_command",
    },
    "Plan": {"optimum": "plan:optimum", "plan": "plan:plan"},
    "Real Batsim": {
        "serve": "batsim:serve_command",
        "batsim": "batsim:batsim_command",
    },
    "Real Slurm": {"slurm": "slurm:slurm"},
    "Make inputs": {
        "convert": "inputs:convert",
        "characterise": "inputs:characterise_series",
        "generate": "inputs:generate",
    },
    "Look up": {
        "policies": "results:policies",
        "metrics": "results:metrics",
        "account": "account:account_command",
        "gantt": "results:gantt",
    },
}
"""Panel of the help -> command or group of commands -> module of this package, and name in it."""
ALL = frozenset(name for commands in COMMANDS.values() for name in commands)
HELP_OPTIONS = ["-h", "--help"]
HELP_ALL = "--help-all"
"""Word that prints the help with all options of a command."""
SHORT: Mapping[str, str] = {
    "run": "workload platform machines cores envelope capacity carbon price window scheduler options engine export "
    "as_json",
    "compare": "workload platform machines cores envelope capacity carbon price window case goal by samples export "
    "as_json",
    "metrics": "listed workload platform machines cores envelope capacity window job_power as_json",
    "account": "workload machines cores busy_w idle_w pue carbon price by since until output page segments as_json",
    "slurm run": "platform partition qos scheduler options envelope fallback_w operate kill once export as_json",
    "batsim": "platform workload events socket export energy master mmax mmax_workload verbosity quiet version",
}
"""Command with many options -> those in its short help: which jobs, machines, power and scheduler, where to."""
COMPLETE = "_BATWATT_COMPLETE"
"""Variable by which a shell requests completions."""
ANYWHERE = ("verbose", "quiet")
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
    if words and words[-1] in (*HELP_OPTIONS, HELP_ALL):
        command = commands_of(app, short=words[-1] != HELP_ALL)
        context = command.context_class(command, info_name="batwatt", **command.context_settings)
        for word in words[:-1]:
            command = getattr(command, "commands", {}).get(word)
            if command is None:
                break
            context = command.context_class(command, context, word, **command.context_settings)
        else:
            return typer.echo(context.get_help())
    return commands_of(app)(args=words, prog_name="batwatt", standalone_mode=False)


def commands_of(app: typer.Typer, *, short: bool = True) -> Any:
    """Return the commands for the parser; lines of examples that continue end with a backslash.

    In a `short` help commands with many options have those of `SHORT` only.
    """
    root = typer.main.get_command(app)
    anywhere = [copy(option) for option in root.params if option.name in ANYWHERE]
    for option in anywhere:
        option.hidden, option.expose_value = True, False  # type: ignore[attr-defined]
    for name, command in walk(root):
        command.help = re.sub(r"\n(?=  \S)", r" \\\n", command.help or "")
        if command is root:
            continue
        if short and name in SHORT:
            names = SHORT[name].split()
            options = [param for param in command.params if param.param_type_name == "option"]
            for option in options:
                option.hidden = option.name not in names
            command.epilog = f"All {len(options)} options: batwatt {name} {HELP_ALL}"
        own = {name for option in command.params for name in option.opts}
        command.params = [*command.params, *(option for option in anywhere if not own & set(option.opts))]
    return root


def walk(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a command and all commands in it, each with its name."""
    yield name, command
    for word, one in getattr(command, "commands", {}).items():
        yield from walk(one, f"{name} {word}".strip())


def _needed(words: Sequence[str]) -> Container[str]:
    """Return the commands to build: the one that is named, none for the version, all for the help and for errors."""
    if COMPLETE in os.environ:
        # the line so far, as the shell gives it; the command may still be typed
        line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        _, *words = re.split(r"\s", line)
        return (words[0],) if len(words) > 1 and words[0] in ALL else ALL
    first = next((word for word in words if not word.startswith("-")), None)
    if first is None:
        return () if "--version" in words else ALL
    return (first,) if first in ALL else ALL


def application(needed: Container[str] = ALL) -> typer.Typer:
    """Return the application with the commands that are needed; to import and build all of them takes a while."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=needed is ALL or COMPLETE in os.environ,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": HELP_OPTIONS},
        help=HELP,
        epilog="Exit codes: 0 done, 1 the run failed, 2 bad input, 130 Ctrl-C, 143 SIGTERM. Every message is one line.",
    )
    app.callback()(_common)
    for panel, commands in COMMANDS.items():
        for name, place in commands.items():
            if name in needed:
                module, _, attribute = place.partition(":")
                command = getattr(import_module(f"batwatt.cli.{module}"), attribute)
                if isinstance(command, typer.Typer):
                    app.add_typer(command, rich_help_panel=panel)
                else:
                    kind = getattr(command, "command_class", None)
                    app.command(name, cls=kind, rich_help_panel=panel)(command)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"batwatt {__version__}")
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
) -> None:
    handler = Warnings()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=manners.level, handlers=[handler], force=True)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
