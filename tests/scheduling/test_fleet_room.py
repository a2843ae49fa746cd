"""Room on many machines: `Fleet.place` beside a loop over the machines."""

from types import SimpleNamespace

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.job import Job


@examples(200)
@given(st.integers(0, 2**32 - 1).map(np.random.default_rng), st.integers(1, 300), st.booleans())
def test_the_first_machine_with_room(rng, machines, upwards):
    """Few machines are looked at first, then more."""
    fleet = Fleet(machines, 4, 4.0)
    fleet.free[:], fleet.memory[:] = rng.integers(0, 5, machines), rng.uniform(0.0, 4.0, machines)
    fleet.usable[:] = rng.random(machines) < rng.choice([0.02, 0.7])
    fleet.whole[:] = fleet.usable & (fleet.free == 4)
    low = int(rng.integers(0, machines))
    high = int(rng.integers(low, machines + 1))
    job = SimpleNamespace(id="a", submit_time=0.0, requested_resources=int(rng.integers(1, 5)), requested_time=None)
    order = range(low, high) if upwards else range(high - 1, low - 1, -1)
    for alone in (0, 1, 3):
        task = Job(0, job, 9.0, 9.0, 9.0, 9.0, machines=alone, memory=float(rng.uniform(0.0, 3.0)))
        room = fleet.usable & (fleet.free >= job.requested_resources) & (fleet.memory >= task.memory)
        expected = [m for m in order if (fleet.whole if alone else room)[m]][: task.width]
        places = fleet.place(task, 0.0, low, high, upwards)
        assert ([] if places is None else places.tolist()) == (expected if len(expected) == task.width else [])
