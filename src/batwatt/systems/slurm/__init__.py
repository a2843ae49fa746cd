"""Slurm's own scheduling in simulation: multifactor priority, partitions and backfill."""
