"""Declarations of all measured figures: meaning, unit, and format in tables, pages and charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from batwatt.units import HOUR_S, J_PER_KWH

BOUND_S = 10.0
"""Shortest run time in s that a bounded slowdown is relative to."""
Values = Mapping[str, float | int | None]
"""Name of a figure -> value in its unit; None where the figure is undefined (no jobs, no envelope, ...)."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure: values are in `unit`, and displayed in the unit `display` after a product with `factor`.

    `better` is `lower`, `higher`, or empty without a preference. `title` is for sentences and axes, `head` has the
    lines of a heading in a narrow table. A figure without `decimals` is a count. `parts` are the terms of a sum.
    """

    name: str
    unit: str
    meaning: str
    better: str = ""
    title: str = ""
    head: str = ""
    display: str = ""
    factor: float = 1.0
    decimals: int = 2
    parts: tuple[str, ...] = ()

    @property
    def sign(self) -> float:
        """Factor by which less is better: -1 where more is."""
        return -1.0 if self.better == "higher" else 1.0

    @property
    def whole(self) -> bool:
        """True if each value is a whole number."""
        return self.decimals == 0

    @property
    def axis(self) -> str:
        """Label of an axis."""
        return f"{self.title} ({self.display})" if self.display else self.title

    @property
    def label(self) -> str:
        """Heading in a narrow table, with the unit in the last line."""
        return "\n".join(filter(None, (self.head, self.display)))

    def in_currency(self, currency: str) -> Figure:
        """Return the figure, with the unit `currency` for a cost; an empty currency changes nothing."""
        return replace(self, display=currency) if currency and self.display == MONEY else self


MONEY = "money"
"""Unit of a cost in an unknown currency."""
_count = partial(Figure, decimals=0)
_share = partial(Figure, display="%", factor=100.0)
_minutes = partial(Figure, display="min", factor=1.0 / 60.0, decimals=1)
_energy = partial(Figure, display="kWh", factor=1.0 / J_PER_KWH)
_watts = partial(Figure, display="kW", factor=1e-3)
_hours = partial(Figure, display="h", factor=1.0 / HOUR_S)

METRICS = (
    Figure("mean_slowdown", "", "mean of turnaround time / execution time over the successful jobs", "lower",
           "slowdown", "slow-\ndown\nmean"),
    Figure("mean_bounded_slowdown", "",
           f"mean of max(1, (end - release) / max({BOUND_S:g} s, run time at full speed)) over the jobs that completed",
           "lower", "bounded slowdown", "bounded\nslow-\ndown"),
    Figure("mean_full_speed_slowdown", "", "mean of (end - release) / run time at full speed over the jobs that "
           "completed", "lower", "slowdown at full speed", "slow-\ndown\nat full\nspeed"),
    Figure("max_full_speed_slowdown", "", "largest (end - release) / run time at full speed over the jobs that "
           "completed", "lower", "largest slowdown at full speed", "max\nslow-\ndown\nat full\nspeed"),
    Figure("mean_run_time_stretch", "", "mean of run time / run time at full speed over the successful jobs", "lower",
           head="stretch\nof run\ntime"),
    _minutes("mean_wait_s", "s", "mean from the first submission to the start of the run that completed", "lower",
             "mean wait", "wait\nmean"),
    _minutes("p95_wait_s", "s", "95 % of the jobs that completed waited no longer", "lower",
             "95th percentile of the wait", "wait\np95"),
    _count("jobs_finished", "jobs", "jobs that completed successfully", "higher", "finished jobs", "finished", "jobs"),
    _count("killed_power", "jobs", "runs of a job that the scheduler killed, and nothing was saved of", "lower",
           "kills for power", "kills\npower"),
    _count("killed_walltime", "jobs", "runs of a job that reached their walltime", "lower", "kills at the walltime",
           "kills\nwalltime"),
    _count("violations", "steps", "steps of the envelope in which the power is above the cap at some time", "lower",
           "violations", "viola-\ntions", "steps"),
    _share("finished_work_fraction", "", "flops of the successful jobs / flops of all jobs", "higher", "finished work",
           "work\ndone", decimals=1),
    _energy("energy_j", "J", "energy of all hosts from 0 to the end of the last job", "", "energy", "energy",
            decimals=1),
    _energy("energy_above_cap_j", "J", "energy drawn above the cap until the end of the last job", "lower",
            "energy above the cap", "above\ncap"),
    _energy("unused_j", "J", "energy that the cap allowed and no host drew until the end of the last job", "lower",
            "unused energy", "unused", decimals=1),
    Figure("work_per_fed_host", "", "host s of work of finished jobs at full speed / host s that the envelope feeds at "
           "full watts until the last end; above 1 where hosts draw less, or the scheduler follows no power", "higher",
           "work per fed host", "work\nper fed\nhost"),
    _count("jobs_total", "jobs", "jobs of the workload"),
    _count("jobs_rejected", "jobs", "jobs that were refused", "lower", "rejected jobs", "re-\njected", "jobs"),
    _count("jobs_failed", "jobs", "runs of a job that ended with an error code", "lower", "failed jobs", "failed",
           "jobs"),
    _count("resubmissions", "jobs", "jobs submitted again by the scheduler"),
    _count("steps", "steps", "steps of the envelope until the end of the last job"),
    _hours("makespan_s", "s", "end of the last job", "lower", "makespan", "makespan", decimals=1),
    _watts("max_power_w", "W", "largest power until the end of the last job", "lower"),
    Figure("carbon_g", "g", "carbon of the energy of all hosts, at the carbon signal", "lower", "carbon", "carbon",
           "kg", 1e-3),
    Figure("cost", "", "cost of the energy of all hosts, at the price", "lower", "cost", "cost", MONEY),
    _count("jobs_unfinished", "jobs", "jobs that waited or ran when the window ended", "lower", "unfinished jobs",
           "unfinished", "jobs"),
    _share("goodput", "", "core seconds of jobs that completed / available ones of the window", "higher", "goodput",
           "goodput"),
    _share("goodput_with_running", "", "useful / available core seconds: of runs in progress at the end, too", "higher",
           head="with\nrunning"),
    _share("aborted_volume", "", "aborted / available core seconds of the window", "lower", "aborted volume",
           "aborted"),
    Figure("mean_aborted_time_s", "s", "mean time lost to a kill in the window", "lower"),
    _share("completed_fraction", "", "jobs that completed in the window / jobs submitted by its end", "higher",
           head="completed", decimals=1),
    Figure("capacity_core_s", "core s", "available core seconds: cores of the machines alive, over the window"),
    Figure("useful_core_s", "core s", "core seconds of the runs that completed or were still going", "higher"),
    Figure("aborted_core_s", "core s", "core seconds of the runs that the scheduler killed", "lower"),
    _share("job_failure_rate", "", "runs killed / (those + runs completed) in the window", "lower",
           head="failed\nruns"),
    _count("terminations", "runs", "runs that the scheduler killed in the window", "lower", head="killed",
           display="runs"),
    _count("migrations", "runs", "runs that were interrupted in the window to go on elsewhere"),
    Figure("slowdown_rate", "", "fraction of the completed runs that took longer than the workload says", "lower"),
    _share("goodput_short", "", "the part of goodput that is of short jobs", "higher"),
    _share("goodput_long", "", "the part of goodput that is of long jobs", "higher"),
    _share("job_failure_rate_short", "", "job_failure_rate of short jobs", "lower"),
    _share("job_failure_rate_long", "", "job_failure_rate of long jobs", "lower"),
    _minutes("mean_wait_short_s", "s", "mean_wait_s of short jobs", "lower"),
    _minutes("mean_wait_long_s", "s", "mean_wait_s of long jobs", "lower"),
    _count("terminations_short", "runs", "terminations of short jobs", "lower"),
    _count("terminations_long", "runs", "terminations of long jobs", "lower"),
    _share("checkpoint_volume", "", "core seconds of checkpoints / available ones of the window", "lower",
           head="saving"),
    _share("recovery_volume", "", "core seconds of recoveries from checkpoints / available ones", "lower",
           head="recovery"),
    _count("checkpoints", "", "checkpoints that ended in the window"),
    _count("recoveries", "", "recoveries that ended in the window"),
    Figure("min_yield", "", "least useful time in the window / time from submission to completion or end", "higher",
           head="yield\nmin"),
    Figure("mean_yield", "", "mean of the same over the jobs", "higher"),
)  # fmt: skip
"""The figures of each run, in the order of `PREFIX_metrics.json`."""

_OTHERS = (
    _count("kills", "jobs", "kills for power + kills at the walltime", "lower", "kills", "kills\npower +\nwalltime",
           parts=("killed_power", "killed_walltime")),
    # of a cell of the benchmark
    Figure("score", "", "slowdown of all jobs, lost ones included, relative to EASY without a limit: geometric mean",
           "lower", "score", "score", decimals=3),
    _share("score_se", "", "relative standard error of the score", head="stan-\ndard\nerror", decimals=1),
    _count("jobs_lost", "jobs", "jobs that have not completed by the horizon of a cell", "lower", head="lost"),
    # of a group of jobs of a case
    _count("jobs", "jobs", "jobs of the group", head="jobs"),
    _share("finished_share", "", "finished / all jobs of the group", "higher", head="finished", decimals=1),
    _count("paired_jobs", "jobs", "jobs that finish in this case and in the first", head="jobs\nin\nboth"),
    _minutes("wait_more_s", "s", "mean of the added wait over the paired jobs", "lower", head="added\nwait"),
    Figure("full_speed_slowdown_more", "", "mean of the added slowdown at full speed over the paired jobs", "lower",
           head="added\nslow-\ndown\nat full\nspeed"),
    # of a run whose jobs declare their power
    _share("share_above", "", "share of the time until the last end with what the jobs draw above the cap", "lower",
           head="time\nabove\ncap"),
    _energy("above_j", "J", "energy above the cap by what the jobs draw", "lower", head="energy\nabove\ncap"),
    _watts("mean_w", "W", "mean power by what the jobs draw", head="power\nmean"),
    _watts("max_w", "W", "largest power by what the jobs draw", "lower", head="power\nmax"),
    _hours("mean_turnaround_s", "s", "mean of end - first submission over the completed jobs", "lower",
           head="turn-\naround\nmean", decimals=3),
    _count("completed", "jobs", "jobs of the workload that completed successfully", "higher", head="completed",
           display="jobs"),
    # of a row of an account
    Figure("node_hours", "h", "hours of nodes that jobs have, or that no job has", head="node\nhours", decimals=3),
    Figure("energy_kwh", "kWh", "energy of a row of an account", title="energy of a row", display="kWh", decimals=3),
    Figure("carbon_kg", "kg", "carbon dioxide equivalent of a row of an account, at the carbon signal",
           title="carbon of a row", display="kgCO2e", decimals=3),
    # of an optimum
    Figure("lower_bound", "", "no schedule has a smaller mean slowdown", title="lower bound"),
    Figure("gap", "", "(mean slowdown - lower bound) / mean slowdown", "lower", "gap"),
    # of a generated capacity
    Figure("cap_range", "", "largest - least capacity", title="range of the capacity", display="share of all machines"),
    Figure("cap_step", "", "largest step of the capacity", title="largest change", display="share of all machines"),
    Figure("cap_period_s", "s", "time from one step of the capacity to the next", title="time between changes",
           display="s"),
    Figure("cap_mean", "", "mean capacity", title="mean capacity", display="share of all machines"),
    Figure("cap_headroom", "", "upper bound of the capacity", title="most capacity", display="share of all machines"),
    Figure("cap_saved", "", "share by which the capacity costs less than a fixed one"),
    Figure("cap_gained", "", "share by which the capacity is larger than a fixed one of the same cost"),
)  # fmt: skip

FIGURES: Mapping[str, Figure] = {figure.name: figure for figure in (*METRICS, *_OTHERS)}
"""All figures by name."""


def figures_of(names: Iterable[str], currency: str = "") -> list[Figure]:
    """Return figures by their names, costs in `currency` unless it is empty."""
    return [FIGURES[name].in_currency(currency) for name in names]


def rounded(values: Values) -> dict[str, float | int | None]:
    """Round floats to 6 decimals, as in the files of a run."""
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in values.items()}
