"""Try inputs of targets: `python -m tests.fuzz [TARGET ...] --inputs 5000 --seed 7`; exit code 1 if one fails.

A target draws an input from `rng` (`random.Random`), writes its files into an empty folder, and gives it to batwatt. An
input is

    ok         if the target returns
    refused    if it raises a BatwattError of one line
    internal   if it raises anything else, or if the process ends or hangs

The same target, seed and number give the same input: `python -m tests.fuzz api --seed 7 --only 123` shows it.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import logging
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from functools import partial
from pathlib import Path

from batwatt.errors import BatwattError

TARGETS = {name: (name, "attempt") for name in ("api", "commands", "files")}
TARGETS |= {"wire4": ("wire", "attempt4"), "wire5": ("wire", "attempt5")}
"""Target -> module of this folder, and its function of `rng` and an empty folder."""
TIME_S = 120.0
"""Limit of an input in s; the first call of a kernel compiles it."""
MEMORY = 3 << 30
"""Bytes of address space of a process, with threads and libraries."""
BATCH = 200
"""Inputs of a process."""


def main() -> int:
    """Print the counts of each target, and an example of each place that failed."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)} (default: all)")
    parser.add_argument("--inputs", type=int, default=1000, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="try the input of this number in this process")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target {min(unknown)!r}: {', '.join(TARGETS)}")
    failed = 0
    for target in arguments.targets or TARGETS:
        if arguments.only is not None:
            attempt(target, arguments.seed, arguments.only)
        elif arguments.batch is not None:
            tell(target, arguments.seed, range(*arguments.batch))
        else:
            failed += report(target, arguments.seed, arguments.inputs)
    return 1 if failed else 0


def report(target: str, seed: int, count: int) -> int:
    """Try `count` inputs of a target in two processes at a time; return the number of those that failed."""
    began_s = time.monotonic()
    counts, places = Counter[str](), set()
    batches = [range(first, min(first + BATCH, count)) for first in range(0, count, BATCH)]
    with ThreadPoolExecutor(2) as pool:
        for number, (kind, place, text) in (
            pair for pairs in pool.map(partial(tried, target, seed), batches) for pair in pairs
        ):
            counts[kind] += 1
            if kind == "internal" and place not in places:
                places.add(place)
                print(f"\n{target} --seed {seed} --only {number}: {place}\n{text}")
    totals = ", ".join(f"{counts[kind]} {kind}" for kind in ("ok", "refused", "internal"))
    print(f"{target}: {totals}; seed {seed}, {time.monotonic() - began_s:.0f} s", flush=True)
    return counts["internal"]


def tried(target: str, seed: int, numbers: range) -> list[tuple[int, list[str]]]:
    """Try inputs in a process, those after an input that ends it in another one; return number, kind, place, text."""
    outcomes: list[tuple[int, list[str]]] = []
    while numbers:
        span = (str(numbers.start), str(numbers.stop))
        words = [sys.executable, "-m", "tests.fuzz", target, "--seed", str(seed), "--batch", *span]
        process = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in process.stdout.splitlines()]
        if len(rows) < len(numbers):
            rows.append(["internal", f"the process ended, exit code {process.returncode}", process.stderr])
        outcomes += zip(numbers, rows, strict=False)
        numbers = numbers[len(rows) :]
    return outcomes


def tell(target: str, seed: int, numbers: range) -> None:
    """Print the outcome of each input as a line of JSON; end at the first one that hangs, with its traceback."""
    out, errors = os.fdopen(os.dup(1), "w", buffering=1), os.fdopen(os.dup(2), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logging.disable()
    warnings.simplefilter("ignore")
    for number in numbers:
        faulthandler.dump_traceback_later(TIME_S, exit=True, file=errors)
        print(json.dumps(list(outcome(target, seed, number))), file=out)
    faulthandler.cancel_dump_traceback_later()


def outcome(target: str, seed: int, number: int) -> Iterator[str]:
    """Yield kind, place and text of an input; the place is the same for failures of one cause."""
    try:
        attempt(target, seed, number)
    except BatwattError as error:
        one_line = "\n" not in str(error) and str(error).isprintable()
        yield from ("refused" if one_line else "internal", f"{type(error).__name__} of several lines", str(error))
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = next((frame for frame in reversed(frames) if "batwatt" in Path(frame.filename).parts), frames[-1])
        place = f"{type(error).__name__} at {Path(ours.filename).name}:{ours.lineno}"
        yield from ("internal", place, "".join(traceback.format_exception(error)[-6:]))
    else:
        yield from ("ok", "", "")


def attempt(target: str, seed: int, number: int) -> None:
    """Try an input in this process, in a folder that is removed. Raises the errors of the target."""
    rng = random.Random(f"{target} {seed} {number}")
    with tempfile.TemporaryDirectory(prefix="batwatt-fuzz-", ignore_cleanup_errors=True) as outer:
        # a place such as ../x is in the folder that is removed, too
        folder = Path(outer, "inner")
        folder.mkdir()
        with chdir(folder):
            module, function = TARGETS[target]
            getattr(importlib.import_module(f"tests.fuzz.{module}"), function)(rng, folder)


if __name__ == "__main__":
    sys.exit(main())
