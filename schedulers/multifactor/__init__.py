"""Slurm's priority and backfill: docs/explanation/slurm-scheduler.md."""

from batwatt.schedulers.multifactor.scheduler import Multifactor as Multifactor
