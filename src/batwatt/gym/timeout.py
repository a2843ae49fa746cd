"""A scripted policy on the actions of the environment, to compare agents with: hosts off after a time without a job."""

from __future__ import annotations

import numpy as np

from batwatt.errors import InputError
from batwatt.gym.env import BatwattEnv
from batwatt.gym.hosts import OFF, ON


class TimeoutPolicy:
    """Start the first job that can start, switch hosts on for waiting jobs, and off after `timeout_s` s without a job.

    Hosts are switched on while those that are on without a job, or switch on, are fewer than waiting jobs request and
    `reserve` more; they are switched off while they are more. Both attributes may change between actions. Raises
    InputError if the environment has no such actions.
    """

    def __init__(self, env: BatwattEnv, timeout_s: float, reserve: int = 0) -> None:
        if not any(verb == OFF for verb, _ in env.host_actions):
            raise InputError("env", "has no actions that switch hosts", "make it with switch=True")
        self.env, self.timeout_s, self.reserve = env, timeout_s, reserve
        first = env.places + 1
        self._actions = [(first + number, verb, kind) for number, (verb, kind) in enumerate(env.host_actions)]

    def action(self) -> int:
        """Return the action at the present moment."""
        env, scheduler = self.env, self.env.simulation.scheduler
        mask, control = scheduler.mask(), scheduler.control
        assert control is not None
        places = env.places
        if mask[:places].any():
            return int(mask[:places].argmax())
        spare = scheduler.free.bit_count() + control.cluster.switching_on.bit_count() - scheduler.waiting_hosts
        if spare < self.reserve:
            for number, verb, _ in self._actions:
                if verb == ON and mask[number]:
                    return number
        elif spare > self.reserve:
            idle_s = control.longest_idle_s(scheduler.free)
            for number, verb, kind in reversed(self._actions):
                if verb == OFF and mask[number] and idle_s[kind] >= self.timeout_s:
                    return number
        return places if mask[places] else int(np.argmax(mask))
