"""The files of Batsim 5 as those of Batsim 4: mapped where v5.0.0-rc2 is right, computed where it is wrong.

- `jobs.csv`: the profile loses its workload's name, metadata are those of the scheduler.
- `consumed_energy.csv` and `pstate_changes.csv` are the same in both.
- `machine_states.csv`, and the host-seconds per state in the schedule, are computed from the jobs and the changes of
  p-states: a host of rc2 that has computed never becomes idle again.
- `schedule.csv`: numbers that rc2 cannot print as JSON (`-nan`) are NaN; wall-clock times are those of
  `real_exec_info.json`, 0 without.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from batwatt.engine.machines import COMPUTING, IDLE, SLEEPING, SWITCHING_OFF, SWITCHING_ON, Machines
from batwatt.errors import PeerError
from batwatt.files import whole_file
from batwatt.model import hostset
from batwatt.model.platform import Platform
from batwatt.model.record import NULL_RUNTIME_S, StateRows
from batwatt.results.run_files import FILES, escaped, file_of, write_columns, write_rows

WORKED_OUT = {
    "machine_states.csv": "in Batsim 5 (v5.0.0-rc2) a host that has computed never becomes idle again",
    "schedule.csv: time_computing, time_idle, ...": "likewise",
    "jobs.csv: metadata": "Batsim 5 has none",
}
"""Files and columns that are not as Batsim 5 wrote them -> the reason."""
_ON, _OFF = -1, -2
"""P-states of requests in `pstate_changes.csv`."""
_END, _ARRIVAL, _SWITCH, _START, _NULL_END = range(5)
"""Order of events at one time; a job may end as it starts."""
_NAN = re.compile(r"-?\bnan\b")
_TABLES = ("jobs", "consumed_energy", "pstate_changes")

_Happening = tuple[float, int, int, int]
"""Time in s, event, mask of hosts, and the state of the hosts from then on."""


def map_files(folder: Path, prefix: Path, platform: Platform, metadata: Mapping[str, str], ended: bool = True) -> None:
    """Write files of Batsim 5 in a folder as those of a run under `prefix`; `metadata`: full job id -> text.

    A simulation that has not `ended`, as jobs were left, has no schedule.
    Raises PeerError if they are not as v5.0.0-rc2 writes them.
    """
    for name in _TABLES:
        path = folder / f"{name}.csv"
        if not path.exists():
            continue
        names = [column.name for column in FILES[name]]
        if next(_rows(path), None) != names:
            raise PeerError(f"the columns of Batsim's {path.name} are not {','.join(names)}")
    _write_jobs(folder / "jobs.csv", file_of(prefix, "jobs"), metadata)
    for name in _TABLES[1:]:
        # without energy Batsim 4 writes neither
        if (folder / f"{name}.csv").exists() and (folder / "consumed_energy.csv").exists():
            shutil.copyfile(folder / f"{name}.csv", file_of(prefix, name))
    rows, machines = _states(folder, platform)
    write_columns(file_of(prefix, "machine_states"), FILES["machine_states"], rows.columns())
    if not ended:
        return
    schedule = _json(folder / "schedule.json")
    wall = _json(path) if (path := folder / "real_exec_info.json").exists() else {}
    schedule["scheduling_time"] = wall.get("time_in_edc_seconds", 0.0)
    schedule["simulation_time"] = wall.get("time_in_simu_seconds", 0.0)
    schedule |= {f"time_{name}": seconds for name, seconds in machines.times_in_state().items()}
    columns = FILES["schedule"]
    missing = next((column.name for column in columns if column.name not in schedule), None)
    if missing is not None:
        raise PeerError(f"Batsim's schedule.json has no {missing!r}")
    write_rows(file_of(prefix, "schedule"), columns, [[schedule[column.name] for column in columns]])


def _rows(path: Path) -> Iterator[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.reader(file)


def _named(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a file by column; no rows without a file."""
    if path.exists():
        rows = _rows(path)
        names = next(rows)
        for number, row in enumerate(rows, 1):
            if len(row) != len(names):
                raise PeerError(f"Batsim's {path.name}: row {number} has {len(row)} fields, its header {len(names)}")
            yield dict(zip(names, row, strict=True))


