"""The commands of a real Slurm: `run`, in its shadow or operating it, and `release`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.models import options_of
from batwatt.cli.options import OptionTexts, Plugins, Prefix, Timeout, complete_scheduler, patience_of
from batwatt.cli.printing import note, show_table, tabular
from batwatt.errors import InputError
from batwatt.units import J_PER_KWH

if TYPE_CHECKING:
    from batwatt.slurm.commands import Handover

slurm = typer.Typer(
    name="slurm",
    no_args_is_help=True,
    help="""Let a scheduler decide for a real Slurm: in its shadow, where nothing is changed, or operating it.

    [bold]Example:[/]
    batwatt generate platform servers.toml -o green.xml
    batwatt slurm run -p green.xml --partition green -s powercap
      -o response=frugal --envelope watts.csv -e out/shadow
    """,
    rich_markup_mode="rich",
)
_signals = partial(typer.Option, rich_help_panel="Signals")
_operating = partial(typer.Option, rich_help_panel="Operating")
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
        typer.Option("-p", "--platform", help="Platform file; its hosts are nodes of Slurm, the only ones touched."),
    ]
    partition: Annotated[str | None, typer.Option("--partition", help="Jobs of this partition are handed over.")] = None
    qos: Annotated[str | None, typer.Option("--qos", help="Jobs of this QOS are handed over.")] = None

    @property
    def handover(self) -> Handover:
        """Mark of the jobs that are handed over. Raises InputError unless it is one of the two."""
        from batwatt.slurm.commands import Handover

        if bool(self.partition) == bool(self.qos):
            problem = "one of --partition and --qos says which jobs are handed over"
            raise InputError("batwatt slurm", problem, "give one of them")
        return Handover("partition", self.partition) if self.partition else Handover("qos", str(self.qos))


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Sources of the envelope and of the watts of a session."""

    envelope: Annotated[
        str | None,
        _signals("--envelope", help="Power cap in W: a file, read again when it changes."),
    ] = None
    expiry_s: Annotated[float, _signals("--expiry", min=0.0, help="Time for which a last value holds, in s.")] = 900.0
    fallback_w: Annotated[
        float | None,
        _signals("--fallback", min=0.0, help="Envelope in W later.", show_default="the last value"),
    ] = None
    watts_command: Annotated[
        str,
        _signals("--watts-command", help="Command that prints the measured W of all nodes.", show_default="a model"),
    ] = ""
    tell_signals: Annotated[
        bool,
        _signals(
            "--tell-signals", help="Send the envelope as NOTIFY also to a foreign scheduler.", show_default="ours only"
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Operating:
    """Options of a session that operates Slurm, and of its clock."""

    operate: Annotated[bool, _operating("--operate", help="Act. Without it nothing is changed in Slurm.")] = False
    kill: Annotated[
        str, _operating("--kill", help="Action of a kill: requeue (on hold), cancel, or signal=USR1 and then requeue.")
    ] = "requeue"
    grace_s: Annotated[
        float, _operating("--grace", min=0.0, help="Time for which a job may go on after the signal, in s.")
    ] = 60.0
    pstate_command: Annotated[
        str,
        _operating("--pstate-command", help="Command that sets a p-state, with {node} and {pstate} in it."),
    ] = ""
    poll_s: Annotated[float, _operating("--poll", min=0.1, help="Period in which Slurm is read, in s.")] = 5.0
    fresh: Annotated[
        bool, _operating("--fresh", help="Begin a new session, also if the journal has an unfinished one.")
    ] = False
    once: Annotated[bool, _operating("--once", help="End when no job is left.")] = False
    speed: Annotated[
        float, _operating("--speed", min=1.0, max=1e4, help="Seconds of the session in a real one, for tests.")
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
            help="A scheduler in this process: a name, or a .py file or a folder.",
            autocompletion=complete_scheduler,
            show_default="one that listens on --socket",
        ),
    ] = None,
    options: OptionTexts = None,
    plugin: Plugins = None,
    socket: Annotated[
        str, typer.Option("--socket", help="Endpoint of a scheduler for Batsim 4.")
    ] = "tcp://127.0.0.1:28000",
    timeout: Timeout = 0.0,
    signals: Signals,
    operating: Operating,
    export: Prefix = Path("out/slurm"),
) -> None:
    """Play Batsim 4 for a scheduler, with a real Slurm behind it. Ctrl-C and SIGTERM give everything back to Slurm.

    Writes PREFIX_journal.jsonl (each decision, each command with its answer), _starts.csv and _power.csv.

    [bold]Example:[/]
    batwatt slurm run -p green.xml --partition green -s powercap
      -o response=frugal --envelope watts.csv -e out/shadow

    batwatt serve -s varcap -p green.xml --capacity machines.csv &
    batwatt slurm run -p green.xml --partition green -e out/operated --operate
    """
    from batwatt.run.arguments import options_from
    from batwatt.slurm.account import PowerMeter
    from batwatt.slurm.bridge import KillRule
    from batwatt.slurm.session import Session, SessionSpec

    spec = SessionSpec(
        platform=scope.platform,
        handover=scope.handover,
        prefix=export,
        operate=operating.operate,
        scheduler=scheduler,
        options=options_from(options or (), "--option"),
        endpoint=socket,
        patience_s=patience_of(timeout),
        kill=KillRule.of(operating.kill, operating.grace_s),
        pstate_command=operating.pstate_command,
        envelope=signals.envelope,
        expiry_s=signals.expiry_s,
        fallback_w=signals.fallback_w,
        meter=PowerMeter(signals.watts_command),
        poll_s=operating.poll_s,
        speed=operating.speed,
        fresh=operating.fresh,
        once=operating.once,
        tell_signals=signals.tell_signals,
    )
    session = Session(spec)
    try:
        session.run(note)
    finally:
        show_account(session.account.records())


def show_account(records: list[dict[str, Any]]) -> None:
    """Print the table of a session."""
    from batwatt.results.tables import TableColumn

    columns = [TableColumn("by", "by", [str(record["by"]) for record in records])]
    for head, key, divisor, form in _FIGURES:
        cells = ["-" if record[key] is None else f"{record[key] / divisor:{form}}" for record in records]
        if any(cell != "-" for cell in cells):
            columns.append(TableColumn(head, key, cells))
    show_table(columns, records)


@slurm.command("release")
@options_of
def release_command(*, scope: HandoverOptions) -> None:
    """Give all jobs and nodes that were taken over back to Slurm's own scheduler, in any state of `run`.

    [bold]Example:[/] batwatt slurm release -p green.xml --partition green
    """
    from batwatt.slurm.session import release_cluster

    jobs, nodes = release_cluster(scope.platform, scope.handover)
    note(f"given back to Slurm: {jobs} jobs, {nodes} nodes")
