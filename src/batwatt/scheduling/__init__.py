"""Shared parts of schedulers."""
