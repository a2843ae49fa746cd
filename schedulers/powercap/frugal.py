"""The response `frugal`: few efficient servers awake, headroom for a fall of the cap, fewest kills.

Servers of one kind differ in nothing that its rules look at but their ids, so they decide over sets of servers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from batwatt.model import hostset
from batwatt.model.platform import NOISE_W, Platform
from batwatt.schedulers.powercap.plan import Group, Plan, at_least, in_order, merged, repeats
from batwatt.schedulers.powercap.responses import Response
from batwatt.scheduling.job import Job
from batwatt.scheduling.registry import register


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
        self._powers: _Powers | None = None

    def respond(self, plan: Plan, cap_w: float) -> None:
        """Apply F1 to F7 at the beginning of a step."""
        powers = self._powers_of(plan)
        _slow_down(plan, powers)
        to_wake = self._choose(plan, cap_w)
        _kill_until(plan, powers, cap_w)
        if plan.forecast_w:
            _kill_ahead(plan, powers, plan.forecast_w[0])
        _wake(plan, to_wake, cap_w)
        _speed_up(plan, powers, cap_w)

    def adjust(self, plan: Plan, cap_w: float) -> None:
        """Apply F4 and F6 within a step."""
        powers = self._powers_of(plan)
        _slow_down(plan, powers)
        _speed_up(plan, powers, cap_w)

    def admit(self, plan: Plan, cap_w: float) -> None:
        """Apply F1 to F4 and F6 within a step, so that a job that waits has its servers before the next one."""
        powers = self._powers_of(plan)
        _slow_down(plan, powers)
        # what wakes up now may do so beyond the next step
        _wake(plan, self._choose(plan, cap_w, within=True), min((cap_w, *plan.forecast_w[:1])))
        _speed_up(plan, powers, cap_w)

    def _powers_of(self, plan: Plan) -> _Powers:
        if self._powers is None or self._powers.platform is not plan.platform:
            self._powers = _Powers(plan.platform, self.efficiency)
        return self._powers

    def _choose(self, plan: Plan, cap_w: float, within: bool = False) -> list[int]:
        """Apply F1 to F3: put the idle servers to sleep that are not to be awake; return sets of those to be woken.

        With a forecast none falls asleep `within` a step.
        """
        powers = self._powers_of(plan)
        widths = [row.hosts for row in plan.queue.rows]
        self._widest = max(self._widest, *widths, *(run.hosts for run in plan.running), 0)
        idle, asleep = plan.changeable & plan.sleepable & ~plan.busy, plan.sleeping
        in_use = ~(asleep | idle)
        # units of power with those in use at their slowest states, and with all of them falling asleep
        count = slow = off = 0
        for kind, (_, members) in enumerate(plan.platform.members):
            used, rest = (members & in_use).bit_count(), (members & ~in_use).bit_count()
            count += (members & in_use & ~plan.out).bit_count()
            slow += used * powers.slow[kind] + rest * powers.sleep[kind]
            off += used * powers.off[kind] + rest * powers.sleep[kind]
        wanted: float = sum(run.hosts for run in plan.running) + sum(widths) + self._widest
        if not self._widest:
            wanted = math.inf  # no job has come yet, and one may come now
        limit_w = min(((1.0 - self.headroom) * cap_w, *plan.forecast_w))
        lacking = max(widths, default=0) - count
        self._greatest_w = max(self._greatest_w, cap_w)
        first = 0 if plan.running else next((job.hosts for job in plan.queue.ordered(plan.now_s)), 0)
        ordered = list(powers.by_merit(idle))
        needed, missing = slow, max(0, first - count)
        for kind, servers in ordered:
            number = min(missing, servers.bit_count())
            needed += number * (powers.slow[kind] - powers.sleep[kind])
            missing -= number
        room = not plan.last and plan.watts(needed) <= (1.0 - self.headroom) * self._greatest_w + NOISE_W
        first_w = limit_w if room else min((cap_w, *plan.forecast_w))
        help_wanted = at_least(sum(widths), self.backlog * powers.efficient_servers)

        def fitting(kind: int, most: int, slow_w: float, off_w: float) -> int:
            """Return how many further servers of a kind may be awake."""
            more, more_off = powers.slow[kind] - powers.sleep[kind], powers.off[kind] - powers.sleep[kind]
            return repeats(
                most,
                lambda i: (
                    plan.watts(slow + (i + 1) * more) <= slow_w + NOISE_W
                    and plan.watts(off + (i + 1) * more_off) <= off_w + NOISE_W
                ),
            )

        stay: list[int] = []
        wake: list[int] = []
        end = 0
        for kind, servers in ordered:
            begin = rank = end
            end += servers.bit_count()
            while rank < end and count < wanted:
                helps = rank >= lacking and kind not in powers.efficient
                if helps and not help_wanted:
                    break
                # the same limits apply up to the first job's last server, and to the last one that the widest lacks
                borders = (end - rank, wanted - count, first - count, lacking - rank)
                most = int(min(border for border in borders if border > 0))
                slow_w, off_w = first_w if count < first else limit_w, self.reserve * cap_w if helps else math.inf
                number = fitting(kind, most, slow_w, off_w)
                rank += number
                count += number
                slow += number * (powers.slow[kind] - powers.sleep[kind])
                off += number * (powers.off[kind] - powers.sleep[kind])
                if number < most:
                    break
            awake = hostset.lowest(servers, rank - begin)
            stay.append(awake & ~asleep)
            wake.append(awake & asleep)
        if within and plan.forecast_w:
            # a server that falls asleep may do so beyond the next step, and draws more meanwhile
            return wake
        plan.sleep(idle & ~(asleep | sum(stay)))
        for group, servers in reversed([run for awake in stay for run in in_order(plan.parts(awake))]):
            kind, count = group[0], servers.bit_count()
            if powers.off[kind] < powers.slow[kind]:
                number = plan.needed(cap_w, count, plan.more_units(group, plan.kinds[kind].sleeps[0].sleep))
                plan.sleep(servers & ~hostset.lowest(servers, count - number))
        return wake


class _Powers:
    """Power of the kinds of servers in units of the platform: at the slowest state, asleep, and falling asleep (Eq. 2).

    `efficient` are the kinds whose flop per joule at the best state is at least a share of the best kind's,
    `efficient_servers` the number of their servers; `adjustable` is the mask of servers that compute in several states.
    """

    def __init__(self, platform: Platform, share: float) -> None:
        self.platform = platform
        kinds = [host for host, _ in platform.members]
        self.slow = [platform.units(host.pstates[host.compute[-1]].full_w) if host.compute else 0 for host in kinds]
        self.sleep, self.off = list(self.slow), list(self.slow)
        self._speeds: dict[tuple[int, ...], list[float]] = {}
        self._states: dict[tuple[int, float], int] = {}
        best: list[float] = []
        self.adjustable = 0
        for kind, (host, servers) in enumerate(platform.members):
            if host.sleeps:
                self.sleep[kind] = platform.units(host.pstates[host.sleeps[0].sleep].full_w)
                self.off[kind] = platform.units(host.falling_w(host.sleeps[0]))
            states = [host.pstates[state] for state in host.compute]
            best.append(max((state.speed_flops / max(state.full_w, NOISE_W) for state in states), default=0.0))
            self.adjustable |= servers if len(states) > 1 else 0
        self._merit = merged(best)
        self.efficient = {kind for kind, merit in enumerate(self._merit) if at_least(merit, share * max(best))}
        self.efficient_servers = sum(platform.members[kind][1].bit_count() for kind in self.efficient)

    def by_merit(self, servers: int) -> Iterator[tuple[int, int]]:
        """Yield servers of one kind after the other: most flop per joule first, those of equal ones by id."""
        equals: dict[float, list[tuple[int, int]]] = {}
        for kind, part in self.platform.parts(servers):
            equals.setdefault(self._merit[kind], []).append((kind, part))
        for merit in sorted(equals, reverse=True):
            yield from in_order(equals[merit])

    def speeds(self, run: Job) -> list[float]:
        """Return the speeds in flop/s at which a job can run, slowest first; its slowest server sets the fastest."""
        kinds = tuple(kind for kind, _ in self.platform.parts(run.mask))
        if kinds not in self._speeds:
            flops = [[self._flops(kind, state) for state in self.platform.members[kind][0].compute] for kind in kinds]
            slowest, fastest = min(map(min, flops)), min(map(max, flops))
            self._speeds[kinds] = sorted(speed for speed in set().union(*flops) if slowest <= speed <= fastest)
        return self._speeds[kinds]

    def state(self, kind: int, speed_flops: float) -> int:
        """Return the slowest state of a kind of servers that keeps up with a speed in flop/s."""
        state = self._states.get((kind, speed_flops))
        if state is None:
            slowest_first = reversed(self.platform.members[kind][0].compute)
            state = next(state for state in slowest_first if self._flops(kind, state) >= speed_flops)
            self._states[kind, speed_flops] = state
        return state

    def _flops(self, kind: int, state: int) -> float:
        return self.platform.members[kind][0].pstates[state].speed_flops


def _changeable(plan: Plan) -> list[Job]:
    """Return the jobs without a server in transition or away."""
    return [run for run in plan.running if not run.mask & plan.locked]


def _slow_down(plan: Plan, powers: _Powers) -> None:
    """Apply F4: put everything that is on in its slowest state."""
    if not powers.adjustable:
        return
    targets: dict[int, int] = {}
    for kind, servers in plan.platform.parts(plan.changeable & ~(plan.busy | plan.sleeping)):
        slowest = plan.kinds[kind].compute[-1]
        targets[slowest] = targets.get(slowest, 0) | servers
    for run in _changeable(plan):
        if run.mask & powers.adjustable:
            speed_flops = powers.speeds(run)[0]
            for kind, servers in plan.platform.parts(run.mask):
                state = powers.state(kind, speed_flops)
                targets[state] = targets.get(state, 0) | servers
    for state, servers in targets.items():
        plan.change(servers, state)


def _wake(plan: Plan, to_wake: list[int], cap_w: float) -> None:
    """Wake servers to their slowest states, as many as the cap allows."""
    for group, servers in [run for sleepers in to_wake for run in in_order(plan.parts(sleepers))]:
        kind, condition, _ = group
        slowest = plan.kinds[kind].compute[-1]
        awake_w, asleep_w = plan.group_power_w((kind, condition, slowest)), plan.group_power_w(group)
        more = plan.more_units(group, slowest)

        def fits(i: int, more: int = more, awake_w: float = awake_w, asleep_w: float = asleep_w) -> bool:
            return plan.power_with_w(i * more) + awake_w - asleep_w <= cap_w + NOISE_W

        plan.change(hostset.lowest(servers, repeats(servers.bit_count(), fits)), slowest)


def _victims(runs: list[Job], freed_w: dict[str, float], excess_w: float, now_s: float) -> list[Job]:
    """Return by F5 the jobs to kill so that `excess_w` is freed, in order; all of them if that is not enough.

    Of those that free enough the one with the fewest wasted flops.
    """
    wasted = dict(zip(runs, merged([run.executed_flops(now_s) * run.hosts for run in runs]), strict=True))
    freed = dict(zip(runs, merged([freed_w[run.attempt.id] for run in runs], NOISE_W), strict=True))
    most_freed = iter(sorted(runs, key=lambda run: (-freed[run], wasted[run], run.number)))
    # equal powers freed may differ by the noise
    greatest = sorted(runs, key=lambda run: freed_w[run.attempt.id])
    victims: dict[Job, None] = {}
    while len(victims) < len(runs) and excess_w > NOISE_W:
        while greatest[-1] in victims:
            greatest.pop()
        if freed_w[greatest[-1].attempt.id] >= excess_w - NOISE_W:
            enough = [run for run in greatest if run not in victims and freed_w[run.attempt.id] >= excess_w - NOISE_W]
            victim = min(enough, key=lambda run: (wasted[run], run.number))
        else:
            victim = next(run for run in most_freed if run not in victims)
        victims[victim] = None
        excess_w -= freed_w[victim.attempt.id]
    return list(victims)


def _kill(plan: Plan, run: Job) -> None:
    plan.sleep(run.mask)
    plan.kill(run)


def _killable(plan: Plan) -> list[Job]:
    return [run for run in _changeable(plan) if not run.mask & ~plan.sleepable]


def _freed_w(plan: Plan, run: Job, before: Callable[[Group], int], after: list[int]) -> float:
    """Return the power in W that falls on a job's servers from units of their groups to units of their kinds."""
    parts = plan.parts(run.mask)
    return plan.watts(sum(servers.bit_count() * (before(group) - after[group[0]]) for group, servers in parts))


