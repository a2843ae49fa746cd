"""The verdict on compared cases: which one to run by a goal, as data and in two sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from batwatt.errors import InputError, argument
from batwatt.report.cases import (
    ABOVE,
    END,
    ENERGY,
    FINISHED,
    REJECTED,
    SLOWDOWN,
    WAIT,
    WORK,
    ComparedCases,
    lost_jobs,
)
from batwatt.report.texts import (
    amount,
    assumed,
    count_of,
    duration,
    in_suitable_unit,
    listed,
    number,
    percent,
    plain,
    quoted,
)
from batwatt.results.compared import GOALS
from batwatt.results.figures import FIGURES, MONEY, Figure
from batwatt.results.rejections import rejections_text

Situation = Literal["clear", "trade", "same", "loses jobs", "none keeps"]
OF_POWER = frozenset({"energy_j", "carbon_g", "cost"})
EQUAL, EQUAL_WAIT_S = 0.02, 10.0
"""Cases are equal by the goal within this share of the best, and waits within this time in s."""
BETTER = 0.05
"""Least share by which a rival is better in the other figure, and by which another last end is named."""
STEEPER = 1.5
"""Least ratio of the bounded slowdown that is named next to goal and energy."""
CARE = 0.01
"""Least share of the work, or of the jobs, whose loss is a warning."""
BAND, BAND_OF_POWER = (0.7, 1.4), (0.9, 1.1)
"""Ratios that may be chance on one sample; over ten workloads their logarithms have standard deviations of 0.15 to
0.22 (wait, slowdown), and of 0.05 to 0.08 (energy)."""
PHRASES: Mapping[str, tuple[str, str, str, str]] = {
    "mean_wait_s": ("waits least", "waits {} times as long", "waits as long", "waits {}"),
    "mean_bounded_slowdown": (
        "has the lowest bounded slowdown", "has {} times the bounded slowdown", "has the same bounded slowdown",
        "has a bounded slowdown of {}",
    ),
    "energy_j": ("uses least energy", "uses {} times the energy", "uses the same energy", "uses {}"),
    "carbon_g": ("emits least carbon", "emits {} times the carbon", "emits the same carbon", "emits {} of carbon"),
    "cost": ("costs least", "costs {} times as much", "costs as much", "costs {}"),
}  # fmt: skip
"""Figure -> the predicates of the least value, of a ratio, of a ratio of 1, and of a value."""
APART: Mapping[str, str] = {
    "mean_wait_s": "the wait", "energy_j": "the energy", "jobs_finished": "the finished jobs",
    "finished_work_fraction": "the finished work",
}  # fmt: skip
"""Figure -> its name in the ratio of two cases that do not differ in the goal."""


@dataclass(frozen=True)
class Verdict:
    """The case to run by a goal, and cases to weigh it against; as a text two sentences.

    The rival is the rated case that is better in the other figure (`trade`), or the next by the goal; the reference
    follows no envelope, or is the first case. `values` map the labels of these cases and of `within` to figures,
    `ratios` to figures relative to the winner.
    """

    situation: Situation
    goal: str
    winner: str | None = None
    rival: str | None = None
    reference: str | None = None
    """Without a case that keeps to the envelope the nearest one."""
    recorded: str | None = None
    """Case that starts the jobs as recorded, if it is none of these."""
    within: Sequence[str] = ()
    """Cases that keep to the envelope."""
    rated: Sequence[str] = ()
    """Cases of `within` with enough finished jobs and work, the winner first, then by the goal."""
    ratios: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lost: Mapping[str, float] = field(default_factory=dict)
    """Label -> jobs that never finish."""
    above: Mapping[str, float] = field(default_factory=dict)
    """Label -> share of the energy above the envelope."""
    chance: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Label -> figures whose difference from the winner may be chance."""
    spread: tuple[float, float] = (math.nan, math.nan)
    """Least and largest value of the goal of rated cases."""
    jobs: float = 0.0
    capped: bool = True
    samples: str = ""
    """Number and name of several samples; empty for one."""
    currency: str = ""
    caveat: str = ""
    """The strongest limit of these numbers; empty without one."""

    @property
    def first(self) -> Figure:
        """Figure of the goal."""
        return FIGURES[GOALS[self.goal]].in_currency(self.currency)

    @property
    def other(self) -> Figure:
        """Figure to weigh against the goal: energy, or the wait for goals of energy, carbon and cost."""
        return other_of(self.first)

    def __str__(self) -> str:
        return "\n".join(sentences(self))


