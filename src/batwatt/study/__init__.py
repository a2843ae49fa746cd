"""Runs: one, or a declared grid of many."""

WORKERLESS_S = 60.0
"""How long a campaign waits by default for a Dask cluster that has no worker (any more)."""
