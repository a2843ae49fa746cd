"""One episode: an agent's scheduler on the embedded engine, stopped where there is something to decide.

Nothing here knows gymnasium.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from batwatt.engine.bs import Bs
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.gym.episode import Episode
from batwatt.gym.scheduler import AgentScheduler
from batwatt.gym.tally import Tally
from batwatt.model.record import Record
from batwatt.model.work import flops_of
from batwatt.units import HOUR_S, microseconds

Floats = NDArray[np.float64]
STEPS: Final = 4
"""Default number of steps ahead of the forecasts."""


class Simulation:
    """An episode, from its first moment with a decision on.

    `now_s` is the time of the present moment, of the last end when it is `over`.
    """

    record: Record
    """The record of the episode; set when it is `over`."""

    def __init__(self, episode: Episode, seed: int = 0) -> None:
        self.episode = episode
        self.limits = episode.limits
        settings, inputs = episode.spec.options, episode.inputs
        options = {name: settings[name] for name in ("victim", "node_selection") if name in settings}
        self.scheduler = AgentScheduler(options | {"platform": inputs.platform}, self.limits, settings)
        self.forecasts = episode.forecasts(settings.get("forecast_error", 0.0), seed)
        self.ahead_s = settings.get("forecast_step_s", HOUR_S) * np.arange(1, settings.get("forecast_steps", STEPS) + 1)
        again = self.scheduler.needs_dynamic_jobs
        self.config = EngineConfig(energy=inputs.platform.has_power, dynamic_jobs=again, profile_reuse=again)
        self.engine = Engine(inputs.platform, inputs.run, self.config, inputs.events)
        flops: dict[str, float] = {}
        if "work" in settings["reward"]:
            each = flops_of(inputs.measured, inputs.platform.fastest_flops).tolist()
            flops = dict(zip(episode.horizon.jobs, each, strict=True))
        self.tally = self.scheduler.tally = Tally(self.engine.recorder.record.jobs, episode.horizon, flops)
        self.tally.dvfs = "dvfs" in settings
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

    def forecast(self, signal: str, ahead_s: Floats | float) -> Floats:
        """Return the forecast of `envelope`, `carbon` or `price` at times ahead in s, 0 for now, in its unit; or 0."""
        return np.maximum(self.forecasts[signal].at(self.now_s).at(self.now_s + ahead_s), 0.0)
