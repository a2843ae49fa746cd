"""One episode on the engine: what an agent may decide, carried out as a scheduler's answers to the engine's messages.

It is on the seam between engine and scheduler (docs/explanation/architecture.md), in the place of `Bs`. The decisions
of one moment are one answer. Nothing here knows gymnasium.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from batwatt.engine import events as ev
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.gym.horizon import Horizon
from batwatt.gym.limits import Limits
from batwatt.gym.queue import NEVER_S, Visible, Waiting
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.record import NULL_RUNTIME_S, SUCCESSFUL
from batwatt.model.workload import NO_WALLTIME
from batwatt.results.columns import KILLED
from batwatt.results.work import flops_of
from batwatt.run.inputs import RunInputs
from batwatt.scheduling.queue import Ends
from batwatt.scheduling.victims import Victim, VictimRule
from batwatt.units import REPORTED_S, microseconds


class Run:
    """A running job: its hosts as a mask, when it started, its ticket among the expected ends."""

    __slots__ = ("mask", "start_s", "ticket", "waiting")

    def __init__(self, waiting: Waiting, mask: int, start_s: float, ticket: tuple[float, int, int]) -> None:
        self.waiting = waiting
        self.mask = mask
        self.start_s = start_s
        self.ticket = ticket


class Simulation:
    """An episode, from its first moment with a decision on.

    `now_s` is the time of the present moment, of the last end when it is `over`; `room` how many hosts can be given to
    jobs; `fits` which visible jobs can start. The sums that rewards are made of: see `columns`.
    """

    def __init__(
        self,
        inputs: RunInputs,
        limits: Limits,
        horizon: Horizon,
        places: int,
        rule: VictimRule,
        every_event: bool,
        work: bool = False,
    ) -> None:
        self.inputs = inputs
        self.horizon = horizon
        self.limits = limits
        self.every_event = every_event
        self._rule = rule
        self._dynamic = limits.active and rule.saved_s(Victim(math.inf, 0.0, 0.0, 0.0)) is not None
        energy, again = inputs.platform.has_power, self._dynamic
        self.config = EngineConfig(energy=energy, dynamic_jobs=again, profile_reuse=again)
        self.engine = Engine(inputs.platform, inputs.run, self.config)
        self.hosts = len(inputs.platform)
        self.queue = Visible(places)
        self.running: dict[str, Run] = {}
        self.ends = Ends()
        self.free = self.everyone = hostset.span(0, self.hosts - 1)
        self.room = self.hosts
        self._mask = np.zeros(places + 1, dtype=np.int8)
        self.fits = self._mask[:-1].view(np.bool_)
        self._any_fits = False
        self.now_s = 0.0
        self.over = False
        self.total = self.left = self._unseen = sum(len(load.jobs) for load in inputs.run)
        self.waiting_hosts = 0
        self.waiting_since_s = 0.0
        """Sum over the waiting jobs of their first submissions."""
        self.waited_s = 0.0
        """Sum over the jobs that have started, and those that never will, of their waits."""
        self.unserved = 0
        """Jobs that were rejected or lost."""
        self.ended_wait_s = self.slowdowns = self.bounded_slowdowns = 0.0
        """Sums over the jobs that have ended, or never will run."""
        self.last_end_s = self.useful_core_s = self.done_flops = 0.0
        self.flops: dict[str, float] = {}
        if work:
            measured = inputs.measured
            flops = flops_of(measured, inputs.platform.fastest_flops).tolist()
            self.flops = dict(zip((job.id for job in measured.jobs), flops, strict=True))
        self.all_flops = math.fsum(self.flops.values())
        self._serial = 0
        self._row = 0
        self._dying: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._decisions: list[ev.Decision] = []
        limits.begin()
        self.engine.message()
        self._ask_for_change()
        self._advance()

    # what the agent does --------------------------------------------------------------------------------------------

    @property
    def can_wait(self) -> bool:
        """Whether anything is to come."""
        return bool(self.running) or self._unseen > 0 or self.limits.next_s < math.inf

    def mask(self) -> NDArray[np.int8]:
        """Which actions are possible, 1 or 0, (places + 1,)."""
        mask = self._mask.copy()
        mask[-1] = self.over or self.can_wait
        return mask

    def act(self, action: int) -> int:
        """Do what an action says, or what an illegal one stands for; returns the action that was done."""
        places = self.queue.places
        if self.over:
            return places
        if not (0 <= action < places and self.fits[action]):
            if self.can_wait:
                self._advance()
                return places
            action = int(self.fits.argmax())
        self._start(action)
        if not self._look() and not self.every_event:
            self._advance()
        return action

    def _start(self, place: int) -> None:
        row = self.queue.take(place)
        now, mask = self.now_s, hostset.lowest(self.free, row.hosts)
        self._serial += 1
        end_s = math.inf if row.walltime_s is None else now + row.walltime_s
        self.running[row.job_id] = Run(row, mask, now, self.ends.add(end_s, self._serial, row.hosts))
        self.free ^= mask
        self.room = self._room()
        self.waiting_hosts -= row.hosts
        self.waiting_since_s -= row.submit_s
        self.waited_s += now - row.submit_s
        self._decisions.append(ev.ExecuteJob(now, row.job_id, HostSet(mask)))

    def _room(self) -> int:
        free = self.free
        return self.limits.room(free, self.everyone ^ free) if self.limits.active else free.bit_count()

    def _look(self) -> bool:
        """Find out which visible jobs can start; returns whether any can."""
        if self.room and self.queue.rows:
            np.less_equal(self.queue.needs, self.room, out=self.fits)
            # faster than `any`
            self._any_fits = b"\1" in self.fits.tobytes()
        elif self._any_fits:
            self.fits[:] = self._any_fits = False
        return self._any_fits

    # what the engine reports ----------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Go on to the next moment at which there is something to decide, or to the end."""
        engine, limits = self.engine, self.limits
        while True:
            message = self._answer()
            changed = False
            for event in message.events:
                if isinstance(event, ev.JobCompleted):
                    self._ended(event)
                    changed = True
                elif isinstance(event, ev.JobSubmitted):
                    job = engine.jobs[event.job_id]
                    self._unseen -= 1
                    self._arrived(Waiting(job.id, job.id, job.hosts, job.walltime_s, job.submit_time_s, job.profile))
                    changed = True
            if limits.next_s <= self.now_s + REPORTED_S:
                self._follow()
                changed = True
            if not self.left:
                self._finish()
                return
            if changed and not self._dying:
                self.room = self._room()
                if self._look() or self.every_event:
                    return

    def _answer(self) -> ev.Message:
        self.engine.reply(ev.Reply(self.now_s, self._decisions))
        self._decisions = []
        message = self.engine.message()
        self.now_s = message.now
        return message

    def _arrived(self, row: Waiting) -> None:
        if row.hosts > self.limits.most:
            self._reject(row)
            return
        self.queue.add(row)
        self.waiting_hosts += row.hosts
        self.waiting_since_s += row.submit_s

    def _reject(self, row: Waiting) -> None:
        wide = row.hosts > self.hosts
        why = f"wider than the platform of {self.hosts} hosts" if wide else "too wide for the limits to come"
        self._decisions += (ev.SetJobMetadata(self.now_s, row.job_id, why), ev.RejectJob(self.now_s, row.job_id))
        self._never_served(row)

    def _never_served(self, row: Waiting) -> None:
        """Count a job as waiting until the horizon."""
        self.left -= 1
        self.unserved += 1
        times, end_s = self.horizon.jobs[row.name], self.horizon.end_s
        wait_s = end_s - row.submit_s
        self.waited_s += wait_s
        self.ended_wait_s += wait_s
        self.slowdowns += (wait_s + times.shortest_s) / times.shortest_s
        self.bounded_slowdowns += times.bounded_slowdown(end_s + times.full_s)

    def _ended(self, event: ev.JobCompleted) -> None:
        run = self.running.pop(event.job_id)
        self.free |= run.mask
        self.ends.remove(run.ticket)
        killed = event.job_id in self._dying
        self._dying.discard(event.job_id)
        if killed and event.state == KILLED and self._again(run):
            return
        if killed and event.state == KILLED:
            self._never_served(run.waiting)
            return
        self.left -= 1
        rows = self.engine.recorder.record.jobs
        while rows.ids[self._row] != event.job_id:
            self._row += 1
        self._count(run, event.time, rows.ended[self._row] - rows.started[self._row], event.state == SUCCESSFUL)

    def _count(self, run: Run, end_s: float, ran_s: float, completed: bool) -> None:
        """Add a job that ended by itself to the sums; times as the files have them (`JobRows.times`)."""
        row, start_s = run.waiting, run.start_s
        if ran_s <= 0.0:
            ran_s, end_s = NULL_RUNTIME_S, microseconds(end_s + NULL_RUNTIME_S)
        ran_s = microseconds(ran_s)
        wait_s = start_s - microseconds(row.submit_s)
        self.ended_wait_s += wait_s
        self.slowdowns += (wait_s + ran_s) / ran_s
        self.bounded_slowdowns += self.horizon.jobs[row.name].bounded_slowdown(end_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if completed:
            self.useful_core_s += (end_s - start_s) * row.hosts
            self.done_flops += self.flops.get(row.name, 0.0)

    # limits ---------------------------------------------------------------------------------------------------------

    def _ask_for_change(self) -> None:
        if self.limits.next_s < math.inf:
            self._decisions.append(ev.CallMeLater(self.now_s, self.limits.next_s))

    def _follow(self) -> None:
        """Obey the new limit: reject what can never run any more, kill what runs above it."""
        limits = self.limits
        while limits.next_s <= self.now_s + REPORTED_S:
            limits.step()
        for row in self.queue.take_wider(limits.most):
            self.waiting_hosts -= row.hosts
            self.waiting_since_s -= row.submit_s
            self._reject(row)
        busy = self.everyone ^ self.free
        for job_id in reversed(self.running):
            if not limits.exceeded(busy):
                break
            busy ^= self.running[job_id].mask
            self._dying.add(job_id)
        if self._dying:
            # in the order in which they started
            self._decisions.append(ev.KillJob(self.now_s, [job_id for job_id in self.running if job_id in self._dying]))
        self._ask_for_change()

    def _again(self, run: Run) -> bool:
        """Submit a job again that was killed, unless the rule says that it is lost."""
        row = run.waiting
        self.waited_s -= run.start_s - row.submit_s
        if self._rule.saved_s(Victim(math.inf, 0.0, 0.0, self.now_s - run.start_s)) is None:
            return False
        number = self._attempts[row.name] = self._attempts.get(row.name, 0) + 1
        job_id = f"{row.name}#{number}"
        limit = NO_WALLTIME if row.walltime_s is None else row.walltime_s
        raw = {"id": job_id, "subtime": self.now_s, "res": row.hosts, "walltime": limit, "profile": row.profile}
        self._decisions.append(ev.RegisterJob(self.now_s, job_id, raw))
        self._arrived(Waiting(job_id, row.name, row.hosts, row.walltime_s, row.submit_s, row.profile))
        return True

    # the end --------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """All jobs are over: let the engine end."""
        if self._dynamic:
            self._decisions.append(ev.Notify(self.now_s, "registration_finished"))
        while not self.engine.ended:
            self._answer()
        self.record = self.engine.close()
        self.over = True
        self.now_s = microseconds(float(self.record.schedule["makespan"]))
        self._look()

    def energy_j(self) -> float:
        """Energy in J of all hosts until now; at the end, until the last job has ended."""
        if not self.over:
            return self.engine.recorder.energy_at(self.now_s)
        energies = self.record.consumed_energy.energies
        return energies[-1] if energies else 0.0

    def head_shadow_s(self) -> float:
        """In how many s the first waiting job can start if all that runs lasts as long as its walltime."""
        rows, free = self.queue.rows, self.free.bit_count()
        if not rows or rows[0].hosts <= free:
            return 0.0
        return max(0.0, min(NEVER_S, self.ends.shadow(rows[0].hosts, free)[0] - self.now_s))
