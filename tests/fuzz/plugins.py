"""Files of plugins and schedulers that misbehave: by what they raise, return, register or are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import batwatt as bw
from batwatt.run import find_scheduler
from batwatt.run.find_scheduler import SchedulerError, describe_file, load_plugins, our_schedulers
from batwatt.scheduling import registry

from .mutate import number, octets, text, value
from .peers import CAPS, JOBS, host_energy

TABLES = ("_parts", "_names")
for _ in our_schedulers():
    # the parts that are shipped are there before any of a plugin
    pass
BODIES = (
    "raise {error}", "return {value!r}", "return None", "return self", "return jobs", "return [1] * 10 ** 3",
    "return float('nan')", "del self.x", "import sys; sys.exit({value!r})", "return super().{method}()",
    "self.__dict__.clear(); return 1.0", "global x; x = 1; return x",
)  # fmt: skip
ERRORS = (
    "ValueError('a\\nb')", "BaseException('x')", "SystemExit(3)", "KeyError(None)", "Mute()", "RecursionError()",
    "MemoryError()", "OSError(5, 'x')", "GeneratorExit()", "StopIteration()", "UnicodeDecodeError('x', b'', 0, 1, 'y')",
    "AssertionError('\\x1b[31m')", "NotImplementedError", "ExceptionGroup('a', [ValueError()])",
)  # fmt: skip
HEAD = """
from batsim.batsim import BatsimScheduler
from batsim.sched import Scheduler
from batwatt.scheduling.orders import Fcfs
from batwatt.scheduling.registry import register
from batwatt.systems.powercap.scheduler import EnvelopeScheduler


class Mute(BaseException):
    def __str__(self):
        raise ValueError
"""
PART = """
@register({kind!r}, {name!r})
class Mine({base}):
    {doc!r}

    def {method}(self, *args, **kwargs):
        {body}
"""
SCHEDULER = """
class Mine({base}):
    def {method}(self, *args):
        {body}
"""
METHODS = ("onSimulationBegins", "onJobSubmission", "onJobCompletion", "onNoMoreEvents", "schedule", "__init__", "time")
OF_POWERCAP = {"order": "key", "backfilling": "place", "response": "respond", "victim": "saved_s"}


def attempt(rng: Random, folder: Path) -> None:
    path = folder / "mine.py"
    kind, method = rng.choice(list(OF_POWERCAP.items()))
    body = rng.choice(BODIES).format(error=rng.choice(ERRORS), value=value(rng), method=method)
    is_part = rng.random() < 0.6
    if is_part:
        name = rng.choice(("mine", "mine", "mine", "fcfs", None, number(rng), text(rng)))
        base = rng.choice(("Fcfs", "object", "type", "dict"))
        text_of = PART.format(kind=kind, name=name, base=base, doc=text(rng), method=method, body=body)
    else:
        base = rng.choice(("BatsimScheduler", "EnvelopeScheduler", "Scheduler", "object"))
        text_of = SCHEDULER.format(base=base, method=rng.choice(METHODS), body=body)
    if rng.random() < 0.1:
        text_of += f"\nraise {rng.choice(ERRORS)}\n"
    data = (HEAD + text_of).encode("utf-8", "replace")
    path.write_bytes(octets(rng, data) if rng.random() < 0.3 else data)
    tables = {name: {kind: dict(named) for kind, named in getattr(registry, name).items()} for name in TABLES}
    try:
        _use(rng, path, kind if is_part else None)
    finally:
        # the next input has a file of that name, too
        find_scheduler._plugins.clear()
        sys.modules.pop("batwatt_user_mine", None)
        for name, table in tables.items():
            getattr(registry, name).update(table)


def _use(rng: Random, path: Path, kind: str | None) -> None:
    if rng.random() < 0.2:
        describe_file(path)
        return
    workload, platform = path.with_name("w.json"), path.with_name("p.xml")
    workload.write_text(json.dumps(JOBS))
    platform.write_text(host_energy())
    if kind is None:
        bw.simulate(platform, workload, str(path))
        return
    load_plugins([path])
    try:
        bw.simulate(platform, workload, "powercap", envelope=CAPS, options={kind: "mine"})
    except SchedulerError as error:
        # whose fault it is has a name
        assert "Mine" in str(error) or "mine" in str(error), error
        raise
