"""The options of the scheduler `carbon` (docs/explanation/carbon-engine.md)."""

from __future__ import annotations

from pydantic import Field

from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.scheduling.options import LIMIT, NODES, WAIT_H, PartChoice, SchedulerOptions, WaitHours


class CarbonOptions(SchedulerOptions):
    """Options of the scheduler `carbon` (docs/explanation/carbon-engine.md)."""

    signal: SignalIntegral | None = Field(None, description="CSV file of the carbon intensity in g/kWh")
    price: SignalIntegral | None = Field(None, description="CSV file of the price of a kWh")
    carbon_weight: float = Field(1.0, ge=0.0, description="weight of a g in plans")
    price_weight: float = Field(0.0, ge=0.0, description="weight of a unit of money in plans")
    policy: str = Field("phase-aware", description="a policy of `batwatt policies`")
    node_selection: PartChoice = Field("first", description=NODES)
    wait_h: WaitHours = Field(WAIT_H, description="hours >= 0 that short and long jobs may wait, or one for all")
    deadline_h: float | None = Field(None, gt=0.0, description="hours from arrival to completion, in place of wait_h")
    constraint: str | None = Field(None, description="next-workday or semi-weekly, in place of wait_h")
    replan_h: float | None = Field(
        None, ge=0.01, description="period in hours in which waiting jobs are replanned; by default never"
    )
    forecast_error: float = Field(
        0.0, ge=0.0, le=10.0, description="relative error of forecasts 1 h ahead, grows with the root of the time"
    )
    forecast_seed: int = Field(0, ge=0, description="seed of the errors of forecasts")
    forecast_sure_h: float | None = Field(
        None, ge=0.0, description="hours for which forecasts are sure; then the last day repeats; by default all"
    )
    slot_s: float = Field(60.0, ge=0.1, description="length in s of the slots of shared plans")
    capacity: Series | None = Field(None, description="file of the number of machines over time")
    envelope: Series | None = Field(None, description="CSV file of the power envelope")
    switch: bool = Field(True, description="switch machines beyond the capacity off; not those for jobs in phases")
    transition_limit_s: float | None = Field(None, gt=0.0, description=LIMIT)
