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


# pybatsim imports it, but only a Batsim with a data storage needs it; loading it takes as long as numpy
sys.modules.setdefault("redis", _OnDemand("redis"))
