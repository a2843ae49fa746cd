"""Sources of events: the jobs of a workload, or external events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from batwatt.engine.kernel import ARRIVAL, Handler, Kernel


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
