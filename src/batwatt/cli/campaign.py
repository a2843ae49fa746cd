"""The commands of a campaign: run, resume, status, clean."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batwatt.cli.options import Plugins
from batwatt.cli.printing import below, counting_bar, note, show_table, tabular, tell
from batwatt.errors import InputError, message, printable

if TYPE_CHECKING:
    from batwatt.study.campaign import CampaignFolder, Report, StudyStates

REPORTED_EVERY_S, DRAWN_EVERY_S = 30.0, 0.1

campaign = typer.Typer(
    name="campaign",
    no_args_is_help=True,
    help="""Run a declared grid of many runs, resume it, show its state.

    [bold]Example:[/] batwatt campaign run start/first.yaml
    """,
    rich_markup_mode="rich",
)
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of its results: results/NAME.")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="STUDY", help="Run just this one of its studies; repeatable.")
]
Jobs = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Processes on this machine.", show_default="all cores")
]
Dask = Annotated[str | None, typer.Option("--dask", help="Run on the Dask cluster at this address.")]


@contextmanager
def progress(what: str = "campaign", unit: str = "runs") -> Iterator[Report]:
    """Show a bar with the remaining time on stderr, or a line now and then where that is no terminal."""
    from rich.progress import TextColumn

    # a thread would keep processes from being forked
    with counting_bar(unit, TextColumn("{task.fields[left]}"), alone=False) as bar:
        task = bar.add_task(what, total=None, left="")
        began = reported = drawn = time.monotonic()

        def report(ended: int, failed: int, total: int, share: float) -> None:
            nonlocal reported, drawn
            now = time.monotonic()
            left = ""
            if share < 1.0:
                left = f"about {timedelta(seconds=round((now - began) / (1.0 - share) * share))} left"
            words = f"{failed} failed" if failed else what
            bar.update(task, completed=ended, total=total, description=words, left=left)
            if not left or now - drawn >= DRAWN_EVERY_S:
                drawn = now
                bar.refresh()
            if bar.disable and now - reported >= REPORTED_EVERY_S and left:
                reported = now
                note(f"{ended} of {total} {unit}, {failed} failed, {left}")

        yield report


def _carry_out(declared: CampaignFolder, only: Sequence[str], jobs: int | None, dask: str | None) -> int:
    """Run a campaign, print its state, and return the exit code. Raises InputError."""
    from batwatt.study.campaign import carry_out

    if jobs is not None and dask is not None:
        raise InputError("--jobs", "is for runs on this machine", "leave it out: the Dask cluster has its own number")
    with progress() as report:
        states = carry_out(declared, only, report, jobs=jobs, dask=dask)
    _print_states(states)
    folder = declared.store.folder
    below(f"table: {printable(folder / 'table.parquet')}")
    failed = sum(counts["failed"] for study, counts in states.items() if not only or study in only)
    if failed:
        text = f"batwatt: {failed} runs failed: see the column `error` of the table, or {folder / 'campaign.log'}"
        print(printable(text), file=sys.stderr)
        return 1
    return 0


def _print_states(states: StudyStates) -> None:
    from batwatt.results.tables import TableColumn

    records = [{"study": study, **counts} for study, counts in states.items()]
    keys = ("study", "done", "failed", "missing")
    show_table([TableColumn(key, key, [str(record[key]) for record in records]) for key in keys], records)


@campaign.command("run")
@tabular
def run_command(
    declared: Annotated[
        Path, typer.Argument(metavar="YAML", help="The declared campaign; docs/reference/campaigns.md.")
    ],
    name: Annotated[str | None, typer.Option("-n", "--name", help="Name of the folder, not the declared one.")] = None,
    results: Annotated[Path, typer.Option("--results", help="Folder of the folders of results.")] = Path("results"),
    jobs: Jobs = None,
    dask: Dask = None,
    only: Only = None,
    plugin: Plugins = None,
) -> int:
    """Run the missing runs of a declared campaign, and write its table; failed runs are tried again.

    [bold]Example:[/] batwatt campaign run start/first.yaml
    """
    from batwatt.study.campaign import campaign_in

    folder = campaign_in(declared, results, name)
    return _carry_out(folder, only or (), jobs, dask)


@campaign.command("resume")
@tabular
def resume_command(
    path: Folder,
    jobs: Jobs = None,
    dask: Dask = None,
    only: Only = None,
    plugin: Plugins = None,
) -> int:
    """Complete a campaign that was interrupted, as it was declared then.

    [bold]Example:[/]
    batwatt campaign run start/first.yaml
    batwatt campaign resume results/first
    """
    from batwatt.files import is_file, read_text
    from batwatt.study.campaign import campaign_of

    folder = campaign_of(path)
    if is_file(folder.origin) and read_text(folder.origin) != folder.text:
        text = f"{folder.origin} has changed since; this completes the campaign as it was run"
        text = f"{text} (`batwatt campaign run {folder.origin}` takes the changes)"
        print(f"batwatt: {message(text)}", file=sys.stderr)
    return _carry_out(folder, only or (), jobs, dask)


@campaign.command("status")
@tabular
def status_command(path: Folder, plugin: Plugins = None) -> None:
    """Count the runs that are done, failed and missing.

    [bold]Example:[/]
    batwatt campaign run start/first.yaml
    batwatt campaign status results/first
    """
    from batwatt.study.campaign import campaign_of

    folder = campaign_of(path, imports=False)
    _print_states(folder.states())
    stale = len(folder.stale())
    if stale:
        text = f"{stale} stale runs (no longer declared, or of other inputs or code): batwatt campaign clean {path}"
        note(printable(text))


@campaign.command("clean")
def clean_command(path: Folder, plugin: Plugins = None) -> None:
    """Remove the runs that are no longer declared, or are of other inputs or code; list what killed processes left.

    [bold]Example:[/]
    batwatt campaign run start/first.yaml
    batwatt campaign clean results/first
    """
    from batwatt.study.campaign import campaign_of

    folder = campaign_of(path, imports=False)
    with folder.store.locked():
        stale = folder.stale()
        folder.store.remove(stale)
    tell(f"{len(stale)} stale runs removed")
    for hidden in folder.store.unfinished():
        note(printable(f"{hidden}: left by a process that was killed; remove it if none writes there"))
