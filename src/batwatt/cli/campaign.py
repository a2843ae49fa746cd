"""The commands of a campaign: run, resume, status, clean."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batwatt.cli.models import options_of
from batwatt.cli.options import Plugins
from batwatt.cli.printing import below, counting_bar, note, show_table, tabular, tell
from batwatt.errors import InputError, message, printable
from batwatt.study import WORKERLESS_S

if TYPE_CHECKING:
    from batwatt.study.campaign import Backend, CampaignFolder, Report, StudyProgress

REPORTED_EVERY_S, DRAWN_EVERY_S = 30.0, 0.1

campaign = typer.Typer(
    name="campaign",
    no_args_is_help=True,
    help="""Run a declared grid of many runs, resume it, show its state.

    [bold]Example:[/] batwatt campaign run start/first.yaml
    """,
    rich_markup_mode="rich",
)
Declared = Annotated[Path, typer.Argument(metavar="YAML", help="The declared campaign; docs/reference/campaigns.md.")]
Source = Annotated[Path, typer.Argument(metavar="FOLDER|YAML", help="Folder of its results, or the declared campaign.")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="STUDY", help="Run just this one of its studies; repeatable.")
]
Jobs = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Processes on this machine.", show_default="all cores")
]


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """Name and folder of the results of a campaign."""

    name: Annotated[str | None, typer.Option("-n", "--name", help="Name of the folder, not the declared one.")] = None
    results: Annotated[Path, typer.Option("--results", help="Folder of the folders of results.")] = Path("results")

    def campaign(self, path: Path) -> CampaignFolder:
        """Return the campaign of a folder of results or of a YAML file. Raises InputError."""
        from batwatt.study.campaign import campaign_in, campaign_of

        try:
            is_folder = path.is_dir()
        except OSError:
            is_folder = False  # a name that is too long; the reader of the file reports it
        if not is_folder:
            return campaign_in(path, self.results, self.name)
        if self.name is not None:
            raise InputError("--name", "is for a YAML file", "the folder has its name")
        return campaign_of(path)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Workers of a campaign: processes of this machine, or a Dask cluster."""

    jobs: Jobs = None
    dask: Annotated[str | None, typer.Option("--dask", help="Run on the Dask cluster at this address.")] = None
    dask_jobqueue: Annotated[
        Path | None,
        typer.Option(
            "--dask-jobqueue", help="Run on Dask workers that a batch system starts, declared in this YAML file."
        ),
    ] = None
    worker_timeout: Annotated[
        float | None,
        typer.Option(
            "--worker-timeout",
            help="End after this many s without a worker of the Dask cluster (0: never).",
            show_default=f"{WORKERLESS_S:g}",
        ),
    ] = None

    @property
    def backend(self) -> Backend:
        """Backend of a campaign. Raises InputError."""
        from batwatt.study.campaign import Backend

        remote, workerless_s = self.dask is not None or self.dask_jobqueue is not None, self.worker_timeout
        if self.dask is not None and self.dask_jobqueue is not None:
            raise InputError("--dask-jobqueue", "there is --dask, too", "give one of them")
        if self.jobs is not None and remote:
            hint = "leave it out: the Dask cluster has its own number"
            raise InputError("--jobs", "is for runs on this machine", hint)
        if workerless_s is None:
            return Backend(self.jobs or Backend.jobs, self.dask, self.dask_jobqueue)
        if not remote:
            raise InputError("--worker-timeout", "is for a Dask cluster", "leave it out, or give --dask")
        if not 0.0 <= workerless_s < math.inf:
            raise InputError("--worker-timeout", f"{workerless_s:g} is not a number of s >= 0", "0 waits for ever")
        return Backend(dask=self.dask, job_queue=self.dask_jobqueue, workerless_s=workerless_s or None)


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


def _carry_out(declared: CampaignFolder, backend: Backend, only: Sequence[str]) -> int:
    """Run a campaign, print its state, and return the exit code."""
    from batwatt.study.campaign import carry_out

    with progress() as report:
        states = carry_out(declared, backend, only, report)
    _print_states(states)
    folder = declared.store.folder
    below(f"table: {printable(folder / 'table.parquet')}")
    failed = sum(state.failed for state in states if not only or state.study in only)
    if failed:
        text = f"batwatt: {failed} runs failed: see the column `error` of the table, or {folder / 'campaign.log'}"
        print(printable(text), file=sys.stderr)
        return 1
    return 0


def _print_states(states: Sequence[StudyProgress]) -> None:
    from batwatt.results.tables import Column

    keys = ("study", "done", "failed", "missing")
    records = [{key: getattr(state, key) for key in keys} for state in states]
    show_table([Column(key, key, [str(record[key]) for record in records]) for key in keys], records)


@campaign.command("run")
@tabular
def run_command(
    declared: Declared,
    results: ResultsOptions,
    workers: WorkerOptions,
    only: Only = None,
    plugin: Plugins = None,
) -> int:
    """Run the missing runs of a declared campaign, and write its table; failed runs are tried again.

    [bold]Example:[/] batwatt campaign run start/first.yaml
    """
    from batwatt.study.campaign import campaign_in

    return _carry_out(campaign_in(declared, results.results, results.name), workers.backend, only or ())


@campaign.command("resume")
@tabular
def resume_command(
    path: Source,
    results: ResultsOptions,
    workers: WorkerOptions,
    only: Only = None,
    plugin: Plugins = None,
) -> int:
    """Complete a campaign that was interrupted: a folder as it was declared then, a YAML file as it is now.

    [bold]Example:[/]
    batwatt campaign run start/first.yaml
    batwatt campaign resume results/first
    """
    from batwatt.files import read_text

    folder = results.campaign(path)
    if not folder.store.folder.is_dir():
        raise InputError(folder.store.folder, "is not there", "begin with `batwatt campaign run`")
    if path.is_dir() and folder.origin.is_file() and read_text(folder.origin) != folder.text:
        text = f"{folder.origin} has changed since; this completes the campaign as it was run"
        text = f"{text} (`batwatt campaign run {folder.origin}` takes the changes)"
        print(f"batwatt: {message(text)}", file=sys.stderr)
    return _carry_out(folder, workers.backend, only or ())


@campaign.command("status")
@tabular
def status_command(path: Source, results: ResultsOptions, plugin: Plugins = None) -> None:
    """Count the runs that are done, failed and missing.

    [bold]Example:[/]
    batwatt campaign run start/first.yaml
    batwatt campaign status results/first
    """
    folder = results.campaign(path)
    _print_states(folder.states())
    stale = len(folder.stale())
    if stale:
        text = f"{stale} stale runs (no longer declared, or of other inputs or code): batwatt campaign clean {path}"
        note(printable(text))


@campaign.command("clean")
@options_of
def clean_command(path: Source, results: ResultsOptions) -> None:
    """Remove the runs that are no longer declared, or are of other inputs or code.

    [bold]Example:[/]
    batwatt campaign run start/first.yaml
    batwatt campaign clean results/first
    """
    folder = results.campaign(path)
    if not folder.store.folder.is_dir():
        raise InputError(folder.store.folder, "is not there", "nothing is to be cleaned")
    with folder.store.locked():
        stale = folder.stale()
        folder.store.remove(stale)
    tell(f"{len(stale)} stale runs removed")
