"""Odd values, and small changes of texts, bytes and JSON, all drawn from a `random.Random`."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

NUMBERS = (
    0, -0.0, 1, -1, 2, 0.5, 1e-6, 1e-300, 5e-324, 1e15, 1e18, 1e300, 1.7976931348623157e308, 2**31, 2**63, -(2**63),
    2**64, 10**30, 10**400, -(10**400), float("nan"), float("inf"), float("-inf"), True, False,
)  # fmt: skip
DIGITS = (
    "0", "-0", "-1", "1e308", "1e-308", "1e15", "1e400", "nan", "inf", "-inf", "", "9" * 400, "-" + "9" * 400, "0.5",
    "9" * 5000, "0." + "0" * 400 + "1", "2147483648", "9223372036854775808", "1700000000", "1700000000000", "²", "٣",
    "0x10", "1e9999999999", "true", "null", "[]", '"5"', "1_0", "+5",
)  # fmt: skip
"""Texts in the place of a number."""
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
LONG = (b"x" * 300_000, b"1" * 300_000, b"," * 30_000, b'"' * 3001, b"[" * 100_000, b"1 " * 100_000, b"\xff" * 200_000)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CELL = re.compile(rb"[^,|\s;\"<>]+")


def value(rng: Random, depth: int = 2) -> Any:
    """Draw a value of JSON, or NaN."""
    kind = rng.randrange(6 if depth else 4)
    if kind == 0:
        return None
    if kind <= 3:
        return rng.choice(NUMBERS if rng.random() < 0.6 else TEXTS)
    several = [value(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 5)))]
    return several if kind == 4 else {rng.choice(TEXTS): one for one in several}


def octets(rng: Random, data: bytes) -> bytes:
    """Cut out, insert, double or replace a few parts of a file."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 3, 20, 1000)))
        part = rng.choice((b"", data[a:b] * 2, bytes([rng.randrange(256)]), rng.choice(PARTS), rng.choice(PARTS)))
        data = data[:a] + part + data[rng.choice((a, b, b, len(data))) :]
    return data


def flat(rng: Random, data: bytes) -> bytes:
    """Replace numbers, cells or bytes of a text."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kind = rng.random()
        if kind > 0.8:
            data = octets(rng, data)
            continue
        odd = [one.encode("utf-8", "surrogatepass") for one in (DIGITS if kind < 0.5 else TEXTS)]
        spans = [match.span() for match in (_NUMBER if kind < 0.5 else _CELL).finditer(data)]
        a, b = rng.choice(spans) if spans else (0, 0)
        data = data[:a] + (rng.choice(LONG) if kind > 0.75 else rng.choice(odd)) + data[b:]
    return data


def tree(rng: Random, data: bytes) -> bytes:
    """Replace values of a JSON file, or parts of its text."""
    if rng.random() < 0.3:
        return flat(rng, data)
    content = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = changed(rng, content) if isinstance(content, dict | list) else content
    return json.dumps(content, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def changed(rng: Random, data: Any) -> Any:
    """Return JSON with one value changed, left out or put in, at any depth."""
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
            place[rng.choice(TEXTS)] = value(rng)
        else:
            place[key] = place[rng.choice(keys)] if change == 2 else value(rng)
        return data
