"""batwatt: schedule parallel jobs when power, capacity or carbon varies."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from batwatt._editable import take_compiled
from batwatt._version import __version__

__all__ = [
    "BatwattError",
    "Case",
    "Comparison",
    "DeadlockError",
    "InputError",
    "Order",
    "Platform",
    "Powercap",
    "Result",
    "Scheduler",
    "Series",
    "Study",
    "Workload",
    "__version__",
    "account",
    "compare",
    "optimum",
    "plan_carbon",
    "plan_checkpoints",
    "read_series",
    "read_signal",
    "register",
    "simulate",
    "study",
]
_NAMES = {
    "account": ("account",),
    "comparison": ("Case", "compare"),
    "comparison_result": ("Comparison",),
    "inputs": ("Platform", "Series", "Workload", "read_series", "read_signal"),
    "planning": ("optimum", "plan_carbon", "plan_checkpoints"),
    "simulation": ("simulate",),
    "study": ("Study", "study"),
}
_MODULES = {name: f"batwatt.api.{module}" for module, names in _NAMES.items() for name in names}
_MODULES |= {"Result": "batwatt.run.result"}
_MODULES |= dict.fromkeys(("BatwattError", "DeadlockError", "InputError"), "batwatt.errors")
# schedulers of users
_MODULES |= {"Order": "batwatt.scheduling", "Scheduler": "batwatt.scheduling", "register": "batwatt.scheduling"}
_MODULES |= {"Powercap": "batwatt.schedulers.powercap"}
"""Name -> its module."""


def __getattr__(name: str) -> Any:
    """Load a part of the API when it is used."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'batwatt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _OnDemand(ModuleType):
    """A module that is loaded when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__warningregistry__"):
            # tools that look at all modules ask for these
            raise AttributeError(name)
        sys.modules.pop(self.__name__, None)
        self.__dict__.update(import_module(self.__name__).__dict__)
        return getattr(self, name)


def _on_demand(name: str, **constants: object) -> None:
    """Register a module that pybatsim imports but few runs use, with the constants that pybatsim reads at once."""
    module = _OnDemand(name)
    module.__dict__.update(constants)
    sys.modules.setdefault(name, module)


take_compiled()
# for a Batsim with a data storage; loading it takes as long as numpy
_on_demand("redis")
# for two processes; the number of zmq.REP is that of the library's ABI
_on_demand("zmq", REP=4)
