"""Instances for hypothesis: whole seconds or binary fractions, so that floats are exact."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from batwatt.schedulers.checkpoint.period_plan import STATES, Instance, PeriodJob


@st.composite
def instances(draw, *, jobs=6, processors=12, longest=20, fractions=True, constant=None, times=None):
    """`constant`: if all C are alike (None: now and then); `times`: of C and R.

    Most instances are such that some job may be worth a checkpoint: little time is lost, much is held that does not fit
    well, and what waits is wider.
    """
    unit = draw(st.sampled_from([1.0, 0.25, 0.5])) if fractions else 1.0
    there, period = draw(st.integers(1, processors)), draw(st.integers(1, longest))
    tight = draw(st.sampled_from([True, True, True, False]))
    if tight:
        there, period = draw(st.integers(processors // 2, processors)), draw(st.integers(longest // 2, longest))
    some = st.sampled_from(times) if times else st.integers(0, 1 + (period // 4 if tight else period))
    alike = draw(st.booleans()) if constant is None else constant
    one, free, found = draw(some), there, []
    for i in range(draw(st.sampled_from(range(min(2, jobs) if tight else 1, jobs + 1)))):
        state = draw(st.sampled_from((*STATES, "running", "stopped") if tight else STATES))
        width = draw(st.integers(1, there + 1))
        if tight:
            width = draw(st.integers(there // 2, there) if state == "stopped" else st.integers(1, 1 + there // 3))
        if state == "running":
            # what runs without a checkpoint fits
            state, free = ("running", free - width) if width <= free else ("stopped", free)
        checkpoint, recovery = one if alike else draw(some), draw(some)
        # some are caught in their recovery
        rest = draw(st.sampled_from([0, 0, 1, recovery])) if state == "checkpointed" else 0
        costs = unit * checkpoint, unit * recovery
        job = PeriodJob(str(i), max(width, 1), *costs, state, unit * min(rest, recovery))
        if state == "stopped" and found and found[-1].state == "stopped" and draw(st.booleans()):
            # one more of the same
            job = replace(found[-1], id=str(i))
        found.append(job)
    return Instance(unit * period, there, tuple(found))
