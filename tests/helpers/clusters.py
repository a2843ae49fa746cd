"""A cluster in a given state, for rules that look at nothing else."""

from __future__ import annotations

from builders import machine

from batwatt.scheduling.orders import Fcfs
from batwatt.scheduling.queue import Queue
from batwatt.systems.powercap.cluster import Cluster


class Job:
    def __init__(self, name, hosts, walltime, submit=0.0):
        self.id, self.requested_resources, self.requested_time, self.submit_time = name, hosts, walltime, submit


def cluster_of(fast=2, slow=0, states=None, jobs=(), now=0.0, work=None):
    """`jobs`: (name, mask, start, walltime); `work`: flops per server of each."""
    cluster = Cluster(fast + slow, Queue(Fcfs()), machine(fast, slow))
    for name, mask, start, walltime in jobs:
        cluster.queue.add(Job(name, mask.bit_count(), walltime))
        waiting = list(cluster.queue.ordered(start))[-1]
        cluster.queue.remove(waiting)
        cluster.now_s = start
        run = cluster.start(waiting, mask)
        run.work_flops = (work or {}).get(name, 0.0)
    cluster.now_s = now
    for host, state in enumerate(states or ()):
        sleeping = state in cluster.platform.hosts[host].sleep_of
        if sleeping:
            cluster.idle &= ~(1 << host)
            cluster.asleep |= 1 << host
        cluster.pstate[host] = state
    for run in cluster.running.values():
        run.speed_flops = cluster.slowest(run.mask)
    return cluster
