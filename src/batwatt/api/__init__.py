"""What `import batwatt` offers: runs, comparisons, campaigns and planners as functions, files as objects."""

from batwatt.api.comparison import Case, compare_systems
from batwatt.api.inputs import Platform, Series, Workload, read_series, read_signal
from batwatt.api.planning import optimum, plan_carbon, plan_checkpoints
from batwatt.api.result import Result
from batwatt.api.simulation import compare, simulate, sweep

__all__ = [
    "Case",
    "Platform",
    "Result",
    "Series",
    "Workload",
    "compare",
    "compare_systems",
    "optimum",
    "plan_carbon",
    "plan_checkpoints",
    "read_series",
    "read_signal",
    "simulate",
    "sweep",
]
