"""The environment: actions, masks, observations and rewards of a `Simulation`, as Gymnasium has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from operator import index
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from batwatt.api.series import series_or
from batwatt.api.simulation import PlatformLike, SeriesLike, WorkloadLike, workload_arg
from batwatt.checks import number, shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.gym.scheduler import Limits, host_actions
from batwatt.gym.simulation import DEFAULT, OBSERVATIONS, REWARDS, Episode, Observation, Reward, Simulation
from batwatt.inputs.platform_files import MASTER_HOST, all_hosts
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, Platform
from batwatt.model.record import Record
from batwatt.run.arguments import (
    checked,
    flag,
    optional,
    options_of,
    path_or,
    plain,
    positive,
    seed_of,
    several,
    whole,
    wrong,
)
from batwatt.run.result import Result
from batwatt.run.run import attempts_of
from batwatt.run.spec import RunSpec

Workloads = WorkloadLike | Callable[[np.random.Generator], WorkloadLike]
Info = dict[str, Any]
MOST_PLACES = 100_000
"""More visible jobs than this are taken for a typing error."""
SCHEDULER = "batwatt.gym"
"""Name of the scheduler in the metadata of a run."""


def _named(table: Mapping[str, Any], kind: str, name: object) -> str:
    if isinstance(name, str) and name in table:
        return name
    got = name if isinstance(name, str) else shown(name)
    raise UnknownNameError("batwatt.gym", kind, got, table, "See batwatt.gym.OBSERVATIONS and REWARDS.")


def _columns_of(name: str, value: Any) -> list[str]:
    """Return names of OBSERVATIONS, each once."""
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, Mapping) else value
    columns = several(name, names, lambda _, one: _named(OBSERVATIONS, "observation", one), "names of columns")
    if not columns:
        raise InputError(name, "names no column", f"choose some of {', '.join(OBSERVATIONS)}")
    if len({*columns}) < len(columns):
        raise InputError(name, "names a column twice", "leave one out")
    return columns


def _rewards_of(name: str, value: Any) -> str | dict[str, float]:
    """Return a name of REWARDS, or a weight for each of several."""
    if isinstance(value, str):
        return _named(REWARDS, "reward", value)
    if not isinstance(value, Mapping):
        raise wrong(name, "a name or a dict of weights", value)
    if not value:
        raise InputError(name, "names no figure", f"choose some of {', '.join(REWARDS)}")
    weights = {}
    for key, weight in value.items():
        try:
            weights[_named(REWARDS, "reward", key)] = number(plain(weight))
        except ValueError:
            raise InputError(f"reward {key!r}", f"its weight is {shown(weight)}", "give a finite number") from None
    return weights


def _check_watts(platform: Platform, what: str) -> None:
    """Raise InputError unless the watts of all hosts are known."""
    if not platform.has_power:
        problem = f"{what} needs the watts of every host; {platform.power_problem}"
        raise InputError(platform.source, problem, "correct it")


class BatwattEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """An environment that schedules the jobs of a workload on a platform; the rules are those of `batwatt.gym`.

    `observation` names columns of `OBSERVATIONS`, `reward` one of `REWARDS` (or a weight for each of several); `queue`
    is the number of visible jobs. `envelope` (W over time) and `capacity` (hosts over time) are files or series, the
    capacity also a text such as `walk:range=0.6,seed=1`. `switch` adds actions that switch hosts off and on; a moment
    begins every `every_s` s, too. Gymnasium warns of a `render_mode`: there is none (draw a saved run: `batwatt
    gantt`). Raises InputError.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (as Gymnasium has it)

    @checked(
        observation=_columns_of,
        reward=_rewards_of,
        queue=partial(whole, low=1, high=MOST_PLACES),
        switch=flag,
        every_s=optional(positive),
    )
    def __init__(
        self,
        platform: PlatformLike,
        workload: Workloads,
        *,
        observation: Iterable[str] = DEFAULT,
        reward: str | Mapping[str, float] = "mean_slowdown",
        queue: int = 16,
        envelope: SeriesLike | None = None,
        capacity: SeriesLike | SeriesSpec | None = None,
        render_mode: str | None = None,
        switch: bool = False,
        every_s: float | None = None,
    ) -> None:
        self.render_mode = None
        self._spec = RunSpec(
            platform=path_or("platform", platform, Platform, MachineSpec),
            workloads=(),
            scheduler=SCHEDULER,
            envelope=series_or("envelope", envelope),
            capacity=capacity if isinstance(capacity, SeriesSpec) else series_or("capacity", capacity),
        )
        self.platform = all_hosts(self._spec.platform, MASTER_HOST)
        if isinstance(self._spec.envelope, SeriesSpec) and self._spec.envelope.path is not None:
            # a file that is wrong is reported now
            self._spec.envelope.timeline()
        if envelope is not None:
            _check_watts(self.platform, "an envelope")
        if switch:
            _check_watts(self.platform, "the argument 'switch'")
        self.host_actions = host_actions(self.platform) if switch else []
        """The actions on hosts as (verb, kind of hosts), in their order behind action `queue`."""
        self._workload = workload
        self._episode: Episode | None = None
        """Episode of a fixed workload; None before the first reset."""
        self._places = queue
        self._columns = self._observations(observation, switch)
        self._rewards = self._chosen_rewards(reward)
        self._settings = {
            "observation": [column.name for column in self._columns],
            "reward": {each.name: weight for each, weight in self._rewards},
            "queue": queue,
        }
        self._settings |= {"switch": True} if switch else {}
        self._settings |= {} if every_s is None else {"every_s": every_s}
        self._lay_out()
        self.action_space = gymnasium.spaces.Discrete(queue + 1 + len(self.host_actions))
        self._simulation: Simulation | None = None
        self._potential = 0.0
        self._reported = True
        self._result: Result | None = None

    @property
    def simulation(self) -> Simulation:
        """The present episode. Raises InputError if none has begun."""
        if self._simulation is None:
            raise InputError("simulation", "no episode has begun", "call reset first")
        return self._simulation

    # choices --------------------------------------------------------------------------------------------------------

    def _observations(self, names: Iterable[str], switch: bool) -> list[Observation]:
        columns = [OBSERVATIONS[name] for name in names]
        for column in columns:
            present = switch if column.limit == "switch" else getattr(self._spec, column.limit or "platform")
            if present is None or present is False:
                raise InputError(f"observation {column.name!r}", f"needs the argument {column.limit!r}", "give it")
            if column.unit == "W":
                _check_watts(self.platform, f"observation {column.name!r}")
        return columns

    def _chosen_rewards(self, reward: str | Mapping[str, float]) -> list[tuple[Reward, float]]:
        weights = {reward: 1.0} if isinstance(reward, str) else reward
        for name in weights:
            if REWARDS[name].watts:
                _check_watts(self.platform, f"reward {name!r}")
        timely = any(weight > 0.0 for name, weight in weights.items() if name != "energy_j")
        if self.host_actions and weights.get("energy_j", 0.0) > 0.0 and not timely:
            problem = "energy is least while all hosts sleep and jobs wait"
            raise InputError("reward 'energy_j'", problem, "give another one a weight > 0, too")
        return [(REWARDS[name], weight) for name, weight in weights.items()]

    def _lay_out(self) -> None:
        """Set the places of the entries of each column, and their scales."""
        limits = Limits(self.platform, None, None)
        scales = {"hosts": float(len(self.platform)), "places": float(self._places), "watts": limits.most_w}
        self.layout: dict[str, slice] = {}
        """Column -> its entries of an observation."""
        begin = 0
        for column in self._columns:
            kinds = max(self.platform.kinds) + 1 if column.of_kinds else 1
            count = self._places if column.of_jobs else kinds
            self.layout[column.name] = slice(begin, begin + count)
            begin = self.layout[column.name].stop
        self._values = np.zeros(begin)
        self._scale, self._open = np.ones(begin), np.zeros(begin)
        self._divisor = np.zeros(begin)
        self._fill = []
        for column in self._columns:
            entries = self.layout[column.name]
            scale = scales[column.scale] if isinstance(column.scale, str) else column.scale
            self._scale[entries] = scale or 1.0
            self._open[entries] = 0.0 if column.bounded else 1.0
            self._fill.append((entries if column.of_jobs or column.of_kinds else entries.start, column.value))
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (begin,), np.float32)

    # Gymnasium ------------------------------------------------------------------------------------------------------

    @checked(seed=optional(seed_of), options=options_of)
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], Info]:
        """Begin an episode; there are no `options`. Raises InputError."""
        if options:
            problem = f"no option {next(iter(options))!r}"
            raise InputError("options", problem, "leave them out; a function as `workload` draws one")
        super().reset(seed=seed)
        self._began_s = time.perf_counter()
        if callable(self._workload):
            episode = self._episode_of(self._workload(self.np_random))
        else:
            episode = self._episode = self._episode or self._episode_of(self._workload)
        self._simulation = Simulation(episode)
        self._potential = 0.0
        self._reported = False
        self._result = None
        return self._observed(), self._info()

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, Info]:
        """Carry out one decision. Raises InputError if no episode has begun, or the last one is over."""
        simulation = self._simulation
        if simulation is None or self._reported:
            raise InputError("step", "no episode has begun, or it is over", "call reset first")
        try:
            choice = index(action)
        except TypeError:
            raise wrong("action", f"a whole number from 0 to {self._places + len(self.host_actions)}", action) from None
        effect = simulation.act(choice)
        potential = 0.0
        for reward, weight in self._rewards:
            potential += weight * reward.potential(simulation)
        gained, self._potential = potential - self._potential, potential
        info = self._info()
        info["action"] = effect
        if simulation.over:
            self._reported = True
            info["metrics"] = self.result().metrics
        return self._observed(), gained, simulation.over, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return flags of the possible actions, (queue + 1 + actions on hosts,), as sb3-contrib's MaskablePPO asks."""
        return self.simulation.scheduler.mask().astype(np.bool_)

    def _info(self) -> Info:
        assert self._simulation is not None
        return {"action_mask": self._simulation.scheduler.mask(), "time_s": self._simulation.now_s}

    def _observed(self) -> NDArray[np.float32]:
        simulation, values = self._simulation, self._values
        assert simulation is not None
        for entries, value in self._fill:
            values[entries] = value(simulation)
        divisor = np.multiply(values, self._open, out=self._divisor)
        divisor += self._scale
        np.divide(values, divisor, out=divisor)
        return np.minimum(divisor, 1.0, out=divisor).astype(np.float32)

    def values(self) -> dict[str, Any]:
        """Return the present observation in the units of its columns, before it is scaled."""
        simulation = self.simulation
        values = {column.name: column.value(simulation) for column in self._columns}
        return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}

    def _episode_of(self, workload: WorkloadLike) -> Episode:
        return Episode.of(replace(self._spec, workloads=(workload_arg(workload),), options=self._settings))

    # results --------------------------------------------------------------------------------------------------------

    @property
    def record(self) -> Record:
        """Record of the episode. Raises InputError if it is not over."""
        return self.result().record

    def result(self) -> Result:
        """Return the metrics, tables and figures of the episode. Raises InputError if it is not over."""
        simulation = self._simulation
        if simulation is None or not simulation.over:
            raise InputError("episode", "is not over: a run has figures and files when its jobs are done", "go on")
        if self._result is None:
            run = replace(simulation.episode.run, config=simulation.config)
            simulation.record.attempts = attempts_of(simulation.scheduler)
            self._result = Result(run, simulation.record, elapsed_s=time.perf_counter() - self._began_s)
        return self._result

    def save(self, prefix: str | Path) -> Path:
        """Write the files of `batwatt run` under a prefix, all or none; return it. Raises InputError."""
        return self.result().save(prefix)
