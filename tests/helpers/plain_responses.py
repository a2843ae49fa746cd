"""The responses by the host: docs/explanation/powercap.md and the docstring of Frugal, word by word, server by server.

Slow and short: powers are summed anew over all servers for each question, and nothing is grouped. `changed_plan` gives
what `batwatt.schedulers.powercap` has to give to the bit.
"""

from __future__ import annotations

import math

from batwatt.model import hostset
from batwatt.model.platform import NOISE_W
from batwatt.schedulers.powercap.plan import at_least, merged


class PlainPlan:
    """States and powers of the servers as lists by id."""

    def __init__(self, cluster, forecast_w=(), last=False):
        self.hosts, self.cluster, self.forecast_w, self.last = cluster.platform.hosts, cluster, forecast_w, last
        self.ids = range(len(self.hosts))
        self.before = [0] * len(self.hosts)
        for (_, state), mask in cluster.modes.items():
            for server in hostset.ids(mask):
                self.before[server] = state
        self.state = list(self.before)
        self.now_s = cluster.now_s
        self.running = list(cluster.running.values())
        self.killed = []
        self.free = [s for s in self.ids if not cluster.locked >> s & 1 and self.hosts[s].compute]

    def watts(self, server, state):
        """Eq. 2."""
        cluster, host = self.cluster, self.hosts[server]
        state_w = [pstate.full_w for pstate in host.pstates]
        if cluster.switching_on >> server & 1:
            return max(state_w[state], *(state_w[sleep.switch_on] for sleep in host.sleeps))
        if not cluster.asleep >> server & 1:
            return max(state_w[state], *(state_w[s.switch_off] for s in host.sleeps if s.sleep == state), 0.0)
        if state in host.sleep_of:
            return state_w[state]
        return max(state_w[state], state_w[host.sleep_of[self.before[server]].switch_on])

    def now_w(self, server):
        return self.watts(server, self.state[server])

    def power_w(self):
        return math.fsum(map(self.now_w, self.ids))

    def exceeds(self, cap_w):
        return self.power_w() > cap_w + NOISE_W

    def below(self, cap_w):
        return self.power_w() < cap_w - NOISE_W

    def job_on(self, server):
        return next((run for run in self.running if run.mask >> server & 1), None)

    def sleeps(self, server):
        return self.state[server] in self.hosts[server].sleep_of

    def sleep(self, server):
        if self.hosts[server].sleeps:
            self.state[server] = self.hosts[server].sleeps[0].sleep

    def slower(self, server):
        """The next computation state, then sleep; None without one."""
        host = self.hosts[server]
        if self.sleeps(server):
            return None
        states = [*host.compute, *(sleep.sleep for sleep in host.sleeps[:1])]
        rank = states.index(self.state[server]) + 1
        return states[rank] if rank < len(states) else None

    def kill(self, run, sleep=True):
        self.killed.append(run)
        self.running.remove(run)
        for server in hostset.ids(run.mask if sleep else 0):
            self.sleep(server)

    def unlocked_runs(self):
        return [run for run in self.running if not run.mask & self.cluster.locked]


def changed_plan(plan, cap_w, name, call="respond", turns=False, frugal=None):
    """Change a plan as a response does."""
    if name == "hfld":
        flops_and_deadlines(plan, cap_w, turns)
    elif name == "frugal":
        getattr(frugal, call)(plan, cap_w)
    else:
        degradation(plan, cap_w, descending=name[1] == "d", balanced=name.endswith("sb"))
    return plan


# idfs, iafs, idsb, iasb -----------------------------------------------------------------------------------------------


def degradation(plan, cap_w, descending, balanced):
    def fastest_w(server):
        host = plan.hosts[server]
        return host.pstates[host.compute[0]].full_w

    servers = sorted(plan.free, key=lambda server: (fastest_w(server) * (-1 if descending else 1), server))
    for server in servers:
        plan.state[server] = plan.hosts[server].compute[0]
    idle = [server for server in servers if plan.job_on(server) is None]
    for group in (idle, [server for server in servers if server not in idle]):
        moved = True
        while moved and balanced:
            # in turns: one step each
            moved = sum(step_down(plan, cap_w, server) for server in group) > 0
        for server in group:
            while step_down(plan, cap_w, server):
                pass


def step_down(plan, cap_w, server):
    state = plan.slower(server)
    if state is None or not plan.exceeds(cap_w):
        return False
    plan.state[server] = state
    run = plan.job_on(server)
    if run is not None and plan.sleeps(server):
        plan.kill(run, sleep=False)
    return True


