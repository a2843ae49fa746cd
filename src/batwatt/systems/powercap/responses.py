"""Responses to a new power cap: the server configuration of the powercap paper, section V-A.

A response runs at each step of the envelope and knows only the current cap. It changes a `Plan` (D_{s,d,t} with the
power of Eq. 2); servers in transition are left alone. A job of which a server is put to sleep is killed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from operator import neg

from batwatt.model import hostset
from batwatt.model.platform import NOISE_W
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.registry import register
from batwatt.systems.powercap.server_plan import Plan
from batwatt.systems.powercap.ties import at_least, merged


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
        servers = plan.free_to_change()
        servers.sort(key=lambda server: (self._power(plan, server), server))
        running = [server for server in servers if not plan.is_idle(server)]
        idle = [server for server in servers if plan.is_idle(server)]
        for server in servers:
            plan.put(server, plan.hosts[server].compute[0])
        for group in (idle, running):
            self.degrade(plan, cap_w, group)

    def _power(self, plan: Plan, server: int) -> float:
        host = plan.hosts[server]
        power = host.pstates[host.compute[0]].full_w
        return -power if self.descending else power

    @abstractmethod
    def degrade(self, plan: Plan, cap_w: float, servers: list[int]) -> None:
        """Slow the servers down until Eq. 1 holds or all sleep."""

    @staticmethod
    def step_down(plan: Plan, server: int) -> bool:
        """Go one state slower; at sleep the server's job is killed. Return False if there is no slower state."""
        state = plan.slower(server)
        if state is None:
            return False
        plan.put(server, state)
        run = plan.job_on(server)
        if run is not None and plan.sleeps(server):
            plan.kill(run)
        return True


class FewestServers(IdleDegradation):
    """IFS: slow down one server until it sleeps, then the next."""

    def degrade(self, plan: Plan, cap_w: float, servers: list[int]) -> None:
        """Slow down server by server."""
        for server in servers:
            while plan.exceeds(cap_w) and self.step_down(plan, server):
                pass


class BalancedServers(IdleDegradation):
    """ISB: slow down the servers in turns, one state at a time."""

    def degrade(self, plan: Plan, cap_w: float, servers: list[int]) -> None:
        """Slow down in turns (round robin)."""
        moved = True
        while moved:
            moved = False
            for server in servers:
                if not plan.exceeds(cap_w):
                    return
                moved = self.step_down(plan, server) or moved


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
      with the highest increment of flop/s; ties (equal within `ties.SAME`): least increment of power, then lowest id. A
      sleeping server has 0 flop/s and pays max(P_on, P_d) (Eq. 2). Whether a job runs there does not matter to the
      text, nor here.
    - `put_idle_servers_sleep` (line 9) puts all idle servers to sleep, not just enough of them.
    - A job's deadline is start + walltime; highest first, ties by arrival. A job without walltime comes first.
    - `minimal_state` (line 14): on each of the job's servers the slowest state of Eq. 7, even if that is faster than
      the current one ("faster states in the end"); the fastest state if none satisfies it. Fl_j and Ef_j are per
      server, as every server of a job executes the same flops.
    - `reduce_speed` (line 21): every server of the job one state slower; those at the slowest computation state stay
      until all are, then all sleep and the job is killed. The same job is reduced until killed (its deadline stays the
      highest). With `turns`, another reading: every job is one state slower, highest deadline first, and again, until
      all are at their slowest states; only then are jobs killed.
    - Servers that cannot sleep stay at their slowest state, and their jobs are not killed.
    """

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
        awake = (server for server in plan.free_to_change() if not plan.sleeps(server))
        plan.put_to_sleep(server for server in awake if plan.is_idle(server))
        if plan.below(cap_w):
            return
        jobs = sorted(plan.running, key=lambda run: (-run.deadline_s, run.number))
        jobs = [run for run in jobs if not run.mask & plan.locked]
        for run in jobs:
            self._minimal_state(plan, run)
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
        alike: dict[tuple[int, int, bool], list[int]] = {}
        for server in reversed(plan.free_to_change()):
            alike.setdefault(_alike(plan, server), []).append(server)
        while True:
            left_w = cap_w - plan.power_w
            choices: list[tuple[float, float, int, int]] = []
            # servers that are alike have the same choices; the last of their list has the lowest id
            for servers in alike.values():
                server = servers[-1]
                host, state = plan.hosts[server], plan.state[server]
                now_flops = 0.0 if plan.sleeps(server) else host.pstates[state].speed_flops
                now_w = plan.state_power_w(server, state)
                for faster in host.compute:
                    gain_flops = host.cores * (host.pstates[faster].speed_flops - now_flops)
                    cost_w = plan.state_power_w(server, faster) - now_w
                    if gain_flops > 0.0 and cost_w <= left_w + NOISE_W:
                        choices.append((-gain_flops, cost_w, server, faster))
            if not choices:
                return
            gains, costs, changed, states = zip(*choices, strict=True)
            _, _, server, faster = min(zip(merged(gains), merged(costs, NOISE_W), changed, states, strict=True))
            left = alike[_alike(plan, server)]
            left.pop()
            if not left:
                del alike[_alike(plan, server)]
            plan.put(server, faster)
            # kept in falling order of ids
            insort(alike.setdefault(_alike(plan, server), []), server, key=neg)

    @staticmethod
    def _minimal_state(plan: Plan, run: ManagedJob) -> None:
        """Set the slowest p-states in which a job still ends by its deadline (Eq. 7)."""
        left_s = run.deadline_s - plan.now_s
        left_flops = run.plan.work_flops - run.plan.done_by(plan.now_s)
        for server in hostset.ids(run.mask):
            host = plan.hosts[server]
            enough = [state for state in host.compute if at_least(left_s * host.pstates[state].speed_flops, left_flops)]
            plan.put(server, enough[-1] if enough else host.compute[0])

    @staticmethod
    def _slow_down(plan: Plan, run: ManagedJob) -> bool:
        """Set the next slower computation state for the servers of a job that have one; return False if none has."""
        slower = {server: plan.slower(server) for server in hostset.ids(run.mask)}
        reducible = {s: d for s, d in slower.items() if d is not None and d not in plan.hosts[s].sleep_of}
        plan.put_all(reducible)
        return bool(reducible)

    def _reduce_speed(self, plan: Plan, run: ManagedJob) -> bool:
        """Go one step down for a job; return False when it was killed or cannot go lower."""
        if run not in plan.running:
            return False
        if self._slow_down(plan, run):
            return True
        servers = hostset.ids(run.mask)
        if not all(plan.can_sleep(server) for server in servers):
            return False
        plan.put_to_sleep(servers)
        plan.kill(run)
        return True


def _alike(plan: Plan, server: int) -> tuple[int, int, bool]:
    """Return the key of servers with the same choices: kind, state, and whether asleep when the step begins."""
    return plan.kinds[server], plan.state[server], bool(plan.asleep >> server & 1)
