"""Odd values, and small changes of bytes and JSON, drawn from a `random.Random`."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

NUMBERS = (
    0, -1, 2, 0.5, 1e-6, 5e-324, 1e15, 1e18, 1.7976931348623157e308, 2**31, 2**63, -(2**63), 10**30, 10**400,
    float("nan"), float("inf"), float("-inf"), True,
)  # fmt: skip
DIGITS = (
    "0", "-0", "-1", "0.5", "+5", "1_0", "0x10", "1e308", "1e-308", "1e400", "1e9999999999", "nan", "inf", "-inf", "",
    "9" * 400, "9" * 5000, "0." + "0" * 400 + "1", "2147483648", "1700000000", "1700000000000", "²", "٣", "null", "[]",
)  # fmt: skip
"""Texts in the place of a number."""
TEXTS = (
    "", " ", "a", "0", "-1", "1e400", "nan", "1_000", "é", "ß" * 200, "\0", "\n", "a,b", 'a"b', "a'b", "../x", "/", ".",
    "~", "-", "--help", "\ud800", "a\udcffb", "\u202e", "\ufeff", "x" * 5000, "9" * 400, "{}", "[]", "null", "none",
    "walk:", "walk:range=2", "power:", "2024-02-30", "2024-03-31T02:30", "http://localhost:1", "%s", "{0}",
)  # fmt: skip
LONG = (b"x" * 300_000, b"1" * 300_000, b"," * 30_000, b'"' * 3001, b"[" * 100_000, b"1 " * 100_000, b"\xff" * 200_000)
_SPANS = [re.compile(text, re.DOTALL) for text in (rb"-?\d+(?:\.\d+)?", rb"[^,|\s;\"<>]+", rb".{1,20}", rb"[^\n]+\n?")]
"""Numbers, cells, bytes and lines of a file."""


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
    """Replace, double or cut out a few numbers, cells, lines or other parts of a file."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        spans = [match.span() for match in rng.choice(_SPANS).finditer(data)]
        a, b = rng.choice(spans) if spans else (0, 0)
        odd = rng.choice(rng.choice((DIGITS, TEXTS))).encode("utf-8", "surrogatepass")
        other = rng.choice((b"", data[a:b] * 2, bytes([rng.choice(b',;\t"{}[]:#-\xff')]), rng.choice(LONG)))
        part = odd if rng.random() < 0.6 else other
        data = data[:a] + part + data[b:]
    return data


def tree(rng: Random, data: bytes) -> bytes:
    """Replace values of a JSON file, or parts of its text."""
    if rng.random() < 0.3:
        return octets(rng, data)
    content = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = changed(rng, content)
    return json.dumps(content, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def changed(rng: Random, data: Any) -> Any:
    """Return JSON with one value changed, left out or put in, at any depth; a value without parts as it is."""
    data = place = json.loads(json.dumps(data))
    while place and isinstance(place, dict | list):
        keys = list(place) if isinstance(place, dict) else range(len(place))
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
        break
    return data
