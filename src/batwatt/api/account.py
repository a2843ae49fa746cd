"""The account of a recorded log of jobs: energy, carbon and cost by user, account, partition and month."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from batwatt.api.inputs import PathLike
from batwatt.api.series import series_or
from batwatt.api.simulation import SeriesLike
from batwatt.checks import time_zone
from batwatt.errors import InputError, argument, collected_remarks, remark
from batwatt.files import whole_file, write_text
from batwatt.inputs.batch_logs import AccountingOptions
from batwatt.inputs.convert import read_trace
from batwatt.inputs.jobs import HOSTS
from batwatt.inputs.series import check_covers, on_clock
from batwatt.inputs.spec import Quantity, parse_series
from batwatt.model.signal import Clock, parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.workload import LENGTH, POWER_W, START_S
from batwatt.results.figures import figures_of
from batwatt.results.groups import UNKNOWN
from batwatt.results.run_files import without_formulas_in
from batwatt.results.tables import TableColumn, columns_of, table_text
from batwatt.results.usage import BY, DECIMALS, IDLE, JOBS, by_month, idle_nodes, usage, used_nodes
from batwatt.run.arguments import checked, hosts_of, one_of, optional, options_for, path_or, real, several, text
from batwatt.units import date_text

_log = logging.getLogger(__name__)
_LABELS = {"user": "user", "account": "group", "partition": "queue"}
"""Column of an account -> label of a job."""


@dataclass(frozen=True)
class JobAccount:
    """An account: `table` as of `batwatt.results.usage`, with the columns `by`; `facts` describe its inputs."""

    table: pd.DataFrame
    by: Sequence[str]
    facts: Sequence[tuple[str, str]]
    remarks: Sequence[str]
    """Parts of the log that are left out or cut, and assumptions."""
    currency: str

    @property
    def columns(self) -> list[TableColumn]:
        """Columns of the table as texts."""
        rows: Any = self.table.to_dict("records")
        first, *others = self.by
        names = [" ".join(filter(None, (row[first], "" if row["part"] == JOBS else row["part"]))) for row in rows]
        texts = [TableColumn(name, name, [row[name] for row in rows], is_text=True) for name in others]
        figures = figures_of(self.table.columns[1 + len(self.by) :], self.currency)
        numbers = columns_of([replace(one, decimals=one.decimals and DECIMALS) for one in figures], rows)
        return [TableColumn(first, f"part {first}", names), *texts, *numbers]

    def __repr__(self) -> str:
        return table_text(self.columns)

    @checked(csv=optional(path_or), page=optional(path_or), command=text)
    def save(self, csv: PathLike | None = None, page: PathLike | None = None, *, command: str = "") -> None:
        """Write the table (CSV), and a page (HTML) that names a `command`. Raises InputError."""
        if csv is not None:
            with whole_file(csv) as out:
                without_formulas_in(self.table).to_csv(
                    out, index=False, float_format=f"%.{DECIMALS}f", lineterminator="\n"
                )
        if page is not None:
            # matplotlib takes a while to be loaded
            from batwatt.report.page import account_page

            facts = [*([("command", command)] if command else []), *self.facts]
            write_text(Path(page), account_page(self.columns, facts, self.remarks))


@checked(
    workload=path_or, by=optional(partial(several, one=one_of(BY))),
    carbon=partial(series_or, quantity="carbon"), price=partial(series_or, quantity="price"),
    machines=optional(hosts_of), cores=optional(hosts_of), busy_w=optional(real), idle_w=optional(real),
    pue=partial(real, low=1.0), since=optional(text), until=optional(text), zone=optional(text),
    log=options_for("account", AccountingOptions),
)  # fmt: skip
def account(
    workload: PathLike, *, by: Sequence[str] | None = None, carbon: SeriesLike | None = None,
    price: SeriesLike | None = None, machines: int | None = None, cores: int | None = None,
    busy_w: float | None = None, idle_w: float | None = None, pue: float = 1.0,
    since: str | None = None, until: str | None = None, zone: str | None = None, **log: Any,
) -> JobAccount:  # fmt: skip
    """Account the energy, carbon and cost of recorded jobs, at the signals of the hours in which they ran.

    Args:
        workload: A log with the starts of jobs: sacct, SWF, PBS, a job table, or a CSV trace with a column `start`.
        by: Columns, of user, account, partition and month; by default all that the log has.
        carbon: Carbon intensity, g/kWh, as for `simulate`.
        price: Price of energy, as for `simulate`.
        machines: Nodes of the site; without them idle nodes are not counted.
        cores: CPUs of a node, if the log is read in CPUs.
        busy_w: Power of a node in use, W, for jobs without measured energy; a share of it for a share of its CPUs.
        idle_w: Power of an idle node, W.
        pue: Energy of the site / energy of its nodes.
        since: Begin of the account, a date; by default the first start of a job.
        until: End of the account, a date; by default the last end of a job.
        zone: Time zone of months, `since` and `until`; by default `tz`, that of the log.
        **log: As for `Workload.read`: tz, begin, width, fields.

    Returns:
        A `JobAccount`: `table` has the figures, `save` writes them as CSV or a page.

    Raises:
        batwatt.errors.InputError: Bad input; a signal that lacks hours of the account.
    """
    path, options = Path(workload), AccountingOptions(**log)
    months = time_zone("account", "zone", zone or options.tz)
    if (machines is None) != (idle_w is None):
        hint = "give both, or none; 0 W if they are switched off"
        raise InputError(
            f"{argument('machines')}, {argument('idle_w')}", "idle nodes need their number and their power", hint
        )
    with collected_remarks() as remarks:
        jobs, date = _recorded(path, options)
        by = list(dict.fromkeys(by or [name for name in BY if name == "month" or jobs[name].ne("").any()]))
        for name in [name for name in by if name in _LABELS]:
            if jobs[name].eq("").all():
                raise InputError(path, f"no job has a {name}", f"leave it out of {argument('by')}")
            _remark(path, jobs[name].eq(""), f"have no {name}: they count as {UNKNOWN}")
            jobs[name] = jobs[name].replace("", UNKNOWN)
        if options.width == "cpus" and cores is None:
            text = "%s: a node is a CPU: give %s, the CPUs of a node, or %s"
            remark(_log, text, path, argument("cores"), argument("width", "nodes"))
        jobs["nodes"] /= 1.0 if options.width == "nodes" else cores or 1.0
        begin_s = float(jobs["begin_s"].min()) if since is None else parse_date_s(since, "since", months) - date
        end_s = float(jobs["end_s"].max()) if until is None else parse_date_s(until, "until", months) - date
        # signals begin at 0 s
        earlier_s = min(begin_s, 0.0)
        jobs[["begin_s", "end_s"]] -= earlier_s
        begin_s, end_s, date = begin_s - earlier_s, end_s - earlier_s, date + earlier_s
        period = f"{date_text(date + begin_s)} to {date_text(date + end_s)}"
        outside = (jobs["end_s"] <= begin_s) | (jobs["begin_s"] >= end_s)
        if outside.all():
            raise InputError(path, f"no job runs from {period}", f"correct {argument('since')} and {argument('until')}")
        _remark(path, outside, "are left out: they ran outside of the period")
        jobs = jobs[~outside]
        _remark(path, (jobs["begin_s"] < begin_s) | (jobs["end_s"] > end_s), "count for their hours in the period only")
        modelled = int(jobs["watts"].isna().sum())
        if modelled and busy_w is None:
            problem = f"{modelled} of {len(jobs)} jobs have no measured energy"
            raise InputError(path, problem, f"give the power of a node in use ({argument('busy_w')})")
        rows = jobs.assign(part=JOBS, watts=jobs["watts"].fillna(jobs["nodes"] * (busy_w or 0.0)))
        if machines is not None and idle_w is not None:
            idle = idle_nodes(jobs, machines, begin_s, end_s)
            idle = idle.assign(part=IDLE, watts=idle["nodes"] * idle_w, **dict.fromkeys(_LABELS, ""))
            rows = pd.concat([rows, idle], ignore_index=True)
            if (most := used_nodes(jobs).max()) > machines * (1.0 + 1e-9):
                remark(_log, "%s: jobs have %g nodes at a time, the site %d: then none is idle", path, most, machines)
        rows = by_month(rows, begin_s, end_s, date, months)
        first_s, last_s = float(rows["begin_s"].min()), float(rows["end_s"].max())
        clock = Clock(date, first_s=first_s, last_s=first_s, end_s=last_s)
        kinds: Any = (("carbon_kg", "carbon", carbon), ("cost", "price", price))
        signals = {name: _covering(kind, signal, clock) for name, kind, signal in kinds if signal is not None}
    facts = [("log", str(path)), ("period", f"{period}, months of {zone or options.tz}")]
    facts += [("jobs", f"{len(jobs)}, {len(jobs) - modelled} by measured energy")]
    facts += [("node in use", f"{busy_w:g} W")] if busy_w is not None else []
    idle_nodes_are = "not counted" if machines is None else f"of {machines}, {idle_w:g} W each"
    facts += [("idle nodes", idle_nodes_are), ("PUE", f"{pue:g}")]
    facts += [(name, signal.source) for name, signal in signals.items()]
    currency = signals["cost"].currency if "cost" in signals else ""
    return JobAccount(usage(rows, by, signals, pue), tuple(by), facts, tuple(remarks), currency)


def _remark(path: Path, of: pd.Series[bool], text: str) -> None:
    """Remark on jobs, if there are any."""
    if of.any():
        # the log prints equal messages once
        remark(_log, f"%s: %d of %d jobs {text}", path, of.sum(), len(of))


def _recorded(path: Path, options: AccountingOptions) -> tuple[pd.DataFrame, float]:
    """Return the jobs that ran, times in s from a date, and the date in s since 1970. Raises InputError."""
    table = read_trace(path, log=options)
    if table.origin_s is None:
        raise InputError(path, "has no jobs with dates", f"give {argument('begin')}, the date of the first submission")
    if START_S not in table:
        raise InputError(path, "no job has a start", "sacct has Start, a CSV trace may have a column start")
    begin_s, end_s = table[START_S], table[START_S] + table[LENGTH]
    jobs = pd.DataFrame({"id": table["id"], "begin_s": begin_s, "end_s": end_s, "nodes": table[HOSTS]})
    jobs["watts"] = table.columns.get(POWER_W, float("nan"))
    for name, label in _LABELS.items():
        jobs[name] = table.columns.get(label, "")
    _remark(path, jobs["begin_s"].isna(), "are left out: they have no start")
    jobs = jobs[jobs["begin_s"].notna()]
    _remark(path, jobs.duplicated(["id", "begin_s"]), "are left out: listed twice")
    return jobs.drop_duplicates(["id", "begin_s"]), table.origin_s


def _covering(quantity: Quantity, signal: str | Path | Timeline, clock: Clock) -> Timeline:
    """Return a signal on a clock. Raises InputError if hours of the clock are missing."""
    if isinstance(signal, Timeline):
        check_covers(signal, clock)
        return on_clock(signal, clock)
    spec = parse_series(quantity, signal)
    counted = any(source.days is not None and source.begin is None for source in spec.sources)
    check_covers(spec.timeline(), clock, counted=counted)
    return spec.timeline(clock)
