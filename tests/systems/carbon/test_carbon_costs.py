"""Who gets reserved machines, and what machines cost."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.model.phases import constant
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.costs import MachinePrices, Request, RequestStart, assign
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.simulate import ShiftOptions, simulate

HOUR = 3600.0


def eager(arrival_s: float, begin_s: float, length_s: float, cpus: int) -> Request:
    return Request(arrival_s, begin_s, length_s, cpus, conserving=True)


@pytest.mark.parametrize(
    ("reserved", "requests", "places"),
    [
        # as soon as the reserved cpus suffice: nothing is free until 5 s, and the last comes after the one before it
        (2, [eager(0, 10, 5, 2), eager(1, 3, 4, 1), eager(2, 20, 1, 2), eager(2, 20, 3, 1)],
         "0 reserved, 3 on-demand, 5 reserved, 6 reserved"),
        # a wide job does not hold up a narrow one
        (2, [eager(0, 50, 10, 1), eager(1, 50, 5, 2), eager(2, 50, 3, 1), eager(3, 50, 8, 1)],
         "0 reserved, 13 reserved, 2 reserved, 5 reserved"),
        # both want the two cpus at 6 s: one is due then, the other has been waiting since 1 s, and is asked first
        (2, [Request(5, 6, 2, 2), eager(1, 20, 1, 2), Request(0, 0, 6, 1)], "6 on-demand, 6 reserved, 0 reserved"),
        # spot takes no reserved cpus
        (1, [Request(0, 4, 1, 1, conserving=True, spot=True), Request(0, 4, 1, 1)], "4 spot, 4 reserved"),
        # without reserved cpus all start when due
        (0, [eager(0, 7, 1, 1)], "7 on-demand"),
    ],
)  # fmt: skip
def test_who_gets_reserved_machines(reserved, requests, places):
    assert ", ".join(f"{each.begin_s:g} {each.machine}" for each in assign(requests, reserved)) == places


REQUESTS = st.builds(
    lambda arrival, wait, length, cpus, conserving, spot: Request(
        arrival, arrival + wait, length, cpus, conserving, spot
    ),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(1, 6),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)


def by_ticks(requests: list[Request], reserved: int) -> list[RequestStart | None]:
    """The same second by second."""
    assignments: list[RequestStart | None] = [None] * len(requests)
    ends: list[tuple[float, int]] = []
    for now in range(40):
        free = reserved - sum(cpus for end, cpus in ends if end > now)
        for index, request in sorted(enumerate(requests), key=lambda pair: (pair[1].arrival_s, pair[0])):
            if assignments[index] is not None or now < request.arrival_s:
                continue
            due = now == request.begin_s
            if request.spot:
                if due:
                    assignments[index] = RequestStart(now, "spot")
            elif (due or request.conserving) and request.cpus <= free:
                assignments[index] = RequestStart(now, "reserved")
                free -= request.cpus
                ends.append((now + request.length_s, request.cpus))
            elif due:
                assignments[index] = RequestStart(now, "on-demand")
    return assignments


@examples(400)
@given(st.lists(REQUESTS, max_size=10), st.integers(0, 5))
def test_as_second_by_second(requests, reserved):
    assert assign(requests, reserved) == by_ticks(requests, reserved)


def test_what_machines_cost():
    integral = SignalIntegral.regular([100.0, 300.0, 200.0, 400.0, 500.0, 600.0])
    # two short jobs, then a long one of 2 h
    jobs = [
        ShiftJob("a", 0.0, constant(HOUR, 1000.0)),
        ShiftJob("b", 0.0, constant(HOUR, 1000.0), 2),
        ShiftJob("c", HOUR, constant(2 * HOUR, 1000.0)),
    ]
    prices = MachinePrices(on_demand_h=1.0, spot_h=0.25, reserved_share=0.5)
    plain = ShiftOptions(wait_h=(2.0, 3.0), reserved=1, prices=prices)

    outcome = simulate(jobs, integral, "cost", plain)
    # b does not fit and starts at 2 h; c takes the cpu on arrival
    assert outcome.segments["begin_s"].tolist() == [0.0, 2 * HOUR, HOUR]
    assert outcome.segments["machine"].tolist() == ["reserved", "on-demand", "reserved"]
    assert outcome.segments["cost"].tolist() == pytest.approx([0.0, 2.0, 0.0])
    # 2 h until the last start
    assert outcome.metrics()["cost"] == pytest.approx(2.0 + 0.5 * 2)
    assert outcome.segments["carbon_g"].tolist() == pytest.approx([100.0, 400.0, 500.0])

    outcome = simulate(jobs, integral, "carbon-cost-spot", plain)
    # the short ones start where the carbon is least, on spot; c does not wait for its cheapest start
    assert outcome.segments["begin_s"].tolist() == [0.0, 0.0, HOUR]
    assert outcome.segments["machine"].tolist() == ["spot", "spot", "reserved"]
    assert outcome.metrics()["machine_cost"] == pytest.approx(0.25 + 0.5 + 0.5 * 1)

    outcome = simulate(jobs, integral, "immediate-spot", plain)
    assert outcome.segments["machine"].tolist() == ["spot", "spot", "reserved"]


def test_prices_of_gaia_unless_energy_has_a_price():
    integral = SignalIntegral.regular([100.0, 300.0])
    job = [ShiftJob("a", 0.0, constant(HOUR, 500.0), 2)]
    wait = ShiftOptions(wait_h=(0.0,))
    assert simulate(job, integral, "immediate", wait).metrics()["cost"] == pytest.approx(2 * 0.0624)
    priced = ShiftOptions(wait_h=(0.0,), price=SignalIntegral.regular([0.3, 0.1]))
    figures = simulate(job, integral, "immediate", priced).metrics()
    assert (figures["cost"], figures["energy_cost"], figures["machine_cost"]) == pytest.approx((0.3, 0.3, 0.0))


@pytest.mark.parametrize("bad", [{"on_demand_h": -1.0}, {"spot_h": float("nan")}, {"reserved_share": True}])
def test_prices_that_are_none(bad):
    with pytest.raises(InputError, match=f"prices: {next(iter(bad))} must be a finite number >= 0"):
        MachinePrices(**bad)
