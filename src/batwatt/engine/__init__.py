"""The embedded engine: Batsim's simulation in this process."""
