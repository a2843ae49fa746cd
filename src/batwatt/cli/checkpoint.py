"""The commands of checkpoint planning: plan, prepare, follow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batwatt.cli.inputs import Output, write_output
from batwatt.cli.options import one_of
from batwatt.cli.printing import json_text
from batwatt.errors import InputError

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
    output: Output = None,
) -> None:
    """Plan one period: starts, stops, checkpoints and recoveries of jobs; print the plan and its goodput as JSON.

    [bold]Example:[/] batwatt checkpoint plan workloads/periods/period.json
    """
    from batwatt.schedulers.checkpoint.files import plan_instance, plan_json, read_instance
    from batwatt.schedulers.checkpoint.sequence import METHODS

    algorithm = one_of("--method", "method", method, METHODS)
    file = read_instance(instance)
    plan = plan_instance(file, instance, algorithm)
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
    from batwatt.schedulers.checkpoint.files import naming_input, read_running
    from batwatt.schedulers.checkpoint.sequence import COVERS, OBJECTIVES, prepare

    wanted = one_of("--objective", "objective", objective, OBJECTIVES)
    covered = one_of("--cover", "cover", cover, COVERS)
    file = read_running(instance)
    period = file.instance
    with naming_input(instance):
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
        float,
        typer.Option("--min-yield", min=0.0, max=1.0, help="Work first for jobs whose yield would fall under it."),
    ] = 0.0,
    output: Output = None,
) -> None:
    """Plan period after period without knowledge of the next change; print plans, goodput and yields as JSON.

    [bold]Example:[/]
    batwatt checkpoint follow workloads/periods/figure1.json --min-yield 0.2
    """
    from batwatt.schedulers.checkpoint.files import followed_json, naming_input, read_sequence
    from batwatt.schedulers.checkpoint.sequence import COVERS, METHODS, OBJECTIVES, follow

    algorithm = one_of("--method", "method", method, METHODS)
    if min_yield > 0.0 and algorithm == "subset-sum":
        raise InputError("--min-yield", "is for the method dp", "leave it out, or take that method")
    objective = None if prepare is None else one_of("--prepare", "way to prepare", prepare, OBJECTIVES)
    covered = one_of("--cover", "cover", cover, COVERS)
    periods, names = read_sequence(sequence)
    with naming_input(sequence):
        result = follow(periods, method=algorithm, objective=objective, min_yield=min_yield, cover=covered)
    write_output(json_text(followed_json(result, names)), output)
