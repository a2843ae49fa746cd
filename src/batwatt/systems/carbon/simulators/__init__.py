"""The reference simulators GAIA and Let's Wait Awhile, rule by rule."""
