"""The scheduler varcap against a plain second implementation of its rules, on small random instances."""

from __future__ import annotations

from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from plain_varcap import PlainJob, Rules, plain_runs
from varcap_talk import KNOWS, in_words, play, runs_of

STEP_S = 61.37


@st.composite
def jobs_of(draw, machines, cores):
    """Jobs of which hardly two times coincide: their fractions of a second differ."""
    made = []
    for i in range(draw(st.integers(1, 20))):
        length_s = draw(st.integers(1, 300)) + 0.2 + 0.013 * i
        factor = draw(st.sampled_from([None, None, 0.5, 1.1, 1.7, 3.0]))
        others = draw(st.sets(st.integers(0, i - 1), max_size=2)) if i and draw(st.integers(0, 3)) == 0 else ()
        job = PlainJob(
            id=str(i),
            submit_s=round(draw(st.integers(0, 500)) + 0.1 + 0.011 * i, 3),
            length_s=round(length_s, 3),
            cpus=draw(st.integers(1, cores) | st.integers(1, cores * machines + 1)),
            memory=draw(st.integers(0, 12)) / 4,
            estimate_s=None if factor is None else round(factor * length_s, 4),
            depends_on=tuple(map(str, sorted(others))),
        )
        made.append(job)
    return made


@st.composite
def options_of(draw, machines, least):
    """Options of the scheduler; victims are not chosen at random."""
    name = draw(st.sampled_from(list(KNOWS)))
    options = {
        "mapping": name,
        "knowledge": draw(st.none() | st.sampled_from(KNOWS[name])),
        "foresight_h": draw(st.sampled_from([0.0, 0.0437, 1.0])),
        "nodes": draw(st.sampled_from(["shared", "shared", "dedicated"])),
        "requeue": draw(st.sampled_from(["submission", "end"])),
        "machine_memory": draw(st.none() | st.integers(1, 4).map(float)),
        "long_s": 100.0,
        "longest_s": draw(st.sampled_from([200.0, 300.0])),
    }
    if name != "migration":
        # by default base takes victims at random
        rules = ["lww", "lfd", "order"] if name == "base" else [None, "lww", "lfd", "order"]
        options["termination"] = draw(st.sampled_from(rules))
    if name in ("base", "migration", "longshort"):
        options["order"] = draw(st.sampled_from(["fcfs", "wfp"]))
        options["backfilling"] = draw(st.sampled_from([None, "first-fit", "none", "easy"]))
    if name == "longshort":
        options["stable"] = draw(st.none() | st.integers(0, least))
    if name == "twomode" and draw(st.booleans()):
        options["low"], options["high"] = sorted(draw(st.tuples(*[st.integers(0, machines)] * 2)))
    return options


@st.composite
def instances(draw):
    machines, cores = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(0, machines) | st.integers(machines // 2, machines), min_size=1, max_size=12))
    capacity = [(round(STEP_S * i + 0.417 * i * i, 3), value) for i, value in enumerate(values)]
    jobs = draw(jobs_of(machines, cores))
    return jobs, capacity, machines, cores, draw(options_of(machines, min(values)))


def compare(jobs, capacity, machines, cores, options):
    ours = in_words(runs_of(play(jobs, capacity, machines, cores, **options)[0], cores))
    plain = in_words(plain_runs(jobs, capacity, Rules(machines, cores, **options)))
    assert ours == plain


@examples(300, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_a_plain_second_implementation_does_the_same(instance):
    compare(*instance)
