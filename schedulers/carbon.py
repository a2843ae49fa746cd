"""Carbon-aware shifting of jobs in phases (GAIA, Let's Wait Awhile, the carbon thesis), as a Batsim scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from batwatt.errors import InputError
from batwatt.inputs.series.capacity import checked_capacity, read_capacity
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.series.signal_csv import SignalFile, read_signal
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.scheduling.options import SchedulerOptions
from batwatt.systems.carbon.execution import Execution, ShiftJob
from batwatt.systems.carbon.policies import Known, policy_named
from batwatt.systems.carbon.reservation_calendar import ReservationCalendar
from batwatt.systems.carbon.scheduler import ShiftingScheduler
from batwatt.systems.carbon.shared import SharedCluster
from batwatt.systems.carbon.windows import is_short, start_window


class CarbonOptions(SchedulerOptions):
    """Options of the scheduler `carbon` (docs/carbon-engine.md)."""

    signal: str | Path | SignalIntegral | None = Field(None, description="CSV file of the carbon intensity in g/kWh")
    price: str | Path | SignalIntegral | None = Field(None, description="CSV file of the price of a kWh")
    begin: str | None = Field(None, description="date of 0 s in both; by default the first row of signal")
    days: float | None = Field(
        None, gt=0.0, allow_inf_nan=False, description="how many days of both are read; by default all"
    )
    carbon_weight: float = Field(1.0, ge=0.0, allow_inf_nan=False, description="weight of a g in plans")
    price_weight: float = Field(0.0, ge=0.0, allow_inf_nan=False, description="weight of a unit of money in plans")
    policy: str = Field("phase-aware", description="a policy of `batwatt carbon policies`")
    wait_h: list[Annotated[float, Field(ge=0.0, allow_inf_nan=False)]] = Field(
        [6.0, 24.0],
        min_length=1,
        max_length=2,
        description="hours >= 0 that short and long jobs may wait, or one for all",
    )
    deadline_h: float | None = Field(
        None, gt=0.0, allow_inf_nan=False, description="hours from arrival to completion, in place of wait_h"
    )
    constraint: str | None = Field(None, description="next-workday or semi-weekly, in place of wait_h")
    max_starts: int | None = Field(None, ge=1, description="most starts of a job")
    slot_s: float = Field(60.0, ge=0.1, allow_inf_nan=False, description="length in s of the slots of shared plans")
    capacity: str | Path | Series | None = Field(None, description="file of the machines that there are, by time")
    envelope: str | Path | Series | None = Field(None, description="CSV file of the power that there is, by time")


class Carbon(ShiftingScheduler[CarbonOptions]):
    """Shifts, suspends and resumes jobs in phases under a carbon or price signal, on as many machines as there are."""

    Options: ClassVar[type[CarbonOptions]] = CarbonOptions

    def make_plans(self, machines: int) -> None:
        """Read the signals, and what machines and power there are."""
        chosen = self.settings
        carbon = self._integral("signal", chosen.signal, chosen.begin)
        if not chosen.carbon_weight + chosen.price_weight > 0.0:
            raise InputError("options", "carbon_weight and price_weight are both 0", "give one of them")
        if chosen.deadline_h is not None and chosen.constraint is not None:
            raise InputError("options", "have both deadline_h and constraint", "give one of them")
        if chosen.price is not None:
            price = self._integral("price", chosen.price, carbon.begin or chosen.begin)
            carbon = carbon.plus(price, chosen.carbon_weight, chosen.price_weight)
        elif chosen.price_weight > 0.0:
            raise InputError("option 'price_weight'", "there is no price", "give the option price")
        given = chosen.capacity
        capacity = Series((0.0,), (float(machines),)) if given is None else self._capacity(given, machines)
        envelope = chosen.envelope
        watts = envelope if isinstance(envelope, Series) or envelope is None else read_series(envelope)
        calendar = ReservationCalendar(chosen.slot_s, capacity, watts)
        self.cluster = SharedCluster(carbon, calendar, policy_named(chosen.policy))
        self._lengths: dict[bool, list[float]] = {True: [], False: []}

    def plan(self, job: ShiftJob) -> Execution | None:
        """By the policy, around the jobs that came before; e is the mean length of its class so far."""
        lengths = self._lengths[is_short(job)]
        lengths.append(job.length_s)
        mean_s = sum(lengths) / len(lengths)
        chosen = self.settings
        window = start_window(job, self.cluster.integral, chosen.wait_h, chosen.deadline_h, chosen.constraint)
        return self.cluster.place(job, window, Known(mean_s, max_starts=chosen.max_starts))

    def _integral(self, name: str, given: str | Path | SignalIntegral | None, begin: str | None) -> SignalIntegral:
        if given is None or given == "":
            raise InputError(f"option {name!r}", "the scheduler needs it", "give a CSV file")
        if isinstance(given, SignalIntegral):
            return given
        return SignalIntegral.of(read_signal(SignalFile(Path(given), begin=begin, days=self.settings.days)))

    def _capacity(self, given: str | Path | Series, machines: int) -> Series:
        capacity = given if isinstance(given, Series) else read_capacity(given, None)
        checked_capacity(capacity, machines, capacity.source)
        return capacity
