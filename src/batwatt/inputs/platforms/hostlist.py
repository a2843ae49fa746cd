"""Lists of hosts in Slurm's notation: `n[01-03,7],gpu1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from batwatt.model.platform import MAX_HOSTS

_PART = re.compile(r"[^,\[\]]+|\[[^\]]*\]|,")


def expand(text: str) -> tuple[str, ...]:
    """Return the names in a list of hosts such as `n[01-03,7],gpu1`. Raises ValueError."""
    return tuple(name for part in _parts(text) for name in _names(part))


def _parts(text: str) -> Iterator[list[str]]:
    """Yield each part between commas outside of brackets, as plain texts and texts in brackets."""
    part: list[str] = []
    tokens = _PART.findall(text)
    if "".join(tokens) != text:
        raise ValueError(f"{text!r} is not a list of hosts")
    for token in tokens:
        if token == ",":
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _names(part: Iterable[str]) -> list[str]:
    names = [""]
    for token in part:
        ends = _numbers(token[1:-1]) if token.startswith("[") else [token]
        if len(names) * len(ends) > MAX_HOSTS:
            raise ValueError(f"{''.join(part)!r} names more than {MAX_HOSTS} hosts")
        names = [name + end for name in names for end in ends]
    return names


def _numbers(text: str) -> list[str]:
    numbers: list[str] = []
    for interval in text.split(","):
        low, dash, high = interval.partition("-")
        if not (low.isdecimal() and (high.isdecimal() or not dash)):
            raise ValueError(f"{text!r} are not numbers of hosts")
        last = int(high or low)
        if last - int(low) >= MAX_HOSTS:
            raise ValueError(f"{text!r} are more than {MAX_HOSTS} hosts")
        numbers += [f"{number:0{len(low)}d}" for number in range(int(low), last + 1)]
    return numbers
