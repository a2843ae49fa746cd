"""What a simulation leaves behind: rows in the order of Batsim's files, and the totals of its schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class JobRow(NamedTuple):
    """A run of a job, or a rejected job, whose times are None: the columns of Batsim's `_jobs.csv`."""

    job_id: str
    workload_name: str
    profile: str
    submission_time: float
    requested_number_of_resources: int
    requested_time: float
    success: int
    final_state: str
    starting_time: float | None
    execution_time: float | None
    finish_time: float | None
    waiting_time: float | None
    turnaround_time: float | None
    stretch: float | None
    allocated_resources: str
    consumed_energy: float | None
    metadata: str


@dataclass(slots=True)
class Record:
    """Rows as tuples, in the column order that `batwatt.results.columns` declares; `schedule` by column name."""

    jobs: list[JobRow] = field(default_factory=list)
    machine_states: list[tuple[float, int, int, int, int, int]] = field(default_factory=list)
    pstate_changes: list[tuple[float, str, int]] = field(default_factory=list)
    consumed_energy: list[tuple[float, float, str, float, float | None]] = field(default_factory=list)
    schedule: dict[str, float | int | str] = field(default_factory=dict)
    energy: bool = True
