"""Shifting and suspending jobs under a carbon or price signal (carbon thesis)."""

STARTUP_UNTIL = "training"
"""The event of a measured run at which work begins, by default."""
CHECKPOINTS = ("save*",)
"""Patterns of the names of phases that end with all saved, by default."""
