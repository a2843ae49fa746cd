"""Finding room on machines, compiled: first fit, and what foresight lets start (docs/explanation/varcap.md).

Arrays over machines: `free` cores, free `memory`, `until_s` (the latest assumed end of the jobs there, -1 without any),
`usable`, `whole` (usable, and all cores free). What is known of the future: `times` of change, the `limits` from then
on, and `counts`, the machines that are taken to be busy beyond each time. Machines low .. high - 1 are looked at,
upwards or from the end.
"""

from __future__ import annotations

from batwatt.arrays import Flags, Integers, Reals
from batwatt.compiling import compiled, inlined


@inlined
def _blocked_s(limits: Reals, counts: Reals, times: Reals, now_s: float, end_s: float, more: int) -> float:
    """The last known time before `end_s` beyond which `more` further machines may not be busy; -2 if there is none."""
    found = -2.0
    for k in range(len(times)):
        if times[k] >= end_s:
            break
        if times[k] >= now_s and counts[k] + more > limits[k]:
            found = times[k]
    return found


@compiled
def first_with_room(
    free: Integers, memory: Reals, until_s: Reals, usable: Flags, times: Reals, limits: Reals, counts: Reals,
    now_s: float, assumed_s: float, cores: int, room: float, low: int,
    high: int, upwards: bool,
) -> int:  # fmt: skip
    """The first machine with so many cores and so much memory free on which a job may start; -1 if there is none."""
    blocked_s = _blocked_s(limits, counts, times, now_s, now_s + assumed_s, 1)
    for i in range(high - low):
        m = low + i if upwards else high - 1 - i
        if free[m] >= cores and usable[m] and memory[m] >= room and until_s[m] > blocked_s:
            return m
    return -1


@compiled
def first_fit(free: Integers, usable: Flags, cores: int, low: int, high: int, upwards: bool) -> int:
    """The first machine with so many cores free, where memory and the future restrain nobody; -1 if there is none."""
    for i in range(high - low):
        m = low + i if upwards else high - 1 - i
        if free[m] >= cores and usable[m]:
            return m
    return -1


@compiled
def first_free(
    whole: Flags, times: Reals, limits: Reals, counts: Reals, now_s: float,
    assumed_s: float, wanted: int, low: int, high: int, upwards: bool, found: Integers,
) -> bool:  # fmt: skip
    """Fill `found` with the first `wanted` machines that are free altogether; False if a job may not start."""
    if _blocked_s(limits, counts, times, now_s, now_s + assumed_s, wanted) > -1.0:
        return False
    count = 0
    for i in range(high - low):
        m = low + i if upwards else high - 1 - i
        if whole[m]:
            found[count] = m
            count += 1
            if count == wanted:
                return True
    return False


@compiled
def most_room(free: Integers, usable: Flags, low: int, high: int) -> int:
    """The most cores that are free on one usable machine; -1 without any."""
    most = -1
    for m in range(low, high):
        if usable[m] and free[m] > most:
            most = free[m]
    return most
