"""A queue order and a scheduler of your own: change `key`, and run the commands of README.md again.

batwatt policies my_policy.py                                     list the parts of this file
batwatt run --plugin my_policy.py -o '{"order": "my-order"}' ...  run a scheduler of batwatt with the order
batwatt run -s my_policy.py ...                                   run the scheduler
"""

from batwatt.schedulers.powercap.responses import NoConfiguration
from batwatt.schedulers.powercap.scheduler import Powercap
from batwatt.scheduling import EasyBackfilling, Order, register

# The name stands in options, tables and the list of `batwatt policies`. Other kinds of parts, such as responses to a
# change of power, are registered in the same way.


@register("order", "my-order")
class MyOrder(Order):
    """Narrow jobs first; an hour of waiting counts as much as one server."""

    # The key of a job does not change while it waits: the queue is sorted once. Set False if it depends on now_s.
    time_invariant = True

    def key(self, jobs, now_s):
        """Return the priority, smallest first: servers + hours at submission.

        `jobs` has `submit_s` and `walltime_s` (s) and `hosts`, numbers of one job or vectors of all: write a formula
        that works for both (numpy.where instead of if).
        """
        return jobs.hosts + jobs.submit_s / 3600.0


# pybatsim loads the class with the name of the file and a capital letter.


class My_policy(Powercap):
    """EASY backfilling by `my-order`; every server stays on unless the options name a response."""

    order = MyOrder()
    backfilling = EasyBackfilling()
    response = NoConfiguration()
