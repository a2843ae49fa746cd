"""Measure speed and memory of `varcap` at the sizes of the varcap dissertation: `make bench`.

Each line is a whole run in a process of its own: the trace is read, simulated under a walk of range 0.6, its files are
written and measured, without accounting for energy. Azure' is Table 5.2's 442,784 jobs on 1,250 x 16 cores, at the
load of the table (1.76 of 0.7 of the cores: hundreds of thousands of jobs wait) and at 0.9; Mira' 6,571 jobs on
49,152 nodes; TNG 1,500,000 jobs on 476 x 32 cores. The next lines are the growth of time with jobs: one cell of
increasing length. The last two have no run times, without and with foresight: this may take `FORESIGHT` times as long
of the processor. `--quick` leaves out runs of minutes, `--only TEXT` other names. The targets are for a Python
that has batwatt compiled: `make wheel` leaves one in `build/clean`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apart import GIB, form, in_child, peak_bytes

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.model.platform import MachineSpec
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

sys.path.append(str(Path(__file__).resolve().parents[1]))

from papers.generators.varcap import VarcapLike, varcap_table

WALK = "walk:range=0.6,mean=0.7,step=0.15,period=3600,seed=1"


@dataclass(frozen=True)
class Case:
    """A run with its targets of time and memory."""

    name: str
    trace: dict[str, Any]
    machines: int
    cores: int
    options: dict[str, Any] = field(default_factory=dict)
    most_s: float = math.inf
    most_bytes: float = math.inf


AZURE, AZURE_90 = {"like": "azure"}, {"like": "azure", "load": 0.9}
LONGSHORT = {"mapping": "longshort", "bounds": "values"}
CASES = (
    Case("Mira', nodes", {"like": "mira"}, 49_152, 1, {"order": "wfp", "termination": "lww"}, most_s=10.0),
    Case("Mira', midplanes", {"like": "mira"}, 96, 512, {"order": "wfp"}, most_s=10.0),
    Case("Azure', Base", AZURE, 1250, 16, {}, 35.0, 2 * GIB),
    Case("Azure', LongShort", AZURE, 1250, 16, LONGSHORT, 35.0, 2 * GIB),
    Case("Azure' at 0.9, Base", AZURE_90, 1250, 16, {}, 35.0, 2 * GIB),
    Case("Azure' at 0.9, LongShort", AZURE_90, 1250, 16, LONGSHORT, 35.0, 2 * GIB),
)
LARGE = (Case("TNG, Base", {"like": "tng", "jobs": 1_500_000}, 476, 32, {}, 90.0, 2 * GIB),)
CURVE = tuple(
    Case(f"one TNG cell, {name}", {"like": "tng", "machines": 48, "jobs": jobs}, 48, 32, options)
    for name, options in (("Base", {}), ("LongShort", LONGSHORT))
    for jobs in (12_500, 25_000, 50_000, 100_000, 200_000)
)


FORESIGHT = 1.5
"""Target: processor time with foresight over that without."""
UNKNOWN = tuple(
    Case(f"no run times, {name}", {"like": "tng", "machines": 48, "jobs": 75_000}, 48, 32, {"knowledge": "none"} | more)
    for name, more in (("blind", {}), ("foresight", {"foresight_h": 6}))
)


def child(text: str) -> None:
    """Do a run; print its time, memory and figures."""
    case = json.loads(text)
    spec = RunSpec(
        platform=MachineSpec(case["machines"], case["cores"]),
        workloads=(Path(case["trace"]),),
        scheduler="varcap",
        options=case["options"],
        capacity=WALK,
        config=EngineConfig(energy=False),
        prefix=Path(case["prefix"]),
    )
    began = time.perf_counter(), time.process_time()
    metrics = run(spec).metrics
    seconds, cpu_s = time.perf_counter() - began[0], time.process_time() - began[1]
    took = {"s": seconds, "cpu_s": cpu_s, "bytes": peak_bytes()}
    names = {"jobs": "jobs_total", "runs": "jobs_finished", "terminations": "terminations", "rejected": "jobs_rejected"}
    print(json.dumps(took | {label: metrics[name] for label, name in names.items()}))


def measure(case: Case, folder: Path) -> dict[str, Any]:
    """Measure a run of a case in a process of its own."""
    trace = folder / "trace.csv"
    varcap_table(VarcapLike(**case.trace), 0).to_csv(trace, index=False)
    inputs = {
        "trace": str(trace), "machines": case.machines, "cores": case.cores, "options": case.options,
        "prefix": str(folder / "x"),
    }  # fmt: skip
    return in_child(__file__, inputs)


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out runs of minutes")
    parser.add_argument("--only", metavar="TEXT", default="", help="measure the runs whose name has the text")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return 0
    met = True
    print(form())
    print(
        f"{'run':>26} {'jobs':>9} {'killed':>8} {'s':>7} {'cpu s':>7} {'jobs/s':>7} {'us/(job log2 n)':>16} {'GiB':>5}"
    )
    with tempfile.TemporaryDirectory() as name:
        cases = (*CASES, *CURVE[:4]) if arguments.quick else (*CASES, *LARGE, *CURVE, *UNKNOWN)
        took: dict[str, float] = {}
        for case in (case for case in cases if arguments.only in case.name):
            row = measure(case, Path(name))
            jobs, seconds, took[case.name] = row["jobs"], row["s"], row["cpu_s"]
            assert row["runs"] + row["rejected"] == jobs, "a job was lost"
            each = seconds / (jobs * math.log2(jobs)) * 1e6
            good = seconds < case.most_s and row["bytes"] < case.most_bytes
            bounded = case.most_s < math.inf
            print(
                f"{case.name:>26} {jobs:>9} {row['terminations']:>8} {seconds:>7.1f} "
                f"{row['cpu_s']:>7.1f} {jobs / seconds:>7.0f} "
                f"{each:>16.2f} {row['bytes'] / GIB:>5.2f}" + (f"  {'met' if good else 'MISSED'}" if bounded else ""),
                flush=True,
            )
            met &= good
    print(f"{'met   ' if met else 'MISSED'} Mira' under 10 s, Azure' under 35 s, TNG under 90 s, all in 2 GiB")
    blind, foresight = (took.get(case.name) for case in UNKNOWN)
    if blind and foresight:
        good = foresight <= FORESIGHT * blind
        print(f"{'met   ' if good else 'MISSED'} {FORESIGHT:g} times with foresight: {foresight / blind:.2f}")
        met &= good
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
