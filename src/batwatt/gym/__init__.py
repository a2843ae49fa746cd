"""A Gymnasium environment in which an agent schedules jobs on the embedded engine, one decision at a time.

    import gymnasium, batwatt.gym
    env = gymnasium.make("batwatt/Schedule-v0", platform="platforms/small.xml", workload="workloads/small.json")

1. *Decision.* A step is one decision at one moment of simulated time. The first `queue` waiting jobs, in order of
   submission, are visible. Action i < `queue` starts visible job i on the free hosts of lowest ids; action `queue`
   waits for the next event. After a start the moment goes on as long as another visible job can start.
2. *Moments.* Events are submissions, ends of jobs, changes of the limit and hosts that have switched; those of one time
   are one. Moments at which no visible job can start, and no action on hosts is possible, are passed over.
3. *Mask.* A job can start if as many hosts are free as it asks for, and the limit allows it. Waiting is possible while
   a job runs, a job of the workload is to be submitted, the limit is to change, or a host switches. `action_masks()`
   (bool) and `info["action_mask"]` (int8) say what is possible.
4. *Illegal actions* raise nothing: a job that cannot start, or is not there, is waiting; waiting where nothing is to
   come is starting the first visible job that can. `info["action"]` is what was done.
5. *Limit.* An `envelope` in W bounds the sum over hosts of full power with a job and idle power without; a `capacity`
   bounds the number of hosts with a job. A limit changes at its own times. When what runs is above a new limit, jobs
   are killed, the one that started last first, until it is not (or none runs); they wait again at the end of the
   queue, from zero.
6. *End of a limit.* Where the last value of a limit is too low for the widest job of the workload, the limit is lifted
   once that value has held for its step, so that all jobs can run in the end. A job that is too wide for a limit of one
   value, or for the platform, is rejected when it is submitted, whatever an agent does, and counts in no reward.
7. *Observation.* A vector of float32 in [0, 1]: the columns chosen of `OBSERVATIONS`, in that order, each with one
   entry or, if it is about jobs, one for each visible place (0 where no job is). A value v with the scale s is v / s,
   at most 1, if the column is bounded, v / (v + s) if not.
8. *Reward.* The change of a potential of `REWARDS` since the step before, or a weighted sum of such. The potential is 0
   at the beginning. At the end of an episode in which all jobs complete it is the figure of the run, with its sign, as
   `batwatt.results.figures` gives it for the files of the run (0 for one without a meaning). Means are over the jobs
   that can run; one that reaches its walltime counts with the time that it ran, where figures leave it out.
9. *End.* An episode ends when all jobs have ended, which waiting cannot put off: limits change for the last time, and
   then waiting with nothing to come is starting a job (4). Then `info["metrics"]` has the figures of the run,
   `result()` is its `batwatt.Result`, and `save(prefix)` writes its files.
10. *Equal runs.* The same workload and the same actions give the same trajectory. A workload may be a function of a
    random generator, which the seed of `reset` determines; it draws one for each episode.
11. *Hosts.* With `switch` actions behind action `queue` switch hosts off and on: docs/reference/gym.md has the rules.
"""

from __future__ import annotations

from batwatt.errors import extra

with extra("gym"):
    import gymnasium

from batwatt.gym.env import BatwattEnv
from batwatt.gym.simulation import OBSERVATIONS, REWARDS

__all__ = ["ENVIRONMENT", "OBSERVATIONS", "REWARDS", "BatwattEnv"]

ENVIRONMENT = "batwatt/Schedule-v0"
"""The name for `gymnasium.make`."""

gymnasium.register(id=ENVIRONMENT, entry_point="batwatt.gym.env:BatwattEnv")
