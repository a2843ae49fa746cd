"""What determines a run, before anything is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from batwatt.engine.config import EngineConfig
from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import HostChoice, platform_of
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.envelope_spec import EnvelopeSpec
from batwatt.inputs.series.signal_spec import SignalSpec
from batwatt.inputs.traces.job_log import USUAL, LogOptions
from batwatt.inputs.traces.jobs_csv import TimeUnit
from batwatt.model.machines import MachineSpec
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.window import Window
from batwatt.model.workload import LONG_S, Workload

EngineName = Literal["embedded", "wire", "batsim"]


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a run. Paths are read when it starts; `options` are the scheduler's.

    Instead of a file there may be what was read or built of one; the scheduler may be a class, or an instance that has
    not run yet and has its options. Only an engine in this process takes these.

    A workload that is not JSON is a trace of jobs, its times in `length_unit` if it is CSV, cut to the window if there
    is one; `log` says how the log of a batch system is read. A capacity is a file, or made when the run starts. Jobs of
    more than `long_s` s are long, for the figures and for a scheduler whose options do not say otherwise. With
    `more_workloads` they are called w0, w1, ..., as in Batsim. Carbon (g/kWh) and price (per kWh) of energy are
    measured, and followed by schedulers that do that. `hosts` chooses among those of a platform file; `plugins` are
    files that register parts.

    With `delays_to_flops` delays run as flops that last as long at the platform's fastest speed ("nominal": at that of
    the first host as it begins); with False, as delays. None: those of a trace run as flops if the platform has several
    speeds or an envelope is given, those of Batsim's JSON as delays.
    """

    platform: Path | MachineSpec | Platform
    workload: Path | Workload
    scheduler: Any = "powercap"
    options: Mapping[str, Any] = field(default_factory=dict)
    prefix: Path = Path("out/batwatt")
    envelope: Path | EnvelopeSpec | Series | None = None
    events: Path | None = None
    engine: EngineName = "embedded"
    config: EngineConfig = field(default_factory=EngineConfig)
    batsim: str = "batsim"
    batsim_args: Sequence[str] = ()
    patience_s: float | None = 300.0
    capacity: Path | CapacitySpec | Series | None = None
    window: Window | None = None
    length_unit: TimeUnit = "s"
    log: LogOptions = USUAL
    long_s: float = LONG_S
    delays_to_flops: bool | Literal["nominal"] | None = None
    more_workloads: tuple[Path, ...] = ()
    hosts: HostChoice = field(default_factory=HostChoice)
    plugins: tuple[Path, ...] = ()
    carbon: SignalSpec | SignalIntegral | None = None
    price: SignalSpec | SignalIntegral | None = None
    under_power: bool = False
    """A capacity stands for the power of its machines, as the scheduler follows power."""

    def __post_init__(self) -> None:
        if not 0.0 < self.long_s < math.inf:
            raise ValueError(f"long_s must be > 0 s and finite, got {self.long_s!r}")

    @property
    def workloads(self) -> tuple[Path, ...]:
        """All files of jobs. InputError if the workload is no file."""
        if isinstance(self.workload, Workload):
            raise InputError(f"engine {self.engine!r}", "reads files, the workload is none", "use 'embedded'")
        return (self.workload, *self.more_workloads)

    @property
    def scheduler_name(self) -> str:
        """The scheduler's name, or that of its class."""
        if isinstance(self.scheduler, str):
            return self.scheduler
        named = self.scheduler if hasattr(self.scheduler, "__name__") else type(self.scheduler)
        return str(named.__name__)

    def scheduler_options(self, platform: Platform | None = None) -> dict[str, Any]:
        """The scheduler's options with the run's own platform, envelope, capacity and end, unless they name others.

        The platform is the one given, if it has been read; else its file's name, or what is read of it if hosts are
        chosen. A capacity that is to be made is not among them.
        """
        options = dict(self.options)
        given: dict[str, object] = {"platform": platform, "envelope": self.envelope, "capacity": self.capacity}
        if not (platform or "platform" in options or isinstance(self.platform, MachineSpec)):
            chosen = self.hosts != HostChoice()
            given["platform"] = platform_of(self.platform, self.hosts) if chosen else self.platform
        for name, value in given.items():
            if isinstance(value, Path | Platform | Series):
                options.setdefault(name, value)
        if self.config.energy is False and self.capacity is not None:
            options.setdefault("switch", False)
        if self.window is not None and self.capacity is not None:
            options.setdefault("until_s", self.until_s)
        return options

    @property
    def until_s(self) -> float | None:
        """When a run with a window ends, s: a little later, so that what was killed then differs from what went on."""
        return None if self.window is None else self.window.end_s + 1.0
