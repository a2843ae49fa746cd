"""A scripted policy on the actions of `batwatt.gym`, to compare agents with: hosts off after a time without a job."""

from __future__ import annotations

import numpy as np

from batwatt.gym import BatwattEnv

NEEDED = ("idle_hosts", "booting_hosts", "idle_s", "queue_hosts")
"""Columns of the observation that the policy needs."""


class TimeoutPolicy:
    """Start the first job that can start, switch hosts on for waiting jobs, and off after `timeout_s` s without a job.

    Hosts are switched on while idle and booting hosts are fewer than the requests of waiting jobs and `reserve` more;
    hosts are switched off while they are more. Both attributes may change between actions. The environment has
    `switch=True` and observes `NEEDED`.
    """

    def __init__(self, env: BatwattEnv, timeout_s: float, reserve: int = 0) -> None:
        self.env, self.timeout_s, self.reserve = env, timeout_s, reserve

    def action(self) -> int:
        """Return the action at the present moment."""
        mask = self.env.action_masks()
        # places of jobs, then the action that waits, then those on hosts
        places = len(mask) - len(self.env.host_actions) - 1
        if mask[:places].any():
            return int(mask[:places].argmax())
        values = self.env.values()
        spare = values["idle_hosts"].sum() + values["booting_hosts"].sum() - values["queue_hosts"]
        actions = list(enumerate(self.env.host_actions, places + 1))
        if spare < self.reserve:
            for number, (verb, _) in actions:
                if verb == "on" and mask[number]:
                    return number
        elif spare > self.reserve:
            for number, (verb, kind) in reversed(actions):
                if verb == "off" and mask[number] and values["idle_s"][kind] >= self.timeout_s:
                    return number
        return places if mask[places] else int(np.argmax(mask))
