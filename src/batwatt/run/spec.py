"""The description of a run before anything is read, for Python, the command line and studies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from batwatt.inputs.platform_files import HostChoice
from batwatt.model.workload import LONG_S

if TYPE_CHECKING:
    from batwatt.batsim.batsim4 import EngineConfig
    from batwatt.inputs.batch_logs import LogOptions
    from batwatt.inputs.jobs import TimeUnit
    from batwatt.inputs.spec import Quantity, SeriesSpec
    from batwatt.model.platform import MachineSpec, Platform
    from batwatt.model.signal import Window
    from batwatt.model.timeline import Timeline
    from batwatt.model.workload import Workload

EngineName = Literal["embedded", "wire", "batsim"]
Follow = Literal["envelope", "mean", "none"]
"""Part of the envelope that a scheduler follows: all, its mean, or nothing."""
SERIES: Mapping[str, Quantity] = {"envelope": "power", "capacity": "machines", "carbon": "carbon", "price": "price"}
"""Field of `RunSpec` -> quantity of its series."""
_SECOND_NAMES = {"slurm": "multifactor"}


def own_name(scheduler: Any) -> Any:
    """Return a scheduler; for the second name of one of ours, its own."""
    return _SECOND_NAMES.get(scheduler, scheduler) if isinstance(scheduler, str) else scheduler


def _input(help: str, **default: Any) -> Any:
    """Return a field with its help, which is also the help of an option of the command line."""
    return field(metadata={"help": help}, **default)


def _usual_log() -> LogOptions:
    # imported here, as numpy loads slowly
    from batwatt.inputs.batch_logs import USUAL

    return USUAL


def _usual_config() -> EngineConfig:
    # imported here, as help needs no engine
    from batwatt.batsim.batsim4 import EngineConfig

    return EngineConfig()


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that determines a run: inputs, a scheduler with its options, an engine, and the place of its files.

    Inputs are files, texts that describe series, or objects of the model; the scheduler is a name, a file, a class, or
    None for figures of a run that is over. Only the embedded engine takes objects and classes. `plugins` are files that
    register parts. The constructor parses texts; `batwatt.run.prepared` reads files. Raises InputError.
    """

    platform: Path | MachineSpec | Platform = _input(
        "Platform of SimGrid (.xml 4.1); keys after the name: master=HOST, mmax=N, mmax_workload=yes."
    )
    workloads: tuple[Path | Workload, ...] = _input(
        "Jobs: .json (Batsim; repeatable), .swf, .sacct, .csv, .parquet or .txt; keys after the name: unit=h, "
        "tz=ZONE, width=nodes, fields=..."
    )
    scheduler: Any = "powercap"
    options: Mapping[str, Any] = field(default_factory=dict)
    envelope: SeriesSpec | Timeline | None = _input(
        "Limit of power over time: constant:W, FILE.csv (time_s,power_w), power:FILE,peak_w=50000 + battery:..., or "
        "carbon:FILE,budget=...",
        default=None,
    )
    follow: Follow = "envelope"
    """Part of the envelope that the scheduler follows; figures are against all of it."""
    capacity: SeriesSpec | Timeline | None = _input(
        "Machines in service over time: FILE.csv (time_s,machines), constant:mean=0.5, walk:range=0.6,seed=1, "
        "uniform:..., carbon:FILE,budget=... or price:FILE,...",
        default=None,
    )
    carbon: SeriesSpec | Timeline | None = _input(
        "Carbon intensity, g/kWh: FILE.csv with its keys, as in nl.csv,from=2024-07-01,repeat=yes.", default=None
    )
    price: SeriesSpec | Timeline | None = _input(
        "Price of energy, per kWh or in EUR/MWh: FILE.csv with its keys.", default=None
    )
    events: Path | None = _input("External events of Batsim, one JSON object a line.", default=None)
    hosts: HostChoice = _input("Hosts of a platform file that run jobs.", default=HostChoice())
    window: Window | None = _input("Run only the jobs of this window of the workload, s; measure there.", default=None)
    length_unit: TimeUnit = _input("Unit of the times of a CSV workload: s, min or h.", default="s")
    log: LogOptions = _input("Time that is 0 s, and columns of a log.", default_factory=_usual_log)
    long_s: float = _input("Length in s above which jobs are long, also in figures by class.", default=LONG_S)
    delays_to_flops: bool | Literal["nominal"] | None = _input(
        "Run delays as the work of their time at full speed, which takes longer on slower hosts.", default=None
    )
    """"nominal": at the initial speed of the first host. None: only delays of a trace, if the platform has several
    speeds or the run is under power."""
    ignore_communication: bool = _input("Run profiles that communicate as if `com` were 0.", default=False)
    engine: EngineName = "embedded"
    config: EngineConfig = field(default_factory=_usual_config)
    batsim: str = "batsim"
    batsim_args: Sequence[str] = ()
    patience_s: float | None = 300.0
    plugins: tuple[Path, ...] = ()
    prefix: Path = Path("out/batwatt")

    def __post_init__(self) -> None:
        if not 0.0 < self.long_s < math.inf:
            raise ValueError(f"long_s must be > 0 s and finite, got {self.long_s!r}")
        object.__setattr__(self, "scheduler", own_name(self.scheduler))
        for name, quantity in SERIES.items():
            text = getattr(self, name)
            if isinstance(text, str | Path):
                # imported here, as numpy loads slowly
                from batwatt.inputs.spec import parse_series

                object.__setattr__(self, name, parse_series(quantity, text))

    @property
    def scheduler_name(self) -> str:
        """Name of the scheduler, or of its class."""
        return self.scheduler if isinstance(self.scheduler, str) else str(self.scheduler.__name__)

    @property
    def until_s(self) -> float | None:
        """End of a run in s: 1 s after its window, so that jobs killed at the window's end differ from running ones."""
        return None if self.window is None else self.window.end_s + 1.0
