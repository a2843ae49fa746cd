"""A small sample of each target; each night `python -m tests.fuzz` tries thousands with another seed."""

from __future__ import annotations

import pytest

from .driver import TARGETS, run

SAMPLE = 100
NEEDS = {"gym": "gymnasium"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_is_read_or_refused(target):
    if target in NEEDS:
        pytest.importorskip(NEEDS[target])
    report = run(target, seed=1, count=SAMPLE)
    assert not report.failures, "\n".join(map(str, report.failures))
    # inputs that are all refused, or all read, try little
    assert sum(report.counts.values()) == SAMPLE and report.counts["ok"] and report.counts["refused"]
