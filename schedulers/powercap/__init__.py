"""A queue under a power envelope (powercap paper): docs/explanation/powercap.md."""

from batwatt.schedulers.powercap.frugal import Frugal as Frugal
from batwatt.schedulers.powercap.scheduler import Powercap as Powercap
