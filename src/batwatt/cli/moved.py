"""Commands and options of earlier versions: what replaces each of them, as the end of a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIGNAL = {
    "--signal": "is now --carbon",
    "--begin": "is now a key of the signal: --carbon FILE,from=DATE",
    "--zone": "is now a key of the signal: --carbon FILE,zone=ZONE",
    "--column": "is now a key of the signal: --carbon FILE,column=NAME",
    "--tz": "is now a key of the signal: --carbon FILE,tz=ZONE",
    "--kind": "is now a key of the signal: --carbon FILE,kind=direct",
    "--price-column": "is now a key of the price: --price FILE,column=NAME",
}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "batwatt carbon run": {**_SIGNAL, "--jobs": "is now --workload"},
    "batwatt carbon plan": _SIGNAL,
    "batwatt carbon account": _SIGNAL,
}
"""Command -> option -> what is said of it."""
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "batwatt carbon": {
        "gaia": "is gone; use `batwatt carbon run`, or the script papers/carbon/gaia.py for GAIA's own numbers",
        "lwa": "is gone; use `batwatt carbon run` with the policies wait-awhile and wait-awhile-interrupting",
        "policies": "is now `batwatt policies`",
        "jobs": "is gone; use `batwatt generate trace`, or workloads/carbon/jobs.csv",
    },
}
"""Group of commands -> command -> what is said of it."""


def replacement(error: Any) -> str | None:
    """Return what replaces the option or the command that a command line names in vain; None if nothing does."""
    context = getattr(error, "ctx", None)
    if context is None:
        return None
    option = getattr(error, "option_name", None)
    if option is not None:
        text = OPTIONS.get(context.command_path, {}).get(option)
        return None if text is None else f"{option} {text}"
    for name, text in COMMANDS.get(context.command_path, {}).items():
        if error.format_message().startswith(f"No such command '{name}'"):
            return f"`{context.command_path} {name}` {text}"
    return None
