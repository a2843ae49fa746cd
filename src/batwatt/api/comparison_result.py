"""The result of a comparison: tables, groups of jobs, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from glob import escape as glob_escape
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from batwatt.api.inputs import PathLike
from batwatt.errors import InputError, argument
from batwatt.files import refuse_folder, whole_set
from batwatt.model.platform import MachinePower
from batwatt.model.timeline import Timeline
from batwatt.results.compared import GOALS, CaseFacts, case_columns, sampled, summary_of
from batwatt.results.groups import BY, union_of
from batwatt.results.power import PowerTrace
from batwatt.results.rejections import rejections_text
from batwatt.results.run_files import without_formulas_in
from batwatt.results.tables import TableColumn, table_text
from batwatt.run.arguments import Check, checked, one_of, optional, path_or, several, text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from batwatt.report.cases import ComparedCases
    from batwatt.report.verdict import Verdict

_groupings: Check = partial(several, one=one_of(BY))
_goal: Check = one_of(GOALS)
_formats: Check = partial(several, one=one_of(("png", "svg", "pdf")))


def files_of(prefix: Path) -> list[str]:
    """Return the names of the files that a comparison may leave under a prefix."""
    tables = [f"{prefix.name}_{stem}.csv" for stem in ("comparison", "jobs", "groups")]
    plots = prefix.parent.glob(f"{glob_escape(prefix.name)}_plot-*.*")
    return [*tables, f"{prefix.name}.html", *(path.name for path in plots)]


@dataclass(frozen=True)
class Comparison:
    """Cases, side by side. `errors`: label -> the error of a case of a preset that could not run."""

    table: pd.DataFrame
    """Row for each case, window and seed; columns as in `batwatt.api.comparison`."""
    errors: Mapping[str, str]
    cases: Mapping[str, CaseFacts]
    workload: str
    """Source of the jobs."""
    jobs: pd.DataFrame
    """Row for each job of each case and window; the first seed. Empty for a comparison of a study."""
    traces: Mapping[str, PowerTrace] = field(default_factory=dict)
    """Power of each case; the first window and seed."""
    envelope: Timeline | None = None
    """Envelope of the first window; None without a limit of power, and for a comparison of a study."""
    machines: MachinePower | None = None
    """Watts of the machines; None for a comparison of a study."""
    assumed_w: float | None = None
    """Power of a core in W, if machines have no watts; else None."""
    remarks: Sequence[str] = ()
    """Parts of the inputs that readers left out or filled in."""
    rejections: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Label -> cause -> rejected jobs of all windows; the first seed."""
    currency: str = ""
    """Currency of `cost`, that of the price; empty if the price has none."""

    def __repr__(self) -> str:
        return f"{self._title}\n{table_text(self._columns)}{''.join(f'{line}{chr(10)}' for line in self._lines)}"

    def _repr_html_(self) -> str:
        first, *others = self._columns
        heads = "".join(f"<th>{escape(column.head).replace(chr(10), '<br>')}</th>" for column in (first, *others))
        rows = "".join(
            f"<tr><th>{escape(label)}</th>{''.join(f'<td>{escape(column.cells[row])}</td>' for column in others)}</tr>"
            for row, label in enumerate(first.cells)
        )
        below = "".join(f"<div>{escape(line)}</div>" for line in self._lines)
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><b>{escape(self._title)}</b>{table}{below}</div>"

    @property
    def _title(self) -> str:
        counts = ((self.table[name].nunique(), f"{name}s") for name in ("window", "seed"))
        several = [f"{count} {names}" for count, names in counts if count > 1]
        means = f", means over {' and '.join(several)}" if several else ""
        return f"Comparison of {len(self.summary)} cases on {self.workload}{means}"

    @property
    def _columns(self) -> list[TableColumn]:
        return case_columns(self.summary.reset_index().to_dict("records"), self.currency)

    @property
    def _lines(self) -> list[str]:
        """Lines below the table: causes of rejections, and cases that could not run."""
        rejected = [f"rejected in {label}: {rejections_text(counts)}" for label, counts in self.rejections.items()]
        return [*rejected, *(f"not run: {label}: {why}" for label, why in self.errors.items())]

    @checked(goal=_goal)
    def verdict(self, goal: str = "wait") -> Verdict:
        """Return the case to run by a goal, and cases to weigh it against; printed as two sentences.

        Args:
            goal: Figure of which the winner has least: wait, slowdown, energy, carbon or cost. It changes no run.

        Raises:
            batwatt.errors.InputError: No case has a value of the goal, such as carbon without a signal.
        """
        from batwatt.report.verdict import verdict_of

        return verdict_of(self._compared(), goal)

    def _compared(self) -> ComparedCases:
        # matplotlib takes a while to be loaded
        from batwatt.report.cases import ComparedCases, measures_of

        table, windows = sampled(self.table), int(self.table["window"].nunique())
        rejections = {
            label: {cause: count / windows for cause, count in counts.items()}
            for label, counts in self.rejections.items()
        }
        return ComparedCases(
            table, self.cases, measures_of(table, self.currency), jobs=None if self.jobs.empty else self.jobs,
            traces=self.traces, envelope=self.envelope, machines=self.machines, rejections=rejections,
            left_out=self.errors, assumed_w=self.assumed_w,
        )  # fmt: skip

    def front(self) -> pd.DataFrame:
        """Return a row a case: wait in s, energy in J, and if no case within the envelope is better in both.

        Columns: `case`, `mean_wait_s`, `energy_j`, `within` (keeps to the envelope), `on_front`.
        """
        data = self._compared()
        across, up = data.fronts[1]
        dominating = data.dominating(across, up)
        frame = data.means.reindex(data.labels)[[across.name, up.name]].rename_axis("case").reset_index()
        within = frame["case"].isin(data.within)
        return frame.assign(within=within, on_front=[dominating.get(label) == [] for label in frame["case"]])

    @checked(kind=one_of(("front", "power")), case=optional(text))
    def plot(self, kind: str = "front", ax: Axes | None = None, *, case: str | None = None) -> Axes:
        """Draw the comparison by matplotlib; return the axes.

        Args:
            kind: `front`, energy against wait with a point per case, or `power`, that of a case over time, with the
                envelope.
            ax: Axes to draw on. Default: those of a new figure.
            case: Case of the power. Default: the one that waits least of those that keep to the envelope.

        Raises:
            batwatt.errors.InputError: No case has both figures, or the case has no power over time.
        """
        from batwatt.report.chart import axes_of
        from batwatt.report.figures import front_chart, power_figure

        data = self._compared()
        if kind == "front":
            chart = front_chart(data, 1)
        else:
            label = case or next(iter(data.best(data.fronts[1][0])), None)
            charts = power_figure(data, label).charts
            chart = next((one for one in charts if label in (None, one.title)), None)
        if chart is None:
            problem = f"there is no {kind} of {case!r} to draw" if case else f"no case has a {kind} to draw"
            raise InputError("plot", problem, "compare cases that finish jobs, on hosts with watts")
        return axes_of(chart, ax)

    @checked(prefix=path_or, goal=_goal, by=_groupings, figures=_formats, command=text)
    def save(
        self,
        prefix: PathLike,
        *,
        goal: str = "wait",
        by: Sequence[str] = (),
        figures: Sequence[str] = (),
        command: str = "",
    ) -> Path:
        """Write PREFIX_comparison.csv, PREFIX_jobs.csv and the page PREFIX.html, all or none.

        Args:
            prefix: Prefix of the files.
            goal: Goal of the verdict on the page: wait, slowdown, energy, carbon or cost.
            by: Groupings of PREFIX_groups.csv.
            figures: Formats in which each chart of the page is also written as a file, PREFIX_plot-*: png, svg, pdf.
            command: Command line for the page.

        Returns:
            The prefix.

        Raises:
            batwatt.errors.InputError: Bad input, or the place cannot be written.
        """
        from batwatt.report.page import comparison_figures, comparison_page
        from batwatt.report.verdict import verdict_of

        prefix = Path(prefix)
        refuse_folder(prefix, argument("prefix"))
        tables = {"comparison": self.table} | ({"groups": self.groups(*by)} if by else {})
        tables |= {} if self.jobs.empty else {"jobs": self.jobs}
        data = self._compared()
        verdict = verdict_of(data, goal)
        page = comparison_page(data, verdict, self._facts(command), self.remarks)
        charts = [chart for figure in comparison_figures(data, verdict) for chart in figure.charts] if figures else []
        with whole_set(prefix.parent, old=files_of(prefix), place=argument("prefix", prefix)) as part:
            for stem, frame in tables.items():
                without_formulas_in(frame).to_csv(part / f"{prefix.name}_{stem}.csv", index=False, lineterminator="\n")
            (part / f"{prefix.name}.html").write_text(page, encoding="utf-8", newline="\n")
            for chart, kind in product(charts, figures):
                chart.write(part / f"{prefix.name}_{chart.id}.{kind}")
        return prefix

    def _facts(self, command: str) -> list[tuple[str, str]]:
        """Return facts about the runs: pairs of a name and a text."""
        return [
            *([("command", command)] if command else []),
            ("jobs", self.workload),
            *([("machines", str(self.machines))] if self.machines else []),
            *([("envelope", self.envelope.source if self.envelope else "none")] if self.machines else []),
            *((f"{name}s", str(self.table[name].nunique())) for name in ("window", "workload") if name in self.table),
            ("seeds", ", ".join(str(seed) for seed in self.table["seed"].unique())),
        ]

    @property
    def summary(self) -> pd.DataFrame:
        """Row a case: means over windows and seeds; of several, standard errors of differences to the first case.

        Standard errors have the column's name with `_se`.
        """
        return summary_of(self.table)

    @checked(by=_groupings)
    def groups(self, *by: str) -> pd.DataFrame:
        """Return the jobs by a label, size or length, compared with the first case: `batwatt.results.groups`."""
        if self.jobs.empty:
            raise InputError(
                "groups", "need rows of jobs, which a study does not keep", "run `compare` on one workload"
            )
        return union_of(self.jobs, by)
