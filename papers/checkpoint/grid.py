"""Search the best of all schedules of a period on a grid of time, to compare with plans of checkpoints.

Any job may begin a checkpoint, stop or recover at any step, any number of times, but no work is ever lost. Rules:
docs/explanation/checkpoint.md. The search is independent of the planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob

JobState = tuple[str, int]
"""State of a job between two steps, and its remaining steps; off and clean are saved, dirty is not."""
Step = tuple[int, int, JobState]
"""Processors of a job in a step, those with useful work, and its state after the step."""
OFF, CLEAN, DIRTY = ("off", 0), ("clean", 0), ("dirty", 0)


def schedules(instance: Instance, lower_bound: int = 0, at_once: bool = False) -> int:
    """Return the largest useful work in processor s of all schedules in whole seconds.

    Jobs have no end and keep their work at the end of the period; all times are in whole s. The search drops schedules
    that cannot reach `lower_bound`, in processor s; with `at_once` also those in which a checkpoint begins after the
    first second. Raises ValueError if no schedule is left.
    """
    moves = [_moves(job) for job in instance.jobs]
    most = _fill([job.processors for job in instance.jobs], instance.processors)
    begins = {"running": DIRTY, "stopped": OFF}
    best = {tuple(begins.get(job.state, _after("recovering", _whole(job.recovering_s))) for job in instance.jobs): 0}
    for left in reversed(range(_whole(instance.period_s))):
        least = lower_bound - left * most
        following: dict[tuple[JobState, ...], int] = {}
        for states, work in best.items():
            options = [move[state] for move, state in zip(moves, states, strict=True)]
            for after, gain in _together(options, instance.processors):
                if following.get(after, least - 1) < work + gain:
                    following[after] = work + gain
        best = following
        if at_once:
            moves = [{**move, DIRTY: [step for step in move[DIRTY] if step[2] == DIRTY]} for move in moves]
    if not best:
        raise ValueError(f"no schedule keeps all work{f' and does {lower_bound} processor s' if lower_bound else ''}")
    return max(best.values())


def _fill(widths: Iterable[int], processors: int) -> int:
    """Return the largest number of processors that jobs can hold at once."""
    sums = {0}
    for width in widths:
        sums |= {some + width for some in sums}
    return max(some for some in sums if some <= processors)


def _together(options: list[list[Step]], free: int) -> Iterator[tuple[tuple[JobState, ...], int]]:
    """Yield the transitions of all jobs in one step: their states after it, and the processors that work."""
    if not options:
        yield (), 0
        return
    for held, working, state in options[0]:
        if held <= free:
            for states, gain in _together(options[1:], free - held):
                yield (state, *states), working + gain


def _moves(job: PeriodJob) -> dict[JobState, list[Step]]:
    """Return the transitions of a job in a step, by its state."""
    p = job.processors
    checkpoint, recovery = _whole(job.checkpoint_s), _whole(job.recovery_s)
    # work, or hold the processors in the same state, or release them
    clean = [(p, p, DIRTY), (p, 0, CLEAN), (0, 0, OFF)]
    off = [(0, 0, OFF), (p, 0, _after("recovering", recovery - 1))] if recovery else clean
    dirty = [(p, p, DIRTY), (p, 0, DIRTY)]
    dirty += [(p, 0, _after("checkpointing", checkpoint - 1))] if checkpoint else clean
    moves = {OFF: off, CLEAN: sorted({*clean, *off}), DIRTY: sorted(set(dirty))}
    for left in range(1, max(recovery, _whole(job.recovering_s)) + 1):
        moves["recovering", left] = [(p, 0, _after("recovering", left - 1)), (0, 0, OFF)]
    for left in range(1, checkpoint):
        moves["checkpointing", left] = [(p, 0, _after("checkpointing", left - 1))]
    return moves


def _after(name: str, left: int) -> JobState:
    return (name, left) if left else CLEAN


def _whole(time_s: float) -> int:
    if time_s != int(time_s):
        raise ValueError(f"times must be whole seconds on the grid, got {time_s!r}")
    return int(time_s)
