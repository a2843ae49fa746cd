"""Batsim workloads and events, jobs in phases, synthetic generators."""
