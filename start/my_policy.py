"""A queue order and a scheduler of your own: change `key`, and run the commands of README.md again.

batwatt policies my_policy.py                                     what is in this file
batwatt run --plugin my_policy.py -o '{"order": "my-order"}' ...  the order, in a scheduler of batwatt
batwatt run -s my_policy.py ...                                   the scheduler
"""

from batwatt.scheduling.backfilling import EasyBackfilling
from batwatt.scheduling.orders import Order
from batwatt.scheduling.registry import register
from batwatt.systems.powercap.responses import NoConfiguration
from batwatt.systems.powercap.scheduler import EnvelopeScheduler

# The name stands in options, tables and the list of `batwatt policies`. Other kinds of parts, such as responses to a
# change of power, are registered in the same way.


@register("order", "my-order")
class MyOrder(Order):
    """Narrow jobs first, but an hour of waiting makes up for one server."""

    # The key of a job does not change while it waits: the queue is sorted once. Say False if it depends on now_s.
    time_invariant = True

    def key(self, jobs, now_s):
        """Priority, smallest first: servers + hours at submission.

        `jobs` has `submit_s` and `walltime_s` (s) and `hosts`, numbers of one job or vectors of all: write a formula
        that works for both (numpy.where instead of if).
        """
        return jobs.hosts + jobs.submit_s / 3600.0


# pybatsim looks for a class that has the name of the file, with a capital letter.


class My_policy(EnvelopeScheduler):
    """EASY backfilling in that order; every server stays on unless the options name a response."""

    order = MyOrder()
    backfilling = EasyBackfilling()
    response = NoConfiguration()
