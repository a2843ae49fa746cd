"""Events by time, and their sources: the jobs of a workload, or external events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Final, final

from batwatt.errors import ProtocolError
from batwatt.units import PRECISION_S, TOO_LATE_S, microseconds


@final
class Source:
    """A source that delivers items at their times (s, ascending), those of one time together; then calls `ended`."""

    def __init__(
        self,
        kernel: Kernel,
        times: list[float],
        items: Sequence[Any],
        deliver: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        self._kernel = kernel
        self._times = times
        self._items = items
        self._deliver = deliver
        self._ended = ended
        self._next = 0
        # bound once, as each access to a method makes an object
        self._handler: Handler = self._arrive
        kernel.at(times[0] if times else 0.0, ARRIVAL, self._handler, None)

    def _arrive(self, _: None) -> None:
        times, index = self._times, self._next
        count = len(times)
        if index < count:
            date = times[index]
            while index < count and times[index] == date:
                self._deliver(self._items[index])
                index += 1
        if index < count:
            self._next = index
            self._kernel.at(times[index], ARRIVAL, self._handler, None)
        else:
            self._ended()


Handler = Callable[[Any], None]

# Order of entries of one time: kills of the last answer; then external events, submissions and calls in the order of
# their requests; then ends of jobs and of switches in the order of their begins; then changes of available hosts,
# acknowledgements of switches, the sharing of hosts, and tasks that began without remaining time.
FIRST: Final = 0
ARRIVAL: Final = 1
END: Final = 2
AFTER: Final = 3
ACKNOWLEDGE: Final = 4
SOLVE: Final = 5
LATE: Final = 6


def _reported(clock: float) -> float:
    if clock >= TOO_LATE_S:
        raise ProtocolError(f"Batsim cannot tell of {clock:g} s: a time is less than {TOO_LATE_S:g} s")
    return microseconds(clock)


class Kernel:
    """Entries (time, rank, serial, handler, payload); a forgotten entry is skipped.

    `clock` is the present time in s, `date` that time for the scheduler, rounded to 1e-6 s.
    """

    __slots__ = ("_forgotten", "_heap", "_serial", "clock", "date")

    def __init__(self) -> None:
        self.clock = 0.0
        self.date = 0.0
        self._heap: list[tuple[float, int, int, Handler, Any]] = []
        self._serial = 0
        self._forgotten: set[int] = set()

    def at(self, date: float, rank: int, handler: Handler, payload: Any) -> int:
        """Schedule a call of `handler(payload)` at `date` in s; return a ticket for `forget`."""
        self._serial = serial = self._serial + 1
        heappush(self._heap, (date, rank, serial, handler, payload))
        return serial

    def forget(self, ticket: int) -> None:
        """Drop a future entry."""
        self._forgotten.add(ticket)

    def next_date(self) -> float | None:
        """Return the time of the next entry in s, None if there is none."""
        heap = self._heap
        while heap and heap[0][2] in self._forgotten:
            self._forgotten.discard(heappop(heap)[2])
        return heap[0][0] if heap else None

    def is_due(self) -> bool:
        """Return whether an entry of the present time is left."""
        heap = self._heap
        return bool(heap) and heap[0][0] <= self.clock + PRECISION_S

    def run_round(self) -> None:
        """Call the entries that are due now, without entries that these add (between two events of an answer)."""
        heap = self._heap
        if not heap or heap[0][0] > self.clock + PRECISION_S:
            return
        forgotten, last, later = self._forgotten, self._serial, []
        while heap and heap[0][0] <= self.clock + PRECISION_S:
            entry = heappop(heap)
            if forgotten and entry[2] in forgotten:
                forgotten.discard(entry[2])
            elif entry[2] > last:
                later.append(entry)
            else:
                entry[3](entry[4])
                if entry[1] == SOLVE:
                    last = self._serial
        for entry in later:
            heappush(heap, entry)

    def run_due(self, date: float) -> None:
        """Set the clock to `date` in s (never backwards) and call all entries up to it, each at its own time."""
        heap, forgotten = self._heap, self._forgotten
        limit = date + PRECISION_S
        while heap and heap[0][0] <= limit:
            moment, _, serial, handler, payload = heappop(heap)
            if forgotten and serial in forgotten:
                forgotten.discard(serial)
                continue
            if moment > self.clock:
                self.clock = moment if moment < date else date
                self.date = _reported(self.clock)
            handler(payload)
        if date > self.clock:
            self.clock = date
            self.date = _reported(date)
