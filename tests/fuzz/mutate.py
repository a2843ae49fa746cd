"""Odd values, and small changes of texts, bytes and JSON, all drawn from a `random.Random`."""

from __future__ import annotations

import json
from random import Random
from typing import Any

NUMBERS = (
    0, -0.0, 1, -1, 2, 0.5, 1e-6, 1e-300, 5e-324, 1e15, 1e18, 1e300, 1.7976931348623157e308, 2**31, 2**63, -(2**63),
    2**64, 10**30, 10**400, -(10**400), float("nan"), float("inf"), float("-inf"), True, False,
)  # fmt: skip
TEXTS = (
    "", " ", "a", "0", "-1", "1e400", "nan", "inf", "1_000", "0x10", "é", "ß" * 200, "\0", "\n", "a,b", 'a"b', "a'b",
    "../x", "/", ".", "~", "-", "--help", "\ud800", "a\udcffb", "\u202e", "\ufeff", "x" * 300, "x" * 5000, "9" * 400,
    "{}", "[]", "null", "none", "walk:", "walk:range=2", "power:", "2024-02-30", "2024-03-31T02:30", "http://localhost:1",
    "%s", "{0}",
)  # fmt: skip
PARTS = (
    b"", b"\0", b"\xff", b"\n", b"\r\n", b",", b";", b"\t", b'"', b"{", b"}", b"[", b"]", b":", b"#", b" ", b"-", b"e",
    b".", b"nan", b"inf", b"1e308", b"1e400", b"9" * 400, b"true", b"null", b"\xef\xbb\xbf", b"x" * 3000, b"\xc3\xa9",
)  # fmt: skip


def number(rng: Random) -> Any:
    """A number that few expect."""
    return rng.choice(NUMBERS)


def text(rng: Random) -> str:
    """A text that few expect."""
    return rng.choice(TEXTS)


def value(rng: Random, depth: int = 2) -> Any:
    """Anything that JSON has, and NaN."""
    kind = rng.randrange(6 if depth else 4)
    if kind == 0:
        return None
    if kind <= 3:
        return number(rng) if rng.random() < 0.6 else text(rng)
    several = [value(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 5)))]
    return several if kind == 4 else {text(rng): one for one in several}


def octets(rng: Random, data: bytes) -> bytes:
    """A file with a few changes: something cut out, put in, doubled or moved, or a number changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 3, 20, 1000)))
        change = rng.randrange(6)
        if change == 0:
            data = data[:a] + data[b:]
        elif change == 1:
            data = data[:b] + data[a:b] + data[b:]
        elif change == 2:
            data = data[:a] + bytes([rng.randrange(256)]) + data[a + 1 :]
        elif change == 3:
            data = data[:a]
        else:
            data = data[:a] + rng.choice(PARTS) + data[a if change == 4 else b :]
    return data


def changed(rng: Random, data: Any) -> Any:
    """JSON with one value changed, left out or put in, at any depth."""
    data = json.loads(json.dumps(data))
    place = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return value(rng) if place is data else data
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and rng.random() < 0.8:
            place = place[key]
            continue
        change = rng.randrange(5)
        if change == 0:
            del place[key]
        elif change == 1 and isinstance(place, dict):
            place[text(rng)] = value(rng)
        elif change == 2:
            place[key] = place[rng.choice(keys)]
        else:
            place[key] = value(rng)
        return data
