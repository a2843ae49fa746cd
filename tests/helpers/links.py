"""Links between engine and scheduler that change nothing or everything: as JSON text, and with kills that come late."""

from __future__ import annotations

from batwatt.engine.wire import check_answer, check_message, decode, encode


class ThroughText:
    """A link that sends everything through Batsim's JSON, as the wire does."""

    def __init__(self, engine):
        self.engine = engine

    def message(self):
        return check_message(decode(encode(self.engine.message())))

    def reply(self, answer):
        for event in answer["events"]:
            if "alloc" in event["data"]:
                event["data"]["alloc"] = str(event["data"]["alloc"])
        self.engine.reply(check_answer(decode(encode(answer))))


class Race:
    """Between engine and scheduler: every kill comes too late."""

    def __init__(self, engine):
        self.engine = engine
        self.asked: list[str] = []

    def message(self):
        message = self.engine.message()
        events = []
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_COMPLETED" and data["job_state"] == "COMPLETED_KILLED":
                event = event | {"data": data | {"job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0}}
            if event["type"] == "JOB_KILLED":
                event = event | {"data": data | {"job_progress": {}}}
            events.append(event)
        return message | {"events": events}

    def reply(self, answer):
        self.asked += [event["type"] for event in answer["events"]]
        self.engine.reply(answer)
