"""The result of a run: metrics, tables with units, charts, and the files of `batwatt run`."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from dataclasses import astuple
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from batwatt.errors import DeadlockError, InputError
from batwatt.files import whole_set, write_json, write_text
from batwatt.inputs.signal import to_csv
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.described import Described
from batwatt.model.platform import Platform
from batwatt.model.record import Record
from batwatt.model.timeline import Timeline
from batwatt.results.figures import METRICS, Values, rounded
from batwatt.results.rejections import rejections, rejections_text
from batwatt.results.run_files import (
    FILES,
    SUCCESSFUL,
    RunData,
    as_read,
    digests_of,
    file_of,
    metadata_of,
    write_record,
)
from batwatt.run.arguments import checked, optional, path_or, text
from batwatt.run.files import staging, write_metadata
from batwatt.run.prepared import PreparedRun

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from batwatt.model.record import Rows
    from batwatt.results.outcomes import JobOutcomes
    from batwatt.results.power import PowerTrace
    from batwatt.results.run_table import RunTable

_log = logging.getLogger(__name__)
_SUFFIXES = {"s": "_s", "J": "_j", "W": "_w"}
"""Unit -> end of the names of columns in this unit."""


class Result(Described):
    """Result of a run that has ended: of its record in this process, or of the files of an engine apart.

    `run` are its inputs, `elapsed_s` the time in s that it took, `deadlock` its end if jobs are left, `earlier` the
    metrics of figures that the inputs do not suffice for. Nothing is on the disk until `save`.
    """

    _makers: ClassVar[str] = "simulate(platform, workload, scheduler)"

    def __init__(
        self,
        run: PreparedRun,
        data: RunData | Record,
        *,
        elapsed_s: float = 0.0,
        deadlock: DeadlockError | None = None,
        earlier: Values = MappingProxyType({}),
    ) -> None:
        self.run = run
        self.data = RunData(run.spec.prefix, data) if isinstance(data, Record) else data
        self.elapsed_s = elapsed_s
        self.deadlock = deadlock
        self._earlier = earlier

    @classmethod
    def of_files(cls, prefix: Path, run: PreparedRun, *, series: bool = False) -> Self:
        """Compute the figures of Batsim's files under a prefix; write PREFIX_metrics.json, _power.csv, _classes.csv.

        `series`: write the series that are in no file, too. Figures of a run of ours that these inputs do not suffice
        for stay as they are. Raises InputError.
        """
        from batwatt.results.metrics import read_metrics

        # the reader of the jobs compares them
        metadata = metadata_of(prefix)
        files = metadata["files"]
        result = cls(run, RunData(prefix), earlier=read_metrics(prefix) if "metrics.json" in files else {})
        with whole_set(prefix.parent, place=prefix) as part:
            inner = part / prefix.name
            result._write_figures(inner)
            if series:
                result._write_series(inner)
            if "power.csv" in files and run.envelope is None:
                # it has the cap of the run
                file_of(inner, "power").unlink(missing_ok=True)
            if files:
                metadata["files"] = files | digests_of(inner)
                write_json(file_of(inner, "metadata", ".json"), metadata, allow_nan=True)
        return result

    # figures --------------------------------------------------------------------------------------------------------

    @property
    def scheduler(self) -> str:
        """Name of the scheduler."""
        return self.run.spec.scheduler_name

    @property
    def platform(self) -> Platform:
        """Hosts of the run."""
        return self.run.platform

    @property
    def record(self) -> Record:
        """Record of the run. Raises InputError if an engine in another process ran it."""
        if self.data.record is None:
            raise InputError("record", "is of runs in this process only", "read the files of the run")
        return self.data.record

    @cached_property
    def _measured(self) -> tuple[Values, RunTable]:
        from batwatt.results.metrics import measured

        run = self.run
        return measured(
            self.data,
            run.measured,
            run.envelope,
            run.full_flops,
            capacity=run.capacity,
            cores=run.cores,
            window=run.spec.window,
            long_s=run.spec.long_s,
            signals=run.signals,
            platform=run.platform,
        )

    @property
    def values(self) -> Values:
        """Metrics with all their digits. Raises InputError."""
        computed = self._measured[0]
        return {figure.name: computed.get(figure.name, self._earlier.get(figure.name)) for figure in METRICS}

    @property
    def bounds(self) -> Mapping[str, Any]:
        """Bounds of an optimum: lower_bound, gap, proven_optimal."""
        return {}

    @cached_property
    def metrics(self) -> dict[str, float | int | None]:
        """Name -> value, as in PREFIX_metrics.json; None for one without a meaning. docs: every metric and its unit."""
        return rounded(self.values) | dict(self.bounds)

    @property
    def unchanged(self) -> list[str]:
        """Names of the metrics with values of earlier figures."""
        return [name for name, value in self.values.items() if value is not None and name not in self._measured[0]]

    @property
    def currency(self) -> str:
        """Currency of the cost, that of the price; empty if the price has none."""
        price = self.run.price
        return price.currency if price is not None else ""

    @cached_property
    def trace(self) -> PowerTrace | None:
        """Power over time; None without energy accounting, or if no job ran. Raises InputError."""
        from batwatt.results.power import power_series

        end_s = self.values["makespan_s"]
        return power_series(self.data, end_s) if self.data.energy is not None and end_s else None

    @cached_property
    def rejections(self) -> Mapping[str, int]:
        """Cause -> rejected jobs. Raises InputError."""
        return rejections(self._measured[1], self.run.measured, len(self.platform))

    @cached_property
    def outcomes(self) -> JobOutcomes:
        """Outcome of each job. Raises InputError."""
        from batwatt.results.outcomes import job_outcomes
        from batwatt.results.run_table import RunTable

        run, table = self.run, self._measured[1]
        if run.spec.window is not None:
            table = RunTable(self.data, run.measured, None, run.full_flops)
        return job_outcomes(table, self.data, run.measured, run.platform)

    @cached_property
    def job_power(self) -> Values:
        """Figures of `batwatt metrics --job-power` for a run under an envelope whose jobs have a power (`power_w`).

        These are the share of time above the cap, energy above it in J, mean and maximum in W, mean turnaround in s,
        and kills. Raises InputError.
        """
        from batwatt.results.job_power import job_power_figures

        envelope = self.run.envelope
        if envelope is None:
            raise InputError("job_power", "there is no envelope", "give simulate one")
        return job_power_figures(self.data, self.run.measured, self.platform, envelope)

    # tables ---------------------------------------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Row for each run of a job, and each rejected job, whose times are NaN; in the order of their ends."""
        return _frame("jobs", self.record.jobs)

    @cached_property
    def attempts(self) -> pd.DataFrame:
        """Row for each run that was submitted again, or whose kind, overhead or rejection the scheduler states.

        The frame is empty for a scheduler without a table of attempts, as one of pybatsim. Raises InputError.
        """
        import pandas as pd

        rows = [astuple(attempt) for attempt in self.data.attempts.values()]
        return pd.DataFrame(rows, columns=[column.name for column in FILES["attempts"]])

    @cached_property
    def machines(self) -> pd.DataFrame:
        """Number of hosts in each state: a row for each start and end of a job and each switch."""
        return _frame("machine_states", self.record.machine_states)

    @cached_property
    def power(self) -> pd.DataFrame:
        """Power of all hosts and cap in W (NaN without), a row where either changes and one at the end.

        Raises InputError without energy accounting.
        """
        import pandas as pd

        from batwatt.results.power import power_columns

        if self.trace is None:
            raise InputError("power", "is not known: hosts of the platform have no watts, or nothing ran", "give them")
        return pd.DataFrame(power_columns(self.trace, self.run.envelope))

    # files and charts -----------------------------------------------------------------------------------------------

    @checked(prefix=path_or)
    def save(self, prefix: str | Path) -> Path:
        """Write the files of `batwatt run` under a prefix: all, or none.

        Args:
            prefix: Begin of their paths: `out/x` gives `out/x_jobs.csv`, ...

        Returns:
            The prefix.

        Raises:
            batwatt.errors.InputError: A folder that cannot be written.
        """
        with staging(Path(prefix)) as inner:
            self.write(inner)
        return Path(prefix)

    def write(self, prefix: Path) -> None:
        """Write all files of a run in this process under a prefix."""
        write_record(self.record, prefix)
        self._write_figures(prefix)
        self._write_series(prefix)
        write_metadata(prefix, self.run, self.elapsed_s)

    def _write_figures(self, prefix: Path) -> None:
        """Write the files of figures under a prefix."""
        from batwatt.results.groups import write_classes
        from batwatt.results.metrics import write_metrics
        from batwatt.results.power import write_power

        write_metrics(prefix, self.values)
        if self.run.capacity is not None:
            write_classes(prefix, self._measured[1])
        if self.trace is not None:
            write_power(prefix, self.trace, self.run.envelope)

    def _write_series(self, prefix: Path) -> None:
        """Write the series that are in no file: generated, an object, or a view of another series (watts, machines).

        One that repeats is written until the end of the run.
        """
        run, spec = self.run, self.run.spec
        end_s = max(self.values["makespan_s"] or 0.0, run.measured.last_submission_s)
        read = isinstance(spec.capacity, SeriesSpec) and run.capacity is not None and str(spec.capacity.path)
        if run.capacity is not None and run.capacity.source != read:
            write_text(file_of(prefix, "capacity"), to_csv(_until(run.capacity, end_s)))
        if run.envelope is not None and isinstance(spec.envelope, SeriesSpec) and spec.envelope.path is None:
            write_text(file_of(prefix, "envelope"), to_csv(_until(run.envelope, end_s)))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the power over time against the envelope by matplotlib; return the axes, by default of a new figure.

        Raises InputError without energy accounting.
        """
        from batwatt.results.drawing import power_axes

        if self.trace is None:
            raise InputError("plot", "the power is not known", "give the platform's hosts watts")
        return power_axes(ax, self.scheduler, self.trace, self.run.envelope)

    @checked(title=optional(text))
    def gantt(self, title: str | None = None) -> Figure:
        """Draw the jobs and p-states of each host over time, above the power (matplotlib). Raises InputError."""
        from batwatt.results.drawing import run_figure

        with TemporaryDirectory(prefix="batwatt-") as folder:
            prefix = Path(folder) / "x"
            write_record(self.record, prefix)
            return _displayed(run_figure(prefix, self.platform, self.run.envelope, title or self.scheduler))

    def facts(self) -> Mapping[str, object]:
        """Return the scheduler, the metrics with a value, and the causes of rejections."""
        values = {name: f"{value:.6g}" for name, value in self.metrics.items() if isinstance(value, int | float)}
        rejected = {"rejected because": rejections_text(self.rejections)} if self.rejections else {}
        return {"scheduler": self.scheduler, **values, **rejected}

    def warn(self) -> None:
        """Log the reason if no job has finished, and the envelope or the capacity that ended before the run."""
        record, run = self.data.record, self.run
        # a job may finish after the window
        if record is not None and SUCCESSFUL in record.jobs.states and run.spec.window is None and not run.ends:
            return
        from batwatt.results.rejections import why_none_finished

        end_s = self.values["makespan_s"] or 0.0
        for source, ends_s in self.run.ends.items():
            if end_s > ends_s:
                _log.warning("%s: ended at %.15g s, the run at %.15g s: its last value held", source, ends_s, end_s)
        why = why_none_finished(self.values, self.run.engine_workloads[0], self.platform)
        if why is not None:
            _log.warning("%s", why)


def _until(series: Timeline, end_s: float) -> Timeline:
    """Return the rows of a series; of one that repeats until a time in s."""
    return series.upto(end_s) if series.repeats else series


def _displayed(figure: Figure) -> Figure:
    """Return the figure, which a notebook then shows without a setting."""

    def png() -> bytes:
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=120)
        return out.getvalue()

    vars(figure)["_repr_png_"] = png
    return figure


def _frame(stem: str, rows: Rows) -> pd.DataFrame:
    """Return columns as declared for a file, with units in their names and numbers as in the file."""
    import pandas as pd

    columns: dict[str, Any] = {}
    cells = rows.columns()
    for column in FILES[stem]:
        suffix = _SUFFIXES.get(column.unit, "")
        name = column.name if column.name.endswith(suffix) else column.name + suffix
        values = cells[column.name]
        columns[name] = values if isinstance(values, list) or values.dtype.kind != "f" else as_read(values)
    return pd.DataFrame(columns)
