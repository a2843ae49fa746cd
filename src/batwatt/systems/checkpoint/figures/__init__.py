"""Figures of plans of checkpoints."""
