"""Frozen facts without behaviour: hosts, jobs, profiles, step functions of time."""
