"""Planning of checkpoints before the capacity changes (checkpoint paper)."""