def _kill_until(plan: Plan, powers: _Powers, cap_w: float) -> None:
    """Apply F5 at the beginning of a step."""
    if not plan.exceeds(cap_w):
        return
    runs = _killable(plan)
    freed_w = {run.attempt.id: _freed_w(plan, run, plan.group_units, powers.off) for run in runs}
    excess_w = plan.power_w - cap_w
    if math.fsum(freed_w.values()) < excess_w - NOISE_W:
        # a violation whatever is done: save what can run once the servers that fall asleep do sleep
        freed_w = {run.attempt.id: _freed_w(plan, run, plan.group_units, powers.sleep) for run in runs}
        falling = plan.parts(plan.sleeping)
        excess_w -= plan.watts(
            sum(servers.bit_count() * (plan.group_units(group) - powers.sleep[group[0]]) for group, servers in falling)
        )
    for run in _victims(runs, freed_w, excess_w, plan.now_s):
        _kill(plan, run)


def _kill_ahead(plan: Plan, powers: _Powers, next_w: float) -> None:
    """Apply F7: pay the cost of the next cap now if that is cheaper."""

    def rest(group: Group) -> int:
        kind, _, state = group
        return powers.sleep[kind] if state in plan.kinds[kind].sleep_of else powers.slow[kind]

    def falling(group: Group) -> int:
        return powers.off[group[0]]

    runs = _killable(plan)
    excess_w = plan.watts(sum(servers.bit_count() * rest(group) for group, servers in plan.parts(-1))) - next_w
    if excess_w <= NOISE_W:
        return
    now_w = {run.attempt.id: _freed_w(plan, run, rest, powers.sleep) for run in runs}
    now = _victims(runs, now_w, excess_w, plan.now_s)
    then_w = {run.attempt.id: _freed_w(plan, run, rest, powers.off) for run in runs}
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
        freed_w += _freed_w(plan, run, falling, powers.sleep)


