"""The commands of a real Slurm: `run`, in its shadow or operating it, `status` and `release`."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from batwatt.cli.models import options_of
from batwatt.cli.options import (
    OptionTexts,
    Plugins,
    Prefix,
    Timeout,
    TokenFile,
    complete_scheduler,
    patience_of,
    token_of,
)
from batwatt.cli.printing import manners, note, show_table, tabular
from batwatt.errors import InputError, message
from batwatt.units import J_PER_KWH

if TYPE_CHECKING:
    from batwatt.slurm.account import Feed
    from batwatt.slurm.snapshot import Handover

slurm = typer.Typer(
    name="slurm",
    no_args_is_help=True,
    help="""Schedule for a real Slurm: record decisions, or act.

    Example:
    batwatt generate platform servers.toml -o green.xml
    batwatt slurm run -p green.xml --partition green -s powercap
      -o response=frugal --envelope watts.csv -e out/shadow
    """,
    rich_markup_mode=None,
)
_FIGURES = (
    ("jobs started", "jobs_started", 1.0, ".0f"),
    ("median wait, s", "median_wait_s", 1.0, ".0f"),
    ("95 % wait, s", "p95_wait_s", 1.0, ".0f"),
    ("kWh", "energy_j", J_PER_KWH, ".3f"),
    ("kWh above cap", "energy_above_cap_j", J_PER_KWH, ".4f"),
    ("most above cap, W", "most_above_cap_w", 1.0, ".0f"),
)
"""Heading, key in the records, divisor and format of each column of the table."""


@dataclass(frozen=True, kw_only=True)
class HandoverOptions:
    """Jobs and nodes that are handed over."""

    platform: Annotated[
        Path,
        typer.Option(
            "-p",
            "--platform",
            metavar="PLATFORM",
            help="Platform of SimGrid (.xml); its hosts are nodes of Slurm, the only ones touched.",
        ),
    ]
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="Hand over the jobs of this partition.")
    ] = None
    qos: Annotated[str | None, typer.Option("--qos", metavar="NAME", help="Hand over the jobs of this QOS.")] = None

    @property
    def handover(self) -> Handover:
        """Mark of the jobs that are handed over. Raises InputError unless it is one of the two."""
        from batwatt.slurm.snapshot import Handover

        if bool(self.partition) == bool(self.qos):
            problem = "one of --partition and --qos says which jobs are handed over"
            raise InputError("batwatt slurm", problem, "give one of them")
        return Handover("partition", self.partition) if self.partition else Handover("qos", str(self.qos))


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Sources of the envelope and of the watts of a session."""

    envelope: Annotated[
        str | None,
        typer.Option("--envelope", metavar="SERIES", help="Limit of power, W: a file, read again when it changes."),
    ] = None
    expiry_s: Annotated[
        float, typer.Option("--expiry", min=0.0, metavar="S", help="Time for which a last value holds, s.")
    ] = 900.0
    fallback_w: Annotated[
        float | None,
        typer.Option(
            "--fallback",
            min=0.0,
            metavar="W",
            help="Envelope when the file is older than --expiry, W.",
            show_default="the last value",
        ),
    ] = None
    allow_fall: Annotated[
        float,
        typer.Option(
            "--allow-fall", min=0.0, max=100.0, help="Greatest fall of the cap by a new version of the file, in %."
        ),
    ] = 50.0
    watts_command: Annotated[
        str,
        typer.Option(
            "--watts-command",
            metavar="COMMAND",
            help="Command that prints the measured power of all nodes, W.",
            show_default="a model",
        ),
    ] = ""
    tell_signals: Annotated[
        bool,
        typer.Option(
            "--tell-signals", help="Send the envelope as NOTIFY also to a foreign scheduler.", show_default="ours only"
        ),
    ] = False

    @property
    def feed(self) -> Feed | None:
        """The envelope, if there is one."""
        from batwatt.slurm.account import Feed

        if self.envelope is None:
            return None
        fallback_w = math.nan if self.fallback_w is None else self.fallback_w
        return Feed(self.envelope, expiry_s=self.expiry_s, fallback=fallback_w, fall=self.allow_fall / 100.0)


