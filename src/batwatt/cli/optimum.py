"""The command `optimum`: the best schedule for a known envelope and known jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.options import PlatformFile, without_none
from batwatt.cli.printing import below, progress_bar, tabular
from batwatt.cli.results import print_summary
from batwatt.errors import printable

if TYPE_CHECKING:
    from batwatt.schedulers.planned.optimum import Stand

PER_CENT = 100.0


@tabular
def optimum(
    platform: PlatformFile,
    workload: Annotated[Path, typer.Option("-w", "--workload", help="Batsim workload (JSON).")],
    envelope: Annotated[Path, typer.Option("--envelope", help="Power envelope: CSV with columns time_s,power_w.")],
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Wall clock in s.", show_default="600")
    ] = None,
    effort: Annotated[
        int | None,
        typer.Option(
            "--effort", help="In place of a time limit: units of work (about 1 s each), the same result always."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the search.")] = 0,
    export: Annotated[Path, typer.Option("-e", "--export", help="Prefix of the output files.")] = Path("out/optimum"),
) -> None:
    """Plan with full knowledge of envelope and jobs: least mean slowdown without violation or kill, and a lower bound.

    The plan is replayed on the embedded engine. After an interrupt it goes on with the best plan so far.

    [bold]Example:[/]
    batwatt optimum -p platforms/small.xml -w workloads/small.json
      --envelope power_profiles/small.csv --time-limit 60 -e out/opt
    """
    from batwatt.inputs.spec import parse_series
    from batwatt.run.spec import RunSpec
    from batwatt.studies.optimum import run_optimum

    options = without_none({"time_limit_s": time_limit, "effort": effort, "seed": seed})
    cap = parse_series("power", envelope)
    spec = RunSpec(
        platform=platform, workloads=(workload,), scheduler="optimum", options=options, envelope=cap, prefix=export
    )
    with _progress() as report:
        result = run_optimum(spec, report)
    bounds, unavoidable = result.bounds, result.problem.raised
    about = {"prefix": str(export), **bounds, "unavoidable_violations": unavoidable}
    print_summary("optimum", result.values, about)
    proof = "proven optimal" if bounds["proven_optimal"] else "not proven optimal"
    below(f"lower bound {bounds['lower_bound']:.4f}, gap {PER_CENT * bounds['gap']:.2f} %: {proof}")
    if unavoidable:
        many = "violations" if unavoidable > 1 else "violation"
        below(f"{unavoidable} unavoidable {many}: the cap is too low even if all hosts sleep from 0 s on")
    below(f"files: {printable(export)}_plan.json, _*.csv, _metrics.json, _metadata.json")


@contextmanager
def _progress() -> Iterator[Any]:
    """Show a line on stderr with the best value, the bound and the time."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with progress_bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as bar:
        line = bar.add_task("reading", total=None)

        def report(stand: Stand) -> None:
            text = f"{stand.phase}: lower bound {stand.bound:.4f}"
            if stand.value is not None:
                gap = PER_CENT * max(0.0, stand.value - stand.bound) / stand.value
                text = f"{stand.phase}: mean slowdown {stand.value:.4f}, lower bound {stand.bound:.4f}, gap {gap:.1f} %"
            bar.update(line, description=text)

        yield report
