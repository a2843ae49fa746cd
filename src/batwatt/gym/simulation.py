"""One episode: an agent's scheduler on the embedded engine, stopped where there is something to decide.

Nothing here knows gymnasium.
"""

from __future__ import annotations

import numpy as np

from batwatt.engine.bs import Bs
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.gym.episode import Episode
from batwatt.gym.scheduler import AgentScheduler
from batwatt.gym.tally import Tally
from batwatt.model.record import Record
from batwatt.units import microseconds


class Simulation:
    """An episode, from its first moment with a decision on.

    `now_s` is the time of the present moment, of the last end when it is `over`.
    """

    record: Record
    """The record of the episode; set when it is `over`."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.limits = episode.limits
        inputs = episode.inputs
        self.scheduler = AgentScheduler(inputs.platform, len(inputs.measured.jobs), self.limits, episode.spec.options)
        again = self.scheduler.needs_dynamic_jobs
        self.config = EngineConfig(energy=inputs.platform.has_power, dynamic_jobs=again, profile_reuse=again)
        self.engine = Engine(inputs.platform, inputs.run, self.config)
        self.tally = self.scheduler.tally = Tally(self.engine.recorder.record.jobs, episode.jobs)
        self.over = False
        self.now_s = 0.0
        self._bs = Bs(self.scheduler, self.engine)
        self._advance()

    def act(self, action: int) -> int:
        """Do what an action says, or what an illegal one stands for; return the action that was done."""
        scheduler = self.scheduler
        places = scheduler.queue.places
        if self.over:
            return places
        starts = 0 <= action < places and scheduler.fits[action]
        if not starts and not (places < action and action in np.flatnonzero(scheduler.mask())):
            action = places if scheduler.can_wait else int(scheduler.mask().argmax())
        if action == places:
            scheduler.wait()
        elif action > places:
            scheduler.switch(action - places - 1)
        else:
            scheduler.start(action)
        if not scheduler.undecided:
            self._bs.reply()
            self._advance()
        return action

    def _advance(self) -> None:
        """Go on to the next moment at which there is something to decide, or to the end."""
        bs = self._bs
        while not self.over:
            bs.receive()
            if self.scheduler.undecided:
                self.now_s = bs.time()
                return
            self.over = not bs.reply()
        self.record = self.engine.close()
        self.now_s = microseconds(float(self.record.schedule["makespan"]))

    def energy_j(self) -> float:
        """Return the energy in J of all hosts until now; at the end, until the last job has ended."""
        if not self.over:
            return self.engine.recorder.energy_at(self.now_s)
        rows = self.record.consumed_energy
        pairs = zip(reversed(rows.energies), reversed(rows.kinds), strict=True)
        return next((energy_j for energy_j, kind in pairs if kind == "e"), 0.0)