def other_of(first: Figure) -> Figure:
    """Return the figure to weigh against that of a goal."""
    return WAIT if first.name in OF_POWER else ENERGY


def verdict_of(data: ComparedCases, goal: str = "wait") -> Verdict:
    """Return the verdict on cases by a goal of `GOALS`, which changes no figure.

    Raises InputError if no case has a value of the goal, such as carbon without a signal.
    """
    first = FIGURES[GOALS[goal]]
    other = other_of(first)
    if first.name in OF_POWER and not (first.name in data.means and data.means[first.name].notna().any()):
        needs = "hosts need watts" if first == ENERGY else f"give {argument('carbon')} or {argument('price')}"
        raise InputError(argument("goal"), f"no case has a value of {first.title}", needs)
    ranked = _ranked(data, first)
    currency = next((one.display for one in data.measures if one.name == "cost" and one.display != MONEY), "")
    verdict = Verdict(
        "none keeps", goal, within=data.within, rated=ranked, jobs=data.total, capped=data.capped, currency=currency,
        samples=f"{data.samples} {data.units}" if data.samples > 1 else "",
    )  # fmt: skip
    if not ranked:
        nearest = None if data.within else min(data.labels, key=data.above_share)
        return _weighed(replace(verdict, reference=nearest, recorded=_recorded(data, nearest)), data)
    winner, *others = ranked
    rival = min(others, key=lambda label: _least(data.value(other, label)), default=None)
    trades = rival is not None and data.value(other, rival) <= (1.0 - BETTER) * data.value(other, winner)
    reference = _reference(data, winner, first)
    losses = [lost_jobs(data, winner) / data.total if data.total else 0.0, 1.0 - data.value(WORK, winner)]
    situation: Situation = "trade" if trades else "clear"
    if data.samples > 1 and others and not any(data.difference(first, label, winner).counts for label in others):
        values = [data.value(first, label) for label in ranked]
        apart = (label for figure in (other, FINISHED, WORK) if figure.name in data.means for label in others
                 if data.difference(figure, label, winner).counts)  # fmt: skip
        situation, trades, rival = "same", True, next(apart, None)
        verdict = replace(verdict, spread=(min(values), max(values)))
    elif lost_jobs(data, winner) and any(loss >= CARE for loss in losses):
        situation = "loses jobs"
    if not trades:
        rival = next(iter(others), None)
    reference = None if reference == rival or situation == "same" else reference
    recorded = _recorded(data, winner, rival, reference)
    verdict = replace(verdict, situation=situation, winner=winner, rival=rival, reference=reference, recorded=recorded)
    return _weighed(verdict, data)


def _recorded(data: ComparedCases, *others: str | None) -> str | None:
    """Return the first case that starts the jobs as recorded and is none of the others."""
    replays = (label for label in data.labels if data.cases[label].scheduler == "replay")
    return next((label for label in replays if label not in others), None)


def _ranked(data: ComparedCases, first: Figure) -> list[str]:
    """Return the rated cases with a value of the goal: the winner, then the others by the goal."""
    values = {label: value for label in data.rated if (value := data.value(first, label)) == value}
    if not values:
        return []
    best = min(values.values())
    margin = max(EQUAL * abs(best), EQUAL_WAIT_S if first == WAIT else 0.0)
    equal = [label for label in values if values[label] <= best + margin]
    winner = min(equal, key=lambda label: _least(data.value(other_of(first), label)))
    return [winner, *sorted((label for label in values if label != winner), key=values.__getitem__)]


