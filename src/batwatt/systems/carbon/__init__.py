"""Shifting and suspending jobs under a carbon or price signal (carbon thesis)."""
