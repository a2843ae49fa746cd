"""A plan carried out, and the offline optimum that makes one: docs/explanation/optimum.md."""

from batwatt.schedulers.planned.scheduler import Planned as Planned
