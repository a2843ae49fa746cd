"""What a host is."""

from __future__ import annotations

from batwatt.model.platform import Host, Platform, PState, Sleep

STATES = ((10.0, 30.0, 30.0, 100.0), (5.0, 30.0, 30.0, 120.0), (1.0, 5.0, 5.0, 5.0), (0.1, 0.0, 0.0, 150.0))
"""Of a fast, a slow, a sleep and a transition p-state: speed, and power idle, above 0 and full."""


def test_the_full_power_is_that_of_the_computation_state_that_draws_most():
    fast, slow, asleep, switching = (PState(*speed_and_watts) for speed_and_watts in STATES)
    mixed = Host(0, "a", (fast, slow, asleep, switching), sleeps=(Sleep(2, 3, 3),), has_power=True)
    alone = Host(1, "b", (fast,), has_power=True)
    assert (mixed.full_w, Platform((mixed, alone)).full_w) == (120.0, 220.0)
