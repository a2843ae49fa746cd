"""The conclusions of a comparison in sentences: the numbers that decide, and what they do not say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from batwatt.report.chart import shortened
from batwatt.report.comparison.data import (
    ABOVE,
    ENOUGH,
    FINISHED,
    SLOWDOWN,
    WAIT,
    WITHIN,
    WORK,
    ComparedSystems,
)
from batwatt.report.comparison.numbers import (
    amount,
    digits,
    duration,
    jobs,
    number,
    percent,
    plain,
    signed_amount,
)
from batwatt.report.grid import listed, sentence
from batwatt.report.means import sure
from batwatt.results.figures import FIGURES, Figure
from batwatt.results.groups import CLASSES, UNKNOWN
from batwatt.results.rejections import rejections_text

RATED = (
    "jobs_finished", "finished_work_fraction", "fed_host_use", "mean_full_speed_slowdown", "mean_bounded_slowdown",
    "mean_wait_s", "p95_wait_s", "energy_j", "carbon_g", "cost",
)  # fmt: skip
"""Measures of which the best case is named."""
LEAST_JOBS = 5
"""A group of fewer jobs, or of less than 1 % of all, is not named as the one that suffers most."""


def headline(data: ComparedSystems) -> str:
    """The answer in at most 20 words: the best case within the envelope, and what it costs."""
    label, reference = data.chosen, shortened(data.reference)
    if len(data.labels) < 2:
        return f"“{reference}”: {finished_text(data, data.reference)}"
    if not data.within:
        return "No case keeps to the envelope"
    if label is None:
        return "No case that keeps to the envelope finishes a job"
    name = f"“{shortened(label)}”"
    if label == data.reference:
        return f"{name} keeps to the envelope and has the lowest slowdown"
    difference = data.difference(SLOWDOWN, label)
    if data.samples > 1 and difference.error > 0.0 and not difference.counts:
        return f"{name} keeps to the envelope; its slowdown does not differ from “{reference}” beyond chance"
    ratio = data.value(SLOWDOWN, label) / data.value(SLOWDOWN, data.reference)
    if not math.isfinite(ratio):
        return f"{name} keeps to the envelope, and “{reference}” finishes no job"
    return f"{name} keeps to the envelope, with {times(ratio)} the slowdown of “{reference}”"


def times(ratio: float) -> str:
    """A ratio in words."""
    near = {0.5: "half", 1.0: "about", 2.0: "twice", 3.0: "three times"}
    return next((text for value, text in near.items() if abs(ratio / value - 1.0) < 0.03), f"{plain(ratio)} times")


def sentences(data: ComparedSystems) -> list[str]:
    """What not following the envelope gives, which case costs least, and who pays for it."""
    return [text for text in (_reference(data), _chosen(data), _suffer(data)) if text]


def findings(data: ComparedSystems) -> list[str]:
    """What ran, the best by each measure, dominated cases, chance, and what the numbers do not say."""
    texts = (_scope(data), _alike(data), _best(data), _front(data), _chance(data), *_above(data), *_few(data),
             *_left_out(data))  # fmt: skip
    return [text for text in texts if text]


def _scope(data: ComparedSystems) -> str:
    count = len(data.labels)
    what = "1 case ran" if count == 1 else f"{count} cases ran the same"
    text = f"{what} {jobs(data.total)} on {data.machines}."
    end_s = data.value(FIGURES["makespan_s"], data.reference)
    if not end_s > 0.0:
        return text
    fed = sum(n * (end - begin) for begin, end, n in data.machines.fed_by(data.envelope).steps(0.0, end_s)) / end_s
    return (
        f"{text} In the {duration(end_s)} that {quoted(data.reference)} takes the envelope feeds {plain(fed)} machines "
        f"on average ({percent(fed / data.machines.machines)} of them)."
    )


def _reference(data: ComparedSystems) -> str:
    label = data.reference
    finished = data.value(FINISHED, label)
    free = data.cases[label].limit == "none"
    text = f"Without following the envelope ({quoted(label)})" if free else f"In the reference ({quoted(label)})"
    text += f", {_of_all(data, finished)} {'finish' if data.total != 1 else 'finishes'}"
    if finished:
        slowdown, wait = number(SLOWDOWN, data.value(SLOWDOWN, label)), duration(data.value(WAIT, label))
        text += f", with a {SLOWDOWN.title} of {slowdown} and a {WAIT.title} of {wait}"
    share = data.above_share(label)
    if share > WITHIN:
        text += f"; {percent(share)} of its energy is above the envelope"
    return f"{text}."


def _of_all(data: ComparedSystems, count: float) -> str:
    if count == data.total > 1:
        return f"all {jobs(count)}"
    return f"{plain(count, digits(count, True))} of {jobs(data.total)}"


def finished_text(data: ComparedSystems, label: str) -> str:
    """How many jobs a case finishes."""
    return f"{_of_all(data, data.value(FINISHED, label))} finished"


def _rated(data: ComparedSystems) -> str:
    """What the best is chosen from."""
    if data.rated == data.within:
        return "Of the cases that keep to the envelope"
    return f"Of the cases that keep to the envelope and finish at least {percent(ENOUGH)} of what the best of them does"


def _chosen(data: ComparedSystems) -> str:
    if len(data.labels) < 2:
        return ""
    if not data.within:
        return f"No case keeps to the envelope: each draws more than {percent(WITHIN)} of its energy above it."
    label = data.chosen
    if label is None:
        return "No case that keeps to the envelope finishes a job."
    text = f"{_rated(data)}, {quoted(label)} " + (
        "is the only one:" if len(data.rated) == 1 else f"has the lowest {SLOWDOWN.title}:"
    )
    if label == data.reference:
        return f"{text} it is the reference itself."
    found = [
        f"{number(SLOWDOWN, data.value(SLOWDOWN, label))} ({_against(data, SLOWDOWN, label)} compared with "
        f"{quoted(data.reference)}{_sure(data, label)})",
        f"a mean wait of {duration(data.value(WAIT, label))} ({_against(data, WAIT, label)})",
        f"{finished_text(data, label)} ({_against(data, FINISHED, label)})",
    ]
    return f"{text} {', '.join(found)}."


def _alike(data: ComparedSystems) -> str:
    """Whether the best case differs from the reference in more than the envelope."""
    label = data.chosen
    if label is None or label == data.reference:
        return ""
    mine, others = data.cases[label], data.cases[data.reference]
    if (mine.scheduler, dict(mine.options)) == (others.scheduler, dict(others.options)):
        return ""
    both = cases([label, data.reference])
    return f"{both} differ in how they schedule, too: the difference is not that of the envelope alone."


def _against(data: ComparedSystems, measure: Figure, label: str, other: str | None = None) -> str:
    return signed_amount(measure, data.difference(measure, label, other)).removesuffix(" jobs")


def _sure(data: ComparedSystems, label: str) -> str:
    """Whether a difference in slowdown to the reference is more than chance; nothing of one seed or of no chance."""
    found = data.difference(SLOWDOWN, label)
    if data.samples < 2 or not found.error > 0.0:
        return ""
    return ", more than chance" if found.counts else ", no more than chance"


def _suffer(data: ComparedSystems) -> str:
    label = data.chosen
    if label is None or label == data.reference:
        return ""
    found = [text for by in (*CLASSES, "user") if by in data.groupings and (text := _worst(data, label, by))]
    return f"Under {quoted(label)}, compared with {quoted(data.reference)}: {'; '.join(found)}." if found else ""


def _worst(data: ComparedSystems, label: str, by: str) -> str:
    """The group of one kind whose wait grows most, and the one of which most jobs are not finished."""
    frame = data.groups[(data.groups["by"] == by) & (data.groups["case"] == label)]
    least = max(LEAST_JOBS, 0.01 * data.total)
    rows = [row for row in frame.to_dict("records") if row["jobs"] >= least and row["group"] != UNKNOWN]
    known = [row for row in rows if row["paired_jobs"] >= LEAST_JOBS]
    if len(known) < 2:
        return ""
    worst = max(known, key=lambda row: float(row["wait_more_s"]))
    grows = "grows most" if worst["wait_more_s"] > 0.0 else "grows for none, and shrinks least"
    more = f"{duration(worst['wait_more_s'], sign=True)} ({jobs(worst['paired_jobs'])})"
    text = f"by {by}, the mean wait {grows} for {who(by, worst['group'])}, {more}"
    lost = min(rows, key=lambda row: float(row["finished_share"]))
    if lost["finished_share"] < 1.0:
        share = percent(1.0 - lost["finished_share"])
        text += f", and {share} of {'them' if lost is worst else who(by, lost['group'])} do not finish"
    return text


def quoted(label: str) -> str:
    """The label of a case within a sentence."""
    return f"“{label}”"


def cases(labels: Sequence[str]) -> str:
    """All labels within a sentence."""
    return listed([quoted(label) for label in labels])


def who(by: str, group: str) -> str:
    """The jobs of a group."""
    return f"jobs of {group}" if by in CLASSES else f"jobs of {by} {group}"


def _best(data: ComparedSystems) -> str:
    """The best of the rated cases by each measure that tells them apart."""
    if len(data.rated) < 2:
        return ""
    found = []
    for measure in data.measures:
        best = data.best(measure) if measure.name in RATED else []
        if 0 < len(best) < len(data.rated):
            value = amount(measure, data.value(measure, best[0]))
            found.append(f"{measure.title}: {cases(best)} ({value})")
    if not found:
        return f"{_rated(data)}, all are alike by every measure."
    return f"{_rated(data)}, the best by {'; '.join(found)}."


def _front(data: ComparedSystems) -> str:
    """What is on the Pareto front, and who dominates the others."""
    dominating = data.dominating()
    if len(dominating) < 2:
        return ""
    front = [label for label, others in dominating.items() if not others]
    names = listed([_named(data, label) for label in front])
    text = f"On the Pareto front of {WORK.title} and {SLOWDOWN.title}: {names}."
    beaten: dict[str, list[str]] = {}
    for label, others in dominating.items():
        if others:
            beaten.setdefault(cases([other for other in others if other in front]), []).append(label)
    return " ".join([text, *(f"Dominated by {winners}: {cases(losers)}." for winners, losers in beaten.items())])


def _named(data: ComparedSystems, label: str) -> str:
    """A case on the front, with how few jobs it finishes if they are few."""
    if label in data.rated:
        return quoted(label)
    return f"{quoted(label)} (which finishes only {_of_all(data, data.value(FINISHED, label))})"


def _chance(data: ComparedSystems) -> str:
    """Whether differences are larger than their errors."""
    random = [label for label in data.labels if data.cases[label].random]
    if not random and data.kind == "seeds":
        return "" if data.samples < 2 else f"No case draws at random: all {data.samples} seeds give the same numbers."
    if data.samples < 2:
        return (
            f"What may draw at random ran once ({cases(random)}): differences of a few % may be chance. --seeds 5, or "
            "--samples 5, gives standard errors."
        )
    first, found = quoted(data.reference), []
    near, far = _verdicts(data, data.reference, data.labels)
    if far:
        least = f"{sure(data.samples):.3g} standard errors (95 %, Student's t)"
        found.append(f"{cases(far)} differ{'s' * (len(far) == 1)} from {first} by more than {least}")
    if near:
        found.append(f"{cases(near)} {'is' if len(near) == 1 else 'are'} not distinguishable from {first}")
    chosen = data.chosen
    if chosen is not None and chosen != data.reference:
        like, _ = _verdicts(data, chosen, [label for label in data.rated if label != data.reference])
        if like:
            found.append(f"{cases(like)} {'is' if len(like) == 1 else 'are'} not distinguishable from {quoted(chosen)}")
    if not found:
        found = [f"no difference depends on the {data.kind[:-1]}"]
    elif len(near) + len(far) + 1 < len(data.labels):
        found.append(f"the other differences do not depend on the {data.kind[:-1]}")
    text = f"{data.samples} {data.kind}, paired, {SLOWDOWN.title}: {'; '.join(found)}."
    if data.kind == "windows":
        return f"{text} They are windows of one workload: they say nothing about other sites or other years."
    return f"{text} Seeds are those of the schedulers: they say nothing about other jobs or other weather."


def _verdicts(data: ComparedSystems, other: str, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The cases whose slowdown differs from another's by seed: where 0 is not excluded, and where it is."""
    found: tuple[list[str], list[str]] = [], []
    for label in labels:
        difference = data.difference(SLOWDOWN, label, other)
        if difference.instances > 1 and difference.error > 0.0:
            found[difference.counts].append(label)
    return found


