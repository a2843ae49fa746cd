"""Platforms: SimGrid XML, generated ones, machines of cores."""
