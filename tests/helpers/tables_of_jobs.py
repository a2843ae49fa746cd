"""Tables of jobs for tests: of rows, and rows without their required columns."""

from __future__ import annotations

from typing import Any

from batwatt.inputs.jobs import REQUIRED, Jobs, checked


def row(id: str, submission_time_s: float, length_s: float, hosts: int, **more: Any) -> dict[str, Any]:
    """Return a job by the names of its columns."""
    return {"id": id, "submission_time_s": submission_time_s, "length_s": length_s, "hosts": hosts, **more}


def jobs_of(*rows: dict[str, Any], source: object = "here") -> Jobs:
    """Return the table of some rows."""
    names = dict.fromkeys(name for row in rows for name in row)
    return checked({name: [row.get(name) for row in rows] for name in names}, source)


def more_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return the optional columns of a job, without its request."""
    return {name: value for name, value in job.items() if name not in ("id", "estimate_s", *REQUIRED)}


def core_of(job: dict[str, Any]) -> tuple[str, float, float, int, float | None]:
    """Return id, submission, length, hosts and request of a job."""
    return (job["id"], job["submission_time_s"], job["length_s"], job["hosts"], job.get("estimate_s"))
