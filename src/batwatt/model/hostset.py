"""A set of host ids as one integer: set algebra on thousands of hosts costs a few machine words.

A `HostSet` prints and parses Batsim's interval strings (`0-3 5`) and can replace pybatsim's ProcSet in
`job.allocation` (it has `str`, `len`, `in`, iteration and the operators).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

_PIECE: Final = re.compile(r"^(\d+)(?:-(\d+))?$")
MANY: Final = 256
"""Size of a set beyond which numpy looks for its intervals."""
MAX_HOST_ID: Final = 10_000_000
"""Largest host id accepted in an interval string: a typing error must not allocate gigabytes."""


def span(low: int, high: int) -> int:
    """Return the mask of the hosts low..high, both included."""
    return ((1 << (high - low + 1)) - 1) << low


def intervals(mask: int) -> list[tuple[int, int]]:
    """Return the maximal intervals (low, high) of set bits, ascending."""
    first = (mask & -mask).bit_length() - 1
    if first < 0:
        return []
    if mask.bit_count() > MANY:
        return _intervals_of_many(mask)
    # in a text, as shifting a mask of n hosts once for each of k runs takes time n x k
    bits = bin(mask >> first)[:1:-1]
    pairs = []
    low = 0
    while low >= 0:
        end = bits.find("0", low)
        if end < 0:
            end = len(bits)
        pairs.append((first + low, first + end - 1))
        low = bits.find("1", end)
    return pairs


def _intervals_of_many(mask: int) -> list[tuple[int, int]]:
    """Return the intervals of a set of many hosts."""
    # not loaded at the start of a command
    import numpy as np

    edges = np.flatnonzero(np.diff(flags(mask), prepend=np.uint8(0)))
    return list(zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True))


def flags(mask: int) -> Any:
    """Return an array of uint8, 1 for the hosts of a mask; the last is 0."""
    import numpy as np

    octets = mask.to_bytes(mask.bit_length() // 8 + 1, "little")
    return np.unpackbits(np.frombuffer(octets, dtype=np.uint8), bitorder="little")


def of_ids(hosts: list[int]) -> int:
    """Return the mask of hosts of ascending ids >= 0."""
    if not hosts:
        return 0
    bits = bytearray(hosts[-1] // 8 + 1)
    for host in hosts:
        bits[host >> 3] |= 1 << (host & 7)
    return int.from_bytes(bits, "little")


def ids(mask: int) -> list[int]:
    """Return the host ids in the mask, ascending."""
    out: list[int] = []
    for low, high in intervals(mask):
        out.extend(range(low, high + 1))
    return out


def lowest(mask: int, count: int) -> int:
    """Return the mask of the `count` lowest hosts of a mask; raise ValueError if it holds fewer."""
    end, taken, missing = 0, 0, count
    while missing:
        rest = mask >> end
        if not rest:
            raise ValueError(f"the set lacks {missing} hosts")
        # each round takes the interval of `missing` ids from the lowest remaining host; gaps take further rounds
        end += (rest ^ (rest - 1)).bit_length() - 1 + missing
        taken = mask & ((1 << end) - 1)
        missing = count - taken.bit_count()
    return taken


def to_text(mask: int) -> str:
    """Return Batsim's interval string of a mask: hyphenated intervals between blanks, `0-3 5`."""
    end = mask.bit_length()
    count = mask.bit_count()
    # most sets are one interval
    if count and mask >> (end - count) == (1 << count) - 1:
        return str(end - 1) if count == 1 else f"{end - count}-{end - 1}"
    return " ".join([str(low) if low == high else f"{low}-{high}" for low, high in intervals(mask)])


def from_text(text: str) -> int:
    """Return the mask of an interval string (blanks or commas between pieces); ValueError names an invalid piece."""
    mask = 0
    pieces = text.replace(",", " ").split()
    if not pieces:
        raise ValueError("empty set of hosts")
    for piece in pieces:
        match = _PIECE.match(piece)
        if not match:
            raise ValueError(f"{piece!r} is not a host id or an interval such as '0-3'")
        low = int(match.group(1))
        high = int(match.group(2)) if match.group(2) else low
        if high < low or high > MAX_HOST_ID:
            raise ValueError(f"{piece!r} is not an interval of host ids")
        mask |= span(low, high)
    return mask


class HostSet:
    """An immutable set of host ids; `mask` is its integer form."""

    __slots__ = ("mask",)

    def __init__(self, mask: int = 0) -> None:
        self.mask = mask

    @classmethod
    def of(cls, hosts: Iterable[int] | str | HostSet) -> HostSet:
        """Return the set of ids, of an interval string, of a ProcSet or of another HostSet."""
        if isinstance(hosts, HostSet):
            return hosts
        if isinstance(hosts, str):
            return cls(from_text(hosts))
        mask = 0
        for host in hosts:
            mask |= 1 << host
        return cls(mask)

    def __str__(self) -> str:
        return to_text(self.mask)

    def __repr__(self) -> str:
        return f"HostSet({to_text(self.mask)!r})"

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __iter__(self) -> Iterator[int]:
        return iter(ids(self.mask))

    def __contains__(self, host: int) -> bool:
        return bool(self.mask >> host & 1)

    def __bool__(self) -> bool:
        return self.mask != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostSet) and other.mask == self.mask

    def __hash__(self) -> int:
        return hash(self.mask)

    def __and__(self, other: HostSet) -> HostSet:
        return HostSet(self.mask & other.mask)

    def __or__(self, other: HostSet) -> HostSet:
        return HostSet(self.mask | other.mask)

    def __sub__(self, other: HostSet) -> HostSet:
        return HostSet(self.mask & ~other.mask)
