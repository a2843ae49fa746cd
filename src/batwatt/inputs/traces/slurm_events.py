"""Reader of the events of the Slurm simulator: a line submits a job with the options of sbatch.

`-dt 10.5 -e submit_batch_job | -sim-walltime 3600 --uid=ann -J 17 -N 1 -n 32 -t 1-00:00:00 -q normal -p long script`:
`-dt` is the submission and `-sim-walltime` the run time, both in s; `-t` is the limit. The width is `-n`, else `-N`
times `--ntasks-per-node`, times `-c`; in nodes `-N`. Labels are user of --uid, group of -A, queue of -p, qos of -q.
Start and memory are not read. Lines with other events are left out and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.inputs.traces.job_log import USUAL, LogOptions, number
from batwatt.inputs.traces.job_tables import Layout, jobs_of_rows
from batwatt.inputs.traces.trace import open_text
from batwatt.inputs.traces.trace_table import TraceTable

_OPTION = re.compile(r"(?<!\S)(--?[A-Za-z][A-Za-z-]*)(?:=|\s+)(\S+)")
_SHORT = {
    "--job-name": "-J",
    "--time": "-t",
    "--nodes": "-N",
    "--ntasks": "-n",
    "--cpus-per-task": "-c",
    "--partition": "-p",
    "--qos": "-q",
    "--account": "-A",
}
_LAYOUT = Layout(
    *("-J", "-dt", "", "", "-sim-walltime", "-t"),
    limit_s=60.0,
    cpus=("cpus",),
    nodes=("-N",),
    labels={"user": "--uid", "group": "-A", "queue": "-p", "qos": "-q"},
    dated=False,
    repeats=True,
)


def read_slurm_events(path: Path | str, options: LogOptions = USUAL) -> TraceTable:
    """Read the jobs of events (or `.gz`) with a length, in their order. Raises InputError with the line."""
    rejected: Counter[str] = Counter()
    rows = []
    with open_text(path) as stream:
        for count, line in enumerate(stream, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            row = {_SHORT.get(name, name): text for name, text in _OPTION.findall(line)}
            if not number(row.get("-dt", "")) >= 0.0 or "-e" not in row:
                hint = "write -dt SECONDS -e submit_batch_job | -sim-walltime SECONDS and options of sbatch"
                raise InputError(
                    f"{path} line {count}", f"is not an event at a time >= 0 s, got {shown(line.strip())}", hint
                )
            if row["-e"] != "submit_batch_job":
                rejected["not submitted"] += 1
                continue
            nodes = row.get("-N", "1").partition("-")[0]
            tasks = number(row["-n"]) if "-n" in row else number(nodes) * number(row.get("--ntasks-per-node", "1"))
            cpus = tasks * number(row.get("-c", "1"))
            rows.append({"-J": str(count), **row, "-N": nodes, "cpus": str(cpus)})
    return jobs_of_rows(rows, _LAYOUT, rejected, options, path)
