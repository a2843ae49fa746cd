"""batwatt: schedule parallel jobs when power, capacity or carbon varies."""

from batwatt._version import __version__

__all__ = ["__version__"]
