"""Reader of the accounting of PBS and Torque: a line is `date;kind;id;name=value name=value ...`.

A record of kind E, the end of a job, is a job; others (queued, started, deleted, run again) are not, nor is the parent
`5[]` of an array, whose jobs `5[1]`, `5[2]` have records of their own. Dates in it are s since 1970. The width is
total_execution_slots, else the greatest of Resource_List.ncpus, which may be a default of the queue, and procs, N x P
of Resource_List.nodes `N:ppn=P` or select `N:ncpus=P`, the ncpus in exec_vnode, and the slots in exec_host, where the N
of `host/N` is the number of one slot; in nodes unique_node_count or Resource_List.nodect. The run time is
resources_used.walltime, which Torque samples, or end - start where it is 0 s. Resource_List.walltime is the limit;
labels are user, group and queue.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path

from batwatt.errors import remark
from batwatt.files import open_text
from batwatt.inputs.traces.job_log import USUAL, LogOptions
from batwatt.inputs.traces.job_tables import Layout, jobs_of_rows
from batwatt.inputs.traces.trace_table import TraceTable

_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_SLOTS = "slots"
_USED = (
    *("exec_host", "exec_vnode", "Resource_List.nodes", "Resource_List.select"),
    *("Resource_List.ncpus", "Resource_List.procs"),
)
_WALLTIME = "resources_used.walltime"
_LAYOUT = Layout(
    *("id", "ctime", "start", "end", _WALLTIME, "Resource_List.walltime"),
    cpus=("total_execution_slots", _SLOTS),
    nodes=("unique_node_count", "Resource_List.nodect"),
    labels={"user": "user", "group": "group", "queue": "queue"},
)
_log = logging.getLogger(__name__)


def is_pbs(line: str) -> bool:
    """Return whether the first line of a file is a record of PBS."""
    return _RECORD.match(line) is not None


def read_pbs(path: Path | str, options: LogOptions = USUAL) -> TraceTable:
    """Read the jobs of records (or `.gz`) that ran, in their order. Raises InputError."""
    columns, rejected = _LAYOUT.columns, Counter[str]()
    rows, uncertain = [], 0
    with open_text(path) as stream:
        for line in stream:
            record = line.strip().split(";", 3)
            if len(record) < 4:
                rejected["malformed"] += record != [""]
            elif record[1] == "E" and "[]" in record[2]:
                rejected["parents of arrays"] += 1
            elif record[1] == "E":
                row = dict(word.split("=", 1) for word in record[3].split() if "=" in word)
                row = {name: text for name, text in row.items() if name in columns or name in _USED}
                used = [row.pop(name, "") for name in _USED]
                uncertain += not any(used[1:]) and re.fullmatch("[^/]+/[1-9][0-9]*", used[0]) is not None
                row |= {"id": record[2], _SLOTS: str(_slots(*used))}
                if row.get(_WALLTIME, "").strip("0:") == "":
                    row.pop(_WALLTIME, None)
                rows.append(row)
    if uncertain:
        text = "%s: %d jobs have no width but exec_host=HOST/N: the slot of the number N, so that they are of 1 CPU"
        remark(_log, text, path, uncertain)
    return jobs_of_rows(rows, _LAYOUT, rejected, options, path)


def _slots(exec_host: str, exec_vnode: str, nodes: str, select: str, ncpus: str, procs: str) -> int:
    """Return the most slots of `c3/0-3,7+c4/2` (Torque) or `n1/0*16` (PBS), and CPUs of other texts."""
    ran = 0
    for host in exec_host.split("+"):
        for part in host.partition("/")[2].split(","):
            if match := re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})|\*([0-9]{1,9}))?", part):
                first, last, times = match.groups()
                ran += int(times or 1) if last is None else max(int(last) - int(first) + 1, 0)
    vnodes = sum(map(int, re.findall(r"\bncpus=([0-9]{1,9})", exec_vnode)))
    return max(ran, vnodes, _chunks(nodes), _chunks(select), _whole(ncpus, 0), _whole(procs, 0))


def _chunks(text: str) -> int:
    """Return the CPUs of `2:ppn=8+n7:ppn=4#shared`, where the name of a host is one node, or of `2:ncpus=8`."""
    cpus = 0
    for part in text.split("+") if text else ():
        each = re.search(r"\b(?:ppn|ncpus)=([0-9]{1,9})", part)
        cpus += _whole(re.split("[:#]", part)[0], 1) * (int(each[1]) if each else 1)
    return cpus


def _whole(text: str, default: int) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else default
