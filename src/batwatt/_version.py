"""The version of batwatt, in this place only."""

__version__ = "0.1.0"
