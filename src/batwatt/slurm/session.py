"""A session of `batwatt slurm`: one cluster, one scheduler, from its beginning until everything is given back."""

from __future__ import annotations

import logging
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from batwatt.batsim import events as ev
from batwatt.batsim.bs import Bs
from batwatt.batsim.journal import Journal
from batwatt.errors import InputError
from batwatt.inputs.platform_files import HostChoice, platform_of
from batwatt.results.run_files import file_of
from batwatt.run.find_scheduler import attribute_errors, make_scheduler, scheduler_class
from batwatt.scheduling.base import EVENTS, PowerOptions, Scheduler
from batwatt.slurm.account import Account
from batwatt.slurm.actions import Actions
from batwatt.slurm.book import Book
from batwatt.slurm.bridge import Bridge, SessionClock, SessionSpec, stop_reason
from batwatt.slurm.commands import SlurmCommands, SlurmError, SlurmSilentError, Twin, purpose
from batwatt.slurm.presence import ClusterLock, OtherSessionError, Presence
from batwatt.slurm.snapshot import HELD_BY_USER, Handover, SlurmJob

T = TypeVar("T")
_log = logging.getLogger(__name__)
GIVE_BACK_S = 300.0
"""Longest time in s for which a session that ends waits for Slurm, to give everything back."""
ANSWER_S = 150.0
"""Longest time in s for which a session that begins waits for Slurm."""


class NotGivenBackError(SlurmError):
    """Jobs or nodes are still changed by the bridge; the text lists them."""

    outlasts_signals = True


