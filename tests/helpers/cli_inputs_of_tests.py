"""Schedulers that go wrong, for the tests of the command line."""

from __future__ import annotations

HEAD = """\
from batsim.batsim import BatsimScheduler


class {name}(BatsimScheduler):
    def onJobSubmission(self, job):
        {submission}

    def onJobCompletion(self, job):
        pass

    onRequestedCall = lambda self: None

    def onNoMoreEvents(self):
        {decide}
"""


def scheduler(name: str, submission: str = "pass", decide: str = "pass") -> str:
    return HEAD.format(name=name, submission=submission, decide=decide)


EXECUTE = "from procset import ProcSet; job.allocation = ProcSet({host}); self.bs.execute_jobs([job])"

BROKEN_SCHEDULERS: dict[str, tuple[str | None, int, tuple[str, ...]]] = {
    "missing": (None, 2, ("missing.py: no such scheduler file",)),
    "syntax": ("class Syntax(:\n", 2, ("syntax.py: cannot be loaded: SyntaxError", "line 1")),
    "importer": ("import no_such_module\n", 2, ("No module named 'no_such_module'", "importer.py:1")),
    "leaver": ("import sys\nsys.exit(0)\n", 2, ("leaver.py: cannot be loaded: SystemExit",)),
    "base": ("raise BaseException('x')\n", 2, ("base.py: cannot be loaded: BaseException: x", "base.py:1")),
    "mute": (
        "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\n\n\nraise Mute\n",
        2,
        ("mute.py: cannot be loaded: Mute (",),
    ),
    "basic": (
        scheduler("Basic", "raise BaseException('of its own')"),
        1,
        ("'basic' raised BaseException: of its own",),
    ),
    "noclass": ("x = 1\n", 2, ("defines no class Noclass",)),
    "stranger": ("class Stranger:\n    pass\n", 2, ("Stranger is not a scheduler",)),
    "ctor": (
        "from batsim.batsim import BatsimScheduler\n\n\nclass Ctor(BatsimScheduler):\n"
        "    def __init__(self, options):\n        raise KeyError('opt')\n",
        1,
        ("'ctor' raised KeyError: 'opt'", "ctor.py:6, in __init__"),
    ),
    "raiser": (
        scheduler("Raiser", "raise ValueError('no\\nway')"),
        1,
        ("'raiser' raised ValueError: no way", "raiser.py:6, in onJobSubmission"),
    ),
    "thrower": (scheduler("Thrower", "raise OSError(5, 'of its own')"), 1, ("'thrower' raised OSError",)),
    "quitter": (scheduler("Quitter", "raise SystemExit(0)"), 1, ("'quitter' raised SystemExit: 0",)),
    "misuser": (scheduler("Misuser", "self.bs.execute_jobs([job])"), 1, ("has no allocation", "misuser.py:6")),
    "outsider": (scheduler("Outsider", EXECUTE.format(host=99)), 1, ("illegal decision EXECUTE_JOB", "no host 99")),
    "lister": (scheduler("Lister", decide="self.bs.wake_me_up_at(-5)"), 1, ("illegal decision CALL_ME_LATER",)),
    "nanny": (scheduler("Nanny", decide="self.bs.wake_me_up_at(float('nan'))"), 1, ("CALL_ME_LATER",)),
}