def _json(path: Path) -> dict[str, float | int | str]:
    try:
        content: dict[str, float | int | str] = json.loads(_NAN.sub("NaN", path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise PeerError(f"Batsim ended well but its {path.name} cannot be read") from None
    return content


def _write_jobs(path: Path, to: Path, metadata: Mapping[str, str]) -> None:
    with whole_file(to) as out:
        out.write(",".join(column.name for column in FILES["jobs"]) + "\n")
        for row in _named(path):
            load = row["workload_name"]
            row["profile"] = row["profile"].removeprefix(f"{load}!")
            about = metadata.get(f"{load}!{row['job_id']}", "")
            del row["metadata"]
            out.write(",".join([*escaped([*row.values()]), f'"{about}"']) + "\n")


def _states(folder: Path, platform: Platform) -> tuple[StateRows, Machines]:
    """Return the number of hosts in each state after each start, end and switch, and the hosts at the end."""
    machines, rows = Machines(platform), StateRows()
    running = [0] * len(platform)
    happenings = itertools.chain(_jobs(folder), _switches(folder, platform))
    for time_s, kind, mask, state in sorted(happenings, key=lambda one: one[:2]):
        if kind == _START:
            for host in hostset.ids(mask):
                running[host] += 1
        elif kind in (_END, _NULL_END):
            for host in hostset.ids(mask):
                running[host] -= 1
            free = [host for host in hostset.ids(mask) if not running[host]]
            mask = hostset.of_ids(free) if free else 0
        machines.move(mask, state, time_s)
        if kind != _ARRIVAL:
            rows.times.append(time_s)
            rows.counts.fromlist(machines.seen)
    return rows, machines


def _jobs(folder: Path) -> Iterator[_Happening]:
    for job in _named(folder / "jobs.csv"):
        if job["starting_time"]:
            mask = hostset.from_text(job["allocated_resources"])
            yield float(job["starting_time"]), _START, mask, COMPUTING
            if float(job["execution_time"]) == NULL_RUNTIME_S:
                yield float(job["starting_time"]), _NULL_END, mask, IDLE
            else:
                yield float(job["finish_time"]), _END, mask, IDLE


def _switches(folder: Path, platform: Platform) -> Iterator[_Happening]:
    """Yield requests, their ends, which are those of their slowest hosts, and arrivals of hosts in new states."""
    # the first rows are the p-states of the beginning
    first = len({host.initial_pstate for host in platform.hosts})
    changes = list(_named(folder / "pstate_changes.csv"))[first:]
    # these times have six digits in all, those of the energies six decimals
    exact = [row["time"] for row in _named(folder / "consumed_energy.csv") if row["event_type"] == "p"]
    times_s = [float(time) for time in (exact if len(exact) == len(changes) else [row["time"] for row in changes])]
    states = [int(row["new_pstate"]) for row in changes]
    asleep = {host.id: host.sleep_of.get(host.initial_pstate) for host in platform.hosts}
    ended: set[int] = set()
    for index, (begin_s, state, row) in enumerate(zip(times_s, states, changes, strict=True)):
        if state not in (_ON, _OFF):
            if index in ended:
                yield begin_s, _SWITCH, 0, IDLE
            continue
        mask = hostset.from_text(row["machine_id"])
        yield begin_s, _SWITCH, mask, SWITCHING_ON if state == _ON else SWITCHING_OFF
        later = range(index + 1, len(changes))
        end = next((i for i in later if states[i] >= 0 and changes[i]["machine_id"] == row["machine_id"]), None)
        if end is None:
            continue
        ended.add(end)
        for host in hostset.ids(mask):
            pstates = platform.hosts[host].pstates
            if state == _OFF:
                sleep = asleep[host] = platform.hosts[host].sleep_of[states[end]]
                lasts_s = pstates[sleep.switch_off].duration_s
            else:
                woken = asleep[host]
                assert woken is not None
                lasts_s = pstates[woken.switch_on].duration_s
            arrival_s = min(round(begin_s + lasts_s, 6), times_s[end])
            yield arrival_s, _ARRIVAL, 1 << host, IDLE if state == _ON else SLEEPING