class Others(StrEnum):
    """Action for jobs that are handed over and not taken."""

    COMMENT = "comment"
    RELEASE = "release"


class OnExit(StrEnum):
    """Action at the end of a session."""

    RELEASE = "release"
    KEEP = "keep"


@dataclass(frozen=True, kw_only=True)
class Operating:
    """Options of a session that operates Slurm, and of its clock."""

    operate: Annotated[bool, typer.Option("--operate", help="Act; without it nothing is changed in Slurm.")] = False
    kill: Annotated[
        str,
        typer.Option(
            "--kill",
            metavar="ACTION",
            help="Action of a kill: requeue (on hold), cancel, or signal=USR1 before requeue.",
        ),
    ] = "requeue"
    grace_s: Annotated[
        float, typer.Option("--grace", min=0.0, metavar="S", help="Time of a job after the signal, s.")
    ] = 60.0
    pstate_command: Annotated[
        str,
        typer.Option(
            "--pstate-command", metavar="COMMAND", help="Command that sets a p-state, with {node} and {pstate}."
        ),
    ] = ""
    poll_s: Annotated[float, typer.Option("--poll", min=0.1, metavar="S", help="Period of reading Slurm, s.")] = 5.0
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin a new session, also if the journal has an unfinished one.")
    ] = False
    others: Annotated[
        Others,
        typer.Option("--others", help="Action for jobs with requests that the scheduler cannot read."),
    ] = Others.COMMENT
    on_exit: Annotated[
        OnExit, typer.Option("--on-exit", help="At the end give all back, or keep nodes off and jobs on hold.")
    ] = OnExit.RELEASE
    metrics: Annotated[
        Path | None, typer.Option("--metrics", help="File of figures in Prometheus' text format.", show_default="none")
    ] = None
    once: Annotated[bool, typer.Option("--once", help="End when no job is left.")] = False
    speed: Annotated[
        float, typer.Option("--speed", min=1.0, max=1e4, help="Seconds of the session in a real second, for tests.")
    ] = 1.0


@slurm.command("run")
@tabular
def run_command(
    *,
    scope: HandoverOptions,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--scheduler",
            metavar="NAME",
            help="Scheduler in this process: name, or a .py file or a folder.",
            autocompletion=complete_scheduler,
            show_default="one that listens on --socket",
        ),
    ] = None,
    options: OptionTexts = None,
    plugin: Plugins = None,
    socket: Annotated[
        str,
        typer.Option(
            "--socket",
            metavar="ENDPOINT",
            help="Endpoint of a scheduler for Batsim 4.",
            show_default="ipc://PREFIX_socket/scheduler",
        ),
    ] = "",
    token_file: TokenFile = None,
    insecure_tcp: Annotated[
        bool, typer.Option("--insecure-tcp", help="Allow tcp:// without a token; not as root with --operate.")
    ] = False,
    timeout: Timeout = 0.0,
    signals: Signals,
    operating: Operating,
    export: Prefix = Path("out/slurm"),
) -> None:
    """Schedule jobs of a partition; or record, without --operate.

    Without --operate nothing is changed in Slurm. Ctrl-C and SIGTERM give everything back to it.
    Writes PREFIX_journal.jsonl (each decision, each command with its answer), _starts.csv, _power.csv and _status.json.

    Example:
    batwatt slurm run -p green.xml --partition green -s powercap
      -o response=frugal --envelope watts.csv -e out/shadow

    batwatt serve -s varcap -p green.xml --capacity machines.csv
      --socket ipc://out/slurm_socket/scheduler &
    batwatt slurm run -p green.xml --partition green --operate
    """
    from batwatt.run.arguments import options_from
    from batwatt.slurm.account import PowerMeter
    from batwatt.slurm.actions import KillRule
    from batwatt.slurm.bridge import SessionSpec
    from batwatt.slurm.session import Session

    spec = SessionSpec(
        platform=scope.platform,
        handover=scope.handover,
        prefix=export,
        operate=operating.operate,
        scheduler=scheduler,
        options=options_from(options or (), "--option"),
        endpoint=socket,
        token=token_of(token_file),
        insecure=insecure_tcp,
        patience_s=patience_of(timeout),
        kill=KillRule.of(operating.kill, operating.grace_s),
        pstate_command=operating.pstate_command,
        feed=signals.feed,
        meter=PowerMeter(signals.watts_command),
        poll_s=operating.poll_s,
        speed=operating.speed,
        fresh=operating.fresh,
        once=operating.once,
        tell_signals=signals.tell_signals,
        releases=operating.others is Others.RELEASE,
        keeps=operating.on_exit is OnExit.KEEP,
        metrics=operating.metrics,
    )
    log_at_once()
    session = Session(spec)
    try:
        session.run(note)
    finally:
        if session.bridge is not None:
            show_account(session.account.records())


