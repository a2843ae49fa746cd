"""A cluster in a given state, for rules that look at nothing else."""

from __future__ import annotations

from builders import machine

from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.job import Job
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.queue import Queue


class Attempt:
    def __init__(self, name, hosts, walltime, submit=0.0):
        self.id, self.requested_resources, self.requested_time, self.submit_time = name, hosts, walltime, submit


def enqueue(queue, *jobs):
    """Put jobs of pybatsim in a queue, numbered in this order."""
    rows = [Job(number, job) for number, job in enumerate(jobs, 1 + len(queue))]
    for row in rows:
        queue.add(row)
    return rows


def run_now(cluster, name, mask, start_s, walltime_s, work_flops=0.0):
    """Start a job on the hosts of a mask at a time."""
    job = Job(1 + len(cluster.running), Attempt(name, mask.bit_count(), walltime_s))
    cluster.now_s = start_s
    cluster.start(job, mask)
    job.work_flops = work_flops


def set_states(cluster, states):
    """Put the first hosts in these p-states, without a transition."""
    kinds = cluster.platform.kinds
    for host, state in enumerate(states):
        left = {mode: hosts & ~(1 << host) for mode, hosts in cluster.modes.items()}
        cluster.modes = {mode: hosts for mode, hosts in left.items() if hosts}
        cluster.modes[kinds[host], state] = cluster.modes.get((kinds[host], state), 0) | 1 << host


def cluster_of(fast=2, slow=0, states=None, jobs=(), now=0.0, work=None):
    """`jobs`: (name, mask, start, walltime); `work`: flops per server of each."""
    cluster = Cluster(fast + slow, Queue(FirstCome()), machine(fast, slow))
    for name, mask, start, walltime in jobs:
        run_now(cluster, name, mask, start, walltime, (work or {}).get(name, 0.0))
    cluster.now_s = now
    for host, state in enumerate(states or ()):
        sleeping = state in cluster.platform.hosts[host].sleep_of
        if sleeping:
            cluster.idle &= ~(1 << host)
            cluster.asleep |= 1 << host
    set_states(cluster, states or ())
    for run in cluster.running.values():
        run.speed_flops = cluster.slowest(run.mask)
    return cluster
