"""What the schedulers of all systems share."""