class _Lines(logging.Formatter):
    """Lines with date and level, or as journald reads them (sd-daemon)."""

    levels: ClassVar = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a message."""
        text = message(record.getMessage())
        if os.environ.get("JOURNAL_STREAM"):
            return f"<{self.levels.get(record.levelno, 3)}>{text}"
        return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(record.created))} {record.levelname} {text}"


def log_at_once() -> None:
    """Write each message to stderr when it comes."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=manners.level, handlers=[handler], force=True)


def show_account(records: list[dict[str, Any]]) -> None:
    """Print the table of a session."""
    from batwatt.results.tables import TableColumn

    columns = [TableColumn("by", "by", [str(record["by"]) for record in records])]
    for head, key, divisor, form in _FIGURES:
        cells = ["-" if record[key] is None else f"{record[key] / divisor:{form}}" for record in records]
        if any(cell != "-" for cell in cells):
            columns.append(TableColumn(head, key, cells))
    show_table(columns, records)


@slurm.command("status")
@tabular
def status_command(
    export: Annotated[Path, typer.Option("-e", "--export", metavar="PREFIX", help="Prefix of the session.")] = Path(
        "out/slurm"
    ),
) -> int:
    """Print the state of a session.

    Envelope, power, jobs, nodes, last poll, and jobs that are not taken over, with reasons.
    Exit code 1 unless the session runs and Slurm has answered within 3 minutes.

    Example: batwatt slurm status -e /var/lib/batwatt/green
    """
    from batwatt.results.run_files import file_of
    from batwatt.results.tables import TableColumn

    path = file_of(export, "status", ".json")
    try:
        status = json.loads(path.read_text(encoding="utf-8"))
        poll_s, state, rows = status["last_poll_s"], status["state"], dict(status)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(path, "is no status of a session", "give the --export of `batwatt slurm run`") from None
    rows["last_poll_s"] = None if poll_s is None else round(time.time() - poll_s, 1)
    names = {"last_poll_s": "last answer of Slurm, s ago", "poll_s": "time of a poll, s", "cap_w": "cap, W"}
    names |= {"power_w": "power, W", "energy_j": "energy, J", "energy_above_cap_j": "energy above cap, J"}
    flat: dict[str, object] = {}
    for name, value in rows.items():
        for part, number in value.items() if isinstance(value, dict) else [("", value)]:
            flat[f"{(names.get(name) or name).replace('_', ' ')} {part}".strip()] = "-" if number is None else number
    cells = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in flat.values()]
    columns = [TableColumn("figure", "figure", list(flat)), TableColumn("value", "value", cells)]
    show_table(columns, [{"figure": name, "value": value} for name, value in flat.items()], rows)
    return 0 if state == "running" and poll_s is not None and time.time() - poll_s < 180.0 else 1


@slurm.command("release")
@options_of
def release_command(
    *,
    scope: HandoverOptions,
    wait_s: Annotated[float, typer.Option("--wait", min=0.0, metavar="S", help="Longest wait for Slurm, s.")] = 300.0,
) -> None:
    """Give all jobs and nodes back to Slurm's own scheduler.

    In any state of `slurm run`. Waits for slurmctld. Exit code 1, and a list, while anything is left.

    Example: batwatt slurm release -p green.xml --partition green
    """
    from batwatt.slurm.session import release_cluster

    log_at_once()
    jobs, nodes = release_cluster(scope.platform, scope.handover, wait_s)
    note(f"given back to Slurm: {jobs} jobs, {nodes} nodes")
