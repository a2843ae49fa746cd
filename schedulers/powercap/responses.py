"""Responses to a new power cap: the server configuration of the powercap paper, section V-A.

A response runs at each step of the envelope and knows only the current cap. It changes a `Plan` (D_{s,d,t} with the
power of Eq. 2); servers in transition are left alone. A job of which a server is put to sleep is killed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import insort
from operator import neg

from batwatt.model import hostset
from batwatt.model.platform import NOISE_W, Host
from batwatt.schedulers.powercap.plan import Plan, at_least, merged
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
      with the highest increment of flop/s; ties (equal within `SAME`): least increment of power, then lowest id. A
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
    def _minimal_state(plan: Plan, run: Job) -> None:
        """Set the slowest p-states in which a job still ends by its deadline (Eq. 7)."""
        left_s = run.deadline_s - plan.now_s
        left_flops = run.work_flops - run.executed_flops(plan.now_s)
        for server in hostset.ids(run.mask):
            host = plan.hosts[server]
            enough = [state for state in host.compute if at_least(left_s * host.pstates[state].speed_flops, left_flops)]
            plan.put(server, enough[-1] if enough else host.compute[0])

    @staticmethod
    def _slow_down(plan: Plan, run: Job) -> bool:
        """Set the next slower computation state for the servers of a job that have one; return False if none has."""
        slower = {server: plan.slower(server) for server in hostset.ids(run.mask)}
        reducible = {s: d for s, d in slower.items() if d is not None and d not in plan.hosts[s].sleep_of}
        plan.put_all(reducible)
        return bool(reducible)

    def _reduce_speed(self, plan: Plan, run: Job) -> bool:
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


@register("response", "frugal")
class Frugal(Response):
    """Frugal: few efficient servers awake, headroom for a fall, speed for the most work left, fewest kills.

    Parameters: `headroom` (share of the cap that stays unplanned, in [0, 1[), `efficiency` (a kind of server is
    efficient if its best flop/s per W is at least this share of the best kind's, in [0, 1]), `backlog` (servers that
    waiting jobs ask for, per efficient server, from which the other kinds help, >= 0) and `reserve` (share of the cap
    that falling asleep may take while they help, >= 0).

    - F1 Efficient: servers of efficient kinds come first. The others help only if the waiting jobs ask for at least
      `backlog` x the number of efficient servers, and only while all that are awake, if they fell asleep together,
      would draw at most `reserve` x cap with those asleep: a cap that falls to that share can be followed in its step.
      If a job waits that is wider than all that are in use or efficient, as many as it lacks come in as well.
    - F2 Needed: at most as many are awake as running and waiting jobs ask for, and as many more as the widest job so
      far, so that a job to come need not wait for a transition; before the first job, any. Most efficient first, ties
      by id.
    - F3 Headroom: an idle server stays awake, or is woken, only while all that are awake, at their slowest states, and
      those asleep need at most (1 - headroom) x cap and, with a forecast, the least of the caps forecast.
      A fall to that is followed by slowing down, without a kill. While no job runs, as many as the first waiting job
      lacks need the cap only, if this cap is the last or no cap so far had room for them: it would wait for ever. If
      the cap is exceeded in this step, as those that fall asleep draw power meanwhile, more idle ones go, least
      efficient first, where that frees power.
    - F4 Slow before kill: idle servers run at their slowest state; before a job is killed, so do running ones.
    - F5 Fewest kills: if one kill is enough, the job of least wasted work (flops done so far on all its servers) among
      those that are; else the one that frees most power, and again. If even killing all cannot meet the cap in this
      step, for servers that fall asleep draw the power of on->off, as few as will do once they sleep.
    - F6 Speed: the power left goes, job by job, to as fast a speed as it pays for: first to jobs that would not make
      their walltime (Eq. 7 of the powercap paper), as much as they need, earliest deadline first; then to those with
      the most work left. A server gets the slowest state that keeps up with the slowest server of its job. Within a
      step this is done again when jobs have started or ended.
    - F7 Foresight: with a forecast, if the fall to the next cap will cost more kills then than now, because servers
      that fall asleep draw the power of on->off, jobs are killed ahead, least progress first, as few as will do.

    F1 to F4 and F6 apply within a step, too, where a job waits after others have come or ended; none is killed then.
    The forecast is that of the begin of the step; with one, servers wake as the next cap allows, and none falls asleep.

    A job's work is that of `work_estimate`; for this response the default is `learned`. Raises ValueError.
    """

    between_steps = True
    work_estimate = "learned"

    def __init__(
        self, headroom: float = 0.15, efficiency: float = 0.5, backlog: float = 2.0, reserve: float = 0.4
    ) -> None:
        parameters = {"headroom": headroom, "efficiency": efficiency, "backlog": backlog, "reserve": reserve}
        for name, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ValueError(f"{name} must be a number >= 0, got {value!r}")
        if headroom >= 1.0:
            raise ValueError(f"headroom must be below 1, got {headroom!r}")
        if efficiency > 1.0:
            raise ValueError(f"efficiency must be at most 1, got {efficiency!r}")
        self.headroom, self.efficiency, self.backlog, self.reserve = headroom, efficiency, backlog, reserve
        self._widest = 0
        self._greatest_w = 0.0
        self._watts = _Watts((), efficiency)

    def respond(self, plan: Plan, cap_w: float) -> None:
        """Apply F1 to F7 at the beginning of a step."""
        watts = self._watts_of(plan)
        _slow_down(plan, watts)
        to_wake = self._choose(plan, cap_w)
        _kill_until(plan, watts, cap_w)
        if plan.forecast_w:
            _kill_ahead(plan, watts, plan.forecast_w[0])
        _wake(plan, to_wake, cap_w)
        _speed_up(plan, watts, cap_w)

    def adjust(self, plan: Plan, cap_w: float) -> None:
        """Apply F4 and F6 within a step."""
        watts = self._watts_of(plan)
        _slow_down(plan, watts)
        _speed_up(plan, watts, cap_w)

    def admit(self, plan: Plan, cap_w: float) -> None:
        """Apply F1 to F4 and F6 within a step, so that a job that waits has its servers before the next one."""
        watts = self._watts_of(plan)
        _slow_down(plan, watts)
        # what wakes up now may do so beyond the next step
        _wake(plan, self._choose(plan, cap_w, within=True), min((cap_w, *plan.forecast_w[:1])))
        _speed_up(plan, watts, cap_w)

    def _watts_of(self, plan: Plan) -> _Watts:
        if self._watts.hosts is not plan.hosts:
            self._watts = _Watts(plan.hosts, self.efficiency)
        return self._watts

    def _choose(self, plan: Plan, cap_w: float, within: bool = False) -> list[int]:
        """Apply F1 to F3: put the idle servers to sleep that are not to be awake; return those to be woken.

        With a forecast none falls asleep `within` a step.
        """
        watts = self._watts
        widths = [row.hosts for row in plan.queue.rows]
        self._widest = max(self._widest, *widths, *(run.hosts for run in plan.running), 0)
        idle = [server for server in plan.free_to_change() if plan.is_idle(server) and plan.can_sleep(server)]
        in_use = {server for server in range(len(plan.hosts)) if not plan.sleeps(server)}.difference(idle)
        count = sum(not plan.out >> server & 1 for server in in_use)
        slow_w = math.fsum(watts.slow[server] if server in in_use else watts.sleep[server] for server in watts.ids)
        off_w = math.fsum(watts.off[server] if server in in_use else watts.sleep[server] for server in watts.ids)
        wanted: float = sum(run.hosts for run in plan.running) + sum(widths) + self._widest
        if not self._widest:
            wanted = math.inf  # no job has come yet, and one may come now
        limit_w = min(((1.0 - self.headroom) * cap_w, *plan.forecast_w))
        lacking = max(widths, default=0) - count
        self._greatest_w = max(self._greatest_w, cap_w)
        first = 0 if plan.running else next((job.hosts for job in plan.queue.ordered(plan.now_s)), 0)
        idle.sort(key=lambda server: (-watts.merit[server], server))
        needed_w = slow_w + sum(watts.slow[server] - watts.sleep[server] for server in idle[: max(0, first - count)])
        room = not plan.last and needed_w <= (1.0 - self.headroom) * self._greatest_w + NOISE_W
        first_w = limit_w if room else min((cap_w, *plan.forecast_w))
        help_wanted = at_least(sum(widths), self.backlog * len(watts.efficient))
        stay: list[int] = []
        wake: list[int] = []
        for rank, server in enumerate(idle):
            more_w = watts.slow[server] - watts.sleep[server]
            more_off_w = watts.off[server] - watts.sleep[server]
            fits = count < wanted and slow_w + more_w <= (first_w if count < first else limit_w) + NOISE_W
            if rank >= lacking and server not in watts.efficient:
                fits = fits and help_wanted and off_w + more_off_w <= self.reserve * cap_w + NOISE_W
            if fits:
                count += 1
                slow_w += more_w
                off_w += more_off_w
                (wake if plan.sleeps(server) else stay).append(server)
        if within and plan.forecast_w:
            # a server that falls asleep may do so beyond the next step, and draws more meanwhile
            return wake
        on = set(stay)
        plan.put_to_sleep(server for server in idle if not (server in on or plan.sleeps(server)))
        while plan.exceeds(cap_w) and stay:
            server = stay.pop()
            if watts.off[server] < watts.slow[server]:
                plan.put_to_sleep([server])
        return wake


class _Watts:
    """Power of servers in W by id: at the slowest state, asleep, and while they fall asleep (Eq. 2).

    `merit` is their flop per joule at the best state, `efficient` those with at least a share of the best one's.
    `adjustable` is the mask of those that compute in several states.
    """

    def __init__(self, hosts: tuple[Host, ...], share: float) -> None:
        self.hosts = hosts
        self.ids = range(len(hosts))
        self.adjustable = sum(1 << host.id for host in hosts if len(host.compute) > 1)
        self.slow = [host.pstates[host.compute[-1]].full_w if host.compute else 0.0 for host in hosts]
        self.sleep = list(self.slow)
        self.off = list(self.slow)
        for host in hosts:
            if host.sleeps:
                self.sleep[host.id] = host.pstates[host.sleeps[0].sleep].full_w
                self.off[host.id] = host.falling_w(host.sleeps[0])
        best = [
            max((host.pstates[d].speed_flops / max(host.pstates[d].full_w, NOISE_W) for d in host.compute), default=0.0)
            for host in hosts
        ]
        self.merit = merged(best)
        self.efficient = {server for server in self.ids if at_least(self.merit[server], share * max(best))}


def _changeable(plan: Plan) -> list[Job]:
    """Return the jobs without a server in transition or away."""
    return [run for run in plan.running if not run.mask & plan.locked]


def _speeds(plan: Plan, run: Job) -> list[float]:
    """Return the speeds in flop/s at which a job can run, slowest first; its slowest server sets the fastest."""
    hosts = [plan.hosts[server] for server in hostset.ids(run.mask)]
    fastest = min(host.pstates[host.compute[0]].speed_flops for host in hosts)
    slowest = min(host.pstates[host.compute[-1]].speed_flops for host in hosts)
    every = {host.pstates[state].speed_flops for host in hosts for state in host.compute}
    return sorted(speed for speed in every if slowest <= speed <= fastest)


def _states(plan: Plan, run: Job, speed_flops: float) -> dict[int, int]:
    """Return the slowest state of each of a job's servers that keeps up with a speed."""
    hosts = [plan.hosts[server] for server in hostset.ids(run.mask)]
    return {
        host.id: next(d for d in reversed(host.compute) if host.pstates[d].speed_flops >= speed_flops) for host in hosts
    }


def _slow_down(plan: Plan, watts: _Watts) -> None:
    """Apply F4: put everything that is on in its slowest state."""
    if not watts.adjustable:
        return
    idle = [server for server in plan.free_to_change() if plan.is_idle(server) and not plan.sleeps(server)]
    states = {server: plan.hosts[server].compute[-1] for server in idle}
    for run in _changeable(plan):
        if run.mask & watts.adjustable:
            states |= _states(plan, run, _speeds(plan, run)[0])
    plan.put_all(states)


def _wake(plan: Plan, servers: list[int], cap_w: float) -> None:
    """Wake servers to their slowest states, as many as the cap allows."""
    for server in servers:
        state = plan.hosts[server].compute[-1]
        if plan.power_w + plan.state_power_w(server, state) - plan.power_of(server) <= cap_w + NOISE_W:
            plan.put(server, state)


def _victims(runs: list[Job], freed_w: dict[str, float], excess_w: float, now_s: float) -> list[Job]:
    """Return by F5 the jobs to kill so that `excess_w` is freed, in order; all of them if that is not enough.

    Of those that free enough the one with the fewest wasted flops.
    """
    left = list(runs)
    wasted = dict(zip(left, merged([run.executed_flops(now_s) * run.hosts for run in left]), strict=True))
    freed = dict(zip(left, merged([freed_w[run.attempt.id] for run in left], NOISE_W), strict=True))
    victims: list[Job] = []
    while left and excess_w > NOISE_W:
        enough = [run for run in left if freed_w[run.attempt.id] >= excess_w - NOISE_W]
        if enough:
            victim = min(enough, key=lambda run: (wasted[run], run.number))
        else:
            victim = min(left, key=lambda run: (-freed[run], wasted[run], run.number))
        victims.append(victim)
        left.remove(victim)
        excess_w -= freed_w[victim.attempt.id]
    return victims


def _kill(plan: Plan, run: Job) -> None:
    plan.put_to_sleep(hostset.ids(run.mask))
    plan.kill(run)


def _killable(plan: Plan) -> list[Job]:
    return [run for run in _changeable(plan) if all(plan.can_sleep(server) for server in hostset.ids(run.mask))]


def _freed_w(run: Job, after_w: list[float], before_w: list[float]) -> float:
    return math.fsum(before_w[server] - after_w[server] for server in hostset.ids(run.mask))


def _kill_until(plan: Plan, watts: _Watts, cap_w: float) -> None:
    """Apply F5 at the beginning of a step."""
    if not plan.exceeds(cap_w):
        return
    runs = _killable(plan)
    now_w = [plan.power_of(server) for server in range(len(plan.hosts))]
    freed_w = {run.attempt.id: _freed_w(run, watts.off, now_w) for run in runs}
    excess_w = plan.power_w - cap_w
    if math.fsum(freed_w.values()) < excess_w - NOISE_W:
        # a violation whatever is done: save what can run once the servers that fall asleep do sleep
        freed_w = {run.attempt.id: _freed_w(run, watts.sleep, now_w) for run in runs}
        falling = [server for server in range(len(plan.hosts)) if plan.sleeps(server)]
        excess_w -= math.fsum(now_w[server] - watts.sleep[server] for server in falling)
    for run in _victims(runs, freed_w, excess_w, plan.now_s):
        _kill(plan, run)


def _kill_ahead(plan: Plan, watts: _Watts, next_w: float) -> None:
    """Apply F7: pay the cost of the next cap now if that is cheaper."""
    runs = _killable(plan)
    rest_w = [watts.sleep[server] if plan.sleeps(server) else watts.slow[server] for server in range(len(plan.hosts))]
    excess_w = math.fsum(rest_w) - next_w
    if excess_w <= NOISE_W:
        return
    now = _victims(runs, {run.attempt.id: _freed_w(run, watts.sleep, rest_w) for run in runs}, excess_w, plan.now_s)
    then_w = {run.attempt.id: _freed_w(run, watts.off, rest_w) for run in runs}
    then = _victims(runs, then_w, excess_w, plan.now_s)
    if len(then) <= len(now) and math.fsum(then_w[run.attempt.id] for run in then) >= excess_w - NOISE_W:
        return
    # as late as can be: a job that is killed then still draws the power of on->off
    shares = [run.executed_flops(plan.now_s) / run.work_flops if run.work_flops > 0.0 else 0.0 for run in now]
    progress = dict(zip(now, merged(shares), strict=True))
    late = sorted(now, key=lambda run: (-progress[run], run.number))
    freed_w = math.fsum(then_w[run.attempt.id] for run in late)
    while late and freed_w < excess_w - NOISE_W:
        run = late.pop()
        _kill(plan, run)
        freed_w += _freed_w(run, watts.sleep, watts.off)


def _speed_up(plan: Plan, watts: _Watts, cap_w: float) -> None:
    """Apply F6: jobs that are late first, then those with the most work left."""
    runs = _changeable(plan)
    speeds_of = {run: _speeds(plan, run) for run in runs if run.mask & watts.adjustable}
    if not speeds_of:
        return
    left_flops = {run.attempt.id: max(0.0, run.work_flops - run.executed_flops(plan.now_s)) for run in runs}
    for run in sorted(speeds_of, key=lambda run: (run.deadline_s, run.number)):
        needed = left_flops[run.attempt.id] / max(run.deadline_s - plan.now_s, 1e-9)
        speeds = speeds_of[run]
        enough = [speed for speed in speeds if at_least(speed, needed)]
        if len(enough) < len(speeds):
            _raise(plan, run, speeds[: len(speeds) - len(enough)] + enough[:1], cap_w)
    left = dict(zip(runs, merged([left_flops[run.attempt.id] * run.hosts for run in runs]), strict=True))
    for run in sorted(speeds_of, key=lambda run: (-left[run], run.number)):
        _raise(plan, run, speeds_of[run], cap_w)


def _raise(plan: Plan, run: Job, speeds: list[float], cap_w: float) -> None:
    """Set the fastest of these speeds that the power left pays for."""
    left_w = cap_w - plan.power_w + math.fsum(plan.power_of(server) for server in hostset.ids(run.mask))
    for speed in reversed(speeds):
        states = _states(plan, run, speed)
        if math.fsum(plan.state_power_w(server, state) for server, state in states.items()) <= left_w + NOISE_W:
            plan.put_all(states)
            return
