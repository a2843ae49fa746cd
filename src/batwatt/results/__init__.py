"""Batsim-format CSV files, metrics that read only those files, plots."""
