"""Power per job under an envelope: docs/explanation/job-power.md."""

from batwatt.schedulers.jobpower.scheduler import Jobpower as Jobpower
