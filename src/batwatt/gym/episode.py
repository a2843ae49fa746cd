"""The inputs of an episode, read from names of files or taken from objects of `batwatt.model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from batwatt.errors import InputError
from batwatt.gym.limits import Limits
from batwatt.gym.tally import JobTimes
from batwatt.inputs.load import Needs, RunInputs, load, machines_of
from batwatt.model.series import Series
from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, RELEASE
from batwatt.run.spec import RunSpec
from batwatt.scheduling.lifecycle import JobLifecycle


@dataclass(frozen=True)
class Episode:
    """The determinants of an episode but for the actions: a run without a scheduler, and facts computed of it once.

    `jobs` are the times of the jobs that can run, by id.
    """

    spec: RunSpec
    inputs: RunInputs
    limits: Limits
    jobs: Mapping[str, JobTimes]

    @classmethod
    def of(cls, spec: RunSpec) -> Episode:
        """Read the inputs of an episode; without a capacity all hosts are there. Raises InputError."""
        inputs = load(spec.inputs, Needs(power=spec.inputs.envelope is not None))
        platform, [workload], hosts = inputs.platform, inputs.workloads, len(inputs.platform)
        for job in workload.jobs:
            JobLifecycle.check_id(job)
        widest = max((job.hosts for job in workload.jobs if job.hosts <= hosts), default=0)
        envelope, capacity = inputs.envelope, inputs.capacity
        if envelope is not None and (power := Limits(platform, envelope, None)).most < widest:
            inputs = replace(inputs, envelope=_lifted(envelope, power.most_w))
        if capacity is not None and Limits(platform, None, capacity).most < widest:
            inputs = replace(inputs, capacity=_lifted(capacity, float(hosts)))
        limits = Limits(platform, inputs.envelope, inputs.capacity)
        if spec.inputs.capacity is None:
            inputs = replace(inputs, capacity=Series((0.0,), (float(hosts),), "machines"), cores=1)
        elif len(machines_of(platform)) < hosts:
            problem = "a capacity counts machines, and here a machine has several hosts"
            raise InputError(platform.source, problem, "give a platform whose hosts are machines")
        full_s = run_times_s(inputs.measured, platform.fastest_flops).tolist()
        jobs = {
            job.id: JobTimes(job.raw.get(RELEASE, job.submit_time_s), job.raw.get(LENGTH, run_s))
            for job, run_s in zip(inputs.measured.jobs, full_s, strict=True)
            if job.hosts <= limits.most
        }
        if not widest:
            raise InputError(workload.source, f"has no job for {hosts} hosts or fewer", "give another workload")
        if not jobs:
            problem = f"has no job that can run: the limits leave room for {limits.most} of {hosts} hosts at most"
            raise InputError(workload.source, problem, "give another workload, or other limits")
        return cls(spec, inputs, limits, jobs)


def _lifted(series: Series, enough: float) -> Series:
    """Return a limit that is `enough` once its last value has held for its step; one that comes again has no last."""
    if len(series) == 1 or series.loop not in (None, -1):
        return series
    times_s, values = (*series.times_s, series.end_s), (*series.values, enough)
    return replace(series, times_s=times_s, values=values, loop=-1, period_s=0.0)