class Session:
    """A session that has not begun. Raises InputError if the cluster cannot do what the platform says."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.journal = Journal(file_of(spec.prefix, "journal", ".jsonl"))
        self.platform = platform = platform_of(spec.platform, HostChoice())
        self.book = Book(platform)
        names = [host.name for host in platform.hosts]
        self.slurm = SlurmCommands(spec.handover, names, self._tell)
        if not spec.operate:
            self.slurm = Twin(spec.handover, platform, self._tell, spec.speed)
        self.actions = Actions(self.slurm, self.book, spec.kill, spec.pstate_command, self.journal.note)
        self.account = Account(platform, spec.prefix, shadow=not spec.operate)
        self.bridge: Bridge | None = None
        self.endpoint = ""
        if spec.scheduler is None:
            # zmq takes a while to be loaded
            from batwatt.batsim.wire import own_endpoint

            folder, loopback = file_of(spec.prefix, "socket", ""), spec.insecure
            self.endpoint = own_endpoint(spec.endpoint, folder, spec.token, loopback=loopback, commands=spec.operate)
        self.version = answer_of(self.slurm.check_version, ANSWER_S)
        switches = spec.operate and any(host.sleeps for host in platform.hosts)
        self.cluster, config = answer_of(lambda: self.slurm.cluster(operates=spec.operate), ANSWER_S)
        answer_of(lambda: self.slurm.check(config, switches=switches), ANSWER_S)
        for host in platform.hosts:
            if len(host.compute) > 1 and not spec.pstate_command:
                problem = f"{host.name} has p-states {', '.join(map(str, host.compute))}, which Slurm cannot set"
                raise InputError(spec.platform, problem, "give --pstate-command, or a platform with one of them")

    def _tell(self, words: Sequence[str], answer: str) -> None:
        kind = "do" if self.spec.operate else "would"
        self.journal.write(kind, job=purpose.get(), command=" ".join(words), answer=answer or "ok")

    def run(self, ready: Callable[[str], None]) -> None:
        """Run until no job is left (`once`), or a signal or an error ends it; then give everything back.

        `ready` is called with a line once the session begins. Raises BatwattError, KeyboardInterrupt.
        """
        spec = self.spec
        lock = ClusterLock(self.slurm, self.cluster) if spec.operate else None
        with nullcontext() if lock is None else lock.held():
            clock, past, begin = self._resumed()
            if spec.feed is not None:
                spec.feed.begin(clock.begin_s, self.platform)
            resumed, identity = bool(begin), {"slurm": self.version, **spec.identity}
            self.account.open(begin.get("totals"), resumed=resumed)
            if past:
                self.journal.resume()
            else:
                values = {"totals": begin["totals"], "continues": True} if resumed else {}
                self.journal.begin(begin_s=clock.begin_s, **identity, **values)
            mode = "operating" if spec.operate else "shadowing (nothing is changed)"
            place = f", scheduler at {self.endpoint}" if self.endpoint else ""
            jobs = f"jobs of {spec.handover} on {len(self.platform)} nodes{place}{', resumed' if resumed else ''}"
            about = f"{mode} {self.cluster} ({self.version}): {jobs}"
            self.presence = Presence(file_of(spec.prefix, "status", ".json"), spec.metrics, about, lock)
            error: BaseException | None = None
            try:
                parts = (self.slurm, self.book, self.actions, self.journal, self.account)
                self.bridge = Bridge(spec, *parts, clock, past, identity, self.presence.beat)
                ready(about)
                self._schedule(self.bridge, clock)
            except BaseException as raised:
                error = raised
                raise
            finally:
                with _signals_ignored():
                    self._end(error)

    def _resumed(self) -> tuple[SessionClock, deque[tuple[ev.Message, ev.Reply]], Mapping[str, Any]]:
        """Return the clock, the exchanges and the begin of a session that goes on, or of none. Raises InputError."""
        spec, now_s = self.spec, time.time()
        session = None if spec.fresh or not spec.operate else self.journal.session()
        if session is None or not (session[1] or session[0].get("continues")):
            return SessionClock(now_s, spec.speed), deque(), {}
        begin, exchanges = session
        for name, value in spec.identity.items():
            if begin.get(name) != value:
                problem = f"is of a session that did not end, with {name} {begin.get(name)!r}, not {value!r}"
                raise InputError(self.journal.path, problem, "give the same, or --fresh")
        began_s = float(begin["begin_s"])
        # the clock of the machine may have been set back
        passed_s = max([(now_s - began_s) * spec.speed, *(exchange[0].now for exchange in exchanges[-1:])])
        # a scheduler begins afresh where the journal continues another one
        past = deque() if begin.get("continues") else deque(exchanges)
        return SessionClock(began_s, spec.speed, passed_s), past, begin

    def _schedule(self, bridge: Bridge, clock: SessionClock) -> None:
        spec = self.spec
        if spec.scheduler is not None:
            kind, defaults = scheduler_class(spec.scheduler), dict[str, Any](platform=self.platform)
            if spec.feed is not None and issubclass(getattr(kind, "Options", object), PowerOptions):
                defaults["envelope"] = EVENTS
            scheduler = make_scheduler(spec.scheduler, spec.options, kind, defaults=defaults)
            # others may raise at what they do not know
            bridge.tells |= isinstance(scheduler, Scheduler)
            with attribute_errors(spec.scheduler, scheduler):
                Bs(scheduler, bridge).start()
            return
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
                self.journal.note("released", jobs=jobs, nodes=nodes)
            except NotGivenBackError as problem:
                left = problem
        polls, polling_s = (self.bridge.polls, self.bridge.polling_s) if self.bridge is not None else (0, 0.0)
        self.journal.note("ending", polls=polls, polling_s=round(polling_s, 3))
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


def attempts(limit_s: float, pause_s: float, most_s: float) -> Iterator[None]:
    """Yield until a time in s is over, with a pause between that doubles up to `most_s`."""
    limit = time.monotonic() + limit_s
    yield
    while time.monotonic() + pause_s <= limit:
        time.sleep(pause_s)
        pause_s = min(most_s, 2.0 * pause_s)
        yield


def answer_of(ask: Callable[[], T], limit_s: float) -> T:
    """Return the answer of Slurm, once its controller is there. Raises BatwattError."""
    for _ in attempts(limit_s, 1.0, 60.0):
        try:
            return ask()
        except SlurmSilentError as error:
            _log.warning("%s; trying again", error)
            silence = error
    raise silence


def release(slurm: SlurmCommands, limit_s: float, tracked: Iterable[str] = ()) -> tuple[int, int]:
    """Restore all jobs and nodes with our mark, also the `tracked` jobs; return their numbers.

    Waits for Slurm, and repeats what does not help, for `limit_s`. Raises NotGivenBackError, which lists the rest.
    """
    jobs: set[str] = set()
    nodes: set[str] = set()
    rest = ""
    for _ in attempts(limit_s, 0.2, 5.0):
        try:
            snapshot = slurm.read(tracked)
            marked = [job for job in snapshot.jobs.values() if job.mark is not None and not job.ended]
            drained = [node.name for node in snapshot.nodes.values() if node.marked]
            if not marked and not drained:
                return len(jobs), len(nodes)
            texts = {"jobs": ", ".join(sorted(job.number for job in marked)), "nodes": ", ".join(drained)}
            rest = "; ".join(f"{kind} {text}" for kind, text in texts.items() if text)
            if drained:
                # the nodes first, in one command: there may be thousands of jobs
                slurm.switch("undrain", drained)
            # a job that its user has put on hold after its start stays so
            ours: dict[bool, list[SlurmJob]] = {True: [], False: []}
            for job in marked:
                ours[job.ours and job.waiting and not (job.started and job.reason == HELD_BY_USER)].append(job)
            errors = slurm.let_go(ours[False], release=False) | slurm.let_go(ours[True])
            jobs.update(job.number for job in marked if job.number not in errors)
            nodes.update(drained)
            rest += "".join(f"; {error}" for error in list(errors.values())[:1])
        except SlurmError as error:
            _log.warning("giving back: %s", error)
            rest = rest or str(error)
    raise NotGivenBackError(f"not given back within {limit_s:g} s: {rest}; run `batwatt slurm release`")


def release_cluster(platform: Path, handover: Handover, limit_s: float) -> tuple[int, int]:
    """Release the nodes of a platform file; return the numbers of `release`. Raises BatwattError."""
    slurm = SlurmCommands(handover, [host.name for host in platform_of(platform, HostChoice()).hosts])
    try:
        cluster, _ = answer_of(lambda: slurm.cluster(operates=True), limit_s)
    except SlurmSilentError as error:
        raise NotGivenBackError(f"{error}; nothing was given back within {limit_s:g} s") from None
    with ClusterLock(slurm, cluster).held():
        return release(slurm, limit_s)
