"""Reader of the accounting of PBS and Torque: a line is `date;kind;id;name=value name=value ...`.

A record of kind E, the end of a job, is a job; others (queued, started, deleted, run again) are not, nor is the parent
`5[]` of an array, whose jobs `5[1]`, `5[2]` have records of their own. Dates in it are s since 1970. The width is total_execution_slots, Resource_List.ncpus, or the slots in exec_host; in nodes
unique_node_count or Resource_List.nodect. The run time is resources_used.walltime, which Torque samples, or end - start
where it is 0 s. Resource_List.walltime is the limit; labels are user, group and queue.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from batwatt.files import open_text
from batwatt.inputs.traces.job_log import USUAL, LogOptions
from batwatt.inputs.traces.job_tables import Layout, jobs_of_rows
from batwatt.inputs.traces.trace_table import TraceTable

_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_SLOTS = "slots of exec_host"
_WALLTIME = "resources_used.walltime"
_LAYOUT = Layout(
    *("id", "ctime", "start", "end", _WALLTIME, "Resource_List.walltime"),
    cpus=("total_execution_slots", "Resource_List.ncpus", _SLOTS),
    nodes=("unique_node_count", "Resource_List.nodect"),
    labels={"user": "user", "group": "group", "queue": "queue"},
)


def is_pbs(line: str) -> bool:
    """Return whether the first line of a file is a record of PBS."""
    return _RECORD.match(line) is not None


def read_pbs(path: Path | str, options: LogOptions = USUAL) -> TraceTable:
    """Read the jobs of records (or `.gz`) that ran, in their order. Raises InputError."""
    columns, rejected = _LAYOUT.columns, Counter[str]()
    rows = []
    with open_text(path) as stream:
        for line in stream:
            record = line.strip().split(";", 3)
            if len(record) < 4:
                rejected["malformed"] += record != [""]
            elif record[1] == "E" and "[]" in record[2]:
                rejected["parents of arrays"] += 1
            elif record[1] == "E":
                row = dict(word.split("=", 1) for word in record[3].split() if "=" in word)
                row = {name: text for name, text in row.items() if name in columns or name == "exec_host"}
                row |= {"id": record[2], _SLOTS: _slots(row.pop("exec_host", ""))}
                if row.get(_WALLTIME, "").strip("0:") == "":
                    row.pop(_WALLTIME, None)
                rows.append(row)
    return jobs_of_rows(rows, _LAYOUT, rejected, options, path)


def _slots(exec_host: str) -> str:
    """Return the number of slots in `c3/0-3,7+c4/2` (Torque) or `n1/0*16` (PBS)."""
    count = 0
    for host in exec_host.split("+"):
        for part in host.partition("/")[2].split(","):
            if match := re.fullmatch(r"(\d+)(?:-(\d+)|\*(\d+))?", part):
                first, last, times = match.groups()
                count += int(times or 1) if last is None else int(last) - int(first) + 1
    return str(count)