def _speed_up(plan: Plan, powers: _Powers, cap_w: float) -> None:
    """Apply F6: jobs that are late first, then those with the most work left."""
    runs = _changeable(plan)
    speeds_of = {run: powers.speeds(run) for run in runs if run.mask & powers.adjustable}
    if not speeds_of:
        return
    left_flops = {run.attempt.id: max(0.0, run.work_flops - run.executed_flops(plan.now_s)) for run in runs}
    for run in sorted(speeds_of, key=lambda run: (run.deadline_s, run.number)):
        needed = left_flops[run.attempt.id] / max(run.deadline_s - plan.now_s, 1e-9)
        speeds = speeds_of[run]
        enough = [speed for speed in speeds if at_least(speed, needed)]
        if len(enough) < len(speeds):
            _raise(plan, powers, run, speeds[: len(speeds) - len(enough)] + enough[:1], cap_w)
    left = dict(zip(runs, merged([left_flops[run.attempt.id] * run.hosts for run in runs]), strict=True))
    for run in sorted(speeds_of, key=lambda run: (-left[run], run.number)):
        _raise(plan, powers, run, speeds_of[run], cap_w)


def _raise(plan: Plan, powers: _Powers, run: Job, speeds: list[float], cap_w: float) -> None:
    """Set the fastest of these speeds that the power left pays for."""
    parts = plan.parts(run.mask)
    present = sum(servers.bit_count() * plan.group_units(group) for group, servers in parts)
    left_w = cap_w - plan.power_w + plan.watts(present)
    for speed in reversed(speeds):
        states = [powers.state(kind, speed) for (kind, _, _), _ in parts]
        more = sum(
            servers.bit_count() * plan.more_units(group, state)
            for (group, servers), state in zip(parts, states, strict=True)
        )
        if plan.watts(present + more) <= left_w + NOISE_W:
            for (_, servers), state in zip(parts, states, strict=True):
                plan.change(servers, state)
            return
