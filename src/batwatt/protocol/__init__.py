"""Batsim's JSON, of Batsim 4 and 5: numbers, profiles, jobs, workloads and external events; opens no file."""
