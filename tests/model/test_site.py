"""Watts as machines and machines as watts."""

from __future__ import annotations

import pytest
from builders import machine
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.model.platform import MachinePower, MachineSpec, machines_platform
from batwatt.model.timeline import Timeline, least_of


def test_the_papers_machines():
    """152 machines of 24 cores of 10 W: n = floor(P / 240)."""
    site = MachinePower.of(machines_platform(MachineSpec(152, 24, core_w=10.0)))
    assert (site.machines, site.full_w, site.off_w) == (152, 240.0, 0.0)
    assert site.fed_by(Timeline((0.0, 1.0, 2.0, 3.0), (0.0, 479.9, 480.0, 1e9))).values == (0.0, 1.0, 2.0, 152.0)
    assert site.drawn_by(Timeline((0.0,), (2.0,), "machines")).values == (480.0,)
    servers = MachinePower.of(machine(4))
    assert servers.machines == 4 and servers.full_w > servers.off_w
    with pytest.raises(InputError, match="save nothing when off"):
        MachinePower.of(machines_platform(MachineSpec(2, 2, core_w=0.0)))


def test_machines_that_draw_when_off():
    site = MachinePower(10, 100.0, 10.0)
    # 10 W each are drawn in any case, 90 W more by each that is on
    assert site.fed_by(Timeline((0.0, 1.0, 2.0), (99.0, 189.9, 190.0))).values == (0.0, 0.0, 1.0)
    assert site.drawn_by(Timeline((0.0,), (3.0,))).values == (370.0,)


counts_of = st.lists(st.integers(0, 200), min_size=1, max_size=9)


@examples(200, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 200), st.floats(1.0, 1e4), st.floats(0.0, 0.99), counts_of)
def test_there_and_back(machines, full_w, share, counts):
    site = MachinePower(machines, full_w, full_w * share)
    counts = [float(min(count, machines)) for count in counts]
    capacity = Timeline(tuple(map(float, range(len(counts)))), tuple(counts), "machines")
    envelope = site.drawn_by(capacity)
    assert site.fed_by(envelope).values == capacity.values
    # what is fed never draws more than there is, unless all are off
    less = Timeline(envelope.times_s, tuple(0.93 * power for power in envelope.values))
    fed = site.fed_by(less)
    for power, count, drawn in zip(less.values, fed.values, site.drawn_by(fed).values, strict=True):
        assert count == 0.0 or drawn <= power * (1.0 + 1e-8)


def test_the_lesser_counts():
    one, two = Timeline((0.0, 10.0), (5.0, 1.0)), Timeline((0.0, 4.0, 20.0), (3.0, 9.0, 0.0))
    least = least_of(one, two)
    assert (least.times_s, least.values) == ((0.0, 4.0, 10.0, 20.0), (3.0, 5.0, 1.0, 0.0))
