"""The commands that plan: `plan carbon` one job, `plan checkpoint` periods, `optimum` all jobs under an envelope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.options import (
    WATTS_HELP,
    PlatformFile,
    PriceText,
    input_option,
    number_of,
    one_of,
    price_of,
    refuse,
    watts_of,
    without_none,
)
from batwatt.cli.printing import Output, below, json_text, progress_bar, tabular, write_output
from batwatt.cli.results import print_summary
from batwatt.errors import InputError, printable
from batwatt.model.workload import MOST_CPUS

if TYPE_CHECKING:
    from batwatt.schedulers.planned.optimum import Stand

plan = typer.Typer(
    name="plan",
    no_args_is_help=True,
    help="""Plan one job for least carbon, or checkpoints.

    Example: batwatt plan checkpoint workloads/periods/period.json
    """,
    rich_markup_mode=None,
)


@plan.command("carbon")
def plan_carbon(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Start-up and work of the job, in phases (JSON).")],
    carbon: Annotated[str, input_option("carbon", metavar="SERIES")],
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="Latest end of the job: s of the series, or a date.")
    ],
    start: Annotated[
        str, typer.Option("--start", metavar="TIME", help="Earliest start of the job: s of the series, or a date.")
    ] = "0",
    price: PriceText = None,
    carbon_weight: Annotated[
        float | None, typer.Option("--carbon-weight", help="Weight of a g of carbon.", show_default="1")
    ] = None,
    price_weight: Annotated[
        float | None, typer.Option("--price-weight", help="Weight of a unit of money.", show_default="0")
    ] = None,
    slot_s: Annotated[
        float | None,
        typer.Option("--slot-s", metavar="S", help="Length of the slots of plans, s.", show_default="as they fit"),
    ] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Suspend jobs at their last checkpoint phase.")
    ] = False,
    cpus: Annotated[int, typer.Option("--cpus", help="Hosts of the job.", min=1, max=MOST_CPUS)] = 1,
    watts: Annotated[float | None, typer.Option("--watts", metavar="W", help=WATTS_HELP, show_default="1")] = None,
    output: Output = None,
) -> None:
    """Plan when one job runs so that it emits least carbon.

    The job may be suspended; each start-up counts. Prints the plan as JSON.

    Example:
    batwatt plan carbon workloads/carbon/job.json
      --carbon power_profiles/carbon/carbon-hourly.csv
      --start 2024-07-01T06:00 --deadline 2024-07-02T06:00
    """
    from batwatt.inputs.batsim_files import read_model
    from batwatt.inputs.series import seconds_of
    from batwatt.inputs.spec import parse_series
    from batwatt.schedulers.carbon.optimum import plan_job

    if price is None:
        refuse({"carbon_weight": carbon_weight, "price_weight": price_weight}, "is for a price", "give --price, too")
    weights = (
        number_of("--carbon-weight", 1.0 if carbon_weight is None else carbon_weight),
        number_of("--price-weight", price_weight or 0.0),
    )
    if slot_s is not None:
        number_of("--slot-s", slot_s, above=True)
    model = read_model(job, watts_of(watts))
    spec = parse_series("carbon", carbon)
    signal = spec.timeline()
    start_s, deadline_s = (
        seconds_of(option, text, signal, spec.sources[0])
        for option, text in (("--start", start), ("--deadline", deadline))
    )
    limits = {"slot_s": slot_s, "checkpoints": checkpoints}
    content = plan_job(model, signal, price_of(price, signal), weights, (start_s, deadline_s), cpus, limits)
    write_output(json_text(content), output)


@plan.command("checkpoint")
def plan_checkpoint(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Period with its jobs (JSON): with k before a change, with capacities a sequence of periods.",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="dp: most goodput; subset-sum: most processors at any cost.",
            show_default="dp",
        ),
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            "--prepare",
            metavar="NAME",
            help="Jobs to checkpoint before a change: cheapest, worst, expected or all.",
            show_default="cheapest; all for subset-sum",
        ),
    ] = None,
    cover: Annotated[
        str | None,
        typer.Option(
            "--cover",
            metavar="NAME",
            help="Processors that checkpoints before a change must cover: k, or those needed if k go.",
            show_default="k",
        ),
    ] = None,
    min_yield: Annotated[
        float | None,
        typer.Option(
            "--min-yield",
            min=0.0,
            max=1.0,
            help="Of a sequence: serve first the jobs whose yield would fall below this.",
            show_default="0",
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Plan checkpoints of jobs on processors that come and go.

    Of a period: starts, stops, checkpoints and recoveries of jobs. Before a change by up to k processors: the jobs to
    checkpoint. Of a sequence of periods: both, without knowledge of the next change. Prints the plan as JSON.

    Example:
    batwatt plan checkpoint workloads/periods/period.json
    batwatt plan checkpoint workloads/periods/change.json --prepare worst
    batwatt plan checkpoint workloads/periods/figure1.json --min-yield 0.2
    """
    from batwatt.schedulers.checkpoint.files import (
        InstanceData,
        followed_json,
        naming_input,
        plan_instance,
        plan_json,
        prepare_instance,
        prepared_json,
        read_periods,
    )
    from batwatt.schedulers.checkpoint.sequence import COVERS, METHODS, OBJECTIVES, follow

    algorithm = one_of("--method", "method", method or "dp", METHODS)
    objective = None if prepare is None else one_of("--prepare", "way to prepare", prepare, OBJECTIVES)
    covered = one_of("--cover", "cover", cover or "k", COVERS)
    periods = read_periods(file)
    if not isinstance(periods, InstanceData):
        if min_yield and algorithm == "subset-sum":
            raise InputError("--min-yield", "is for the method dp", "leave it out, or take that method")
        sequence, names = periods
        with naming_input(file):
            result = follow(sequence, method=algorithm, objective=objective, min_yield=min_yield or 0.0, cover=covered)
        content = followed_json(result, names)
    elif periods.k is not None:
        others = {"method": method, "min_yield": min_yield}
        refuse(others, f"is not for a period before a change, which {file} is (k)")
        content = prepared_json(prepare_instance(periods, file, objective or "cheapest", covered), periods.names)
    else:
        others = {"prepare": prepare, "cover": cover, "min_yield": min_yield}
        refuse(others, f"is not for one period, which {file} is (no k, no capacities)")
        content = plan_json(plan_instance(periods, file, algorithm), periods.names)
    write_output(json_text(content), output)


PER_CENT = 100.0


@tabular
def optimum(
    platform: PlatformFile,
    workload: Annotated[Path, typer.Option("-w", "--workload", metavar="JOBS", help="Jobs: .json (Batsim).")],
    envelope: Annotated[Path, typer.Option("--envelope", help="Limit of power over time: CSV with time_s,power_w.")],
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="S", help="Longest search, s of wall clock.", show_default="600"),
    ] = None,
    effort: Annotated[
        int | None,
        typer.Option("--effort", help="In place of a time limit: units of work of about 1 s; same result each time."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the search.")] = 0,
    export: Annotated[
        Path, typer.Option("-e", "--export", metavar="PREFIX", help="Prefix of the output files.")
    ] = Path("out/optimum"),
) -> None:
    """Plan all jobs under an envelope for least mean slowdown.

    Knows envelope and jobs in advance; the plan has no violation and no kill. Prints its figures and a lower bound.
    The plan is replayed on the embedded engine; an interrupt ends the search with the best plan so far.

    Example:
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
