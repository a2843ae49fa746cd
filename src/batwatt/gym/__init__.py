"""A Gymnasium environment in which an agent schedules jobs on the embedded engine, one decision at a time.

    import gymnasium, batwatt.gym
    env = gymnasium.make("batwatt/Schedule-v0", platform="platforms/small.xml", workload="workloads/small.json")

1. *Decision.* A step is one decision at one moment of simulated time. The first `queue` waiting jobs, in order of
   submission, are visible. Action i < `queue` starts visible job i on the free hosts of lowest ids; action `queue`
   waits for the next event. After a start the moment goes on as long as another visible job can start.
2. *Moments.* Events are submissions, ends of jobs, changes of the limit and of the hosts in service; those of one time
   are one. Moments at which no visible job can start, and no action on hosts is possible, are passed over.
3. *Mask.* A job can start if as many hosts in service are free as it asks for, and the limit allows it. Waiting is
   possible while a job runs, a job of the workload is to be submitted, the limit is to change, or a host that is away
   may come back. `action_masks()` (bool) and `info["action_mask"]` (int8) say what is possible.
4. *Illegal actions* raise nothing: a job that cannot start, or is not there, is waiting; waiting where nothing is to
   come is starting the first visible job that can. `info["action"]` is what was done.
5. *Limit.* An `envelope` in W bounds the sum over hosts of full power with a job and idle power without, in the p-state
   in which they begin; a `capacity` bounds the number of hosts with a job. A limit changes at its own times. When what
   runs is above a new limit, jobs are killed, the one that started last first, until it is not (or none runs). The
   part `victim` says what becomes of them, as under any scheduler (docs/explanation/victims.md): `resubmit` puts them
   at the end of the queue, from zero, `checkpoint` and `migrate` with what is left of them, `lose` does not. `events`
   are Batsim's external events: no job starts on a host that is away, and one that runs there goes on.
6. *Jobs that can never run*, as they ask for more hosts than the limit will ever allow at a time, or than are left when
   the last event has come, are rejected.
7. *Observation.* A vector of float32 in [0, 1]: the columns chosen of `OBSERVATIONS`, in that order, each with one
   entry or, if it is about jobs, one for each visible place (0 where no job is). A value v with the scale s is v / s,
   at most 1, if the column is bounded, v / (v + s) if not.
8. *Reward.* The change of a potential of `REWARDS` since the step before, or a weighted sum of such. The potential is 0
   at the beginning. At the end of an episode in which all jobs complete it is the figure of the run, with its sign, as
   `batwatt.results.figures` gives it for the files of the run (0 for one without a meaning).
9. *Horizon.* Means are over all jobs of the workload. One that was rejected or lost counts as waiting until the horizon
   H: the last submission, change of a limit or external event, + the run times of all jobs on the slowest host, each
   with the recovery of the victim rule. Its slowdown is that of an end then, with the shorter of its walltime and its
   run time at full speed as the run. Each such job adds H to the makespan, all hosts at full power until H to the
   energy, and their core seconds to what was available. So no policy that leaves jobs waiting beats first-come
   first-served. A job that reaches its walltime counts with the time that it ran. A job whose work is saved waits until
   its first run begins, and its run time is that of all its runs.
10. *End.* An episode ends when all jobs have completed or were rejected or lost, which waiting cannot put off: limits
   change for the last time, and then waiting with nothing to come is starting a job (4). Then `info["metrics"]` has the
   figures of the run, `result()` is its `batwatt.Result`, and `save(prefix)` writes its files.
11. *Equal runs.* The same workload and the same actions give the same trajectory. Of several workloads, or of a
    function of a random generator, the seed of `reset` decides which comes; `reset(options={"workload": index})` names
    one.
12. *Hosts.* With `switch` and `dvfs` actions behind action `queue` switch hosts off and on and change their p-states, a
    node selection chooses hosts, and forecasts tell envelope, carbon and price: docs/reference/gym.md has the rules.
"""

from __future__ import annotations

from batwatt.errors import extra

with extra("gym"):
    import gymnasium

from batwatt.gym.columns import OBSERVATIONS, REWARDS
from batwatt.gym.env import BatwattEnv

__all__ = ["ENVIRONMENT", "OBSERVATIONS", "REWARDS", "BatwattEnv"]

ENVIRONMENT = "batwatt/Schedule-v0"
"""The name for `gymnasium.make`."""

gymnasium.register(id=ENVIRONMENT, entry_point="batwatt.gym.env:BatwattEnv")
