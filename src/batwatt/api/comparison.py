"""Cases on the same jobs and the same power, measured alike: finished jobs, waits, energy.

Every case is measured against the same envelope, also if it follows another limit: `violations`, `energy_above_cap_j`
and `unused_j`, too. Columns are figures by their names (`batwatt.results.figures`). Hosts that power feeds are those
of a machine x the machines that it feeds (`batwatt.model.platform`). Cases do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from batwatt.api.comparison_result import Comparison
from batwatt.api.inputs import PathLike, WindowLike, Workload
from batwatt.api.series import series_or
from batwatt.api.simulation import (
    PlatformLike,
    SeriesLike,
    WorkloadLike,
    platform_and_spec,
    plugins_of,
    refuse_uncut,
    workload_arg,
)
from batwatt.errors import InputError, collected_remarks, tell_before_work
from batwatt.files import refuse_folder
from batwatt.inputs.batch_logs import USUAL, LogOptions
from batwatt.inputs.jobs import SECONDS, TimeUnit
from batwatt.model import workload as workloads
from batwatt.model.platform import MachinePower, Platform
from batwatt.model.signal import Window
from batwatt.model.timeline import least_of
from batwatt.results.compared import COMPARED
from batwatt.results.outcomes import JobOutcomes
from batwatt.run.arguments import (
    checked,
    flag,
    function_or_none,
    one_of,
    optional,
    path_or,
    seed_of,
    several,
    text,
    whole,
    window_of,
    workers_of,
)
from batwatt.run.find_scheduler import load_plugins
from batwatt.run.prepared import PreparedRun
from batwatt.run.spec import RunSpec
from batwatt.studies.cases import PRESET, SYSTEMS, Case, cases_of
from batwatt.studies.cells import CellOutcome
from batwatt.studies.comparison import ComparedRuns, RunTask, Sample, samples_of
from batwatt.studies.executors import cpu_count

if TYPE_CHECKING:
    import pandas as pd

MOST_SAMPLES = 1000
CasesLike = str | Sequence[str | type | Case] | Mapping[str, str | type | Case]


def _seeds_of(name: str, value: Any) -> list[int]:
    seeds = several(name, value, seed_of, "a list of whole numbers")
    if len(set(seeds)) < len(seeds):
        raise InputError(name, "has a seed twice", "a run that counts twice makes errors too small")
    return seeds


@checked(
    cases=lambda name, value: cases_of(value, name),
    carbon=partial(series_or, quantity="carbon"),
    price=partial(series_or, quantity="price"),
    window=window_of,
    samples=partial(whole, low=1, high=MOST_SAMPLES),
    unit=one_of(SECONDS),
    delays_to_flops=optional(flag),
    ignore_communication=flag,
    seeds=_seeds_of,
    workers=optional(workers_of),
    lenient=optional(partial(several, one=text)),
    plugins=plugins_of,
    keep=optional(path_or),
    folder=optional(path_or),
    dask=optional(text),
    progress=function_or_none,
    on_case=function_or_none,
)
def compare(
    platform: PlatformLike,
    workload: WorkloadLike,
    envelope: SeriesLike | None = None,
    cases: CasesLike = PRESET,
    *,
    capacity: SeriesLike | None = None,
    carbon: SeriesLike | None = None,
    price: SeriesLike | None = None,
    window: WindowLike | None = None,
    samples: int = 1,
    begin: str | None = None,
    unit: TimeUnit = "s",
    delays_to_flops: bool | None = None,
    ignore_communication: bool = False,
    seeds: Sequence[int] = (0,),
    workers: int | None = 1,
    lenient: Collection[str] | None = None,
    plugins: Sequence[PathLike] = (),
    keep: PathLike | None = None,
    folder: PathLike | None = None,
    dask: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    on_case: Callable[[str, Callable[[], Comparison]], None] | None = None,
) -> Comparison:
    """Run cases, settings of one scheduler or several schedulers, on the same jobs under the same power.

    Args:
        platform: As for `simulate`; its hosts need watts.
        workload: As for `simulate`. A trace of jobs suits all systems: `checkpoint` cannot run jobs in flops.
        envelope: Power in W over time, as for `simulate`. Presets need it or a capacity.
        cases: Texts such as `varcap termination=lww`, classes, or a dict of these or of `Case` by label; `systems` is
            the best known setting of each system. The first case is the reference of differences.
        capacity: Machines alive over time, as for `simulate`: their power is an envelope, too.
        carbon: Carbon intensity in g/kWh, as for `simulate`; the scheduler `carbon` is left out of presets without it
            and a price.
        price: Price per kWh, as for `simulate`.
        window: Begin and end in s of the jobs that are taken of a trace. They run to their ends.
        samples: Number of windows of equal length that the jobs are cut into. Each is a run of its own, which begins
            with empty hosts; figures are means over them, and differences have paired standard errors.
        begin: Date of 0 s, as for `simulate`.
        unit: Unit of the times of a trace: s or h.
        delays_to_flops: As for `simulate`.
        ignore_communication: As for `simulate`.
        seeds: Of schedulers that have an option `seed`; others run once, and their figures count for all.
        workers: Processes. None: as many as cores.
        lenient: Labels of cases that are left out if they cannot run, and named in `errors`. Default: all of a preset.
        plugins: Files that register parts.
        keep: Prefix of the files of `batwatt run`, which each run writes under KEEP-LABEL as it ends. Default: none are
            written.
        folder: Folder that keeps the runs that have ended: the same call runs the others only. At the end it has those
            of this call alone. Default: runs are in memory only. A scheduler that is a class runs again unless its
            file has all of its code.
        dask: Address of a Dask cluster that runs the cases instead of processes of this machine.
        progress: Function of the numbers of ended and of all runs.
        on_case: Function that is called as each case ends, with its label and a function without arguments: the latter
            returns the `Comparison` of the cases that have ended, for instance to save it.

    Returns:
        A `Comparison`.

    Raises:
        batwatt.errors.InputError: Bad input.
    """
    # a default is not checked
    cases = cast(Mapping[str, Case], SYSTEMS if cases == PRESET else cases)
    if lenient is None:
        lenient = [label for label, case in cases.items() if case is SYSTEMS.get(label)]
    if not cases or not seeds:
        raise InputError("compare", "has no cases" if not cases else "has no seeds", "give at least one")
    load_plugins(cast(Any, plugins))
    source, hosts = platform_and_spec(platform)
    cut = cast(Window | None, window)
    with collected_remarks() as remarks:
        jobs = _jobs_of(workload, cut, begin, unit, samples > 1, ignore_communication)
        log = USUAL if isinstance(workload, str | Path) else LogOptions(begin=begin)
        limits = {"envelope": series_or("envelope", envelope), "capacity": series_or("capacity", capacity)}
        if lenient and limits == {"envelope": None, "capacity": None}:
            # most cases of a preset would be left out
            raise InputError("envelope, capacity", "are missing", "give one of them, as cases of the preset need it")
        whole_sample = sample_read(hosts, jobs, log, **limits, carbon=carbon, price=price)
    bounds = None if cut is None else (cut.begin_s, cut.end_s)
    parts = samples_of(whole_sample, bounds, samples)
    place = cast(Path | None, folder)
    runs = ComparedRuns(source, hosts, parts, cases, seeds, cast(Path | None, keep), delays_to_flops, place)
    if runs.keep is not None:
        refuse_folder(runs.keep, "keep")
    runs.check(lenient or ())
    tell_before_work()
    notes = (*whole_sample.workload.remarks, *remarks)

    def report(task: RunTask, ended: Mapping[RunTask, CellOutcome]) -> None:
        if progress is not None:
            progress(len(ended), len(runs.tasks))
        if on_case is not None and all(other in ended for other in runs.tasks if other.case == task.case):
            on_case(task.case, partial(_so_far, runs, dict(ended), notes))

    processes = cpu_count() if workers is None else workers
    results, errors = runs.carry_out(report, workers=processes, dask=dask, lenient=lenient or ())
    return _comparison(runs, results, errors, notes)


def _so_far(runs: ComparedRuns, ended: Mapping[RunTask, CellOutcome], remarks: Sequence[str]) -> Comparison:
    """Return the comparison of the cases all of whose runs have ended well. Raises InputError if there is none."""
    errors = {task.case: outcome.error or "" for task, outcome in ended.items() if outcome.status != "done"}
    errors |= {task.case: "its runs have not all ended" for task in runs.tasks if task not in ended}
    results = {task: outcome for task, outcome in ended.items() if task.case not in errors}
    if not results:
        raise InputError("comparison", "no case has ended", "wait for the first one")
    # in the order of the cases, as the first one is the reference
    return _comparison(runs, {task: results[task] for task in runs.tasks if task in results}, errors, remarks)


def _jobs_of(
    value: WorkloadLike, window: Window | None, begin: str | None, unit: TimeUnit, cut: bool, silent: bool
) -> workloads.Workload:
    """Return the jobs of the window; of a workload in memory all, if samples `cut` it later. Raises InputError."""
    workload = workload_arg(value, window)
    bounds = None if window is None else (window.begin_s, window.end_s)
    if not isinstance(workload, workloads.Workload):
        return Workload.read(workload, unit=unit, window=bounds, ignore_communication=silent, begin=begin)
    if window is not None and not cut:
        refuse_uncut(job for job in workload.jobs if not window.begin_s <= job.submit_time_s <= window.end_s)
    return workload


def sample_read(hosts: Platform, workload: workloads.Workload, log: LogOptions, **series: Any) -> Sample:
    """Return all jobs with the power and the signals, on one clock. Raises InputError."""
    # without a scheduler, as each run reports the inputs that the engine ignores
    spec = RunSpec(platform=hosts, workloads=(workload,), scheduler=None, log=log, delays_to_flops=False, **series)
    read = PreparedRun.read(spec)
    caps = [] if read.envelope is None else [read.envelope]
    if read.capacity is not None:
        caps.append(MachinePower.of(hosts).drawn_by(read.capacity))
    cap = reduce(least_of, caps) if caps else None
    if read.clock is not None:
        workload = replace(workload, begin=read.clock.date)
        cap = cap and replace(cap, date_s=read.clock.date_s)
    # over all rows of the power, and at least until the last submission
    length_s = max(cap.end_s if cap else 0.0, workload.last_submission_s)
    return Sample(workload, cap, {"carbon_g": read.carbon, "cost": read.price}, length_s)


def _comparison(
    runs: ComparedRuns, results: Mapping[RunTask, CellOutcome], errors: Mapping[str, str], remarks: Sequence[str]
) -> Comparison:
    """Return the comparison of the runs that have not failed."""
    import pandas as pd

    first_seed, sample = runs.seeds[0], runs.samples[0]
    rows = []
    for label, case in runs.cases.items():
        for window, seed in product(range(1, len(runs.samples) + 1), runs.seeds):
            task = RunTask(label, window, seed if case.draws else first_seed)
            if task in results:
                about = {"case": label, "scheduler": case.name, "window": window, "seed": seed}
                rows.append(about | {name: results[task].figures.get(name) for name in COMPARED})
    of_first_seed = {task: run for task, run in results.items() if task.seed == first_seed}
    rejections: dict[str, dict[str, int]] = {}
    for task, run in of_first_seed.items():
        counts = rejections.setdefault(task.case, {})
        for cause, count in (run.rejections or {}).items():
            counts[cause] = counts.get(cause, 0) + count
    price = sample.signals["cost"]
    return Comparison(
        table=pd.DataFrame(rows).dropna(axis="columns", how="all"),
        jobs=_job_table(runs, of_first_seed),
        errors=errors,
        cases={label: case.facts for label, case in runs.cases.items()},
        traces={task.case: run.trace for task, run in of_first_seed.items() if task.window == 1 and run.trace},
        envelope=sample.cap,
        machines=runs.power,
        assumed_w=runs.assumed_w,
        workload=sample.workload.source,
        remarks=(*remarks, *runs.notes_of(of_first_seed)),
        rejections={label: counts for label, counts in rejections.items() if counts},
        currency=price.currency if price is not None else "",
    )


def _job_table(runs: ComparedRuns, measured: Mapping[RunTask, CellOutcome]) -> pd.DataFrame:
    """Return a row for each case, window and job, with its differences to the first case."""
    import pandas as pd

    parts = []
    references: dict[int, JobOutcomes] = {}
    for task, run in measured.items():
        window, outcomes = task.window, run.jobs
        assert outcomes is not None
        jobs = runs.samples[window - 1].workload.jobs
        labels = {name: [job.raw.get(name) for job in jobs] for name in workloads.LABELS}
        named = {name: values for name, values in labels.items() if any(value is not None for value in values)}
        reference = references.setdefault(window, outcomes)
        columns = {
            "case": task.case,
            "window": window,
            "job_id": [job.name for job in jobs],
            **named,
            "hosts": outcomes.hosts.astype(np.int64),
            "submission_time_s": outcomes.submit_s,
            "length_s": outcomes.length_s,
            "state": outcomes.state,
            "cause": outcomes.cause,
            "attempts": outcomes.attempts.astype(np.int64),
            "wait_s": outcomes.wait_s,
            "full_speed_slowdown": outcomes.full_speed_slowdown,
            "energy_j": outcomes.energy_j,
            "wait_more_s": outcomes.wait_s - reference.wait_s,
            "full_speed_slowdown_more": outcomes.full_speed_slowdown - reference.full_speed_slowdown,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)
