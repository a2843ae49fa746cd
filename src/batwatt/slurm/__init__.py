"""A real Slurm behind a Batsim-compatible scheduler."""
