"""Why no job of a run finished, in one line."""

from __future__ import annotations

from batwatt.model.platform import Platform
from batwatt.model.workload import Composed, Delay, Job, Parallel, Workload
from batwatt.results.metrics import Metrics


def why_none_finished(metrics: Metrics, workload: Workload, platform: Platform) -> str | None:
    """What became of the jobs if none finished; None if one did or there are none."""
    if metrics.jobs_finished or not metrics.jobs_total:
        return None
    ends = {
        f"reached their walltime{_need(workload, platform)}": metrics.killed_walltime,
        "were killed by the scheduler": metrics.killed_power,
        f"were rejected{_too_wide(workload, platform)}": metrics.jobs_rejected,
        "failed: the return code of their profile is not 0": metrics.jobs_failed,
        "waited or ran when the window ended": metrics.jobs_unfinished,
    }
    parts = [f"{count} {what}" for what, count in ends.items() if count]
    return f"none of {metrics.jobs_total} jobs finished: {'; '.join(parts) or 'none ran'}"


def _need(workload: Workload, platform: Platform) -> str:
    """How much of their walltimes the jobs need on the fastest hosts."""
    shares = [
        need_s / job.walltime_s
        for job in workload.jobs
        if job.walltime_s and (need_s := _need_s(workload, job.profile, job, platform.fastest_flops)) is not None
    ]
    if not shares:
        return ""
    low, high, speed = min(shares), max(shares), platform.fastest_flops / 1e9
    return f" (at the platform's full speed of {speed:g} Gflop/s jobs need {low:.3g} to {high:.3g} times theirs)"


def _need_s(workload: Workload, name: str, job: Job, speed_flops: float) -> float | None:
    """How long a profile lasts at most at a speed; None if it is not one that is simulated."""
    profile = workload.profiles.get(name)
    if isinstance(profile, Delay):
        return profile.duration_s
    if isinstance(profile, Parallel):
        each = profile.each_flops(job.hosts)
        return (max(profile.flops or (0.0,)) if each is None else each) / speed_flops
    if isinstance(profile, Composed):
        parts = [_need_s(workload, part, job, speed_flops) for part in profile.sequence]
        return None if None in parts else profile.repeat * sum(part for part in parts if part is not None)
    return None


def _too_wide(workload: Workload, platform: Platform) -> str:
    count = sum(job.hosts > len(platform) for job in workload.jobs)
    return f" ({count} ask for more than the platform's {len(platform)} hosts)" if count else ""
