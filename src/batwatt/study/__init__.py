"""Runs: one, or a declared grid of many."""

WORKERLESS_S = 60.0
"""Default time in s for which a campaign waits for a Dask cluster without a worker."""
