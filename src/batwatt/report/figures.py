"""The figures of a report, each with its pictures, what the page draws, and what is to be seen there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from batwatt.report import data, interactive, pictures
from batwatt.report.charts import Chart
from batwatt.report.grid import Table, sentence, slug
from batwatt.report.interactive import chart_plot
from batwatt.report.pictures_charts import charts_figure
from batwatt.report.report_plan import ReportPlan, best_first
from batwatt.report.saved_runs import envelope_of, platform_of
from batwatt.report.table import COMPARED, INSTANCE, KILLS, SLOWDOWN, VIOLATIONS, WORK, Measure, SavedCampaign
from batwatt.results.gantt import gantt_figure
from batwatt.results.power import power_series
from batwatt.results.style import HOUR_S, Look, save
from batwatt.results.timeline import read_timeline

GANTTS = 2
"""How many runs are drawn server by server."""


@dataclass(frozen=True)
class Report:
    """What is written of a campaign: tables, further frames by file name, and figures as they are drawn.

    The conclusion is about `points`, rows with `study`, `label`, the instance and `measures`, the first most of all.
    """

    campaign: SavedCampaign
    plan: ReportPlan
    tables: Sequence[Table]
    frames: Mapping[str, pd.DataFrame]
    figures: Iterable[ReportFigure]
    points: pd.DataFrame
    measures: Sequence[Measure]


@dataclass(frozen=True)
class Shown:
    """A plot of the page: its id, what it is for those who cannot see it, what is drawn, and its title."""

    id: str
    alt: str
    plot: interactive.Plot
    title: str = ""


@dataclass(frozen=True)
class ReportFigure:
    """A figure: `pictures` by file stem, `shown` on the page, side by side where there is room, below one legend.

    Without either, `caption` says why.
    """

    id: str
    title: str
    caption: str
    pictures: Mapping[str, Figure] = field(default_factory=dict)
    shown: tuple[Shown, ...] = ()
    kinds: tuple[str, ...] = ("png", "svg")
    """The formats of the pictures."""


def figures(campaign: SavedCampaign, plan: ReportPlan) -> Iterator[ReportFigure]:
    """Yield every figure, each drawn when it is asked for."""
    looks = plan.looks(campaign.labels)
    yield _envelopes(campaign)
    yield _scores(campaign, plan, looks)
    zoom = data.zoom(campaign, plan)
    yield _zoom(zoom, looks)
    yield _instances("figure4", (KILLS, WORK), campaign, plan, looks)
    yield _instances("figure5", (SLOWDOWN, VIOLATIONS), campaign, plan, looks)
    yield _bars(campaign, plan, looks)
    yield from _gantts(campaign, plan, zoom)


def _envelopes(campaign: SavedCampaign) -> ReportFigure:
    title = "Figure 1: the power envelopes"
    envelopes = data.envelopes(campaign)
    if not envelopes:
        return ReportFigure("figure1", title, "No kept run tells of an envelope.")
    names = ", ".join(name for name, _ in envelopes)
    days = max(series.times_s[-1] + series.last_step_s for _, series in envelopes) / (24.0 * HOUR_S)
    caption = f"The power that is available, in kW, step by step over {days:.3g} days: {names}."
    shown = Shown("plot1", f"Lines of the power available over time: {names}", interactive.envelopes_plot(envelopes))
    return ReportFigure("figure1", title, caption, {"figure1": pictures.envelopes_figure(envelopes)}, (shown,))


def _scores(campaign: SavedCampaign, plan: ReportPlan, looks: Mapping[str, Look]) -> ReportFigure:
    title = "Figure 2: slowdown, kills and violations of all algorithms"
    scores = data.scores(campaign, plan)
    count = len(scores.scores)
    if count < 2 or len(scores.measures) < len(COMPARED):
        return ReportFigure("figure2", title, "Needs two algorithms or more, with slowdown, kills and violations each.")
    caption = (
        f"Means over study “{plan.main}” of {count} algorithms. Each axis runs from the worst of them (inside) to "
        "the best (outside), so a larger area is better. The table of colours has the means themselves, "
        f"best mean of the three scores first: {scores.scores.index[0]}."
    )
    if plan.unresponsive:
        caption += " Algorithms that do nothing about the envelope are left out, as the ranges would be theirs."
    caption += " In the pictures a thick line is the largest area of its family."
    figures = {
        "figure2": pictures.radar_figure(scores, plan, campaign),
        "figure2-table": pictures.scores_figure(scores, plan),
    }
    shown = (
        Shown("plot2", "Radar of three scores, one triangle per algorithm", interactive.radar_plot(scores, looks)),
        Shown("plot2table", "Three means per algorithm, coloured by score", interactive.heat_plot(scores)),
    )
    return ReportFigure("figure2", title, caption, figures, shown)


def _zoom(zoom: data.Zoom | None, looks: Mapping[str, Look]) -> ReportFigure:
    title = "Figure 3: a violation looked at closely"
    if zoom is None:
        return ReportFigure("figure3", title, "No kept run has a violation.")
    labels = ", ".join(label for label, _ in zoom.runs)
    caption = (
        f"Power and envelope on {zoom.instance}. In the step that begins at {zoom.step_s[0] / HOUR_S:.2f} h "
        f"{zoom.label} is up to {zoom.excess_w:.0f} W above the envelope (red)."
    )
    shown = Shown("plot3", f"Power over time of {labels} with the envelope", interactive.zoom_plot(zoom, looks))
    return ReportFigure("figure3", title, caption, {"figure3": pictures.zoom_figure(zoom)}, (shown,))


def _instances(
    name: str, measures: Sequence[Measure], campaign: SavedCampaign, plan: ReportPlan, looks: Mapping[str, Look]
) -> ReportFigure:
    every = data.per_instance(campaign, plan.main, plan.ordered(campaign.labels), measures)
    measures, drawn = _known(every, measures, plan)
    title = f"Figure {name[-1]}: {' and '.join(measure.title for measure in measures)} by instance"
    if drawn.empty:
        return ReportFigure(name, title, "No run has these figures.")
    means = "; ".join(f"{measure.axis}: {measure.meaning}" for measure in measures)
    caption = (
        f"The {every['instance'].nunique()} instances of study “{plan.main}”: a point per run; boxes from the first to "
        f"the third quartile with the median, whiskers up to 1.5 times the box. {sentence(means)}."
    )
    shown = tuple(
        Shown(f"plot{name[-1]}{number}", f"Boxes of {measure.title} by algorithm",
              interactive.box_plot(every, measure, looks))
        for number, measure in enumerate(measures)
    )  # fmt: skip
    return ReportFigure(name, title, caption, {name: pictures.instances_figure(drawn, measures, looks)}, shown)


def _bars(campaign: SavedCampaign, plan: ReportPlan, looks: Mapping[str, Look]) -> ReportFigure:
    title = "Figure 6: the same work under each envelope"
    if plan.variants is None:
        return ReportFigure("figure6", title, "No study has several envelopes.")
    every = data.per_envelope(campaign, plan.variants, plan.ordered(campaign.labels))
    measures, drawn = _known(every, COMPARED, plan)
    if drawn.empty:
        return ReportFigure("figure6", title, "No run has these figures.")
    caption = (
        f"Means of study “{plan.variants}” by envelope. A bar far longer than the others is cut; it shows its value."
    )
    shown = tuple(
        Shown(f"plot6{n}", f"Bars of {measure.title} by envelope and algorithm",
              interactive.bars_plot(every, measure, looks, plan.shown))
        for n, measure in enumerate(measures)
    )  # fmt: skip
    picture = pictures.envelopes_bars_figure(drawn, measures, looks)
    return ReportFigure("figure6", title, caption, {"figure6": picture}, shown)


def _known(every: pd.DataFrame, measures: Sequence[Measure], plan: ReportPlan) -> tuple[list[Measure], pd.DataFrame]:
    """The measures that have a meaning for any row, and the rows that are drawn; none without a measure."""
    known = [measure for measure in measures if every[measure.name].notna().any()]
    return known, every[every["label"].isin(plan.shown if known else ())].reset_index(drop=True)


def _gantts(campaign: SavedCampaign, plan: ReportPlan, zoom: data.Zoom | None) -> Iterator[ReportFigure]:
    """The best of the algorithms with kept runs, and the one that was looked at closely, on the same instance."""
    saved = campaign.saved
    usual = set(campaign.study(plan.main)["envelope"].unique().tolist())
    saved = saved.assign(usual=saved["envelope"].isin(usual)).sort_values("usual", ascending=False, kind="stable")
    rated = [label for label in plan.rated if label in saved["label"].tolist()]
    ranked = best_first(campaign.per_instance(plan.main), rated)
    wanted = [*ranked[:1], *([zoom.label] if zoom else []), *ranked[1:]]
    drawn = 0
    for label in (label for label in dict.fromkeys(wanted) if label in rated):
        row = saved[saved["label"] == label].iloc[0]
        prefix = campaign.prefix(row["key"])
        platform = platform_of(prefix)
        timeline = read_timeline(prefix, platform) if platform else None
        if platform is None or timeline is None or not timeline.runs:
            continue
        where = " ".join(filter(None, row[list(INSTANCE[1:])]))
        power = power_series(prefix, timeline.end_s)
        picture = gantt_figure(timeline, platform, power, envelope_of(prefix), f"{label}, {where}")
        killed = len({run.job for run in timeline.runs if run.killed})
        caption = (
            f"{label} on {where}: a row per server, a box per job on neighbouring servers, coloured by the p-state "
            f"that the server is in at that time, over the power drawn. {killed} jobs are killed (crosses)."
        )
        drawn += 1
        yield ReportFigure(f"gantt{drawn}", f"Servers of one run: {label}", caption, {f"gantt-{slug(label)}": picture})
        if drawn == GANTTS:
            return
    if not drawn:
        problem = "No kept run has its platform file still there and the same."
        yield ReportFigure("gantt1", "Servers of one run", problem)


def chart_figure(name: str, title: str, caption: str, panels: Sequence[Chart], across: int) -> ReportFigure:
    """Panels as a figure of the report."""
    shown = tuple(
        Shown(f"plot-{name}-{n}", panel.alt, chart_plot(panel), panel.title) for n, panel in enumerate(panels)
    )
    return ReportFigure(name, title, caption, {name: charts_figure(panels, across)}, shown, ("png", "svg", "pdf"))


def write_pictures(figure: ReportFigure, folder: Path) -> Iterator[Path]:
    """Write each picture in each of its formats; yields the paths."""
    for stem, picture in figure.pictures.items():
        for kind in figure.kinds:
            yield save(picture, folder / f"{stem}.{kind}")
