"""Shared parts of schedulers; the names below are those that a part or a policy of one's own needs."""

from importlib import import_module
from typing import Any

_NAMES = {
    "backfilling": ("Backfilling", "EasyBackfilling", "NoBackfilling"),
    "base": ("EnvelopeOptions", "OptionValues", "PartChoice", "PowerOptions", "Scheduler", "SchedulerOptions"),
    "capacity": ("CapacityScheduler", "MachineOptions"),
    "job": ("BatsimJob", "Job"),
    "orders": ("NodeSelection", "Order"),
    "power": ("PowerScheduler",),
    "registry": ("register",),
    "run_times": ("RunTimes",),
    "victims": ("VictimRule",),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
"""Name -> its module, which is loaded when the name is used."""
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Load a name when it is used."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
