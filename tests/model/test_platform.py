"""What a host is."""

from __future__ import annotations

import pytest

from batwatt.model.platform import Host, Platform, PState, Sleep, sleeps_of

STATES = ((10.0, 30.0, 30.0, 100.0), (5.0, 30.0, 30.0, 120.0), (1.0, 5.0, 5.0, 5.0), (0.1, 0.0, 0.0, 150.0))
"""Of a fast, a slow, a sleep and a transition p-state: speed, and power idle, above 0 and full."""


def test_sleep_states_of_a_text():
    assert sleeps_of(" 2:3:4, 5:6:7") == (Sleep(2, 3, 4), Sleep(5, 6, 7))
    assert sleeps_of("") == ()


@pytest.mark.parametrize("text", ["2", "2:3", "2:3:4:5", "2:x:4", "2:3:4;5:6:7"])
def test_a_text_that_has_no_triples(text):
    with pytest.raises(ValueError, match=r"invalid literal|values to unpack"):
        sleeps_of(text)


def test_the_full_power_is_that_of_the_computation_state_that_draws_most():
    fast, slow, asleep, switching = (PState(*speed_and_watts) for speed_and_watts in STATES)
    mixed = Host(0, "a", (fast, slow, asleep, switching), sleeps=(Sleep(2, 3, 3),), has_power=True)
    alone = Host(1, "b", (fast,), has_power=True)
    assert (mixed.full_w, Platform((mixed, alone)).full_w) == (120.0, 220.0)
