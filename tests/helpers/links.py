"""Links between engine and scheduler: as JSON text, with kills that come late, with hosts that switch late or never."""

from __future__ import annotations

import math

from batwatt.batsim.batsim4 import read_message, read_reply, write_message, write_reply
from batwatt.batsim.events import CallMeLater, JobCompleted, JobKilled, RequestedCall, ResourceStateChanged
from batwatt.model.hostset import HostSet


class ThroughText:
    """A link that sends everything through Batsim's JSON, as the wire does."""

    def __init__(self, engine):
        self.engine = engine

    def message(self):
        return read_message(write_message(self.engine.message()))

    def reply(self, reply):
        self.engine.reply(read_reply(write_reply(reply)))


class Race:
    """Between engine and scheduler: every kill comes too late."""

    def __init__(self, engine):
        self.engine = engine
        self.asked: list[type] = []

    def message(self):
        message = self.engine.message()
        for event in message.events:
            if isinstance(event, JobCompleted) and event.state == "COMPLETED_KILLED":
                event.state, event.return_code = "COMPLETED_SUCCESSFULLY", 0
            if isinstance(event, JobKilled):
                event.progress = {}
        return message

    def reply(self, reply):
        self.asked += [type(decision) for decision in reply.decisions]
        self.engine.reply(reply)


class Unreliable:
    """A link that reports chosen hosts late in the p-states that they were asked for, or never.

    `late`: host -> (from, until) in s: what it arrives in between is reported at the end; infinite: never.
    """

    def __init__(self, engine, late):
        self.engine = engine
        self.late = dict(late)
        self._held: dict[float, list[tuple[int, str]]] = {}
        self._ask: list[float] = []

    def message(self):
        message = self.engine.message()
        now, events = message.now, []
        for event in message.events:
            if isinstance(event, RequestedCall) and now in self._held:
                events += [ResourceStateChanged(now, str(host), state) for host, state in self._held.pop(now)]
            elif isinstance(event, ResourceStateChanged):
                hosts = HostSet.of(event.resources)
                held = [host for host in hosts if host in self.late and self.late[host][0] <= now < self.late[host][1]]
                for host in held:
                    due = self.late[host][1]
                    self._held.setdefault(due, []).append((host, event.state))
                    self._ask.append(due)
                rest = hosts - HostSet.of(held)
                if rest:
                    events.append(ResourceStateChanged(event.time, str(rest), event.state))
            else:
                events.append(event)
        message.events[:] = events
        return message

    def reply(self, reply):
        reply.decisions += [CallMeLater(reply.now, due) for due in sorted({*self._ask}) if due < math.inf]
        self._ask.clear()
        self.engine.reply(reply)
