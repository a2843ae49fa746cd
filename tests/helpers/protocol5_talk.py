"""What the tests of Batsim 5's protocol share: frames of a scheduler, and workloads."""

from __future__ import annotations

import json

from batwatt.inputs.batsim_files import read_workload5

SPREAD = {
    "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
    "executor_placement": {"strategy": "SpreadOverHostsFirst"},
}
CALL = {"call_me_later_id": "c", "when_type": "OneShot", "when": {"time": 3, "time_unit": "Second"}}
PROFILES = {
    "nap": {"type": "DelayProfile", "delay": 10},
    "half": {"type": "ParallelTaskHomogeneousProfile", "cpu": 5e9, "com": 0},
    "both": {"type": "SequentialCompositionProfile", "seq": ["half", "nap", "half"], "repeat": 2},
    "deep": {"type": "SequentialCompositionProfile", "seq": ["nap", "both"]},
}


def frame(now, *events):
    """An answer, at `now`; events are (name, fields)."""
    stamped = [{"timestamp": now, "event_type": f"{name}Event", "event": fields} for name, fields in events]
    return json.dumps({"now": now, "events": stamped}).encode()


def execute(job, hosts, **more):
    return "ExecuteJob", {"job_id": job, "allocation": {"host_allocation": hosts, **SPREAD}, **more}


def workload(tmp_path, *jobs, name="w0"):
    path = tmp_path / f"{name}.json"
    used = [{"id": str(i), "res": 1, **job} for i, job in enumerate(jobs)]
    path.write_text(json.dumps({"nb_res": 3, "jobs": used, "profiles": PROFILES}))
    return read_workload5(path, name)
