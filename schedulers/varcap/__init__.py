"""Jobs on machines whose number varies (varcap dissertation): docs/explanation/varcap.md."""

from batwatt.schedulers.varcap.scheduler import Varcap as Varcap
