"""Runs: one simulation, and the inputs that runs and comparisons take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, cast

from batwatt.api.inputs import PathLike, Platform, WindowLike, Workload
from batwatt.api.series import series_or
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.errors import InputError
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.jobs import SECONDS, TimeUnit
from batwatt.inputs.platform_files import HostChoice, platform_of
from batwatt.model import platform as platforms
from batwatt.model import workload as workloads
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.model.workload import LONG_S
from batwatt.run.arguments import (
    checked,
    flag,
    function_or_none,
    one_of,
    optional,
    options_of,
    path_or,
    positive,
    several,
    window_of,
)
from batwatt.run.prepared import PreparedRun
from batwatt.run.result import Result
from batwatt.run.run import Progress, perform
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.model.timeline import Timeline

PlatformLike = PathLike | platforms.Platform | MachineSpec
WorkloadLike = Union[PathLike, workloads.Workload, "pd.DataFrame"]
SeriesLike = Union[
    PathLike, float, Timeline, "pd.Series[Any]", "pd.DataFrame", Mapping[Any, float], Sequence[tuple[Any, float]]
]


def _scheduler(name: str, value: Any) -> Any:
    """Return a name or a class; a path becomes a name."""
    return str(value) if isinstance(value, str | Path) else value


def plugins_of(name: str, value: Any) -> tuple[Path, ...]:
    """Return the paths of one file or of several. Raises InputError."""
    return tuple(several(name, [value] if isinstance(value, str | Path) else value, path_or, "a list of files"))


@checked(
    scheduler=_scheduler,
    options=options_of,
    window=window_of,
    events=optional(path_or),
    energy=optional(flag),
    delays_to_flops=optional(flag),
    ignore_communication=flag,
    unit=one_of(SECONDS),
    long_s=positive,
    plugins=plugins_of,
    progress=function_or_none,
)
def simulate(
    platform: PlatformLike,
    workload: WorkloadLike,
    scheduler: Any = "powercap",
    *,
    options: Mapping[str, Any] | None = None,
    envelope: SeriesLike | None = None,
    capacity: SeriesLike | None = None,
    carbon: SeriesLike | None = None,
    price: SeriesLike | None = None,
    window: WindowLike | None = None,
    begin: str | None = None,
    events: PathLike | None = None,
    energy: bool | None = None,
    delays_to_flops: bool | None = None,
    ignore_communication: bool = False,
    unit: TimeUnit = "s",
    long_s: float = LONG_S,
    plugins: Sequence[PathLike] = (),
    progress: Progress | None = None,
) -> Result:
    """Run a scheduler on a workload in this process, without files.

    Args:
        platform: A SimGrid platform file, a `Platform`, or a `MachineSpec`.
        workload: A Batsim workload (.json), a trace of jobs (.csv, .swf, .txt) with times in `unit`, or a `Workload`.
        scheduler: A name (`batwatt policies`), a .py file, or a class derived from pybatsim's `BatsimScheduler`.
        options: The scheduler's options, with the `seed` of one that draws random numbers.
        envelope: Power cap over time: a CSV file, a text such as `power:solar.csv,peak_w=5e4`, a signal of
            `read_signal`, a `Series`, a table of times and one column or a series of pandas (by date or s), a dict of
            values by time, (time, value) pairs, or a number; in its own unit, without one in W.
        capacity: Machines alive over time: a file, a text such as `walk:range=0.6`, or a series as for `envelope`.
        carbon: Carbon intensity: a file, a text such as `nl.csv,from=2024-07-01,repeat=yes`, or a series as for
            `envelope`; in its own unit, without one in g/kWh. The scheduler `carbon` plans by it; the carbon of any
            run is measured by it.
        price: Price of energy, as for `carbon`; without a unit per kWh.
        window: Begin and end in s of the measured time, and of the part of a trace.
        begin: Date of 0 s, as 2024-07-01T13:00Z; of a trace without dates also a number of s of its times. Default: the
            first submission of a trace; its date, else that of the first row of the series by date.
        events: Batsim's external events.
        energy: Account for energy. Default: if the platform has watts.
        delays_to_flops: Run delays as the work of their time at full speed, for which slower hosts need longer.
            Default: those of traces, if the platform has several speeds or there is an envelope.
        ignore_communication: Run profiles of a .json workload that communicate as if their `com` were 0.
        unit: Unit of the times of a trace: s or h.
        long_s: Jobs longer than this, in s, are long.
        plugins: Files that register parts.
        progress: Function of the simulated time in s and the number of ended jobs.

    Returns:
        A `Result`.

    Raises:
        batwatt.errors.BatwattError: One line with the problem, its place, and a hint; a `DeadlockError` if jobs wait
            that no event will start.
    """
    # types after the checks
    cut, files, event_file = cast(Window | None, window), cast(Any, plugins), cast(Any, events)
    load = workload_arg(workload, cut)
    if isinstance(load, workloads.Workload) and load.recorded and cut is not None:
        refuse_uncut(job for job in load.jobs if job.submit_time_s > cut.end_s)
    spec = RunSpec(
        platform=platform_arg(platform),
        workloads=(load,),
        scheduler=scheduler,
        options=dict(options or {}),
        window=cut,
        length_unit=unit,
        log=LogOptions(begin=begin),
        envelope=series_or("envelope", envelope),
        capacity=series_or("capacity", capacity),
        carbon=series_or("carbon", carbon),
        price=series_or("price", price),
        events=event_file,
        long_s=long_s,
        delays_to_flops=delays_to_flops,
        ignore_communication=ignore_communication,
        config=EngineConfig(energy=energy),
        plugins=files,
    )
    result = perform(PreparedRun.of(spec), progress)
    if result.deadlock is not None:
        raise result.deadlock
    result.warn()
    return result


def platform_and_spec(value: PlatformLike) -> tuple[Any, platforms.Platform]:
    """Return a platform for `simulate`, read once, and its hosts. Raises InputError."""
    source = platform_arg(value)
    hosts = platform_of(source, HostChoice())
    return source if isinstance(source, MachineSpec) else hosts, hosts


def workload_arg(value: WorkloadLike, window: Window | None = None) -> Path | workloads.Workload:
    """Return a workload for a run; a table of pandas becomes one, cut to the window. Raises InputError."""
    if hasattr(value, "to_dict"):
        # only tables have it; `from_frame` refuses those that are not of pandas
        return Workload.from_frame(cast(Any, value), window=None if window is None else (window.begin_s, window.end_s))
    source: Path | workloads.Workload = path_or("workload", value, workloads.Workload)
    return source


def refuse_uncut(outside: Iterable[workloads.JobSpec]) -> None:
    """Raise InputError for the first job of a workload that is outside of the window of a run."""
    for job in outside:
        problem = f"is not cut to the window: job {job.name!r} is submitted at {job.submit_time_s:g} s"
        raise InputError("workload", problem, "give the window to Workload.read or from_frame, too")


def platform_arg(value: PlatformLike) -> Path | MachineSpec | platforms.Platform:
    """Return a platform for a run. Raises InputError."""
    if isinstance(value, Platform) and value.spec is not None and value.hosts == machines_platform(value.spec).hosts:
        return value.spec
    return path_or("platform", value, MachineSpec, platforms.Platform)
