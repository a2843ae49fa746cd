"""The conclusion of a report: which algorithm is best by each measure, by how much, and the figures that show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from batwatt.report.chart import Axis, Chart, Marks, ReportFigure, shortened
from batwatt.report.figures import front_chart, power_charts
from batwatt.report.front import front_of
from batwatt.report.grid import listed, sentence
from batwatt.report.means import Difference, mean_of
from batwatt.report.report_plan import ReportPlan
from batwatt.report.saved_runs import envelope_of
from batwatt.report.studies import Report
from batwatt.report.table import INSTANCE, SavedCampaign
from batwatt.results.figures import Figure
from batwatt.results.power import power_series

SHOWN = 3
"""So many measures at most are compared."""
MOST_NAMES = 6
"""Up to this many names are listed."""
METHOD = (
    "± is the standard error of the mean of paired differences: the same instance with both algorithms. A difference "
    "counts only if 0 lies outside its 95 % interval (Student's t); differences between algorithms that are not named "
    "are not tested, and nothing corrects for the number of comparisons."
)


@dataclass(frozen=True)
class Conclusion:
    """A headline, a sentence for each measure, what else was found, and figures that show it."""

    headline: str
    sentences: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    figures: tuple[ReportFigure, ...] = ()


@dataclass(frozen=True)
class Compared:
    """The algorithms of a study, on the instances that the baseline has; `rows` with `label`, instance and measures."""

    study: str
    rows: pd.DataFrame
    measures: tuple[Figure, ...]
    baseline: str
    reference: str | None
    unresponsive: frozenset[str]

    @cached_property
    def labels(self) -> list[str]:
        """Every algorithm, in the order of the table."""
        return [str(label) for label in self.rows["label"].unique()]

    def values(self, measure: Figure) -> pd.DataFrame:
        """The values as shown, a row per instance of the baseline and a column per algorithm that has all of them.

        If no other algorithm has all, the rows are the instances that every algorithm has.
        """
        table = self.rows.pivot_table(index=list(INSTANCE), columns="label", values=measure.name, aggfunc="mean")
        table = measure.factor * table.reindex(columns=[label for label in self.labels if label in table.columns])
        if self.baseline not in table:
            return table.iloc[:0, :0]
        table = table[table[self.baseline].notna()]
        complete, common = table.dropna(axis=1), table.dropna()
        return complete if {*complete} - {self.baseline, self.reference} or common.empty else common

    def instances(self, measure: Figure) -> int:
        """Count the instances on which the baseline has a value."""
        rows = self.rows[(self.rows["label"] == self.baseline) & self.rows[measure.name].notna()]
        return len(rows[list(INSTANCE)].drop_duplicates())

    def ranked(self, measure: Figure) -> list[str]:
        """The algorithms that have all instances, but the reference, the best mean first."""
        means = self.values(measure).mean()
        means = means if measure.better == "lower" else -means
        return [str(label) for label in means.sort_values(kind="stable").index if label != self.reference]

    def difference(self, measure: Figure, first: str, second: str) -> Difference:
        """By how much the first is more than the second."""
        values = self.values(measure)
        return Difference(*mean_of(values[first] - values[second]))


def conclusion(report: Report) -> Conclusion:
    """The conclusion of a report, about its study with the most instances of those with several algorithms."""
    compared = _compared(report)
    if compared is None:
        return Conclusion("No study has results of two algorithms on the same instances")
    texts = [text for measure in compared.measures for text in _sentences(compared, measure)]
    first = compared.measures[0]
    instances = len(compared.values(first))
    left = [label for label in compared.labels if label not in compared.values(first)]
    whose, which = ("its", "") if instances == compared.instances(first) else ("the", " that all of them have")
    method = (
        f"The baseline of study “{compared.study}” is {compared.baseline}; the others are compared with it on {whose} "
        f"{instances} instance{'s' * (instances != 1)}{which}. "
    )
    method += METHOD if instances > 1 else "One instance has no standard error: what holds there may be chance."
    if left:
        method += f" Left out, as they lack results on some of the instances: {_stop(listed(left, MOST_NAMES))}"
    findings = (*(more for _, more in texts if more), method)
    figures = tuple(_figures(compared, report.campaign, report.plan))
    return Conclusion(_headline(compared), tuple(text for text, _ in texts), findings, figures)


def _compared(report: Report) -> Compared | None:
    plan = report.plan
    found: list[tuple[int, Compared]] = []
    for study, rows in report.points.groupby("study", sort=False):
        measures = tuple(measure for measure in report.measures if rows[measure.name].notna().any())[:SHOWN]
        labels = [str(label) for label in rows["label"].unique() if label != plan.reference]
        if len(labels) < 2 or not measures:
            continue
        baseline = next((label for label in labels if label in plan.unresponsive), labels[0])
        one = Compared(str(study), rows, measures, baseline, plan.reference, plan.unresponsive)
        values = one.values(measures[0])
        if len(one.ranked(measures[0])) > 1:
            found.append((len(values), one))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _best(compared: Compared, measure: Figure) -> tuple[str, str]:
    """The best of the algorithms that are rated, and whose measure that is: those that respond to the envelope."""
    ranked = compared.ranked(measure)
    responsive = [label for label in ranked if label not in compared.unresponsive]
    if 0 < len(responsive) < len(ranked):
        return responsive[0], " of those that respond to the envelope"
    return ranked[0], ""


def _headline(compared: Compared) -> str:
    """The answer in at most 20 words: the best algorithm by the first measure, and its difference from the baseline."""
    measure = compared.measures[0]
    best, whose = _best(compared, measure)
    name, baseline = shortened(best), shortened(compared.baseline)
    extreme = "lowest" if measure.better == "lower" else "highest"
    text = f"{name} has the {extreme} mean {measure.title}{' under the envelope' if whose else ''}"
    if best == compared.baseline:
        return text
    difference = compared.difference(measure, best, compared.baseline)
    if not difference.counts:
        return f"{text}, but not beyond chance" if not whose else text
    base = float(compared.values(measure)[compared.baseline].mean())
    if not base > 0.0:
        return text
    side = "above" if difference.mean > 0.0 else "below"
    return f"{text}, {abs(100.0 * difference.mean / base):.0f} % {side} {baseline}"


def _sentences(compared: Compared, measure: Figure) -> Iterator[tuple[str, str]]:
    """The best by a measure, and how it compares with the baseline and with the others."""
    values, ranked = compared.values(measure), compared.ranked(measure)
    baseline = compared.baseline
    if len(ranked) < 2:
        return
    title, extreme = sentence(measure.title), "lowest" if measure.better == "lower" else "highest"
    if np.allclose(values[ranked].sub(values[ranked[0]], axis=0), 0.0, atol=1e-9):
        mean = _number(measure, float(values[ranked[0]].mean()))
        yield f"{title}: no difference, {mean} with all {len(ranked)} algorithms.", ""
        return
    best, whose = _best(compared, measure)
    rated = [label for label in ranked if not whose or label not in compared.unresponsive]
    same = [label for label in rated if np.allclose(values[label], values[best], rtol=0.0, atol=1e-9)]
    mean = _number(measure, float(values[best].mean()))
    who = best if len(same) == 1 else f"{listed(same, MOST_NAMES)} alike"
    text = f"{title}: the {extreme} mean{whose} is {mean}, {_stop(f'with {who}')}"
    more = []
    if baseline in same:
        others = [label for label in rated if label not in same]
        text += " This includes the baseline." if len(same) > 1 else " It is the baseline."
        if others:
            more.append(f"the next is {others[0]}: {_against(compared, measure, others[0], baseline)}.")
    else:
        of = _number(measure, float(values[baseline].mean()))
        more.append(
            f"{best} compared with the baseline {baseline} ({of}): {_against(compared, measure, best, baseline)}."
        )
    near = [label for label in rated if label not in same and label != baseline
            and not compared.difference(measure, label, best).counts]  # fmt: skip
    if near and len(values) > 1:
        more.append(_stop(f"Not distinguishable from the best: {listed(near, MOST_NAMES)}"))
    if compared.reference in values:
        more.append(f"{compared.reference} has {_number(measure, float(values[compared.reference].mean()))}.")
    yield text, f"{title}: {' '.join(more)}" if more else ""


def _against(compared: Compared, measure: Figure, first: str, second: str) -> str:
    """By how much the first differs from the second, and whether that counts."""
    found = compared.difference(measure, first, second)
    unit = " % points" if measure.shown == "%" else _unit(measure)
    shown = f"{_signed(measure, found)}{unit}"
    if found.instances < 2:
        return f"{shown}, on one instance"
    if not found.counts:
        return f"{shown}; its 95 % interval contains 0, so no difference is claimed"
    better = (found.mean < 0.0) == (measure.better == "lower")
    base = float(compared.values(measure)[second].mean())
    percent = f" ({100.0 * found.mean / base:+.0f} % relative)".replace("-", "−") if base > 0.0 else ""
    return f"{shown}{percent}, {'better' if better else 'worse'}; its 95 % interval excludes 0"


def _digits(measure: Figure, value: float) -> str:
    return f"{value:.{max(2, measure.mean_decimals)}f}" if 0.0 < value < 1.0 else f"{value:.{measure.mean_decimals}f}"


def _unit(measure: Figure) -> str:
    return f" {measure.shown}" if measure.shown else ""


def _number(measure: Figure, value: float) -> str:
    return f"{_digits(measure, value)}{_unit(measure)}"


def _signed(measure: Figure, found: Difference) -> str:
    """A difference, with its error if that is known, both with as many decimals."""
    decimals = max(2, measure.mean_decimals) if min(abs(found.mean), found.error) < 1.0 else measure.mean_decimals
    error = f" ± {found.error:.{decimals}f}" if found.instances > 1 else ""
    return f"{found.mean:+.{decimals}f}{error}".replace("-", "−")


def _stop(text: str) -> str:
    """A text that ends with a full stop; a name may have one."""
    return text if text.endswith(".") else f"{text}."


def _figures(compared: Compared, campaign: SavedCampaign, plan: ReportPlan) -> Iterator[ReportFigure]:
    """The first measure by algorithm with two measures compared, and the power of the best if runs were saved."""
    first, *others = compared.measures
    parts = [_ranking(compared, first, campaign, plan)]
    if others:
        parts.append(_trade_off(compared, first, others[0], campaign, plan))
    charts, captions = zip(*parts, strict=True)
    yield ReportFigure("top", f"The best of study “{compared.study}”", " ".join(captions), charts)
    power = _power(compared, campaign, plan)
    if power is not None:
        yield power


def _ranking(compared: Compared, measure: Figure, campaign: SavedCampaign, plan: ReportPlan) -> tuple[Chart, str]:
    """The means of a measure by algorithm, and a caption."""
    values, looks = compared.values(measure), plan.looks(campaign.labels)
    order = [*(str(label) for label in [compared.reference] if label in values), *compared.ranked(measure)]
    series = []
    for label in order:
        if label not in (*plan.shown, compared.baseline):
            continue
        difference, tip = compared.difference(measure, label, compared.baseline), ""
        if label != compared.baseline:
            tip = f"\ncompared with the baseline: {_signed(measure, difference)}"
        mean = float(values[label].mean())
        error, tips = [np.nan_to_num(difference.error)], [f"mean {_number(measure, mean)}{tip}"]
        series.append(Marks("dots", label, [0.0], [mean], looks[label], error=error, tips=tips))
    alt = f"Mean {measure.title} by algorithm"
    title = f"{sentence(measure.title)} by algorithm"
    chart = Chart("plot-top-first", alt, tuple(series), Axis(), Axis(measure.axis), title, rows=True)
    caption = "Means over the instances."
    if len(values) > 1:
        caption += " Bars: one standard error of the difference from the baseline."
    return chart, caption


def _trade_off(
    compared: Compared, first: Figure, second: Figure, campaign: SavedCampaign, plan: ReportPlan
) -> tuple[Chart, str]:
    """A measure over another, a point per algorithm, and a caption."""
    up, right = compared.values(first).mean(), compared.values(second).mean()
    signs = [1.0 if measure.better == "lower" else -1.0 for measure in (second, first)]
    costs = {label: (signs[0] * right[label], signs[1] * up[label]) for label in up.index if label in right.index}
    front = front_of(list(costs.values()))
    looks = plan.looks(campaign.labels)
    dots = [
        Marks("dots", label, [float(right[label])], [float(up[label])], looks[label],
              tips=[f"{first.title} {_number(first, up[label])}\n{second.title} {_number(second, right[label])}"])
        for label in costs
        if label in (*plan.shown, compared.baseline) or costs[label] in front
    ]  # fmt: skip
    points = [(signs[0] * x, signs[1] * y) for x, y in front]
    better = ("lower" if first.better == "lower" else "upper") + " " + ("left" if second.better == "lower" else "right")
    caption = f"On the right the {better} corner is best."
    if len(front) > 1:
        caption += " On the dotted line no other algorithm is better in both."
    alt = f"Mean {first.title} over mean {second.title}, a point per algorithm"
    title = f"{sentence(first.title)} and {second.title}"
    chart = front_chart("plot-top-trade-off", alt, dots, points, Axis(second.axis), Axis(first.axis), title)
    return chart, caption


def _power(compared: Compared, campaign: SavedCampaign, plan: ReportPlan) -> ReportFigure | None:
    """The power of the best by the first measure and of the baseline on an instance of which both runs were saved."""
    saved = campaign.saved[campaign.saved["envelope"] != ""]
    ranked = [label for label in compared.ranked(compared.measures[0]) if label not in plan.unresponsive]
    base = saved[saved["label"] == compared.baseline]
    for best in (label for label in ranked if label != compared.baseline):
        pairs = saved[saved["label"] == best].merge(base, on=list(INSTANCE), suffixes=("", "_base"))
        if pairs.empty:
            continue
        usual = pairs["envelope"].isin(compared.rows["envelope"])
        row = pairs.iloc[int(usual.to_numpy().argmax())]
        envelope = envelope_of(campaign.prefix(row["key"]))
        if envelope is None:
            continue
        traces = {
            str(row[f"label{end}"]): power_series(campaign.prefix(row[f"key{end}"]), float(row[f"makespan_s{end}"]))
            for end in ("_base", "")
        }
        title = f"Power of {best} and of the baseline"
        where = " ".join(filter(None, row[["workload", "envelope"]]))
        charts = power_charts("plot-top-power", traces, envelope)
        caption = f"On {where}. Grey: allowed and not drawn; red: above the envelope."
        return ReportFigure("top-power", title, caption, charts)
    return None
