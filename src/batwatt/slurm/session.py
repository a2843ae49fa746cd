"""A session of `batwatt slurm`: one cluster, one scheduler, from its beginning until everything is given back."""

from __future__ import annotations

import logging
import math
import os
import signal
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from batwatt.batsim import events as ev
from batwatt.batsim.bs import Bs
from batwatt.errors import InputError
from batwatt.inputs.platform_files import HostChoice, platform_of
from batwatt.run.find_scheduler import attribute_errors, make_scheduler, scheduler_class
from batwatt.scheduling.base import EVENTS, PowerOptions, Scheduler
from batwatt.slurm.account import Account, Feed, PowerMeter
from batwatt.slurm.actions import Actions, KillRule
from batwatt.slurm.book import Book, Journal
from batwatt.slurm.bridge import Bridge, SessionClock, stop_reason
from batwatt.slurm.commands import (
    HELD_BY_USER,
    Handover,
    SlurmCommands,
    SlurmError,
    SlurmJob,
    SlurmSilentError,
    purpose,
)
from batwatt.slurm.presence import ClusterLock, OtherSessionError, Presence
from batwatt.slurm.twin import Twin

T = TypeVar("T")
_log = logging.getLogger(__name__)
GIVE_BACK_S = 300.0
"""Longest time in s for which a session that ends waits for Slurm, to give everything back."""


class NotGivenBackError(SlurmError):
    """Jobs or nodes are still changed by the bridge; the text lists them."""

    outlasts_signals = True