def _least(value: float) -> float:
    """Return a value that sorts last if it is NaN."""
    return math.inf if math.isnan(value) else value


def _reference(data: ComparedCases, winner: str, first: Figure) -> str | None:
    """Return the first case without a limit, else the first one; instead of the winner the best case not rated."""
    free = (label for label in data.labels if data.cases[label].follow == "none")
    reference = next(free, data.labels[0])
    if reference != winner:
        return reference
    unrated = [label for label in data.labels if label not in data.rated and label != data.bound]
    return min(unrated, key=lambda label: _least(data.value(first, label)), default=None)


def _weighed(verdict: Verdict, data: ComparedCases) -> Verdict:
    """Return a verdict with the values of its cases, their ratios to the winner, and the caveat."""
    winner, first, other = verdict.winner, verdict.first, verdict.other
    named = [label for label in (winner, verdict.rival, verdict.reference) if label is not None]
    labels = list(dict.fromkeys([*named, *filter(None, [verdict.recorded]), *verdict.within]))
    figures = [figure for figure in dict.fromkeys((first, other, SLOWDOWN, END, ABOVE, FINISHED, WORK))
               if figure.name in data.means]  # fmt: skip
    values = {label: {figure.name: data.value(figure, label) for figure in figures} for label in labels}
    ratios: dict[str, dict[str, float]] = {}
    chance: dict[str, list[str]] = {}
    for label in labels if winner is not None else ():
        if label == winner:
            continue
        ratios[label] = {figure.name: _ratio(values[label][figure.name], values[str(winner)][figure.name])
                         for figure in figures}  # fmt: skip
        chance[label] = [figure.name for figure in figures
                         if _may_be_chance(data, figure, label, str(winner), ratios[label][figure.name])]  # fmt: skip
    verdict = replace(
        verdict, values=values, ratios=ratios, chance=chance,
        lost={label: lost_jobs(data, label) for label in labels},
        above={label: data.above_share(label) for label in labels},
    )  # fmt: skip
    compared = verdict.rated if verdict.situation == "same" else named
    return replace(verdict, caveat=next(_caveats(verdict, data, compared), ""))


def _ratio(value: float, base: float) -> float:
    """Return a ratio; 1 of two zeros, infinite to one zero."""
    return value / base if base else 1.0 if value == base else math.copysign(math.inf, value)


def _may_be_chance(data: ComparedCases, figure: Figure, label: str, winner: str, ratio: float) -> bool:
    """Return whether a difference may be chance: on one sample by the band of its ratio."""
    if data.samples > 1:
        difference = data.difference(figure, label, winner)
        return difference.error > 0.0 and not difference.counts
    low, high = BAND_OF_POWER if figure.name in OF_POWER else BAND
    return figure.name in PHRASES and low <= ratio <= high and not same(figure, ratio)


def same(figure: Figure, ratio: float) -> bool:
    """Return whether a ratio of a figure is no difference to a reader."""
    return abs(ratio - 1.0) <= (0.01 if figure.name in OF_POWER else 0.02)


def _caveats(verdict: Verdict, data: ComparedCases, labels: Sequence[str]) -> Iterator[str]:
    """Yield the limits of a verdict, the strongest first."""
    loser = max(labels, key=lambda label: lost_jobs(data, label), default=None)
    if loser is not None and lost_jobs(data, loser) > CARE * data.total:
        yield (f"Wait is of finished jobs only, and {quoted(loser)} does not finish "
               f"{count_of(lost_jobs(data, loser), data.total)}.")  # fmt: skip
    rejecting = [label for label in labels if data.value(REJECTED, label) > 0.0]
    if rejecting:
        causes = data.rejections.get(rejecting[0], {})
        why = f" ({rejections_text({cause: round(count) for cause, count in causes.items()})})" if causes else ""
        yield f"{quoted(rejecting[0])} rejects {count_of(data.value(REJECTED, rejecting[0]), data.total)}{why}."
    if any(verdict.chance.values()):
        if verdict.samples:
            yield f"~ is no more than chance in {verdict.samples} (95 %, Student's t)."
        else:
            yield f"One run per case: ~ may be chance; {argument('samples', 5)} gives standard errors."
    if data.assumed_w is not None:
        yield f"Energy {assumed(data.assumed_w)}."


