"""Hostile inputs are read or refused in one line; each night, `BATWATT_EXAMPLES=25` draws thousands."""

from __future__ import annotations

import logging
import resource
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batwatt.errors import BatwattError

from . import api, commands, files, wire

TARGETS = {"api": api.attempt, "commands": commands.attempt, "files": files.attempt}
TARGETS |= {"wire4": wire.attempt4, "wire5": wire.attempt5}
"""Target -> function of a `random.Random` and an empty folder, which gives an input to batwatt."""
LONGEST_MS = 120_000
"""Limit of an input."""
MEMORY = 6 << 30
"""Bytes of address space of the process, with threads and libraries."""


@pytest.fixture
def bounded():
    """Bound the memory of the process, and log nothing."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    logging.disable()
    yield
    logging.disable(logging.NOTSET)
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_inputs_are_read_or_refused_in_one_line(target, bounded, tmp_path, monkeypatch):
    outcomes = Counter()

    @settings(
        examples(1000 if target.startswith("wire") else 200),
        deadline=LONGEST_MS,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=True))
    def attempt(rng):
        # a place such as ../x is in the folder of the test, too
        with tempfile.TemporaryDirectory(dir=tmp_path, ignore_cleanup_errors=True) as folder:
            monkeypatch.chdir(folder)
            try:
                TARGETS[target](rng, Path(folder))
                outcomes["read"] += 1
            except BatwattError as error:
                assert "\n" not in str(error) and str(error).isprintable()
                outcomes["refused"] += 1

    attempt()
    # inputs that are all refused, or all read, try little
    assert outcomes["read"] and outcomes["refused"]
