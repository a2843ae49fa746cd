"""Iteration order of Batsim's hash tables of names, which decides on the profiles that Batsim drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

_WORD = 2**64 - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907
_BUCKETS = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153,
            2938679, 5967347, 12117689)  # fmt: skip


def _hash(name: str) -> int:
    """Return `std::hash<std::string>` of libstdc++ on 64 bits (MurmurHash64A)."""
    data = name.encode("utf-8")
    state = _SEED ^ len(data) * _MULTIPLIER & _WORD
    for start in range(0, len(data), 8):
        chunk = data[start : start + 8]
        word = int.from_bytes(chunk, "little")
        if len(chunk) == 8:
            word = word * _MULTIPLIER & _WORD
            word = (word ^ word >> 47) * _MULTIPLIER & _WORD
        state = (state ^ word) * _MULTIPLIER & _WORD
    state = (state ^ state >> 47) * _MULTIPLIER & _WORD
    return state ^ state >> 47


def kept_parts(parts: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[str]:
    """Return the parts of unused composed profiles that Batsim keeps.

    `parts` are those of each unused composed profile, `names` all profiles in the order of the file. Batsim visits the
    profiles and drops those that no remaining one names: parts visited before their composed profile remain.
    """
    if not parts:
        return []
    named = Counter(part for sequence in parts.values() for part in sequence)
    remaining = []
    for name in hash_order(names):
        if named[name]:
            remaining.append(name)
        else:
            named.subtract(parts.get(name, ()))
    return remaining


def hash_order(names: Iterable[str]) -> list[str]:
    """Return distinct names in the order in which `std::unordered_map<std::string, ...>` of libstdc++ iterates.

    A name goes to the front of its bucket, the first of a bucket to the front of all; a full table is rebuilt with
    about twice the buckets (a prime), into which its names are inserted in the order of iteration.
    """
    hashes = {name: _hash(name) for name in names}
    sizes = iter(_BUCKETS)
    size = next(sizes)
    following: dict[str | None, str | None] = {None: None}
    before: dict[int, str | None] = {}  # bucket -> the name before its first

    def put_first(name: str) -> None:
        head = following[None]
        following[None], following[name] = name, head
        if head is not None:
            before[hashes[head] % size] = name
        before[hashes[name] % size] = None

    def put(name: str) -> None:
        bucket = hashes[name] % size
        if bucket in before:
            previous = before[bucket]
            following[name], following[previous] = following[previous], name
        else:
            put_first(name)

    for count, name in enumerate(hashes):
        if count == size:
            size = next(sizes)
            walked = _walk(following)
            following, before = {None: None}, {}
            for other in walked:
                put(other)
        put(name)
    return _walk(following)


def _walk(following: dict[str | None, str | None]) -> list[str]:
    names = []
    name = following[None]
    while name is not None:
        names.append(name)
        name = following[name]
    return names
