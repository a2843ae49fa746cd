"""Jobs on machines by risk (riskaware paper): docs/explanation/riskaware.md."""

from batwatt.schedulers.riskaware.scheduler import Riskaware as Riskaware
