"""Calls and probes of Batsim 5, which a scheduler requests once or periodically."""

from __future__ import annotations

from collections.abc import Callable

from batwatt.engine.kernel import ARRIVAL, LATE, TOO_LATE_S, Kernel
from batwatt.engine.machines import Machines
from batwatt.engine.protocol5.events import Call, Called, CreateProbe, Period, ProbeData
from batwatt.engine.protocol5.switching import hosts_of
from batwatt.engine.recorder import Recorder
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset

SHORTEST_CALL_S = 1e-5
MOST_UNSENT = 100_000
"""Greatest number of calls and probes that wait for one message."""
LAST_S = 2.0**53 / 1000.0
"""Time from which on a number in s does not distinguish ms."""
Report = Callable[[Called | ProbeData], None]


class _Trigger:
    """A call or a probe that is due at each multiple of a period from 0 s."""

    def __init__(self, what: str, name: str, period: Period, probe: CreateProbe | None, now: float) -> None:
        self.what = what
        self.name = name
        self.period_ms = period.period_ms
        self.left = period.count
        self.probe = probe
        self.armed = probe is None
        self.next_ms = 0
        self.next_ms = self.after(now)

    def after(self, now: float) -> int:
        """Return the first multiple of the period after `now` s, in ms."""
        count = int(now * 1000.0 / self.period_ms)
        while count * self.period_ms / 1000.0 <= now:
            count += 1
        return count * self.period_ms


class Periodic:
    """The active calls and probes; `report(event)` notifies the scheduler."""

    def __init__(self, kernel: Kernel, machines: Machines, recorder: Recorder, report: Report) -> None:
        self._kernel = kernel
        self._machines = machines
        self._recorder = recorder
        self._report = report
        self._triggers: dict[tuple[bool, str], _Trigger] = {}
        self._ticket = -1
        self.unsent = 0
        """Number of calls and probes since the last message."""

    # calls --------------------------------------------------------------------------------------------------------

    def call(self, decision: Call) -> None:
        """Apply a CallMeLater. Raises IllegalDecisionError where Batsim 5 aborts."""
        what, when, kernel = f"CallMeLater {decision.call_id!r}", decision.when, self._kernel
        if isinstance(when, Period):
            self._add(False, what, decision.call_id, when, None)
        elif when >= TOO_LATE_S:
            raise IllegalDecisionError(what, f"a time must be less than {TOO_LATE_S:g} s, got {when:g}")
        elif when > kernel.clock:
            kernel.at(max(when, kernel.clock + SHORTEST_CALL_S), ARRIVAL, self._call, decision.call_id)
        else:
            kernel.at(kernel.clock, LATE, self._call_late, decision.call_id)

    def _call_late(self, call_id: str) -> None:
        # a call for the past comes after the effects of its answer and of the arrivals of this time
        self._kernel.at(self._kernel.clock, LATE, self._call, call_id)

    def _call(self, call_id: str) -> None:
        self._report(Called(self._kernel.date, call_id))

    def stop_call(self, call_id: str) -> None:
        """Apply a StopCallMeLater to a periodic call; ignore it for other calls."""
        self._remove(False, call_id)

    # probes -------------------------------------------------------------------------------------------------------

    def create_probe(self, decision: CreateProbe) -> None:
        """Apply a CreateProbe. Raises IllegalDecisionError where Batsim 5 aborts."""
        what = f"CreateProbe {decision.probe_id!r}"
        if decision.period is None:
            raise IllegalDecisionError(what, "probes that are not periodic are not supported")
        self._add(True, what, decision.probe_id, decision.period, decision)

    def stop_probe(self, probe_id: str) -> None:
        """Apply a StopProbe; ignore it for an unknown probe."""
        self._remove(True, probe_id)

    def _measure(self, trigger: _Trigger, probe: CreateProbe) -> None:
        if probe.refused:
            raise IllegalDecisionError(trigger.what, probe.refused)
        if not self._recorder.energy:
            raise IllegalDecisionError(trigger.what, "to measure energy needs energy accounting (--energy)")
        mask = hosts_of(probe.hosts, self._machines, trigger.what)
        if not trigger.armed:
            trigger.armed = True
            return
        recorder = self._recorder
        recorder.update(self._kernel.clock)
        assert recorder.meter is not None
        values = [recorder.meter.energy_j[host] for host in hostset.ids(mask)]
        value: float | list[float] = values
        if probe.aggregation == "Sum":
            value = sum(values)
        elif probe.aggregation == "ArithmeticMean":
            value = sum(values) / len(values)
        self._count(trigger)
        self._report(ProbeData(self._kernel.date, trigger.name, hostset.to_text(mask), value))

    # both ---------------------------------------------------------------------------------------------------------

    def _add(self, probes: bool, what: str, name: str, period: Period, probe: CreateProbe | None) -> None:
        if (probes, name) in self._triggers:
            raise IllegalDecisionError(what, "its id is already in use")
        if not self._kernel.clock < LAST_S:
            raise IllegalDecisionError(what, f"at {self._kernel.clock:g} s a time in ms has no exact number")
        for other in self._triggers.values():
            short, long = sorted((other.period_ms, period.period_ms))
            if long % short:
                why = f"its period of {period.period_ms} ms does not go with the {other.period_ms} ms of {other.what}"
                raise IllegalDecisionError(what, f"{why}: the longer must be a multiple of the shorter")
        self._triggers[probes, name] = _Trigger(what, name, period, probe, self._kernel.clock)
        self._wait()

    def _remove(self, probes: bool, name: str) -> None:
        if self._triggers.pop((probes, name), None) is not None:
            self._wait()

    def _wait(self) -> None:
        """Schedule the next time at which a call or a probe is due."""
        if self._ticket >= 0:
            self._kernel.forget(self._ticket)
            self._ticket = -1
        if self._triggers:
            next_ms = min(trigger.next_ms for trigger in self._triggers.values())
            self._ticket = self._kernel.at(next_ms / 1000.0, ARRIVAL, self._tick, next_ms)

    def _tick(self, now_ms: int) -> None:
        self._ticket = -1
        for key in sorted(self._triggers):
            trigger = self._triggers[key]
            if trigger.next_ms > now_ms:
                continue
            trigger.next_ms += trigger.period_ms
            self.unsent += 1
            if self.unsent > MOST_UNSENT:
                why = f"more than {MOST_UNSENT} calls and probes come before the now of the scheduler's answer"
                raise IllegalDecisionError(trigger.what, f"{why}; answer an earlier one, or stop calls first")
            if trigger.probe is not None:
                self._measure(trigger, trigger.probe)
            else:
                self._count(trigger)
                self._report(Called(self._kernel.date, trigger.name, trigger.left == 0))
            if trigger.left == 0:
                del self._triggers[key]
        self._wait()

    def _count(self, trigger: _Trigger) -> None:
        if trigger.left is not None:
            trigger.left -= 1
