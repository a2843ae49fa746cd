"""Description of the inputs of a run before they are read, for Python, the command line and campaigns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from batwatt.inputs.platform_files import HostChoice
from batwatt.model.workload import LONG_S

if TYPE_CHECKING:
    from batwatt.inputs.batch_logs import LogOptions
    from batwatt.inputs.jobs import TimeUnit
    from batwatt.inputs.spec import Quantity, SeriesSpec
    from batwatt.model.platform import MachineSpec, Platform
    from batwatt.model.signal import Window
    from batwatt.model.timeline import Timeline
    from batwatt.model.workload import Workload


def _input(help: str, **default: Any) -> Any:
    """Return a field with its help, which is also the help of an option of the command line."""
    return field(metadata={"help": help}, **default)


def _usual_log() -> LogOptions:
    # imported here, as numpy loads slowly
    from batwatt.inputs.batch_logs import USUAL

    return USUAL


SERIES: Mapping[str, Quantity] = {"envelope": "power", "capacity": "machines", "carbon": "carbon", "price": "price"}
"""Field of `Inputs` -> quantity of its series."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a run: files, texts that describe series, or objects of the model.

    The constructor parses texts; `batwatt.inputs.load` reads files. Raises InputError.
    """

    platform: Path | MachineSpec | Platform = _input("SimGrid platform file (XML 4.1).")
    workloads: tuple[Path | Workload, ...] = _input(
        "Batsim workload (.json), repeatable: w0, w1, ...; or a trace: .swf, .sacct, .csv, .parquet, "
        "or lines `id release length cores` (.txt)."
    )
    hosts: HostChoice = _input("Hosts of a platform file that run jobs.", default=HostChoice())
    window: Window | None = _input(
        "BEGIN:END in s: run the jobs of this window of a trace, and measure there.", default=None
    )
    length_unit: TimeUnit = _input("Times of a CSV trace are in seconds or hours.", default="s")
    log: LogOptions = _input("Time that is 0 s, and columns of a job log.", default_factory=_usual_log)
    envelope: SeriesSpec | Timeline | None = _input(
        "Power envelope: CSV with columns time_s,power_w; or as in power:solar.csv,peak_w=50000 + "
        "constant:20000, carbon:FILE,budget=..., battery:... (docs/reference/signals.md).",
        default=None,
    )
    capacity: SeriesSpec | Timeline | None = _input(
        "Machines alive: CSV with columns time_s,machines, or lines `count`, `time count`; or generated, as in "
        "walk:range=0.6,mean=0.7,seed=1, uniform:..., constant:..., carbon:FILE,budget=..., price:FILE,... "
        "(docs/reference/signals.md).",
        default=None,
    )
    carbon: SeriesSpec | Timeline | None = _input(
        "Carbon intensity, g/kWh: a file, then keys if needed, as in nl.csv,from=2024-07-01,repeat=yes.", default=None
    )
    price: SeriesSpec | Timeline | None = _input("Price of energy per kWh (or EUR/MWh), like carbon.", default=None)
    events: Path | None = _input("Batsim external events, one JSON object per line.", default=None)
    long_s: float = _input("Length in s above which jobs are long, also in figures by class.", default=LONG_S)
    delays_to_flops: bool | Literal["nominal"] | None = _input(
        "Run delays as the work of their time at full speed, which takes longer on slower hosts.", default=None
    )
    """"nominal": at the initial speed of the first host. None: only delays of a trace, if the platform has several
    speeds or the run is under power."""
    ignore_communication: bool = _input("Run profiles that communicate as if `com` were 0.", default=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.long_s < math.inf:
            raise ValueError(f"long_s must be > 0 s and finite, got {self.long_s!r}")
        for name, quantity in SERIES.items():
            text = getattr(self, name)
            if isinstance(text, str | Path):
                # imported here, as numpy loads slowly
                from batwatt.inputs.spec import parse_series

                object.__setattr__(self, name, parse_series(quantity, text))

    @property
    def until_s(self) -> float | None:
        """End of a run in s: 1 s after its window, so that jobs killed at the window's end differ from running ones."""
        return None if self.window is None else self.window.end_s + 1.0