def sentences(verdict: Verdict) -> tuple[str, str]:
    """Return the two sentences of a verdict: the case to run, and the cases to weigh it against."""
    if verdict.winner is None:
        return _none_keeps(verdict)
    if verdict.situation == "same":
        return _same_sentences(verdict)
    clauses = []
    if verdict.rival is not None:
        clauses.append(_rival_clause(verdict, verdict.rival))
    if verdict.reference is not None:
        clauses.append(_reference_clause(verdict, verdict.reference))
    return _run(verdict, verdict.winner), f"{'; '.join(clauses)}." if clauses else "There is no other case to weigh."


def _none_keeps(verdict: Verdict) -> tuple[str, str]:
    nearest = verdict.reference
    if nearest is None:
        which = " that keeps to the envelope" if verdict.capped else ""
        return f"No case{which} finishes a job.", "The table has the jobs that each case rejects, kills or leaves."
    above = amount(ABOVE, verdict.values[nearest][ABOVE.name])
    options = '{"response": "frugal"}'
    return (
        f"No case keeps to the envelope: the nearest, {quoted(nearest)}, draws {percent(verdict.above[nearest], 2)} of "
        f"its energy above it ({above}).",
        f"A case with a response can keep to it: compare all systems, or add a case with powercap {options}.",
    )


def _same_sentences(verdict: Verdict) -> tuple[str, str]:
    suited = in_suitable_unit(verdict.first, verdict.spread)
    low, high = (number(suited, value) for value in verdict.spread)
    boast = {"mean_wait_s": "waits less than", "mean_bounded_slowdown": "has a lower bounded slowdown than",
             "energy_j": "uses less energy than", "carbon_g": "emits less carbon than",
             "cost": "costs less than"}[verdict.first.name]  # fmt: skip
    unit = f" {suited.display}" if suited.display else ""
    text = f"No case {boast} the others beyond chance: {low} to {high}{unit} in {verdict.samples}."
    if verdict.rival is None:
        other = verdict.other.title.removeprefix("mean ").capitalize()
        more = argument("samples", 10)
        return text, f"{other}, lost jobs and work do not differ either: choose the simplest, or run with {more}."
    ratios, chance = verdict.ratios[verdict.rival], verdict.chance[verdict.rival]
    name = next(name for name in (verdict.other.name, FINISHED.name, WORK.name)
                if name in ratios and ratios[name] != 1.0 and name not in chance)  # fmt: skip
    return text, (
        f"{quoted(verdict.rival)} has {plain(ratios[name])} times {APART[name]} of {quoted(str(verdict.winner))}, "
        "more than chance."
    )


def _run(verdict: Verdict, winner: str) -> str:
    """Return the sentence that names the case to run."""
    first, other, values = verdict.first, verdict.other, verdict.values[winner]
    lost = verdict.lost[winner]
    care = verdict.situation == "loses jobs"
    which = " that keep to the envelope" if verdict.capped else ""
    only = "only it keeps to the envelope" if verdict.capped else "it is the only case"
    text = f"Run {quoted(winner)}{' with care' * care}: "
    if len(verdict.rated) == 1 and len(verdict.within) > 1:
        text += f"{'only it keeps to the envelope and' if verdict.capped else 'only it'} finishes enough jobs"
    elif len(verdict.rated) == 1:
        text += only if care else f"{only}, and {PHRASES[first.name][3].format(amount(first, values[first.name]))}"
    else:
        near = verdict.rated[1]
        beside = f"; {quoted(near)} {_near(verdict, near)}" if near != verdict.rival and _near(verdict, near) else ""
        # a case that loses jobs may wait less
        rated = any(verdict.values[label][first.name] < values[first.name] for label in verdict.within
                    if label not in verdict.rated)  # fmt: skip
        cases, enough = (verdict.rated, " and finish enough jobs") if rated else (verdict.within, "")
        boast = PHRASES[first.name][0]
        text += f"of the {len(cases)} cases{which}{enough} it {boast} ({amount(first, values[first.name])}{beside})"
        if verdict.situation == "clear" and values.get(other.name, math.nan) >= 0.0:
            little = "waits as little as any" if other == WAIT else "uses as little energy as any"
            text += f" and {little} ({amount(other, values[other.name])})"
    if lost:
        work = 1.0 - values.get(WORK.name, math.nan)
        share = f", {percent(work, 2)} of the work" if work > 0.0 else ""
        text += f", but {count_of(lost, verdict.jobs)} {'is' if lost == 1 else 'are'} lost{share}"
    return f"{text}."


