"""The offline optimum under a power envelope, and a lower bound (powercap paper, section IV)."""