@dataclass(frozen=True, kw_only=True)
class SessionSpec:
    """Inputs of a session. `scheduler` None: one that listens on `endpoint`; `operate` False: a shadow.

    `envelope`: file of the power envelope, or None; schedulers of batwatt receive it, others with `tell_signals` only.
    `fallback_w`: the envelope in W once it has expired; `fall`: greatest share by which a new version of it may fall at
    once. `poll_s` is in real seconds. `endpoint` empty: a socket in a folder of this user; `token`: shared secret of
    both sides. `releases`: jobs with demands that the scheduler does not know are released to Slurm. `keeps`: at the
    end nodes stay off and jobs on hold.
    """

    platform: Path
    handover: Handover
    prefix: Path
    operate: bool
    scheduler: str | None
    options: Mapping[str, Any]
    endpoint: str
    token: str | None
    insecure: bool
    patience_s: float | None
    kill: KillRule
    pstate_command: str
    envelope: str | None
    expiry_s: float
    fallback_w: float | None
    fall: float
    meter: PowerMeter
    poll_s: float
    speed: float
    fresh: bool
    once: bool
    tell_signals: bool
    releases: bool
    keeps: bool
    metrics: Path | None

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
        self.endpoint = "" if spec.scheduler is not None else self._safe_endpoint()
        self.version = self._answer(self.slurm.check_version)
        switches = spec.operate and any(host.sleeps for host in platform.hosts)
        self.cluster, config = self._answer(lambda: self.slurm.cluster(operates=spec.operate))
        self._answer(lambda: self.slurm.check(config, switches=switches))
        for host in platform.hosts:
            if len(host.compute) > 1 and not spec.pstate_command:
                problem = f"{host.name} has p-states {', '.join(map(str, host.compute))}, which Slurm cannot set"
                raise InputError(spec.platform, problem, "give --pstate-command, or a platform with one of them")

    def _safe_endpoint(self) -> str:
        """Return the endpoint of the scheduler. Raises InputError where a stranger could take the scheduler's place."""
        spec = self.spec
        if not spec.endpoint:
            folder = spec.prefix.with_name(f"{spec.prefix.name}_socket").absolute()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            state = folder.lstat()
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
                raise InputError(folder, "is not a folder of this user alone", "remove it")
            return f"ipc://{folder}/scheduler"
        if spec.endpoint.startswith("tcp://"):
            host = spec.endpoint.removeprefix("tcp://").rpartition(":")[0]
            if host not in ("127.0.0.1", "localhost", "[::1]"):
                raise InputError("--socket", f"{host} is not this machine", "give ipc://FILE or tcp://127.0.0.1:PORT")
            if spec.token is None and (not spec.insecure or (spec.operate and os.geteuid() == 0)):
                problem = f"any user can listen on {spec.endpoint}, and would command this process"
                refused = "" if spec.operate and os.geteuid() == 0 else ", or --insecure-tcp"
                raise InputError(
                    "--socket", problem, f"give ipc://FILE, or --token-file as to `batwatt serve`{refused}"
                )
        return spec.endpoint

    @staticmethod
    def _answer(ask: Callable[[], T]) -> T:
        """Return the answer of Slurm, once its controller is there. Raises BatwattError."""
        for pause_s in (1.0, 5.0, 20.0, 60.0, 60.0):
            try:
                return ask()
            except SlurmSilentError as error:
                _log.warning("%s; trying again in %g s", error, pause_s)
                time.sleep(pause_s)
        return ask()

    def _tell(self, words: Sequence[str], answer: str) -> None:
        kind = "do" if self.spec.operate else "would"
        self.journal.write(kind, job=purpose.get(), command=" ".join(words), answer=answer or "ok")

    def _note(self, what: str, **values: Any) -> None:
        self.journal.write("note", what=what, **values)

    def run(self, ready: Callable[[str], None]) -> None:
        """Run until no job is left (`once`), or a signal or an error ends it; then give everything back.

        `ready` is called with a line once the session begins. Raises BatwattError, KeyboardInterrupt.
        """
        lock = ClusterLock(self.slurm, self.cluster) if self.spec.operate else None
        with nullcontext() if lock is None else lock.held():
            clock, past, begin = self._resumed()
            feed = self._feed(clock)
            resumed, identity = bool(begin), {"slurm": self.version, **self.spec.identity}
            self.account.open(resumed=resumed)
            if begin.get("totals") is not None:
                self.account.resume(begin["totals"])
            if past:
                self.journal.resume()
            else:
                values = {"totals": begin["totals"], "continues": True} if resumed else {}
                self.journal.begin(begin_s=clock.begin_s, **identity, **values)
            about = self._about(resumed)
            status = self.spec.prefix.with_name(f"{self.spec.prefix.name}_status.json")
            self.presence = Presence(status, self.spec.metrics, about, lock)
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
                    identity,
                    self.spec.releases,
                    self.presence.beat,
                )
                ready(about)
                del past
                self._schedule(self.bridge, clock)
            except BaseException as raised:
                error = raised
                raise
            finally:
                with _signals_ignored():
                    self._end(error)

    def _resumed(self) -> tuple[SessionClock, list[tuple[ev.Message, ev.Reply]], Mapping[str, Any]]:
        """Return the clock, and the exchanges and the beginning of the session that goes on, if one does.

        A scheduler begins afresh where the journal continues another one. Raises InputError.
        """
        spec, now_s = self.spec, time.time()
        session = None if spec.fresh or not spec.operate else self.journal.session()
        if session is None or not (session[1] or session[0].get("continues")):
            return SessionClock(now_s, spec.speed), [], {}
        begin, exchanges = session
        for name, value in spec.identity.items():
            if begin.get(name) != value:
                problem = f"is of a session that did not end, with {name} {begin.get(name)!r}, not {value!r}"
                raise InputError(self.journal.path, problem, "give the same, or --fresh")
        began_s = float(begin["begin_s"])
        # the clock of the machine may have been set back
        passed_s = max([(now_s - began_s) * spec.speed, *(exchange[0].now for exchange in exchanges[-1:])])
        past = [] if begin.get("continues") else exchanges
        return SessionClock(began_s, spec.speed, passed_s), past, begin

    def _feed(self, clock: SessionClock) -> Feed | None:
        spec = self.spec
        if spec.envelope is None:
            return None
        fallback_w = math.nan if spec.fallback_w is None else spec.fallback_w
        floor_w = sum(
            min([host.pstates[pstate].power_w(0.0) for pstate in (host.compute[0], *(s.sleep for s in host.sleeps))])
            for host in self.platform.hosts
        )
        feed = Feed(spec.envelope, clock.begin_s, spec.expiry_s, fallback_w, floor_w, spec.fall)
        feed.check()
        return feed

    def _about(self, resumed: bool) -> str:
        spec = self.spec
        mode = "operating" if spec.operate else "shadowing (nothing is changed)"
        again = ", resumed" if resumed else ""
        place = f", scheduler at {self.endpoint}" if self.endpoint else ""
        jobs = f"jobs of {spec.handover} on {len(self.platform)} nodes"
        return f"{mode} {self.cluster} ({self.version}): {jobs}{place}{again}"

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

        with EngineSocket(self.endpoint, spec.patience_s, spec.token) as socket:
            while not bridge.ended:
                try:
                    message = bridge.message()
                except KeyboardInterrupt:
                    socket.tell(ev.Message(clock.now_s(), [ev.SimulationEnds(clock.now_s())]))
                    raise
                bridge.reply(socket.ask(message))

    def _end(self, error: BaseException | None) -> None:
        """Give everything back, whatever happened, and close the files. Raises NotGivenBackError."""
        # a full disk must keep no job and no node
        self.journal.ending = True
        self.presence.end("ending")
        self.actions.finish()
        keeps = self.spec.keeps or isinstance(error, OtherSessionError)
        left: NotGivenBackError | None = None
        if self.spec.operate and not keeps:
            purpose.set("release")
            try:
                jobs, nodes = release(self.slurm, GIVE_BACK_S, self.book.present)
                self.actions.restore()
                self.journal.write("note", what="released", jobs=jobs, nodes=nodes)
            except NotGivenBackError as problem:
                left = problem
        polls, polling_s = (self.bridge.polls, self.bridge.polling_s) if self.bridge is not None else (0, 0.0)
        self.journal.write("note", what="ending", polls=polls, polling_s=round(polling_s, 3))
        if left is None and not keeps:
            self.journal.write("end", sync=True, why=stop_reason(error))
        with suppress(OSError):
            self.account.close()
        self.journal.close()
        self.presence.end("ended" if left is None else str(left))
        if left is not None:
            raise left


