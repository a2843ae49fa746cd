"""Attempts: the runs of a job, as its scheduler describes them.

A scheduler submits the job `w0!3` again as `w0!3#1`, `w0!3#2`, ... Batsim stores an id and a text, its *metadata*, for
each run. `Attempt` holds what these mean: the text is made here, and read here for runs without a table of attempts.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final, Self

ATTEMPT = re.compile(r"#\d+$")
"""Suffix of the id of a job that is submitted again: `w0!3#1`."""
MIGRATED: Final = "migrated"
"""Kind of a run that was killed to continue its remaining work elsewhere (ideal migration)."""
CHECKPOINTED: Final = "checkpointed"
"""Kind of a run that was killed for a checkpoint: its work is saved when the checkpoint has ended."""
CHECKPOINT, RECOVERY = "checkpoint", "recovery"
"""Kinds of runs without useful work on the hosts of a job: its checkpoint, and its recovery."""
SUSPENDED, PIECE = "suspended", "piece"
"""Kinds of a run that was killed to be resumed later, and of each later piece of its job but the last."""
REMAINDER: Final = "remainder"
"""Kind of a whole run that counts as no more work than was left of its job when the window began."""
KINDS: Final = ("", MIGRATED, CHECKPOINTED, CHECKPOINT, RECOVERY, SUSPENDED, PIECE, REMAINDER)
"""Kinds of runs; empty for a whole run."""
WINDOW_OVER: Final = "window over"
"""Cause of the rejection of a job that still waits when the window has ended."""
_OVERHEAD = re.compile(r"\s*overhead_s=([0-9.e+]+)")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run of a job, or its rejection: the full ids of the run and of its job, `w0!3#1` and `w0!3`.

    `number` is 0 for the first run; `overhead_s` is the time in s of the run without useful work, in which the job
    wrote a checkpoint or recovered; `cause` is the reason of a rejection.
    """

    run: str
    job: str
    number: int = 0
    kind: str = ""
    overhead_s: float = 0.0
    cause: str = ""

    @property
    def text(self) -> str:
        """Batsim's metadata of the run."""
        overhead = f"overhead_s={self.overhead_s:.6f}" if self.overhead_s > 0.0 else ""
        return self.cause or f"{self.kind} {overhead}".strip()

    @classmethod
    def of_text(cls, run: str, metadata: str, jobs: Container[str] = ()) -> Self:
        """Return the attempt with an id and metadata; `jobs` are the ids of the workload.

        A text that is neither a kind nor has an overhead is the cause of a rejection.
        """
        job = job_of(run, jobs)
        number = 0 if job == run else int(run.rpartition("#")[2])
        overhead = _OVERHEAD.search(metadata)
        kind = _OVERHEAD.sub("", metadata).strip()
        if kind in KINDS:
            return cls(run, job, number, kind, float(overhead[1]) if overhead else 0.0)
        return cls(run, job, number, "", float(overhead[1])) if overhead else cls(run, job, number, cause=metadata)


def job_of(run: str, jobs: Container[str] = ()) -> str:
    """Return the job of a run by its id: `3#1` and `3#2` are runs of `3`, unless `jobs` has a job of that id."""
    while run not in jobs and ATTEMPT.search(run):
        run = ATTEMPT.sub("", run)
    return run
