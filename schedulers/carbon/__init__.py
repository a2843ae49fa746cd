"""Jobs in phases, shifted by carbon or price: docs/explanation/carbon.md."""

from batwatt.schedulers.carbon.scheduler import Carbon as Carbon
