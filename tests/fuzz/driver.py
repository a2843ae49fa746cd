"""Try a target with inputs that are drawn by seed, in child processes with limits of time and memory.

A target is a module of this folder with `attempt(rng, folder)`: draw one input from `rng` (`random.Random`), write
what it needs into the empty `folder`, and give it to batwatt. What `attempt` does says what the input was:

    ok         it returns
    refused    it raises a BatwattError of one line
    internal   it raises anything else (MemoryError included), or the process dies
    hang       it takes longer than the limit

The same target, seed and number give the same input: `python -m tests.fuzz api --seed 7 --only 123` shows it.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import chdir, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from batwatt.errors import BatwattError

TIME_S = 30.0
MEMORY = 3 << 30
"""Bytes of address space of a process, threads and libraries included."""
BATCH = 200
"""Inputs of a process: what one leaves behind ends with it."""
TARGETS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.name != Path(__file__).name and "\ndef attempt(" in path.read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Failure:
    """An input that was neither read nor refused; `place` is the same for failures of one cause."""

    target: str
    seed: int
    number: int
    kind: str
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.target} --seed {self.seed} --only {self.number}: {self.place}\n{self.text}"


@dataclass
class Report:
    """What became of all inputs of a target."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def attempt(target: str, seed: int, number: int) -> None:
    """Try one input in this process, in a folder that is removed. Raises what the target raises."""
    rng = random.Random(f"{target} {seed} {number}")
    with tempfile.TemporaryDirectory(prefix="batwatt-fuzz-", ignore_cleanup_errors=True) as outer:
        # a place such as ../x is in the folder that is removed, too
        folder = Path(outer, "inner")
        folder.mkdir()
        with chdir(folder):
            importlib.import_module(f"{__package__}.{target}").attempt(rng, folder)


def outcome(target: str, seed: int, number: int) -> tuple[str, str, str]:
    """Kind, place and text of one input."""
    try:
        attempt(target, seed, number)
    except BatwattError as error:
        if "\n" not in str(error) and str(error).isprintable():
            return "refused", "", str(error)
        return "internal", f"{type(error).__name__} of several lines", str(error)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = next((frame for frame in reversed(frames) if "batwatt" in Path(frame.filename).parts), frames[-1])
        place = f"{type(error).__name__} at {Path(ours.filename).name}:{ours.lineno}"
        return "internal", place, "".join(traceback.format_exception(error)[-6:])
    return "ok", "", ""


def _child(out: Connection, target: str, seed: int, numbers: range) -> None:
    """Try inputs one after the other and tell the outcome of each."""
    # what it starts ends with it
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    logging.disable()
    warnings.simplefilter("ignore")
    for number in numbers:
        out.send(outcome(target, seed, number))


@dataclass
class _Running:
    """A process, the inputs that it has not told an outcome of, and when it has to tell the next one."""

    process: multiprocessing.process.BaseProcess
    numbers: range
    until_s: float


def run(target: str, seed: int, count: int, workers: int = 2, time_s: float = TIME_S) -> Report:
    """Try `count` inputs of a target."""
    report = Report()
    context = multiprocessing.get_context("fork")
    module = importlib.import_module(f"{__package__}.{target}")
    # kernels are compiled once, and not within the limit of an input
    getattr(module, "prepare", lambda: None)()
    batches = [range(n, min(n + BATCH, count)) for n in range(0, count, BATCH)][::-1]
    running: dict[Connection, _Running] = {}
    while batches or running:
        while batches and len(running) < workers:
            out, end = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(end, target, seed, numbers := batches.pop()))
            process.start()
            end.close()
            running[out] = _Running(process, numbers, time.monotonic() + time_s)
        wait(list(running), max(0.0, min(one.until_s for one in running.values()) - time.monotonic()))
        for out, one in list(running.items()):
            ready, late = out.poll(), time.monotonic() > one.until_s
            if not (ready or late):
                continue
            try:
                kind, place, text = out.recv() if ready else ("hang", f"longer than {time_s:g} s", "")
            except EOFError:
                one.process.join()
                kind, place, text = "internal", f"the process died, exit code {one.process.exitcode}", ""
                ready = False
            report.counts[kind] += 1
            if kind in ("internal", "hang"):
                report.failures.append(Failure(target, seed, one.numbers[0], kind, place, text))
            one.numbers, one.until_s = one.numbers[1:], time.monotonic() + time_s
            if not (ready and one.numbers):
                del running[out]
                with suppress(ProcessLookupError):
                    os.killpg(one.process.ident or 0, signal.SIGKILL)
                one.process.join()
                batches += [one.numbers] if one.numbers else []
    return report
