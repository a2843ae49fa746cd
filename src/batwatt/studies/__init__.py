"""Runs: one, or a declared grid of many."""
