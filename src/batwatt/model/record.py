"""Record of a simulation: rows in the order of Batsim's files, stored by column, and the totals of its schedule.

Lists and arrays store the values that are known when a job or an event happens; the other columns are computed from
them at the end, all rows at once. They take a fifth of the memory of tuples.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from batwatt.model.attempt import Attempt

SUCCESSFUL = "COMPLETED_SUCCESSFULLY"
NULL_RUNTIME_S = 1e-5
"""Batsim writes this run time in s for a job that ends at its start."""

RowColumns = dict[str, "list[str] | NDArray[Any]"]
"""Columns by name, in the order of a file: texts, whole numbers, or float64 with NaN where a value is missing."""


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


class Rows:
    """Rows of a file, stored by column: a sequence of tuples, with None for missing values.

    Access to one row by its index takes as long as to all rows: use columns for many.
    """

    def __len__(self) -> int:
        raise NotImplementedError

    def columns(self) -> RowColumns:
        """Return all columns."""
        raise NotImplementedError

    def make_row(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the row of some cells in the order of the columns."""
        return cells

    def __iter__(self) -> Iterator[Any]:
        for cells in zip(*(listed(column) for column in self.columns().values()), strict=True):
            yield self.make_row(cells)

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))


def listed(column: list[str] | NDArray[Any]) -> list[Any]:
    """Return the cells of a column as Python values, None for missing ones."""
    if isinstance(column, list):
        return column
    cells: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        for row in np.flatnonzero(np.isnan(column)).tolist():
            cells[row] = None
    return cells


class JobRows(Rows):
    """Runs of jobs and rejected jobs, whose `started`, `ended` and `energies` are NaN; `ids` are full (`w0!3`)."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.profiles: list[str] = []
        self.submitted = array("d")
        self.widths = array("q")
        self.walltimes = array("d")
        self.states: list[str] = []
        self.started = array("d")
        self.ended = array("d")
        self.allocated: list[str] = []
        self.energies = array("d")
        self.metadata: list[str] = []

    def __len__(self) -> int:
        return len(self.ids)

    def make_row(self, cells: tuple[Any, ...]) -> JobRow:
        """Return the row of some cells with the names of its columns."""
        return JobRow(*cells)

    def columns(self) -> RowColumns:
        """Return the columns of `_jobs.csv`."""
        return {
            "job_id": [full.partition("!")[2] for full in self.ids],
            # millions of jobs have few workloads: equal names share one text
            "workload_name": [intern(full.partition("!")[0]) for full in self.ids],
            "profile": self.profiles,
            "submission_time": np.array(self.submitted),
            "requested_number_of_resources": np.array(self.widths),
            "requested_time": np.array(self.walltimes),
            "success": np.array([state == SUCCESSFUL for state in self.states], dtype=np.int64),
            "final_state": self.states,
            **self.times(),
            "allocated_resources": self.allocated,
            "consumed_energy": np.array(self.energies),
            "metadata": self.metadata,
        }

    def times(self) -> dict[str, NDArray[np.float64]]:
        """Return the columns from `starting_time` to `stretch`."""
        submit_s, start_s, finish_s = (np.array(times) for times in (self.submitted, self.started, self.ended))
        ran_s = finish_s - start_s
        null = ran_s <= 0.0
        ran_s[null] = NULL_RUNTIME_S
        finish_s[null] = start_s[null] + NULL_RUNTIME_S
        turnaround_s = finish_s - submit_s
        return {
            "starting_time": start_s,
            "execution_time": ran_s,
            "finish_time": finish_s,
            "waiting_time": start_s - submit_s,
            "turnaround_time": turnaround_s,
            "stretch": turnaround_s / ran_s,
        }


class StateRows(Rows):
    """Number of hosts in each state: `times` in s, and six counts for each of them; the last one is not written."""

    def __init__(self) -> None:
        self.times = array("d")
        self.counts = array("i")

    def __len__(self) -> int:
        return len(self.times)

    def columns(self) -> RowColumns:
        """Return the columns of `_machine_states.csv`."""
        counts = np.array(self.counts, dtype=np.int64).reshape(-1, 6)
        names = ("nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")
        return {"time": np.array(self.times), **{name: counts[:, index] for index, name in enumerate(names)}}


class EnergyRows(Rows):
    """Energy in J since 0 at `times` in s; `kinds` as in `Recorder.energy_row`, `lows` are the hosts' epsilon watts."""

    def __init__(self) -> None:
        self.times = array("d")
        self.energies = array("d")
        self.kinds: list[str] = []
        self.lows = array("d")

    def __len__(self) -> int:
        return len(self.times)

    def columns(self) -> RowColumns:
        """Return the columns of `_consumed_energy.csv`; a row at the time of the previous one has no mean power."""
        times_s, energy_j = np.array(self.times), np.array(self.energies)
        lasted_s, drawn_j = np.diff(times_s, prepend=0.0), np.diff(energy_j, prepend=0.0)
        mean_w = np.full(len(times_s), np.nan)
        np.divide(drawn_j, lasted_s, out=mean_w, where=lasted_s > 0.0)
        return {
            "time": times_s,
            "energy": energy_j,
            "event_type": self.kinds,
            "wattmin": np.array(self.lows),
            "epower": mean_w,
        }


class Record:
    """Rows of Batsim's files, in the column order of `batwatt.results.run_files`, and the totals `schedule` by name."""

    def __init__(self, energy: bool = True) -> None:
        self.jobs = JobRows()
        self.machine_states = StateRows()
        self.pstate_changes: list[tuple[float, str, int]] = []
        self.consumed_energy = EnergyRows()
        self.schedule: dict[str, float | int | str] = {}
        self.energy = energy
        self.attempts: Mapping[str, Attempt] = {}
        """Runs that the scheduler submitted again or described, by full id; empty if it has no table of them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._parts() == other._parts()

    def _parts(self) -> tuple[Any, ...]:
        rows = (self.jobs, self.machine_states, self.pstate_changes, self.consumed_energy)
        return (*rows, self.schedule, self.energy)
