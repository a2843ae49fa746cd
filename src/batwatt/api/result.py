"""The result of a run: metrics, tables with units, figures, and the files of `batwatt run`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from batwatt.api.arguments import checked, optional, path_or, text
from batwatt.api.described import Described
from batwatt.errors import InputError
from batwatt.model.platform import Platform
from batwatt.results.figures import Values, rounded
from batwatt.results.rejections import rejections_text
from batwatt.results.run_files import FILES, SUCCESSFUL, as_read, write_record
from batwatt.run.run import Figures, RunOutcome, staging, warn_after_run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from batwatt.model.record import Rows

_SUFFIXES = {"s": "_s", "J": "_j", "W": "_w"}
"""Unit -> end of the names of columns in this unit."""


class Result(Described):
    """Result of a run on an engine in this process. Nothing is on the disk until `save`."""

    _makers: ClassVar[str] = "simulate(platform, workload, scheduler)"

    def __init__(self, outcome: RunOutcome) -> None:
        self._outcome = outcome
        self._inputs = outcome.resolved.inputs
        self.scheduler = outcome.resolved.spec.scheduler_name
        """Name of the scheduler."""
        self.bounds: Mapping[str, Any] = {}
        """Bounds of an optimum: lower_bound, gap, proven_optimal."""

    @property
    def figures(self) -> Figures:
        """Source of metrics and figures."""
        return self._outcome.figures

    @property
    def platform(self) -> Platform:
        """Hosts of the run."""
        return self._inputs.platform

    @cached_property
    def metrics(self) -> dict[str, float | int | None]:
        """Name -> value, as in PREFIX_metrics.json; None for one without a meaning. docs: every metric and its unit."""
        return rounded(self._outcome.figures.metrics) | dict(self.bounds)

    @property
    def rejections(self) -> Mapping[str, int]:
        """Cause -> rejected jobs."""
        return self._outcome.figures.rejections

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Row for each run of a job, and each rejected job, whose times are NaN; in the order of their ends."""
        return _frame("jobs", self._outcome.record.jobs)

    @cached_property
    def machines(self) -> pd.DataFrame:
        """Number of hosts in each state: a row for each start and end of a job and each switch."""
        return _frame("machine_states", self._outcome.record.machine_states)

    @cached_property
    def power(self) -> pd.DataFrame:
        """Power of all hosts and cap in W (NaN without), a row where either changes and one at the end.

        Raises InputError without energy accounting.
        """
        import pandas as pd

        from batwatt.results.power import power_columns

        trace = self._outcome.figures.power
        if trace is None:
            raise InputError("power", "is not known: hosts of the platform have no watts, or nothing ran", "give them")
        return pd.DataFrame(power_columns(trace, self._inputs.envelope))

    @cached_property
    def job_power(self) -> Values:
        """Figures of `batwatt metrics --job-power` for a run under an envelope whose jobs have a power (`power_w`).

        These are the share of time above the cap, energy above it in J, mean and maximum in W, mean turnaround in s,
        and kills. Raises InputError.
        """
        from batwatt.results.job_power import job_power_figures

        envelope = self._inputs.envelope
        if envelope is None:
            raise InputError("job_power", "there is no envelope", "give simulate one")
        data = self._outcome.figures.data
        return job_power_figures(data, self._inputs.measured, self.platform, envelope)

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
            self._outcome.write(inner)
        return Path(prefix)

    @checked(title=optional(text))
    def plot_power(self, title: str | None = None) -> Figure:
        """Draw the power over time against the envelope (matplotlib). Raises InputError without energy accounting."""
        from batwatt.results import style
        from batwatt.results.plots import power_figure

        trace = self._outcome.figures.power
        if trace is None:
            raise InputError("plot_power", "the power is not known", "give the platform's hosts watts")
        with style.drawing():
            return _displayed(power_figure(title or self.scheduler, trace, self._inputs.envelope))

    @checked(title=optional(text))
    def gantt(self, title: str | None = None) -> Figure:
        """Draw the jobs and p-states of each host over time, above the power (matplotlib). Raises InputError."""
        from batwatt.results.gantt import run_figure

        with TemporaryDirectory(prefix="batwatt-") as folder:
            prefix = Path(folder) / "x"
            write_record(self._outcome.record, prefix)
            return _displayed(run_figure(prefix, self._inputs.platform, self._inputs.envelope, title or self.scheduler))

    def facts(self) -> Mapping[str, object]:
        """Return the scheduler, the metrics with a value, and the causes of rejections."""
        values = {name: f"{value:.6g}" for name, value in self.metrics.items() if isinstance(value, int | float)}
        rejected = {"rejected because": rejections_text(self.rejections)} if self.rejections else {}
        return {"scheduler": self.scheduler, **values, **rejected}

    def warn(self) -> None:
        """Log the reason if no job has finished, and the limits that ended before the run."""
        if SUCCESSFUL not in self._outcome.record.jobs.states or self._inputs.ends:
            warn_after_run(self._outcome.figures.metrics, self._inputs)


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
