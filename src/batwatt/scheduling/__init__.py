"""Shared parts of the schedulers of all systems."""
