"""A limit of age: what waits longer goes first, whatever the order, and is stopped for no other job; by hand."""

from __future__ import annotations

import pytest
from builders import job, machine, played, starts

from batwatt.errors import InputError
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.schedulers.adaptive import Adaptive
from batwatt.schedulers.jobpower import Jobpower
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.varcap import Varcap

TWO, ONE = machines_platform(MachineSpec(2, 1)), machines_platform(MachineSpec(1, 1))
# both hosts are busy at any time until the last of twenty short jobs has ended at 105 s
STREAM = [job(f"s{number}", 5 * number, 1, 10, 10) for number in range(20)]
WIDE = job("L", 1, 2, 50, 100)
SCHEDULERS = {
    "powercap": (Powercap, {"response": "none"}, machine(2)),
    "jobpower": (Jobpower, {}, machine(2)),
    "varcap": (Varcap, {"capacity": Timeline((0.0,), (2.0,)), "nodes": "dedicated"}, TWO),
    "adaptive": (Adaptive, {"capacity": Timeline((0.0,), (2.0,)), "parts": {"nodes": "dedicated"}}, TWO),
}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize(
    ("limit_s", "start_s", "backfilling"), [(None, 105.0, "first-fit"), (30.0, 40.0, "first-fit"), (36.0, 45.0, "easy")]
)
def test_a_wide_job_behind_shorter_ones(name, limit_s, start_s, backfilling):
    """L is aged from 31 s (37 s) on; the next message, at 35 s (40 s), reserves the end of the job that goes on."""
    make, options, platform = SCHEDULERS[name]
    parts = {"order": "asc_walltime", "backfilling": backfilling}
    if name == "adaptive":
        parts = {"parts": {**options["parts"], **parts}}
    elif name == "jobpower":
        parts["platform"] = platform
    record = played(make({**options, **parts, "age_limit_s": limit_s}), platform, *STREAM, WIDE, energy=True)
    begun = {name: begin for name, (begin, _) in starts(record).items()}
    # EASY reserves for the first job in the order, which is L only when no shorter one waits
    assert begun["L"] == start_s
    if limit_s is not None:
        assert begun["s7"] == begun["s8"] == start_s + 50.0 if start_s == 40.0 else begun["s8"] == start_s + 50.0


@pytest.mark.parametrize(("limit_s", "start_s"), [(None, 101.0), (150.0, 101.0), (50.0, 1000.0)])
def test_an_aged_job_is_stopped_for_no_other(limit_s, start_s):
    """S would start 890 s sooner, at a cost of 100 s to do again: it is announced at 100 s, and starts 1 s later."""
    options = {"capacity": Timeline((0.0,), (1.0,)), "order": "asc_walltime", "preemption": "slowdown"}
    jobs = job("L", 0, 1, 1000), job("S", 100, 1, 10)
    record = played(Varcap({**options, "age_limit_s": limit_s}), ONE, *jobs, energy=True)
    assert starts(record)["S"][0] == start_s


def test_a_mapping_with_an_order_of_its_own():
    options = {"capacity": Timeline((0.0,), (1.0,)), "mapping": "jobsize-order", "age_limit_s": 60.0}
    with pytest.raises(InputError, match=r"'age_limit_s'.*has an order of its own"):
        played(Varcap(options), ONE, job("L", 0, 1, 10))
