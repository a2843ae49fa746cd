"""Recorded traces of jobs (SWF, CSV, Azure, Borg, job logs), and their conversion to workloads."""