# hfld -----------------------------------------------------------------------------------------------------------------


def flops_and_deadlines(plan, cap_w, turns):
    if plan.below(cap_w):
        while more_power(plan, cap_w):
            pass
        return
    if not plan.exceeds(cap_w):
        return
    for server in plan.free:
        if plan.job_on(server) is None and not plan.sleeps(server):
            plan.sleep(server)
    jobs = sorted(plan.unlocked_runs(), key=lambda run: (-run.deadline_s, run.number))
    for run in jobs:
        if plan.below(cap_w):
            return
        minimal_state(plan, run)
    moved = turns
    while moved:
        moved = False
        for run in jobs:
            if plan.below(cap_w):
                return
            moved = slow_down(plan, run) or moved
    for run in jobs:
        while not plan.below(cap_w) and slow_down(plan, run):
            pass
        if plan.below(cap_w):
            return
        if all(plan.hosts[server].sleeps for server in hostset.ids(run.mask)):
            plan.kill(run)


def more_power(plan, cap_w):
    """Line 7: the server and the state with the highest increment of flop/s, if one fits."""
    left_w, choices = cap_w - plan.power_w(), []
    for server in plan.free:
        host = plan.hosts[server]
        now_flops = 0.0 if plan.sleeps(server) else host.pstates[plan.state[server]].speed_flops
        for faster in host.compute:
            gain_flops = host.cores * (host.pstates[faster].speed_flops - now_flops)
            cost_w = plan.watts(server, faster) - plan.now_w(server)
            if gain_flops > 0.0 and cost_w <= left_w + NOISE_W:
                choices.append((-gain_flops, cost_w, server, faster))
    if not choices:
        return False
    gains, costs, servers, states = zip(*choices, strict=True)
    _, _, server, faster = min(zip(merged(gains), merged(costs, NOISE_W), servers, states, strict=True))
    plan.state[server] = faster
    return True


def minimal_state(plan, run):
    left_s, left_flops = run.deadline_s - plan.now_s, run.work_flops - run.executed_flops(plan.now_s)
    for server in hostset.ids(run.mask):
        host = plan.hosts[server]
        # from the fastest state down: one step after the other while the next state is enough, too
        while (state := plan.slower(server)) is not None and state not in host.sleep_of:
            if not at_least(left_s * host.pstates[state].speed_flops, left_flops):
                break
            plan.state[server] = state


def slow_down(plan, run):
    moved = False
    for server in hostset.ids(run.mask):
        state = plan.slower(server)
        if state is not None and state not in plan.hosts[server].sleep_of:
            plan.state[server], moved = state, True
    return moved


# frugal ---------------------------------------------------------------------------------------------------------------


