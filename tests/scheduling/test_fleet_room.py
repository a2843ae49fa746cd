"""Room on machines: `Fleet.place` beside a loop over the machines."""

from types import SimpleNamespace

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.jobs import ManagedJob

NOW_S = 10.0


def plain_place(fleet, task, low, high, upwards):
    """The machines of `place`, one looked at after the other."""
    seen = fleet.foresight
    end_s = NOW_S + task.assumed_s
    known = zip(seen.times_s, seen.counts, seen.limits, strict=True)
    full = [time for time, count, limit in known if NOW_S <= time < end_s and count + task.width > limit]
    order = range(low, high) if upwards else range(high - 1, low - 1, -1)
    if task.machines:
        whole = [m for m in order if fleet.whole[m] and (not full or fleet.until_s[m] > full[-1])]
        return None if (full and task.machines > 1) or len(whole) < task.machines else whole[: task.machines]
    for m in order:
        room = fleet.usable[m] and fleet.free[m] >= task.hosts and fleet.memory[m] >= task.memory
        if room and (not full or fleet.until_s[m] > full[-1]):
            return [m]
    return None


@examples(200)
@given(st.integers(0, 2**32 - 1).map(np.random.default_rng), st.sampled_from([3, 300]), st.integers(0, 4))
def test_the_first_machine_with_room(rng, most, steps):
    machines = int(rng.integers(1, most + 1))
    fleet = Fleet(machines, 4, 4.0)
    fleet.free[:], fleet.memory[:] = rng.integers(0, 5, machines), rng.uniform(0.0, 4.0, machines)
    fleet.usable[:] = rng.random(machines) < rng.choice([0.02, 0.7])
    fleet.whole[:] = fleet.usable & (fleet.free == 4)
    fleet.until_s[:] = rng.choice([-1.0, 15.0, 50.0], machines)
    seen = fleet.foresight
    seen.times_s, seen.limits = np.sort(rng.uniform(0.0, 60.0, steps)), rng.uniform(0.0, 9.0, steps)
    seen.counts, seen.ahead = rng.integers(0, 9, steps).astype(float), steps > 0
    low = int(rng.integers(0, machines))
    high, upwards = int(rng.integers(low, machines + 1)), bool(rng.integers(2))
    job = SimpleNamespace(id="a", submit_time=0.0, requested_resources=int(rng.integers(1, 5)), requested_time=None)
    assumed_s, memory = float(rng.uniform(0.0, 50.0)), float(rng.uniform(0.0, 3.0))
    for wanted in (0, 1, 3):
        task = ManagedJob(0, job, 9.0, 9.0, 9.0, assumed_s, machines=wanted, memory=memory)
        places = fleet.place(task, NOW_S, low, high, upwards)
        assert (None if places is None else places.tolist()) == plain_place(fleet, task, low, high, upwards)