def _above(data: ComparedSystems) -> Iterator[str]:
    others = [label for label in data.labels if label not in data.within]
    if others:
        parts = []
        for label in others:
            share = percent(data.above_share(label))
            parts.append(f"{quoted(label)} {number(ABOVE, data.value(ABOVE, label))} kWh ({share} of its energy)")
        yield (
            f"Above the envelope: {listed(parts)}. Another source must deliver that; these cases are neither rated nor "
            "on the front."
        )


def _few(data: ComparedSystems) -> Iterator[str]:
    """The caveats of means over finished jobs."""
    counts = {label: data.value(FIGURES["jobs_rejected"], label) for label in data.labels}
    rejecting = [
        f"{quoted(label)} {_of_all(data, count)}{_because(data, label)}"
        for label, count in counts.items()
        if count > 0.0
    ]
    if rejecting:
        yield f"Rejected jobs are in no mean: {listed(rejecting)}."
    ends = {label: data.value(FIGURES["killed_walltime"], label) for label in data.labels}
    late = [f"{quoted(label)} {plain(count, digits(count, True))}" for label, count in ends.items() if count > 0.0]
    if late:
        yield f"Runs that reached their walltime are in no mean: {listed(late)}."
    few = [label for label in data.labels if 0.0 < data.value(FINISHED, label) < data.total]
    if few:
        parts = [
            f"{quoted(label)} ({_of_all(data, data.value(FINISHED, label))}{_same_jobs(data, label)})" for label in few
        ]
        yield f"{sentence(SLOWDOWN.title)} and wait are of finished jobs only, of survivors: {'; '.join(parts)}."
    none = [label for label in data.labels if data.value(FINISHED, label) == 0.0]
    if none:
        yield f"No job finishes with {cases(none)}: no slowdown, no wait."


def _because(data: ComparedSystems, label: str) -> str:
    """The causes of a case's rejections."""
    counts = data.rejections.get(label, {})
    return f" ({rejections_text(counts)})" if counts else ""


def _same_jobs(data: ComparedSystems, label: str) -> str:
    """The difference to the reference on the jobs that finish in both."""
    count, more = (float(data.paired[name][label]) for name in ("paired_jobs", "full_speed_slowdown_more"))
    if label == data.reference or not count or not math.isfinite(more):
        return ""
    where = f"on the {plain(count, 0)} that finish in {quoted(data.reference)}, too"
    title = FIGURES["mean_full_speed_slowdown"].title
    return f"; {where}, the {title} is {'the same' if more == 0.0 else f'{plain(more, sign=True)} in comparison'}"


def _left_out(data: ComparedSystems) -> Iterator[str]:
    if data.errors:
        yield f"Left out, as they cannot run on these jobs: {cases(list(data.errors))} (reasons below)."
