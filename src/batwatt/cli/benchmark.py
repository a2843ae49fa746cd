"""The command `benchmark`: the score of a policy on frozen cells, entries, and their table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.options import OptionTexts, Prefix, complete_scheduler
from batwatt.cli.printing import below, counting_bar, note, show_table, tabular
from batwatt.errors import InputError, printable
from batwatt.files import check_place

_option = typer.Option


@tabular
def benchmark_command(
    *,
    policy: Annotated[Path | None, typer.Argument(help="File of a scheduler; with -s, of parts of one.")] = None,
    scheduler: Annotated[
        str | None, _option("-s", "--scheduler", help="Scheduler by name.", autocompletion=complete_scheduler)
    ] = None,
    options: OptionTexts = None,
    cells: Annotated[str, _option("--cells", help="Cells or logs: google/sun-50,site.", show_default="all")] = "",
    jobs: Annotated[int, _option("-j", "--jobs", min=1, help="Processes.")] = 1,
    export: Prefix = Path("out/benchmark"),
    check: Annotated[
        Path | None, _option("--check", help="Entry to run again, as it is: no figure may differ.")
    ] = None,
) -> None:
    """Score a policy on the frozen cells of the benchmark, job logs x limits of power, against EASY without a limit.

    Writes the entry EXPORT_POLICY.json. Without POLICY and -s the references run. Rules: docs/reference/benchmark.md.

    [bold]Example:[/]
    batwatt benchmark my_policy.py --cells google/sun-50
    """
    from batwatt.api.benchmark import COUNTS, MEANS, Entry, cells_of, entry_of, references, run_entries
    from batwatt.results.figures import figures_of
    from batwatt.results.tables import TableColumn, columns_of, records_of
    from batwatt.run.arguments import options_from

    check_place(export, "--export")
    if check is not None and (scheduler or cells or options):
        raise InputError("--check", "runs the entry's own scheduler, options and cells", "leave out -s, -o and --cells")
    names = cells_of([name.strip() for name in cells.split(",") if name.strip()])
    old = None if check is None else Entry.read(check)
    settings = options_from(options or (), "--option")
    entries = [entry_of(policy, scheduler, settings, old)] if policy or scheduler or old else references()
    # without a thread of its own: processes are forked from this one
    with counting_bar("cells", alone=False) as bar:
        task = bar.add_task("benchmark", total=None)
        results = run_entries(
            entries, names if old is None else list(old.cells), jobs, partial(bar.update, task, refresh=True)
        )
    rows: list[dict[str, Any]] = []
    key = "cell" if len(results) == 1 else "entry"
    for result in results:
        records = records_of(result.records())
        rows += records if key == "cell" else [{"entry": result.label, **records[-1]}]
        if not result.ranked:
            share, cell = result.most_above
            problem = f"{share:.1%} of its energy in {cell} is above the limit"
            hint = "let it follow the limit, as with the option response"
            note(f"not ranked: {printable(result.label)}: {problem}; {hint}")
    figures = figures_of(("score", "score_se", *COUNTS, *MEANS))
    show_table([TableColumn(key, key, [row[key] for row in rows]), *columns_of(figures, rows)], rows)
    if old is not None:
        old.refuse_difference(results[0])
        note(f"{printable(check)}: reproduced")
        return
    paths = []
    for result in results:
        words = "".join(letter if letter.isalnum() else "-" for letter in result.label.lower())
        paths.append(export.with_name(f"{export.name}_{words}.json"))
        result.write(paths[-1])
    below(f"files: {', '.join(printable(path) for path in paths)}")
