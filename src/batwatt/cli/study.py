"""The command `study`: many runs, declared as comparisons in a file, in a folder that can be completed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batwatt.cli.options import Plugins
from batwatt.cli.printing import below, counting_bar, note, show_table, tabular, tell
from batwatt.cli.results import FigureKinds, parse_kinds
from batwatt.errors import InputError, message, printable

if TYPE_CHECKING:
    from batwatt.studies.study import Report, States, StudyFolder

REPORTED_EVERY_S, DRAWN_EVERY_S = 30.0, 0.1
PARTS = ("status", "clean", "page")
"""Options that replace the runs."""


@contextmanager
def progress() -> Iterator[Report]:
    """Show a bar with the remaining time on stderr, or a line now and then where that is no terminal."""
    from rich.progress import TextColumn

    # a thread would keep processes from being forked
    with counting_bar("runs", TextColumn("{task.fields[left]}"), alone=False) as bar:
        task = bar.add_task("study", total=None, left="")
        began = reported = drawn = time.monotonic()

        def report(ended: int, failed: int, total: int, share: float) -> None:
            nonlocal reported, drawn
            now = time.monotonic()
            left = ""
            if share < 1.0:
                left = f"about {timedelta(seconds=round((now - began) / (1.0 - share) * share))} left"
            words = f"{failed} failed" if failed else "study"
            bar.update(task, completed=ended, total=total, description=words, left=left)
            if not left or now - drawn >= DRAWN_EVERY_S:
                drawn = now
                bar.refresh()
            if bar.disable and now - reported >= REPORTED_EVERY_S and left:
                reported = now
                note(f"{ended} of {total} runs, {failed} failed, {left}")

        yield report


@tabular
def study_command(
    declared: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER", help="Study (YAML), or the folder of its results.")
    ],
    name: Annotated[
        str | None,
        typer.Option("-n", "--name", metavar="NAME", help="Name of the folder, in place of the declared one."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FOLDER", help="Folder of the folders of results.", show_default="results"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Processes on this machine.", show_default="all cores")
    ] = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on the Dask cluster at this address.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="COMPARISON", help="Run this comparison only; repeatable.")
    ] = None,
    plugin: Plugins = None,
    figures: FigureKinds = "",
    status: Annotated[bool, typer.Option("--status", help="Count the runs that have ended; run none.")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove runs that are no longer declared, or of other inputs; run none.")
    ] = False,
    page: Annotated[bool, typer.Option("--page", help="Write the page of the runs that have ended; run none.")] = False,
) -> int:
    """Run the comparisons that a file declares.

    A FILE is run into results/NAME; a FOLDER of results is completed as it was declared. Only missing and failed runs
    are run. Writes results/NAME/table.parquet, a row for each run, and the page results/NAME/report/index.html.

    Example:
    batwatt study start/first.yaml
    batwatt study results/first --status
    """
    from batwatt.files import is_file, is_folder, read_text
    from batwatt.studies.study import study_in, study_of

    kinds = parse_kinds(figures)
    parts = [part for part, wanted in zip(PARTS, (status, clean, page), strict=True) if wanted]
    if len(parts) > 1:
        raise InputError(f"--{parts[0]}", f"goes without --{parts[1]}", "give one of them")
    if page and is_folder(declared):
        # of the results alone: inputs may be gone
        _write_page(declared, kinds)
        return 0
    if not is_folder(declared):
        folder = study_in(declared, results or Path("results"), name, imports=not parts)
    elif name is not None or results is not None:
        option = "--name" if name is not None else "--results"
        raise InputError(option, "is for a declared study (YAML)", "leave it out: the folder has its place")
    else:
        folder = study_of(declared, imports=not parts)
        if not parts and is_file(folder.origin) and read_text(folder.origin) != folder.text:
            text = f"{folder.origin} has changed since; this completes the study as it was run"
            text = f"{text} (`batwatt study {folder.origin}` takes the changes)"
            print(f"batwatt: {message(text)}", file=sys.stderr)
    if status:
        _show_status(folder)
    elif clean:
        _clean(folder)
    elif page:
        _write_page(folder.store.folder, kinds)
    else:
        return _run(folder, only or [], jobs, dask, kinds)
    return 0


def _run(folder: StudyFolder, only: list[str], jobs: int | None, dask: str | None, kinds: list[str]) -> int:
    """Run a study, print its state, write its page, and return the exit code. Raises InputError."""
    from batwatt.studies.study import carry_out

    with progress() as report:
        states = carry_out(folder, only, report, jobs=jobs, dask=dask)
    _print_states(states)
    place = folder.store.folder
    if not states:
        tell("nothing was run: every comparison misses a file")
        return 0
    below(f"table: {printable(place / 'table.parquet')}")
    _write_page(place, kinds)
    failed = sum(counts["failed"] for comparison, counts in states.items() if not only or comparison in only)
    if failed:
        text = f"batwatt: {failed} runs failed: see the column `error` of the table, or {place / 'study.log'}"
        print(printable(text), file=sys.stderr)
        return 1
    return 0


def _write_page(results: Path, kinds: list[str]) -> None:
    # pandas and matplotlib take as long to import as all the rest
    from batwatt.report.page import write_report

    path, *_ = write_report(results, kinds)
    below(f"page: {printable(path)}")


def _show_status(folder: StudyFolder) -> None:
    _print_states(folder.states())
    # the runs of a comparison without its files are not known
    stale = 0 if folder.missing else len(folder.stale())
    if stale:
        place = folder.store.folder
        note(printable(f"{stale} stale runs (no longer declared, or of other inputs or code): "
                       f"batwatt study {place} --clean"))  # fmt: skip


def _clean(folder: StudyFolder) -> None:
    """Remove stale runs; list the folders that killed processes left."""
    with folder.store.locked():
        stale = folder.stale()
        folder.store.remove(stale)
    tell(f"{len(stale)} stale runs removed")
    for hidden in folder.store.unfinished():
        note(printable(f"{hidden}: left by a process that was killed; remove it if none writes there"))


def _print_states(states: States) -> None:
    from batwatt.results.tables import TableColumn

    records = [{"comparison": comparison, **counts} for comparison, counts in states.items()]
    keys = ("comparison", "done", "failed", "missing")
    show_table([TableColumn(key, key, [str(record[key]) for record in records]) for key in keys], records)