class PlainFrugal:
    """The rules F1 to F7; it remembers the widest job and the greatest cap."""

    def __init__(self, headroom=0.15, efficiency=0.5, backlog=2.0, reserve=0.4):
        self.headroom, self.efficiency, self.backlog, self.reserve = headroom, efficiency, backlog, reserve
        self.widest, self.greatest_w = 0, 0.0

    def respond(self, plan, cap_w):
        self.slow_down(plan)
        wake = self.choose(plan, cap_w, within=False)
        if plan.exceeds(cap_w):
            self.kill_until(plan, cap_w)
        if plan.forecast_w:
            self.kill_ahead(plan, plan.forecast_w[0])
        self.wake(plan, wake, cap_w)
        self.speed_up(plan, cap_w)

    def adjust(self, plan, cap_w):
        self.slow_down(plan)
        self.speed_up(plan, cap_w)

    def admit(self, plan, cap_w):
        self.slow_down(plan)
        self.wake(plan, self.choose(plan, cap_w, within=True), min((cap_w, *plan.forecast_w[:1])))
        self.speed_up(plan, cap_w)

    def learn_powers(self, plan):
        """Power of each server at its slowest state, asleep, and falling asleep; its flop per joule."""
        self.slow_w, self.sleep_w, self.off_w, merit = [], [], [], []
        for host in plan.hosts:
            watts = [state.full_w for state in host.pstates]
            self.slow_w.append(watts[host.compute[-1]] if host.compute else 0.0)
            sleep = host.sleeps[0] if host.sleeps else None
            self.sleep_w.append(watts[sleep.sleep] if sleep else self.slow_w[-1])
            self.off_w.append(max(watts[sleep.sleep], watts[sleep.switch_off]) if sleep else self.slow_w[-1])
            states = [host.pstates[state] for state in host.compute]
            merit.append(max((state.speed_flops / max(state.full_w, NOISE_W) for state in states), default=0.0))
        self.merit = merged(merit)
        best = max(merit)
        self.efficient = [server for server in plan.ids if at_least(self.merit[server], self.efficiency * best)]

    def slow_down(self, plan):
        """F4: a job at its slowest speed, other servers at their slowest states."""
        self.learn_powers(plan)
        if all(len(host.compute) <= 1 for host in plan.hosts):
            return
        for server in plan.free:
            if plan.job_on(server) is None and not plan.sleeps(server):
                plan.state[server] = plan.hosts[server].compute[-1]
        for run in plan.unlocked_runs():
            if self.adjusts(plan, run):
                self.set_speed(plan, run, self.speeds(plan, run)[0])

    @staticmethod
    def adjusts(plan, run):
        return any(len(plan.hosts[server].compute) > 1 for server in hostset.ids(run.mask))

    @staticmethod
    def speeds(plan, run):
        """Speeds at which a job can run, slowest first."""
        of = [[plan.hosts[s].pstates[d].speed_flops for d in plan.hosts[s].compute] for s in hostset.ids(run.mask)]
        slowest, fastest = min(map(min, of)), min(map(max, of))
        return sorted(speed for speed in set().union(*of) if slowest <= speed <= fastest)

    @staticmethod
    def set_speed(plan, run, speed):
        for server in hostset.ids(run.mask):
            host = plan.hosts[server]
            keeping = [state for state in host.compute if host.pstates[state].speed_flops >= speed]
            plan.state[server] = keeping[-1]

    def choose(self, plan, cap_w, within):
        """F1 to F3: put idle servers to sleep; return those to be woken."""
        queue, out = plan.cluster.queue, plan.cluster.transitions.out
        widths = [row.hosts for row in queue.rows]
        self.widest = max([self.widest, *widths, *(run.hosts for run in plan.running)])
        self.greatest_w = max(self.greatest_w, cap_w)
        idle = [server for server in plan.free if plan.job_on(server) is None and plan.hosts[server].sleeps]
        in_use = [server for server in plan.ids if not plan.sleeps(server) and server not in idle]
        asleep = [self.sleep_w[server] for server in plan.ids if server not in in_use]
        slow = [self.slow_w[server] for server in in_use] + asleep
        off = [self.off_w[server] for server in in_use] + asleep
        count = sum(not out >> server & 1 for server in in_use)
        wanted = sum(run.hosts for run in plan.running) + sum(widths) + self.widest if self.widest else math.inf
        limit_w = min(((1.0 - self.headroom) * cap_w, *plan.forecast_w))
        lacking = max(widths, default=0) - count
        first = 0 if plan.running else next((job.hosts for job in queue.ordered(plan.now_s)), 0)
        idle.sort(key=lambda server: (-self.merit[server], server))

        def more(server, powers):
            return [powers[server], -self.sleep_w[server]]

        needed = slow + [w for server in idle[: max(0, first - count)] for w in more(server, self.slow_w)]
        room = not plan.last and math.fsum(needed) <= (1.0 - self.headroom) * self.greatest_w + NOISE_W
        first_w = limit_w if room else min((cap_w, *plan.forecast_w))
        stay, wake = [], []
        for rank, server in enumerate(idle):
            slow_then, off_then = slow + more(server, self.slow_w), off + more(server, self.off_w)
            fits = count < wanted and math.fsum(slow_then) <= (first_w if count < first else limit_w) + NOISE_W
            if rank >= lacking and server not in self.efficient:
                helps = at_least(sum(widths), self.backlog * len(self.efficient))
                fits = fits and helps and math.fsum(off_then) <= self.reserve * cap_w + NOISE_W
            if fits:
                count, slow, off = count + 1, slow_then, off_then
                (wake if plan.sleeps(server) else stay).append(server)
        if within and plan.forecast_w:
            return wake
        for server in idle:
            if server not in stay and not plan.sleeps(server):
                plan.sleep(server)
        while plan.exceeds(cap_w) and stay:
            server = stay.pop()
            if self.off_w[server] < self.slow_w[server]:
                plan.sleep(server)
        return wake

    @staticmethod
    def wake(plan, servers, cap_w):
        for server in servers:
            slowest = plan.hosts[server].compute[-1]
            if plan.power_w() + plan.watts(server, slowest) - plan.now_w(server) <= cap_w + NOISE_W:
                plan.state[server] = slowest

    @staticmethod
    def freed_w(run, before_w, after_w):
        return math.fsum(w for s in hostset.ids(run.mask) for w in (before_w[s], -after_w[s]))

    @staticmethod
    def victims(plan, runs, freed_w, excess_w):
        """F5: in order."""
        left = list(runs)
        wasted = dict(zip(left, merged([run.executed_flops(plan.now_s) * run.hosts for run in left]), strict=True))
        freed = dict(zip(left, merged([freed_w[run] for run in left], NOISE_W), strict=True))
        victims = []
        while left and excess_w > NOISE_W:
            enough = [run for run in left if freed_w[run] >= excess_w - NOISE_W]
            if enough:
                victim = min(enough, key=lambda run: (wasted[run], run.number))
            else:
                victim = min(left, key=lambda run: (-freed[run], wasted[run], run.number))
            victims.append(victim)
            left.remove(victim)
            excess_w -= freed_w[victim]
        return victims

    @staticmethod
    def killable(plan):
        return [run for run in plan.unlocked_runs() if all(plan.hosts[s].sleeps for s in hostset.ids(run.mask))]

    def kill_until(self, plan, cap_w):
        runs, now_w, excess_w = self.killable(plan), [plan.now_w(s) for s in plan.ids], plan.power_w() - cap_w
        freed_w = {run: self.freed_w(run, now_w, self.off_w) for run in runs}
        if math.fsum(freed_w.values()) < excess_w - NOISE_W:
            freed_w = {run: self.freed_w(run, now_w, self.sleep_w) for run in runs}
            falling = [server for server in plan.ids if plan.sleeps(server)]
            excess_w -= math.fsum(w for s in falling for w in (now_w[s], -self.sleep_w[s]))
        for run in self.victims(plan, runs, freed_w, excess_w):
            plan.kill(run)

    def kill_ahead(self, plan, next_w):
        """F7."""
        rest_w = [self.sleep_w[s] if plan.sleeps(s) else self.slow_w[s] for s in plan.ids]
        excess_w = math.fsum(rest_w) - next_w
        if excess_w <= NOISE_W:
            return
        runs = self.killable(plan)
        now_w = {run: self.freed_w(run, rest_w, self.sleep_w) for run in runs}
        then_w = {run: self.freed_w(run, rest_w, self.off_w) for run in runs}
        now = self.victims(plan, runs, now_w, excess_w)
        then = self.victims(plan, runs, then_w, excess_w)
        if len(then) <= len(now) and math.fsum(then_w[run] for run in then) >= excess_w - NOISE_W:
            return
        shares = [run.executed_flops(plan.now_s) / run.work_flops if run.work_flops > 0.0 else 0.0 for run in now]
        progress = dict(zip(now, merged(shares), strict=True))
        late = sorted(now, key=lambda run: (-progress[run], run.number))
        freed_w = math.fsum(then_w[run] for run in late)
        while late and freed_w < excess_w - NOISE_W:
            run = late.pop()
            plan.kill(run)
            freed_w += self.freed_w(run, self.off_w, self.sleep_w)

    def speed_up(self, plan, cap_w):
        """F6."""
        every = plan.unlocked_runs()
        runs = [run for run in every if self.adjusts(plan, run)]
        left = {run: max(0.0, run.work_flops - run.executed_flops(plan.now_s)) for run in every}
        for run in sorted(runs, key=lambda run: (run.deadline_s, run.number)):
            speeds, needed = self.speeds(plan, run), left[run] / max(run.deadline_s - plan.now_s, 1e-9)
            late = [speed for speed in speeds if not at_least(speed, needed)]
            if late:
                self.raise_speed(plan, run, speeds[: len(late) + 1], cap_w)
        work = dict(zip(every, merged([left[run] * run.hosts for run in every]), strict=True))
        for run in sorted(runs, key=lambda run: (-work[run], run.number)):
            self.raise_speed(plan, run, self.speeds(plan, run), cap_w)

    def raise_speed(self, plan, run, speeds, cap_w):
        servers = hostset.ids(run.mask)
        before = list(plan.state)
        left_w = cap_w - plan.power_w() + math.fsum(plan.now_w(server) for server in servers)
        for speed in reversed(speeds):
            self.set_speed(plan, run, speed)
            if math.fsum(plan.now_w(server) for server in servers) <= left_w + NOISE_W:
                return
        plan.state[:] = before
