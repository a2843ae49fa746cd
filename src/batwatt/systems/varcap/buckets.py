"""Sorted entries of a queue of hundreds of thousands, compiled where that is possible."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, Final, final

Entry = Any
"""(key, submission in s, number, task): a tuple that mypyc does not take apart."""
_BLOCK: Final = 512
"""Entries of a block at first; one of twice as many is split."""


@final
class Bucket:
    """Sorted entries, in blocks: in a list of a hundred thousand a start or an arrival moves up to all of them."""

    def __init__(self, entries: list[Entry]) -> None:
        self.blocks = [entries[first : first + _BLOCK] for first in range(0, len(entries), _BLOCK)]

    def add(self, entry: Entry) -> None:
        """Put an entry in its place."""
        blocks = self.blocks
        if not blocks or blocks[-1][-1] < entry:
            # as most do
            if not blocks or len(blocks[-1]) >= _BLOCK:
                blocks.append([])
            blocks[-1].append(entry)
            return
        at = self._block_of(entry)
        block = blocks[at]
        insort(block, entry)
        if len(block) >= 2 * _BLOCK:
            blocks[at : at + 1] = [block[:_BLOCK], block[_BLOCK:]]

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        at = self._block_of(entry)
        self.remove_at(at, bisect_left(self.blocks[at], entry))

    def remove_at(self, at: int, index: int) -> None:
        """Take out the entry of an index in a block; no block stays empty."""
        block = self.blocks[at]
        del block[index]
        if not block:
            del self.blocks[at]

    def entries(self) -> list[Entry]:
        """Return all entries, in order."""
        return [entry for block in self.blocks for entry in block]

    def _block_of(self, entry: Entry) -> int:
        """Return the first block that does not end before an entry."""
        blocks = self.blocks
        low, high = 0, len(blocks) - 1
        while low < high:
            middle = (low + high) // 2
            if blocks[middle][-1] < entry:
                low = middle + 1
            else:
                high = middle
        return low
