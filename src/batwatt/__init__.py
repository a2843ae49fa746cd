"""batwatt: schedule parallel jobs when power, capacity or carbon varies."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from batwatt._version import __version__

__all__ = ["__version__"]


class _OnDemand(ModuleType):
    """A module that is loaded when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__warningregistry__"):
            # tools that look at all modules ask for these
            raise AttributeError(name)
        sys.modules.pop(self.__name__, None)
        self.__dict__.update(import_module(self.__name__).__dict__)
        return getattr(self, name)


def _on_demand(name: str, **known: object) -> None:
    """Announce a module that pybatsim imports but few runs use; `known` is what pybatsim asks for when it is loaded."""
    module = _OnDemand(name)
    module.__dict__.update(known)
    sys.modules.setdefault(name, module)


# for a Batsim with a data storage; loading it takes as long as numpy
_on_demand("redis")
# for two processes; the number of zmq.REP is that of the library's ABI
_on_demand("zmq", REP=4)
