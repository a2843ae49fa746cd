"""Decisions follow from the state, not from the order of the events of one time or how they come in messages."""

from __future__ import annotations

import logging
from itertools import pairwise

import numpy as np
import pytest

from batwatt.batsim import events as ev
from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.model.platform import MachineSpec, SpeedMachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.protocol.workload4 import parse_workload
from batwatt.run.find_scheduler import scheduler_class

FREE = (ev.JobSubmitted, ev.JobCompleted, ev.ResourceStateChanged, ev.RequestedCall)
"""Events that may come in any order; others follow what they are about, and kills the order that asked for them."""
HOURS = [400.0, 300.0, 100.0, 250.0, 80.0, 500.0, 90.0, 320.0]
CARBON = {"signal": Timeline.regular(HOURS * 60), "wait_h": [2]}
SCHEDULERS = {
    "carbon": CARBON | {"policy": "oracle"},
    "carbon at once": CARBON | {"policy": "immediate"},
    "carbon suspending": CARBON | {"policy": "suspend-resume", "replan_h": 0.5, "forecast_error": 0.2},
    "adaptive": {"checkpoint_s": 10.0},
    "adaptive for carbon": CARBON | {"objective": "carbon"},
    "varcap": {"termination": "lww", "backfilling": "easy"},
    "varcap long-short": {"mapping": "longshort", "victim": "checkpoint"},
    "riskaware": {"strategy": "packed-target-asap"},
    "checkpoint": {},
    "oversubscribed": {},
    "powercap": {"order": "slowdown", "backfilling": "easy", "response": "frugal"},
    "powercap hfld": {"order": "fcfs", "backfilling": "first-fit", "response": "hfld", "victim": "resubmit"},
    "jobpower": {"backfilling": "easy", "excess": "kill-latest"},
    "replay": {},
}
PLANNERS = ("carbon", "carbon at once", "carbon suspending", "adaptive for carbon", "riskaware")
"""Those that know when jobs end, and wait for it; others act on each message."""


def killed(event):
    return isinstance(event, ev.JobCompleted) and event.state == "COMPLETED_KILLED"


class Disordered:
    """A link that shuffles the events of each message, or hands them over in several."""

    def __init__(self, link, rng, *, split):
        self.link, self.rng, self.split = link, rng, split
        self.parts, self.decisions, self.now = [], [], 0.0

    def message(self):
        if not self.parts:
            message = self.link.message()
            self.now, events = message.now, message.events
            if self.split and all(isinstance(event, FREE) for event in events):
                # Batsim tells at once of all jobs that are submitted at one time
                submitted = [place for place, event in enumerate(events) if isinstance(event, ev.JobSubmitted)]
                cuts = {0, len(events), *self.rng.integers(0, len(events) + 1, 2).tolist()}
                bounds = sorted(cut for cut in cuts if not submitted or not submitted[0] < cut <= submitted[-1])
                self.parts = [events[low:high] for low, high in pairwise(bounds)] or [events]
            else:
                places = [place for place, event in enumerate(events) if isinstance(event, FREE) and not killed(event)]
                mixed = list(events)
                if not self.split:
                    for place, event in zip(places, self.shuffled([events[place] for place in places]), strict=True):
                        mixed[place] = event
                self.parts = [mixed]
        return ev.Message(self.now, self.parts.pop(0))

    def shuffled(self, events):
        """The same in another order; Batsim tells of jobs in the order of their submission and their ids."""
        mixed = [events[place] for place in self.rng.permutation(len(events)).tolist()]
        submitted = iter([event for event in events if isinstance(event, ev.JobSubmitted)])
        return [next(submitted) if isinstance(event, ev.JobSubmitted) else event for event in mixed]

    def reply(self, reply):
        ended = {event.job_id for part in self.parts for event in part if isinstance(event, ev.JobCompleted)}
        for decision in reply.decisions:
            if isinstance(decision, ev.KillJob):
                # a job that has ended is not killed, which the engine says at once
                decision.job_ids = [job_id for job_id in decision.job_ids if job_id not in ended]
                if not decision.job_ids:
                    continue
            self.decisions.append(decision)
        if not self.parts:
            self.link.reply(ev.Reply(max(self.now, reply.now), self.decisions))
            self.decisions = []


def instance(rng, name):
    """Machines, jobs at few different times, and steps of a capacity or an envelope."""
    count, cores = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    kind = SpeedMachineSpec if name in ("oversubscribed", "powercap", "powercap hfld") else MachineSpec
    slow = {"on_s": 45.0, "off_s": 20.0} if rng.random() < 0.5 else {}
    platform = machines_platform(kind(count, cores, **slow))
    rows, profiles = [], {}
    for number in range(int(rng.integers(10, 30))):
        length_s = 60.0 * float(rng.integers(1, 12))
        flops = {"type": "parallel_homogeneous", "cpu": length_s * platform.hosts[0].pstates[0].speed_flops, "com": 0}
        profiles[f"d{length_s}"] = flops if name == "oversubscribed" else {"type": "delay", "delay": length_s}
        submit_s = 60.0 * float(rng.integers(0, 20))
        rows.append({
            "id": str(number), "profile": f"d{length_s}", "subtime": submit_s, "res": int(rng.integers(1, cores + 1)),
            "walltime": length_s + 60.0 * float(rng.integers(1, 3)), "power_w": 10.0,
            "mean_power_estimation": 10.0, "start_s": submit_s,
        })  # fmt: skip
    workload = parse_workload({"nb_res": count * cores, "jobs": rows, "profiles": profiles}, "w0", "test")
    times = tuple(300.0 * step for step in range(8))
    alive = (*rng.integers(1, count + 1, 7).astype(float).tolist(), float(count))
    return platform, workload, times, alive, cores


def rows_of(name, seed, *, split=None, acknowledge=False):
    """(job, state, start, end, hosts) of a run, with the messages as they are or in disorder."""
    platform, workload, times, alive, cores = instance(np.random.default_rng(seed), name)
    options = dict(SCHEDULERS[name])
    kind = name.partition(" ")[0]
    if kind in ("powercap", "jobpower"):
        watts = tuple(10.0 * cores * value for value in alive)
        options |= {"platform": platform, "envelope": Timeline(times, watts, "power_w")}
    elif kind != "replay":
        options |= {"capacity": Timeline(times, alive, "machines"), "platform": platform}
    scheduler = scheduler_class(kind)(options)
    scheduler.logger = logging.Logger("test", logging.CRITICAL)
    again = scheduler.needs_dynamic_jobs
    config = EngineConfig(energy=True, dynamic_jobs=again, profile_reuse=again, acknowledge_dynamic_jobs=acknowledge)
    engine = Engine(platform, [workload], config)
    disorder = np.random.default_rng(1000 + seed)
    watch = None if split is None else lambda link: Disordered(link, disorder, split=split)
    record = simulate(engine, scheduler, watch)
    return sorted(
        (row.job_id, row.final_state, row.starting_time or -1.0, row.finish_time or -1.0, row.allocated_resources)
        for row in record.jobs
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_order_of_events_in_a_message(name, seed):
    assert rows_of(name, seed, split=False) == rows_of(name, seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", PLANNERS)
def test_messages_in_parts(name, seed):
    assert rows_of(name, seed, split=True) == rows_of(name, seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SCHEDULERS)
def test_acknowledgements(name, seed):
    """A job that was submitted again may run by the time of its acknowledgement."""
    assert rows_of(name, seed, acknowledge=True) == rows_of(name, seed)
