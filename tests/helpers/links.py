"""Links between engine and scheduler that change nothing or everything: as JSON text, and with kills that come late."""

from __future__ import annotations

from batwatt.engine.batsim4 import read_message, read_reply, write_message, write_reply
from batwatt.engine.events import JobCompleted, JobKilled


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
