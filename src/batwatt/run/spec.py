"""The specification of a run, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.inputs.description import Inputs
from batwatt.inputs.platform_files import HostChoice, platform_of
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, Platform
from batwatt.model.timeline import Timeline

EngineName = Literal["embedded", "wire", "batsim"]


_SECOND_NAMES = {"slurm": "multifactor"}


def own_name(scheduler: Any) -> Any:
    """Return a scheduler; for the second name of one of ours, its own."""
    return _SECOND_NAMES.get(scheduler, scheduler) if isinstance(scheduler, str) else scheduler


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a run: its inputs, a scheduler with its options, and an engine.

    The scheduler may be a class. Only an engine in this process takes one, and objects as inputs. `plugins` are files
    that register parts.
    """

    inputs: Inputs
    scheduler: Any = "powercap"
    options: Mapping[str, Any] = field(default_factory=dict)
    prefix: Path = Path("out/batwatt")
    engine: EngineName = "embedded"
    config: EngineConfig = field(default_factory=EngineConfig)
    batsim: str = "batsim"
    batsim_args: Sequence[str] = ()
    patience_s: float | None = 300.0
    plugins: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        """Take the scheduler by its own name."""
        object.__setattr__(self, "scheduler", own_name(self.scheduler))

    @property
    def scheduler_name(self) -> str:
        """Name of the scheduler, or of its class."""
        return self.scheduler if isinstance(self.scheduler, str) else str(self.scheduler.__name__)

    def scheduler_options(self, platform: Platform | None = None) -> dict[str, Any]:
        """Return the scheduler's options with the run's platform, envelope, capacity and end, unless they name others.

        The platform is `platform`, if it has been read; else the name of its file, or the content of the file for a
        choice of hosts. A capacity that is to be generated is not among them.
        """
        inputs, options = self.inputs, dict(self.options)
        own: dict[str, object] = {"platform": platform, "envelope": inputs.envelope, "capacity": inputs.capacity}
        if not (platform or "platform" in options or isinstance(inputs.platform, MachineSpec)):
            every = inputs.hosts == HostChoice()
            own["platform"] = inputs.platform if every else platform_of(inputs.platform, inputs.hosts)
        for name, value in own.items():
            value = value.path if isinstance(value, SeriesSpec) else value
            if isinstance(value, Path | Platform | Timeline):
                options.setdefault(name, value)
        if self.config.energy is False and inputs.capacity is not None:
            options.setdefault("switch", False)
        if inputs.until_s is not None and inputs.capacity is not None:
            options.setdefault("until_s", inputs.until_s)
        return options
