"""A session of `batwatt slurm`: one cluster, one scheduler, from its beginning until everything is given back."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from batwatt.batsim import events as ev
from batwatt.batsim.bs import Bs
from batwatt.errors import BatwattError, InputError
from batwatt.inputs.platform_files import HostChoice, platform_of
from batwatt.run.find_scheduler import attribute_errors, make_scheduler, scheduler_class
from batwatt.scheduling.base import EVENTS, PowerOptions, Scheduler
from batwatt.slurm.account import Account, Feed, PowerMeter
from batwatt.slurm.book import Book, Journal, only_one
from batwatt.slurm.bridge import Actions, Bridge, KillRule, SessionClock, stop_reason
from batwatt.slurm.commands import Handover, SlurmCommands, SlurmError, SlurmSilentError, Twin

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SessionSpec:
    """Inputs of a session. `scheduler` None: one that listens on `endpoint`; `operate` False: a shadow.

    `envelope`: file of the power envelope, or None; schedulers of batwatt receive it, others with `tell_signals` only.
    `fallback_w`: the envelope in W once it has expired. `poll_s` is in real seconds.
    """

    platform: Path
    handover: Handover
    prefix: Path
    operate: bool
    scheduler: str | None
    options: Mapping[str, Any]
    endpoint: str
    patience_s: float | None
    kill: KillRule
    pstate_command: str
    envelope: str | None
    expiry_s: float
    fallback_w: float | None
    meter: PowerMeter
    poll_s: float
    speed: float
    fresh: bool
    once: bool
    tell_signals: bool

    @property
    def identity(self) -> dict[str, Any]:
        """Values that must be the same for a session to go on after a restart."""
        return {
            "handover": str(self.handover),
            "platform": str(self.platform.resolve()),
            "operate": self.operate,
            "scheduler": self.scheduler,
            "speed": self.speed,
        }


class Session:
    """A session that has not begun. Raises InputError if the cluster cannot do what the platform says."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.journal = Journal(spec.prefix.with_name(f"{spec.prefix.name}_journal.jsonl"))
        self.platform = platform = platform_of(spec.platform, HostChoice())
        self.book = Book(platform)
        names = [host.name for host in platform.hosts]
        if spec.operate:
            self.slurm = SlurmCommands(spec.handover, names, self._tell)
        else:
            self.slurm = Twin(spec.handover, platform, self._tell, spec.speed)
        self.actions = Actions(self.slurm, self.book, spec.kill, spec.pstate_command, self._note)
        self.account = Account(platform, spec.prefix, shadow=not spec.operate)
        self.bridge: Bridge | None = None
        self.version = self._answer(self.slurm.check_version)
        switches = spec.operate and any(host.sleeps for host in platform.hosts)
        self.cluster = self._answer(lambda: self.slurm.check_cluster(switches=switches))
        for host in platform.hosts:
            if len(host.compute) > 1 and not spec.pstate_command:
                problem = f"{host.name} has p-states {', '.join(map(str, host.compute))}, which Slurm cannot set"
                raise InputError(spec.platform, problem, "give --pstate-command, or a platform with one of them")

    @staticmethod
    def _answer(ask: Callable[[], str]) -> str:
        """Return the answer of Slurm, once its controller is there. Raises BatwattError."""
        for pause_s in (1.0, 5.0, 20.0, 60.0, 60.0):
            try:
                return ask()
            except SlurmSilentError as error:
                _log.warning("%s; trying again in %g s", error, pause_s)
                time.sleep(pause_s)
        return ask()

    def _tell(self, words: Sequence[str], answer: str) -> None:
        purpose = self.actions.purpose
        self.journal.write(
            "do" if self.spec.operate else "would", job=purpose, command=" ".join(words), answer=answer or "ok"
        )

    def _note(self, what: str, **values: Any) -> None:
        self.journal.write("note", what=what, **values)

    def run(self, ready: Callable[[str], None]) -> None:
        """Run until no job is left (`once`), or a signal or an error ends it; then give everything back.

        `ready` is called with a line once the session begins. Raises BatwattError, KeyboardInterrupt.
        """
        with only_one(self.cluster) if self.spec.operate else nullcontext():
            clock, past, totals = self._resumed()
            feed = self._feed(clock)
            self.journal.open()
            self.account.open(resumed=bool(past))
            if totals is not None:
                self.account.resume(totals)
            if not past:
                self.journal.write("begin", sync=True, begin_s=clock.begin_s, slurm=self.version, **self.spec.identity)
            error: BaseException | None = None
            try:
                self.bridge = Bridge(
                    self.slurm,
                    self.book,
                    self.actions,
                    self.journal,
                    self.account,
                    feed,
                    self.spec.meter,
                    clock,
                    self.spec.poll_s,
                    self.spec.once,
                    self.spec.tell_signals,
                    deque(past),
                )
                ready(self._about(bool(past)))
                del past
                self._schedule(self.bridge, clock)
            except BaseException as raised:
                error = raised
                raise
            finally:
                self._end(error)

    def _resumed(self) -> tuple[SessionClock, list[tuple[ev.Message, ev.Reply]], Mapping[str, Any] | None]:
        """Return the clock, and exchanges and totals of the session that goes on, if one does. Raises InputError."""
        spec, now_s = self.spec, time.time()
        session = None if spec.fresh or not spec.operate else self.journal.session()
        if session is None or not session[1]:
            return SessionClock(now_s, spec.speed), [], None
        begin, exchanges = session
        for name, value in spec.identity.items():
            if begin.get(name) != value:
                problem = f"is of a session that did not end, with {name} {begin.get(name)!r}, not {value!r}"
                raise InputError(self.journal.path, problem, "give the same, or --fresh")
        began_s = float(begin["begin_s"])
        # the clock of the machine may have been set back
        passed_s = max(exchanges[-1][0].now, (now_s - began_s) * spec.speed)
        return SessionClock(began_s, spec.speed, passed_s), exchanges, begin.get("totals")

    def _feed(self, clock: SessionClock) -> Feed | None:
        spec = self.spec
        if spec.envelope is None:
            return None
        fallback_w = math.nan if spec.fallback_w is None else spec.fallback_w
        feed = Feed(spec.envelope, clock.begin_s, spec.expiry_s, fallback_w)
        feed.check()
        return feed

    def _about(self, resumed: bool) -> str:
        spec = self.spec
        mode = "operating" if spec.operate else "shadowing (nothing is changed)"
        again = ", resumed" if resumed else ""
        return f"{mode} {self.cluster} ({self.version}): jobs of {spec.handover} on {len(self.platform)} nodes{again}"

    def _schedule(self, bridge: Bridge, clock: SessionClock) -> None:
        spec = self.spec
        if spec.scheduler is not None:
            kind, defaults = scheduler_class(spec.scheduler), dict[str, Any](platform=self.platform)
            if spec.envelope is not None and issubclass(getattr(kind, "Options", object), PowerOptions):
                defaults["envelope"] = EVENTS
            scheduler = make_scheduler(spec.scheduler, spec.options, kind, defaults=defaults)
            # others may raise at what they do not know
            bridge.tells |= isinstance(scheduler, Scheduler)
            with attribute_errors(spec.scheduler, scheduler):
                Bs(scheduler, bridge).start()
            return
        # zmq takes a while to be loaded
        from batwatt.batsim.wire import EngineSocket

        with EngineSocket(spec.endpoint, spec.patience_s) as socket:
            while not bridge.ended:
                try:
                    message = bridge.message()
                except KeyboardInterrupt:
                    self._release()
                    with suppress(BatwattError, KeyboardInterrupt):
                        socket.ask(ev.Message(clock.now_s(), [ev.SimulationEnds(clock.now_s())]))
                    raise
                bridge.reply(socket.ask(message))

    def _end(self, error: BaseException | None) -> None:
        """Give everything back, whatever happened, and close the files."""
        # a full disk must keep no job and no node
        self.journal.ending = True
        released = self._release()
        polls, polling_s = (self.bridge.polls, self.bridge.polling_s) if self.bridge is not None else (0, 0.0)
        self.journal.write("note", what="ending", polls=polls, polling_s=round(polling_s, 3))
        if released:
            self.journal.write("end", sync=True, why=stop_reason(error))
        with suppress(OSError):
            self.account.close()
        self.journal.close()

    def _release(self) -> bool:
        """Give everything back to Slurm; return whether that could be done."""
        if not self.spec.operate:
            return True
        self.actions.purpose = "release"
        try:
            jobs, nodes = release(self.slurm)
            self.actions.restore()
        except SlurmError as error:
            _log.error("not all was given back: %s; run `batwatt slurm release`", error)
            return False
        self.journal.write("note", what="released", jobs=jobs, nodes=nodes)
        return True


def release(slurm: SlurmCommands) -> tuple[int, int]:
    """Give all jobs and nodes with our mark back to Slurm's own scheduler; return their numbers. Raises SlurmError.

    A job or node that cannot be given back does not keep the others: the first error is raised at the end.
    """
    snapshot = slurm.read()
    drained = [node.name for node in snapshot.nodes.values() if node.marked]
    held = [job for job in snapshot.jobs.values() if job.handed and job.waiting and job.held and job.marked]
    problems: list[SlurmError] = []
    # the nodes first, in one command: there may be thousands of jobs
    returns = [partial(slurm.switch, "undrain", drained)] if drained else []
    for give_back in [*returns, *(partial(slurm.give_back, job) for job in held)]:
        try:
            give_back()
        except SlurmSilentError:
            raise
        except SlurmError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    return len(held), len(drained)


def release_cluster(platform: Path, handover: Handover) -> tuple[int, int]:
    """Release the nodes of a platform file; return the numbers of `release`. Raises BatwattError."""
    names = [host.name for host in platform_of(platform, HostChoice()).hosts]
    return release(SlurmCommands(handover, names))