def _near(verdict: Verdict, label: str) -> str:
    """Return the goal's ratio of a case that cannot be distinguished from the winner; empty for others."""
    ratio = verdict.ratios[label][verdict.first.name]
    if same(verdict.first, ratio):
        return "the same"
    return f"~{plain(ratio)} times" if verdict.first.name in verdict.chance[label] else ""


def _predicate(verdict: Verdict, figure: Figure, label: str) -> str:
    """Return a figure of a case relative to that of the winner."""
    ratio, (_, times, equal, value) = verdict.ratios[label].get(figure.name, math.nan), PHRASES[figure.name]
    if not math.isfinite(ratio):
        number_of = verdict.values[label].get(figure.name, math.nan)
        return value.format(amount(figure, number_of)) if number_of == number_of else ""
    if same(figure, ratio):
        return equal
    mark = "~" if figure.name in verdict.chance[label] else ""
    return times.format(f"{mark}{plain(ratio)}")


def _rival_clause(verdict: Verdict, rival: str) -> str:
    """Return a rival's two ratios, and a third figure that changes much."""
    first, other, ratios = verdict.first, verdict.other, verdict.ratios[rival]
    parts = list(filter(None, (_predicate(verdict, figure, rival) for figure in (first, other))))
    if ratios.get(other.name, math.nan) <= 1.0 - BETTER:
        parts.reverse()
    elif same(other, ratios.get(other.name, math.nan)):
        parts = [f"{parts[0]} with the same {other.title.removeprefix('mean ')}"]
    slowdown, end = (ratios.get(figure.name, math.nan) for figure in (SLOWDOWN, END))
    if first != SLOWDOWN and math.isfinite(slowdown) and not 1.0 / STEEPER < slowdown < STEEPER:
        parts.append(_predicate(verdict, SLOWDOWN, rival))
    elif math.isfinite(end) and abs(end - 1.0) >= BETTER:
        more_s = verdict.values[rival][END.name] - verdict.values[str(verdict.winner)][END.name]
        parts.append(f"ends {duration(abs(more_s))} {'later' if more_s > 0.0 else 'earlier'}")
    return f"{quoted(rival)} {listed(parts)}"


def _reference_clause(verdict: Verdict, reference: str) -> str:
    """Return the goal's ratio of the reference, and what it does beside it: energy above, lost jobs, or energy."""
    share, lost = verdict.above[reference], verdict.lost[reference]
    text = _predicate(verdict, verdict.first, reference)
    if lost == verdict.jobs:
        return f"{quoted(reference)} finishes no job"
    if verdict.situation == "loses jobs":
        text = f"{f'loses {count_of(lost, verdict.jobs)}' if lost else 'finishes all jobs'} and {text}"
    if share > 0.0 and reference not in verdict.within:
        return f"{quoted(reference)} {text}, with {percent(share, 2)} of its energy above the envelope"
    if lost and verdict.situation != "loses jobs":
        return f"{quoted(reference)} {text}, but loses {count_of(lost, verdict.jobs)}"
    return f"{quoted(reference)} {' and '.join(filter(None, (text, _predicate(verdict, verdict.other, reference))))}"
