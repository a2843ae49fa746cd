"""Responses to a new power cap: the server configuration of the powercap paper, section V-A.

A response runs at each step of the envelope and knows only the current cap. It changes a `Plan` (D_{s,d,t} with the
power of Eq. 2); servers in transition are left alone. A job of which a server is put to sleep is killed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from batwatt.model import hostset
from batwatt.model.platform import NOISE_W
from batwatt.schedulers.powercap.plan import Group, Plan, at_least, in_order, merged, repeats
from batwatt.scheduling.job import Job
from batwatt.scheduling.registry import register


class Response(ABC):
    """Base of responses.

    `active` is False for one that never changes anything, `between_steps` True for one that also adjusts the servers
    within a step, after jobs have started or ended; `work_estimate` is how it wants a job's work estimated if the
    options do not say.
    """

    name = ""
    active = True
    between_steps = False
    work_estimate = "walltime"

    @abstractmethod
    def respond(self, plan: Plan, cap_w: float) -> None:
        """Change the plan so that its power meets the cap as well as it can."""

    def steady(self, plan: Plan, cap_w: float) -> bool:
        """Return whether a response that changed nothing will not under this cap until something else changes; then it
        is spared the steps until then.
        """
        return False

    def adjust(self, plan: Plan, cap_w: float) -> None:
        """Change the plan within a step, whose cap is known; only if `between_steps`."""
        # reached only by a response that sets `between_steps` and forgets this
        raise NotImplementedError(f"{type(self).__name__} does not act between steps")

    def admit(self, plan: Plan, cap_w: float) -> None:
        """Change the plan within a step where jobs wait, after others have come or ended; by default as `adjust`."""
        self.adjust(plan, cap_w)


@register("response", "none")
class NoConfiguration(Response):
    """No server configuration: every server stays on at its fastest state, whatever the cap."""

    active = False

    def respond(self, plan: Plan, cap_w: float) -> None:
        """Change nothing."""


class IdleDegradation(Response):
    """Common rules of IFS and ISB: all servers to the fastest state, then slower ones until Eq. 1 holds, idle first.

    Left open by the text: servers are sorted by the power of their fastest state, ties by id; a sleeping server is
    an idle one, to be woken unless it is degraded back to sleep; a running server that is degraded to sleep kills its
    job, whose other servers stay where they are and count as running for the rest of the step.
    """

    descending = True

    def steady(self, plan: Plan, cap_w: float) -> bool:
        """Return True: the response does not look at the time."""
        return True

    def respond(self, plan: Plan, cap_w: float) -> None:
        """Reset to the fastest states, then degrade idle servers, then running ones."""
        idle, running = plan.changeable & ~plan.busy, plan.changeable & plan.busy
        for kind, servers in plan.platform.parts(plan.changeable):
            plan.change(servers, plan.kinds[kind].compute[0])
        for servers in (idle, running):
            self.degrade(plan, cap_w, self._ordered(plan, servers))

    def _ordered(self, plan: Plan, servers: int) -> list[list[tuple[Group, int]]]:
        """Return servers by the power of their fastest state, those of equal power together."""
        equals: dict[float, list[tuple[Group, int]]] = {}
        for group, part in plan.parts(servers):
            host = plan.kinds[group[0]]
            equals.setdefault(host.pstates[host.compute[0]].full_w, []).append((group, part))
        return [equals[power_w] for power_w in sorted(equals, reverse=self.descending)]

    @abstractmethod
    def degrade(self, plan: Plan, cap_w: float, ordered: list[list[tuple[Group, int]]]) -> None:
        """Slow servers at their fastest states down until Eq. 1 holds or all sleep."""

    @staticmethod
    def steps(plan: Plan, group: Group) -> list[int]:
        """Return the states of a kind of servers from the fastest to the slowest: those of computation, then sleep."""
        host = plan.kinds[group[0]]
        return [*host.compute, *(sleep.sleep for sleep in host.sleeps[:1])]

    @staticmethod
    def put(plan: Plan, servers: int, state: int) -> None:
        """Put servers of one kind in a state; if it is sleep their jobs are killed, that of the lowest server first."""
        plan.change(servers, state)
        fallen = servers & plan.sleeping
        lost = {run: run.mask & fallen for run in plan.running if run.mask & fallen}
        for run in sorted(lost, key=lambda run: lost[run] & -lost[run]):
            plan.kill(run)


class FewestServers(IdleDegradation):
    """IFS: slow down one server until it sleeps, then the next."""

    def degrade(self, plan: Plan, cap_w: float, ordered: list[list[tuple[Group, int]]]) -> None:
        """Slow down server by server."""
        for equals in ordered:
            for group, servers in in_order(equals):
                if not plan.exceeds(cap_w):
                    return
                states = self.steps(plan, group)
                more = [plan.more_units(group, state) for state in states]
                # the power is looked at before each step of a server: all are made if it is too high at the least
                count = plan.needed(cap_w, servers.bit_count(), more[-1], min(more[:-1], default=0))
                whole = hostset.lowest(servers, count)
                self.put(plan, whole, states[-1])
                following = hostset.lowest(servers & ~whole, min(1, (servers & ~whole).bit_count()))
                for state in states[1:]:
                    if not (following and plan.exceeds(cap_w)):
                        break
                    self.put(plan, following, state)


class BalancedServers(IdleDegradation):
    """ISB: slow down the servers in turns, one state at a time."""

    def degrade(self, plan: Plan, cap_w: float, ordered: list[list[tuple[Group, int]]]) -> None:
        """Slow down in turns (round robin)."""
        states = {group: self.steps(plan, group) for equals in ordered for group, _ in equals}
        for turn in range(1, max(map(len, states.values()), default=0)):
            for equals in ordered:
                for group, servers in in_order(part for part in equals if turn < len(states[part[0]])):
                    kind, condition, _ = group
                    before, state = states[group][turn - 1 : turn + 1]
                    more = plan.more_units((kind, condition, before), state)
                    count = plan.needed(cap_w, servers.bit_count(), more)
                    self.put(plan, hostset.lowest(servers, count), state)
                    if not plan.exceeds(cap_w):
                        return


@register("response", "idfs")
class IdleDescendingFewest(FewestServers):
    """Idle Descending Fewest Server Degradation: one server after another down to sleep, most powerful first."""

    descending = True


@register("response", "iafs")
class IdleAscendingFewest(FewestServers):
    """Idle Ascending Fewest Server Degradation: one server after another down to sleep, least powerful first."""

    descending = False


@register("response", "idsb")
class IdleDescendingBalanced(BalancedServers):
    """Idle Descending Servers Balanced Degradation: all servers slower in turns, most powerful first."""

    descending = True


@register("response", "iasb")
class IdleAscendingBalanced(BalancedServers):
    """Idle Ascending Servers Balanced Degradation: all servers slower in turns, least powerful first."""

    descending = False


@register("response", "hfld")
class HighestFlopsLowestDeadline(Response):
    """Highest Flops Lowest Deadline: spend power where it gives most flops, save it on jobs with time to spare.

    Algorithm 1 and Eq. 7 to the letter. What the text leaves open, and what is done here:

    - Lines 3, 6, 10, 15, 25 compare with = and <, though Eq. 1 allows equality: so does this (equal within 1e-6 W).
    - `more_power` (line 7): among all (server, faster state) with an increment of power within what is left, the one
      with the highest increment of flop/s; ties (equal within `SAME`): least increment of power, then lowest id. A
      sleeping server has 0 flop/s and pays max(P_on, P_d) (Eq. 2). Whether a job runs there does not matter to the
      text, nor here.
    - `put_idle_servers_sleep` (line 9) puts all idle servers to sleep, not just enough of them.
    - A job's deadline is start + walltime; highest first, ties by arrival. A job without walltime comes first.
    - `minimal_state` (line 14): on each of the job's servers the slower of its present state and the slowest state of
      Eq. 7, which is the fastest one if none satisfies it. Line 14 runs only above the cap, so it raises no speed: the
      "faster states in the end" are those of `more_power`, which looks at gains of flop/s and not at deadlines. Fl_j
      and Ef_j are per server, as every server of a job executes the same flops.
    - `reduce_speed` (line 21): every server of the job one state slower; those at the slowest computation state stay
      until all are, then all sleep and the job is killed. The same job is reduced until killed (its deadline stays the
      highest). With `turns`, another reading: every job is one state slower, highest deadline first, and again, until
      all are at their slowest states; only then are jobs killed.
    - Servers that cannot sleep stay at their slowest state, and their jobs are not killed.

    Fl_j is that of `work_estimate`; for this response the default is `learned`, which infers it from the execution
    times of jobs that have ended. As the walltime it would make Eq. 7 ask for the fastest state nearly always.
    """

    work_estimate = "learned"

    def __init__(self, turns: bool = False) -> None:
        if not isinstance(turns, bool):
            raise ValueError(f"turns must be true or false, got {turns!r}")
        self.turns = turns

    def steady(self, plan: Plan, cap_w: float) -> bool:
        """Return whether Eq. 1 holds: only Eq. 7, for power above the cap, looks at the time."""
        return not plan.exceeds(cap_w)

    def respond(self, plan: Plan, cap_w: float) -> None:
        """Apply Algorithm 1."""
        if not plan.below(cap_w) and not plan.exceeds(cap_w):
            return
        if plan.below(cap_w):
            self._more_power(plan, cap_w)
            return
        plan.sleep(plan.changeable & ~(plan.busy | plan.sleeping))
        if plan.below(cap_w):
            return
        jobs = sorted(plan.running, key=lambda run: (-run.deadline_s, run.number))
        jobs = [run for run in jobs if not run.mask & plan.locked]
        for run in jobs:
            self.minimal_state(plan, run)
            if plan.below(cap_w):
                return
        moved = self.turns
        while moved:
            moved = False
            for run in jobs:
                moved = self._slow_down(plan, run) or moved
                if plan.below(cap_w):
                    return
        for run in jobs:
            while self._reduce_speed(plan, run):
                if plan.below(cap_w):
                    return

    @staticmethod
    def _more_power(plan: Plan, cap_w: float) -> None:
        while True:
            left_w = cap_w - plan.power_w
            parts = dict(plan.parts(plan.changeable))
            choices = [choice for group in parts for choice in _faster_states(plan, group)]
            fitting = [choice for choice in choices if choice[1] <= left_w + NOISE_W]
            if not fitting:
                return
            gains, costs_w, groups, states = zip(*fitting, strict=True)
            keys = list(zip(merged(gains), merged(costs_w, NOISE_W), strict=True))
            best: dict[Group, int] = {}
            for key, group, faster in zip(keys, groups, states, strict=True):
                if key == min(keys):
                    best[group] = min(faster, best.get(group, faster))
            group, servers = next(in_order((group, parts[group]) for group in best))
            kind, condition, _ = group
            faster, target = best[group], (kind, condition, best[group])
            # the next server of the group follows as long as the same choices fit, and no server comes before it
            most = servers.bit_count() if target in parts and target not in best else 1
            more_units, dearest_w = plan.more_units(group, faster), max(costs_w)
            nearest_w = min((cost_w for _, cost_w, _, _ in choices if cost_w > left_w + NOISE_W), default=math.inf)

            def same_fit(i: int, units: int = more_units, low_w: float = dearest_w, high_w: float = nearest_w) -> bool:
                return low_w <= cap_w - plan.power_with_w(i * units) + NOISE_W < high_w

            plan.change(hostset.lowest(servers, repeats(most, same_fit)), faster)

    @staticmethod
    def minimal_state(plan: Plan, run: Job) -> None:
        """Slow a job down to the slowest p-states in which it still ends by its deadline (Eq. 7); never speed it up."""
        for (kind, _, present), servers in plan.parts(run.mask):
            compute = plan.kinds[kind].compute
            plan.change(servers, max(present, slowest_in_time(plan, run, kind), key=compute.index))

    @staticmethod
    def _slow_down(plan: Plan, run: Job) -> bool:
        """Set the next slower computation state for the servers of a job that have one; return False if none has."""
        moved = False
        for (kind, _, state), servers in plan.parts(run.mask):
            compute = plan.kinds[kind].compute
            if state in compute[:-1]:
                plan.change(servers, compute[compute.index(state) + 1])
                moved = True
        return moved

    def _reduce_speed(self, plan: Plan, run: Job) -> bool:
        """Go one step down for a job; return False when it was killed or cannot go lower."""
        if run not in plan.running:
            return False
        if self._slow_down(plan, run):
            return True
        if run.mask & ~plan.sleepable:
            return False
        plan.sleep(run.mask)
        plan.kill(run)
        return True


def slowest_in_time(plan: Plan, run: Job, kind: int) -> int:
    """Return the slowest p-state of a kind of servers in which a job ends by its deadline (Eq. 7), else the fastest."""
    host = plan.kinds[kind]
    left_s = run.deadline_s - plan.now_s
    left_flops = run.work_flops - run.executed_flops(plan.now_s)
    enough = [state for state in host.compute if at_least(left_s * host.pstates[state].speed_flops, left_flops)]
    return enough[-1] if enough else host.compute[0]


def _faster_states(plan: Plan, group: Group) -> list[tuple[float, float, Group, int]]:
    """Return the choices of faster states of a server of a group: minus the gain in flop/s, cost in W, group, state."""
    kind, condition, state = group
    host = plan.kinds[kind]
    now_flops = 0.0 if state in host.sleep_of else host.pstates[state].speed_flops
    now_w = plan.group_power_w(group)
    choices: list[tuple[float, float, Group, int]] = []
    for faster in host.compute:
        gain_flops = host.cores * (host.pstates[faster].speed_flops - now_flops)
        if gain_flops > 0.0:
            choices.append((-gain_flops, plan.group_power_w((kind, condition, faster)) - now_w, group, faster))
    return choices
