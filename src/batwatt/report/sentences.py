"""The sentences of every page: the numbers that decide between cases, and the limits of these numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from batwatt.errors import argument
from batwatt.report.cases import ABOVE, ENOUGH, FINISHED, REJECTED, WAIT, WITHIN, ComparedCases
from batwatt.report.chart import shortened
from batwatt.report.means import sure
from batwatt.report.texts import (
    MOST_NAMES,
    amount,
    cases,
    digits,
    duration,
    jobs,
    listed,
    percent,
    plain,
    quoted,
    sentence,
    signed_amount,
)
from batwatt.results.figures import FIGURES, Figure
from batwatt.results.groups import CLASSES, UNKNOWN

MOST_WORDS = 20
"""Most words of a headline that names the reference."""
LEAST_JOBS = 5
"""Least jobs of a group that is named for the most added wait; it also has at least 1 % of all jobs."""
TIMES = {0.5: "half", 1.0: "about", 2.0: "twice", 3.0: "three times"}
"""Ratios with a name of their own."""


def headline(data: ComparedCases) -> str:
    """Return the answer in at most 20 words: the best case within the envelope, compared with the reference."""
    label, first = data.winner, data.first
    reference = quoted(shortened(data.reference))
    if len(data.labels) < 2:
        return f"{reference}: {finished_text(data, data.reference)}"
    if not data.within:
        return "No case keeps to the envelope"
    if label is None:
        return "No case that keeps to the envelope finishes a job" if data.capped else "No case finishes a job"
    best = f"the {'lowest' if first.better == 'lower' else 'highest'} {first.title}"
    name = quoted(shortened(label))
    if label == data.reference:
        return f"{name} keeps to the envelope and has {best}" if data.capped else f"{name} has {best}"
    name += " keeps to the envelope" if data.capped else f" has {best}"
    base, text = data.value(first, data.reference), ""
    if _chance(data, first, label) is False:
        text = f"; {f'its {first.title}' if data.capped else 'it'} does not differ from {reference} beyond chance"
    elif math.isnan(base):
        text = f", and {reference} finishes no job"
    elif base > 0.0:
        ratio = _times(data.value(first, label) / base)
        text = f", {f'with {ratio} the {first.title}' if data.capped else f'{ratio} that'} of {reference}"
    return name + text if len(f"{name}{text}".split()) <= MOST_WORDS else name


def sentences(data: ComparedCases) -> list[str]:
    """Return three sentences: the reference, the best case, and which jobs wait longer or which cases are no worse."""
    return [text for text in (_reference(data), _winner(data), _suffer(data) or _near(data)) if text]


def findings(data: ComparedCases) -> list[str]:
    """Return sentences on the runs, dominated cases, chance, and limits of numbers."""
    texts = (_scope(data), _alike(data), _front(data), _bound(data), _differences(data), _above(data),
             *_survivors(data), _left_out(data))  # fmt: skip
    return [text for text in texts if text]


def jobs_of(by: str, group: str) -> str:
    """Return a name for the jobs of a group."""
    return f"jobs of {group}" if by in CLASSES else f"jobs of {by} {group}"


def finished_text(data: ComparedCases, label: str) -> str:
    """Return the number of jobs that a case finishes, in words."""
    return f"{_of_all(data, data.value(FINISHED, label))} finished"


def _of_all(data: ComparedCases, count: float) -> str:
    if count == data.total > 1:
        return f"all {jobs(count)}"
    return f"{plain(count, digits(count, True))} of {jobs(data.total)}"


def _times(ratio: float) -> str:
    return next((text for value, text in TIMES.items() if abs(ratio / value - 1.0) < 0.03), f"{plain(ratio)} times")


def _against(data: ComparedCases, measure: Figure, label: str) -> str:
    return signed_amount(measure, data.difference(measure, label)).removesuffix(" jobs")


def _chance(data: ComparedCases, measure: Figure, label: str, other: str | None = None) -> bool | None:
    """Return whether a difference is more than chance; None of one sample, or if it is the same on each."""
    difference = data.difference(measure, label, other)
    return difference.counts if difference.instances > 1 and difference.error > 0.0 else None


def _rated(data: ComparedCases) -> str:
    """Return the cases that are rated, in words."""
    which = " that keep to the envelope" if data.capped else ""
    if data.rated != data.within:
        which += f"{' and' if which else ' that'} finish at least {percent(ENOUGH)} of what the best of them does"
    return f"Of the cases{which}" if which else "Of all cases"


def _scope(data: ComparedCases) -> str:
    count, of = len(data.labels), f" of {data.about}" if data.about else ""
    text = f"1 case{of} ran " if count == 1 else f"{count} cases{of} ran the same "
    text += jobs(data.total) + (f" on {data.machines}" if data.machines else "")
    text += f", on {data.samples} {data.units}." if data.about else "."
    end_s = data.value(FIGURES["makespan_s"], data.reference)
    # the envelope is that of one window
    if data.machines is None or data.envelope is None or not end_s > 0.0 or data.unit == "window":
        return text
    fed = sum(n * (end - begin) for begin, end, n in data.machines.fed_by(data.envelope).steps(0.0, end_s)) / end_s
    return (
        f"{text} In the {duration(end_s)} that {quoted(data.reference)} takes the envelope feeds {plain(fed)} machines "
        f"on average ({percent(fed / data.machines.machines)} of them)."
    )


def _reference(data: ComparedCases) -> str:
    label, first = data.reference, data.first
    finished, value = data.value(FINISHED, label), data.value(first, label)
    free = data.capped and data.cases[label].limit == "none"
    text = f"Without following the envelope ({quoted(label)})" if free else f"In the reference ({quoted(label)})"
    text += f", {_of_all(data, finished)} {'finish' if data.total != 1 else 'finishes'}"
    if value == value:
        text += f", with a {first.title} of {amount(first, value)}"
        wait_s = data.value(WAIT, label)
        text += f" and a {WAIT.title} of {duration(wait_s)}" if wait_s == wait_s else ""
    if label in data.above:
        text += f"; {percent(data.above_share(label))} of its energy is above the envelope"
    return f"{text}."


def _winner(data: ComparedCases) -> str:
    label, first = data.winner, data.first
    if len(data.labels) < 2:
        return ""
    if not data.within:
        return f"No case keeps to the envelope: each draws more than {percent(WITHIN)} of its energy above it."
    if label is None:
        return "No case that keeps to the envelope finishes a job." if data.capped else "No case finishes a job."
    extreme = "lowest" if first.better == "lower" else "highest"
    only = "is the only one" if len(data.rated) == 1 else f"has the {extreme} {first.title}"
    text = f"{_rated(data)}, {quoted(label)} {only}:"
    if label == data.reference:
        return f"{text} it is the reference itself."
    sure_text = {None: "", True: ", more than chance", False: ", no more than chance"}[_chance(data, first, label)]
    parts = [
        f"{amount(first, data.value(first, label))} ({_against(data, first, label)} compared with "
        f"{quoted(data.reference)}{sure_text})"
    ]
    wait_s = data.value(WAIT, label)
    if wait_s == wait_s:
        parts.append(f"a {WAIT.title} of {duration(wait_s)} ({_against(data, WAIT, label)})")
    parts.append(f"{finished_text(data, label)} ({_against(data, FINISHED, label)})")
    return f"{text} {', '.join(parts)}."


def _alike(data: ComparedCases) -> str:
    """Return a warning if the best case and a reference without a limit differ in more than the response, or ""."""
    label = data.winner
    if label is None or label == data.reference or data.cases[data.reference].limit != "none":
        return ""
    schedules = [
        (facts.scheduler, {name: value for name, value in facts.options.items() if name != "response"})
        for facts in (data.cases[label], data.cases[data.reference])
    ]
    if schedules[0] == schedules[1]:
        return ""
    both = cases([label, data.reference])
    return f"{both} differ in how they schedule, too: the difference is not that of the envelope alone."


def _suffer(data: ComparedCases) -> str:
    label = data.winner
    if label is None or label == data.reference:
        return ""
    texts = [text for by in (*CLASSES, "user") if by in data.groupings and (text := _worst(data, label, by))]
    return f"Under {quoted(label)}, compared with {quoted(data.reference)}: {'; '.join(texts)}." if texts else ""


def _worst(data: ComparedCases, label: str, by: str) -> str:
    """Return the group of one kind whose wait grows most, and the group with the largest unfinished share."""
    frame = data.groups[(data.groups["by"] == by) & (data.groups["case"] == label)]
    least = max(LEAST_JOBS, 0.01 * data.total)
    rows = [row for row in frame.to_dict("records") if row["jobs"] >= least and row["group"] != UNKNOWN]
    paired = [row for row in rows if row["paired_jobs"] >= LEAST_JOBS]
    if len(paired) < 2:
        return ""
    worst = max(paired, key=lambda row: float(row["wait_more_s"]))
    grows = "grows most" if worst["wait_more_s"] > 0.0 else "grows for none, and shrinks least"
    more = f"{duration(worst['wait_more_s'], sign=True)} ({jobs(worst['paired_jobs'])})"
    text = f"by {by}, the mean wait {grows} for {jobs_of(by, worst['group'])}, {more}"
    lost = min(rows, key=lambda row: float(row["finished_share"]))
    if lost["finished_share"] < 1.0:
        share = percent(1.0 - lost["finished_share"])
        text += f", and {share} of {'them' if lost is worst else jobs_of(by, lost['group'])} do not finish"
    return text


def _near(data: ComparedCases) -> str:
    """Return the cases that are not distinguishable from the best one."""
    label = data.winner
    near = [other for other in data.rated
            if label is not None and other != label and _chance(data, data.first, other, label) is False]  # fmt: skip
    return f"Not distinguishable from {quoted(str(label))} by {data.first.title}: {cases(near)}." if near else ""


def _front(data: ComparedCases) -> str:
    """Return the cases on the Pareto front, and those that dominate the others."""
    dominating = data.dominating()
    if len(dominating) < 2:
        return ""
    front = [label for label, others in dominating.items() if not others]
    names = listed([_on_front(data, label) for label in front], MOST_NAMES)
    text = f"On the Pareto front of {data.up.title} and {data.across[0].title}: {names}."
    beaten: dict[str, list[str]] = {}
    for label, others in dominating.items():
        if others:
            beaten.setdefault(cases([other for other in others if other in front]), []).append(label)
    return " ".join([text, *(f"Dominated by {winners}: {cases(losers)}." for winners, losers in beaten.items())])


def _on_front(data: ComparedCases, label: str) -> str:
    """Return a case on the front, with the number of jobs that it finishes if that is small."""
    few = "" if label in data.rated else f" (which finishes only {_of_all(data, data.value(FINISHED, label))})"
    return f"{quoted(label)}{few}"


def _bound(data: ComparedCases) -> str:
    if data.bound not in data.labels:
        return ""
    value = amount(data.first, data.value(data.first, data.bound))
    return f"{quoted(data.bound)} has a {data.first.title} of {value}; it was found offline, and is not rated."


def _differences(data: ComparedCases) -> str:
    """Return a text on the differences to the reference and their errors."""
    random = [label for label in data.labels if data.cases[label].random]
    count, unit = data.samples, data.unit
    if count < 2:
        if unit != "seed":
            return f"On one {unit} a difference has no standard error: it may be chance."
        if not random:
            return ""
        return (
            f"Cases that draw at random ran once ({cases(random)}): differences of a few % may be chance. "
            f"{argument('seeds', 5)}, or {argument('samples', 5)}, gives standard errors."
        )
    if unit == "seed" and not random:
        return f"No case draws at random: all {count} seeds give the same numbers."
    first = quoted(data.reference)
    verdicts = {label: _chance(data, data.first, label) for label in data.labels if label != data.reference}
    near, far, same = ([label for label in verdicts if verdicts[label] is one] for one in (False, True, None))
    texts = []
    if far:
        least = f"{sure(count):.3g} standard errors (95 %, Student's t)"
        texts.append(f"{cases(far)} differ{'s' * (len(far) == 1)} from {first} by more than {least}")
    if near:
        texts.append(f"{cases(near)} {'is' if len(near) == 1 else 'are'} not distinguishable from {first}")
    if same:
        texts.append(f"{'the other differences are' if texts else 'all differences are'} the same for each {unit}")
    text = f"{count} {data.units}, paired, {data.first.title}: {'; '.join(texts)}."
    if _suffer(data):
        # otherwise `sentences` has it
        text = " ".join(filter(None, (text, _near(data))))
    if unit == "seed":
        return f"{text} Seeds are those of the schedulers: they say nothing about other jobs or other weather."
    return f"{text} Nothing corrects for the number of comparisons."


def _above(data: ComparedCases) -> str:
    if not data.above:
        return ""
    parts = [
        f"{quoted(label)} {amount(ABOVE, data.value(ABOVE, label))} ({percent(data.above_share(label))} of its energy)"
        for label in data.above
    ]
    return (
        f"Above the envelope: {listed(parts, MOST_NAMES)}. Another source must deliver that; these cases are neither "
        "rated nor on the front."
    )


def _survivors(data: ComparedCases) -> Iterator[str]:
    """Yield the caveats of means over finished jobs."""
    rejecting = _counts(data, REJECTED)
    if rejecting:
        parts = [f"{quoted(label)} {_of_all(data, count)}{_because(data, label, count)}" for label, count in rejecting]
        yield f"Rejected jobs are in no mean: {listed(parts, MOST_NAMES)}."
    late = _counts(data, FIGURES["killed_walltime"])
    if late:
        parts = [f"{quoted(label)} {plain(count, digits(count, True))}" for label, count in late]
        yield f"Runs that reached their walltime are in no mean: {listed(parts, MOST_NAMES)}."
    few = [(label, count) for label, count in _counts(data, FINISHED) if count < data.total]
    if few:
        parts = [f"{quoted(label)} ({_of_all(data, count)}{_same_jobs(data, label)})" for label, count in few]
        titles = "Wait" if data.first.better == "higher" else f"{sentence(data.first.title)} and wait"
        yield f"{titles} are of finished jobs only, of survivors: {listed(parts, MOST_NAMES)}."
    none = [label for label in data.labels if data.value(FINISHED, label) == 0.0]
    if none:
        yield f"No job finishes with {cases(none)}: no slowdown, no wait."


def _counts(data: ComparedCases, measure: Figure) -> Sequence[tuple[str, float]]:
    """Return the cases with a count above 0 of a measure, and the counts."""
    return [(label, count) for label in data.labels if (count := data.value(measure, label)) > 0.0]


def _because(data: ComparedCases, label: str, count: float) -> str:
    """Return the causes of a case's rejections, of all samples or else of the first one."""
    counts = data.rejections.get(label, {})
    if not counts:
        return ""
    where = "" if math.isclose(sum(counts.values()), count) else f"in the first {data.unit} "
    return f" ({where}{'; '.join(f'{plain(n, digits(n, True))} {cause}' for cause, n in counts.items())})"


def _same_jobs(data: ComparedCases, label: str) -> str:
    """Return the difference to the reference on the jobs that finish in both."""
    if data.jobs is None or label == data.reference:
        return ""
    mine = data.jobs[data.jobs["case"] == label]
    count, more = float(mine["wait_more_s"].count()), float(mine["full_speed_slowdown_more"].mean())
    if not count or not math.isfinite(more):
        return ""
    where = f"on the {plain(count, 0)} that finish in {quoted(data.reference)}, too"
    title = FIGURES["mean_full_speed_slowdown"].title
    return f"; {where}, the {title} is {'the same' if more == 0.0 else f'{plain(more, sign=True)} in comparison'}"


def _left_out(data: ComparedCases) -> str:
    return f"Left out: {cases(list(data.left_out))} (reasons below)." if data.left_out else ""