@contextmanager
def _signals_ignored() -> Iterator[None]:
    """Ignore the signals that end a process while the block lasts."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        before = [(number, signal.signal(number, signal.SIG_IGN)) for number in numbers]
    except ValueError:
        before = []  # only the main thread may
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def release(slurm: SlurmCommands, limit_s: float, tracked: Iterable[str] = ()) -> tuple[int, int]:
    """Restore all jobs and nodes with our mark, also the `tracked` jobs; return their numbers.

    Waits for Slurm, and repeats what does not help, for `limit_s`. Raises NotGivenBackError, which lists the rest.
    """
    limit = time.monotonic() + limit_s
    jobs: set[str] = set()
    nodes: set[str] = set()
    rest = ""
    pause_s = 0.2
    while True:
        try:
            snapshot = slurm.read(tracked)
            marked = [job for job in snapshot.jobs.values() if job.mark is not None and not job.ended]
            drained = [node.name for node in snapshot.nodes.values() if node.marked]
            if not marked and not drained:
                return len(jobs), len(nodes)
            texts = [", ".join(sorted(job.number for job in marked)), ", ".join(drained)]
            rest = "; ".join(f"{kind} {text}" for kind, text in zip(("jobs", "nodes"), texts, strict=True) if text)
            if drained:
                # the nodes first, in one command: there may be thousands of jobs
                slurm.switch("undrain", drained)
            theirs = [job for job in marked if not job.ours or not job.waiting or _held_by_others(job)]
            errors = slurm.let_go(theirs, release=False)
            errors |= slurm.let_go([job for job in marked if job not in theirs])
            jobs.update(job.number for job in marked if job.number not in errors)
            nodes.update(drained)
            rest += "".join(f"; {error}" for error in list(errors.values())[:1])
        except SlurmError as error:
            _log.warning("giving back: %s", error)
            rest = rest or str(error)
        if time.monotonic() + pause_s > limit:
            raise NotGivenBackError(f"not given back within {limit_s:g} s: {rest}; run `batwatt slurm release`")
        time.sleep(pause_s)
        pause_s = min(5.0, 2.0 * pause_s)


def _held_by_others(job: SlurmJob) -> bool:
    """Return whether the user has put a job on hold after its start."""
    return job.mark is not None and job.mark.state == "started" and job.reason == HELD_BY_USER


def release_cluster(platform: Path, handover: Handover, limit_s: float) -> tuple[int, int]:
    """Release the nodes of a platform file; return the numbers of `release`. Raises BatwattError."""
    slurm = SlurmCommands(handover, [host.name for host in platform_of(platform, HostChoice()).hosts])
    limit = time.monotonic() + limit_s
    while True:
        try:
            cluster, _ = slurm.cluster(operates=True)
            break
        except SlurmSilentError as error:
            if time.monotonic() > limit:
                raise NotGivenBackError(f"{error}; nothing was given back within {limit_s:g} s") from None
            time.sleep(2.0)
    with ClusterLock(slurm, cluster).held():
        return release(slurm, limit_s)
