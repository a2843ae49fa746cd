"""The commands of checkpoint planning: plan, prepare, follow, front."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batwatt.cli.inputs import Output, write_output
from batwatt.cli.printing import show_table, tabular
from batwatt.cli.shared import Picture, json_text, numbers_of, one_of
from batwatt.errors import InputError

if TYPE_CHECKING:
    from batwatt.systems.checkpoint.prepare import Cover, Objective
    from batwatt.systems.checkpoint.sequence import Method

checkpoint = typer.Typer(
    name="checkpoint",
    no_args_is_help=True,
    help="""Plan checkpoints for a number of processors that changes.

    [bold]Example:[/] batwatt checkpoint plan workloads/periods/period.json
    """,
    rich_markup_mode="rich",
)
InstanceFile = Annotated[Path, typer.Argument(metavar="INSTANCE", help="A period and its jobs (JSON).")]
SequenceFile = Annotated[Path, typer.Argument(metavar="SEQUENCE", help="Periods and the jobs of all of them (JSON).")]
MethodName = Annotated[
    str, typer.Option("--method", help="dp: the most goodput; subset-sum: the most processors at any cost.")
]
Refill = Annotated[bool, typer.Option("--refill", help="Jobs may work until others are checkpointed, and again.")]
Prepare = Annotated[
    str | None,
    typer.Option(
        "--prepare",
        help="Jobs to checkpoint before a change: cheapest, worst, expected or all.",
        show_default="cheapest; all for subset-sum",
    ),
]
Covers = Annotated[
    str, typer.Option("--cover", help="Processors that checkpoints must cover: k, or only those needed if k go.")
]


@checkpoint.command("plan")
def plan_command(
    instance: InstanceFile,
    method: MethodName = "dp",
    min_yield: Annotated[
        float, typer.Option("--min-yield", help="Least yield of every job at the end of the period, 0 to 1.")
    ] = 0.0,
    refill: Refill = False,
    output: Output = None,
    picture: Picture = None,
) -> None:
    """Plan one period: starts, stops, checkpoints and recoveries of jobs; print the plan and its goodput as JSON.

    [bold]Example:[/] batwatt checkpoint plan workloads/periods/period.json
    """
    from batwatt.systems.checkpoint.figures.charts import plot_plan
    from batwatt.systems.checkpoint.files import plan_json, read_instance
    from batwatt.systems.checkpoint.plans import plan_instance

    algorithm = _method(method, min_yield, refill)
    file = read_instance(instance)
    plan = plan_instance(file, instance, algorithm, min_yield, refill=refill)
    if picture is not None:
        plot_plan(plan, picture)
    write_output(json_text(plan_json(plan, file.names)), output)


@checkpoint.command("prepare")
def prepare_command(
    instance: InstanceFile,
    objective: Annotated[
        str, typer.Option("--objective", help="Of goodput: worst or expected; of cost: cheapest; or all.")
    ] = "cheapest",
    cover: Covers = "k",
    output: Output = None,
) -> None:
    """Choose the jobs to checkpoint before the number of processors changes by up to k, and print it as JSON.

    [bold]Example:[/]
    batwatt checkpoint prepare workloads/periods/change.json --objective worst
    """
    from batwatt.systems.checkpoint.files import read_running
    from batwatt.systems.checkpoint.plans import blaming
    from batwatt.systems.checkpoint.prepare import COVERS, OBJECTIVES, prepare

    wanted = one_of("--objective", "objective", objective, OBJECTIVES)
    covered = one_of("--cover", "cover", cover, COVERS)
    file = read_running(instance)
    period = file.instance
    with blaming(instance):
        choice = prepare(
            file.running,
            file.others,
            period.period_s,
            period.processors,
            file.k or 0,
            objective=wanted,
            platform=file.platform,
            cover=covered,
        )
    content = {
        "objective": choice.objective,
        "checkpoint": [name for text, name in file.names.items() if text in choice.ids],
        "cost_processor_s": choice.cost_processor_s,
        "value": choice.value,
        "exact": choice.exact,
        "outcomes": [{"processors": processors, "goodput": goodput} for processors, goodput in choice.outcomes],
    }
    write_output(json_text(content), output)


@checkpoint.command("follow")
def follow_command(
    sequence: SequenceFile,
    method: MethodName = "dp",
    prepare: Prepare = None,
    cover: Covers = "k",
    min_yield: Annotated[
        float, typer.Option("--min-yield", help="Work first for jobs whose yield would fall under it, 0 to 1.")
    ] = 0.0,
    refill: Refill = False,
    output: Output = None,
    picture: Picture = None,
) -> None:
    """Plan period after period without knowledge of the next change; print plans, goodput and yields as JSON.

    [bold]Example:[/]
    batwatt checkpoint follow workloads/periods/figure1.json
      --picture figure1.png
    """
    from batwatt.systems.checkpoint.figures.charts import plot_followed
    from batwatt.systems.checkpoint.files import followed_json, read_sequence
    from batwatt.systems.checkpoint.plans import blaming
    from batwatt.systems.checkpoint.sequence import follow

    algorithm = _method(method, min_yield, refill)
    objective, covered = _preparing(prepare, cover)
    file = read_sequence(sequence)
    with blaming(sequence, algorithm):
        result = follow(
            file.sequence, method=algorithm, objective=objective, min_yield=min_yield, cover=covered, refill=refill
        )
    if picture is not None:
        plot_followed(result, picture)
    write_output(json_text(followed_json(result, file.names)), output)


@checkpoint.command("front")
@tabular
def front_command(
    sequence: SequenceFile,
    min_yields: Annotated[
        str, typer.Option("--min-yields", help="Least yields to require, from 0 to 1, with commas.")
    ] = "0,0.25,0.5,0.75,1",
    prepare: Prepare = None,
    cover: Covers = "k",
) -> None:
    """Show the cost of fairness: goodput and least yield over all periods, for each required yield.

    [bold]Example:[/]
    batwatt checkpoint front workloads/periods/starving.json
      --min-yields 0,0.25,0.5
    """
    from batwatt.results.tables import Column
    from batwatt.systems.checkpoint.files import read_sequence
    from batwatt.systems.checkpoint.plans import blaming
    from batwatt.systems.checkpoint.sequence import follow

    objective, covered = _preparing(prepare, cover)
    targets = _targets(min_yields)
    file = read_sequence(sequence)
    with blaming(sequence):
        results = [
            (target, follow(file.sequence, objective=objective, min_yield=target, cover=covered)) for target in targets
        ]
    points = [
        {"asked": target, "goodput": each.goodput, "min_yield": each.min_yield, "yields": each.yields}
        for target, each in results
    ]
    records = [{**point, "mean_yield": _mean(each.yields)} for point, (_, each) in zip(points, results, strict=True)]
    columns = [Column("asked for", "asked", [f"{target:g}" for target, _ in results])]
    for head, key in (("goodput", "goodput"), ("least\nyield", "min_yield"), ("mean\nyield", "mean_yield")):
        columns.append(Column(head, key, [f"{record[key]:.4f}" for record in records]))
    show_table(columns, records, {"front": points})


def _mean(yields: Mapping[str, float]) -> float:
    return sum(yields.values()) / len(yields)


def _targets(text: str) -> list[float]:
    targets = numbers_of(text, ",")
    if not targets or not all(0.0 <= target <= 1.0 for target in targets):
        problem = f"{text!r} is not a list of numbers from 0 to 1"
        raise InputError("--min-yields", problem, "write for instance 0,0.25,0.5,0.75,1")
    return sorted(set(targets))


def _preparing(prepare: str | None, cover: str) -> tuple[Objective | None, Cover]:
    from batwatt.systems.checkpoint.prepare import COVERS, OBJECTIVES

    objective = None if prepare is None else one_of("--prepare", "way to prepare", prepare, OBJECTIVES)
    return objective, one_of("--cover", "cover", cover, COVERS)


def _method(name: str, min_yield: float, refill: bool) -> Method:
    """Return the method, if it has the other two options. Raises InputError."""
    from batwatt.systems.checkpoint.plans import check_method
    from batwatt.systems.checkpoint.sequence import METHODS

    method = one_of("--method", "method", name, METHODS)
    check_method(method, min_yield, refill, ("--min-yield", "--refill"))
    return method
