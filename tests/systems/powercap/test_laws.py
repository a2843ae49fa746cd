"""Laws that hold for every registered order, backfilling and response, on random workloads and envelopes.

A new part is picked up by its registration alone.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from builders import envelope, job, machine, workload_of
from examples import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from links import ThroughText

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.inputs.workloads.batsim_files import read_events
from batwatt.model.hostset import from_text
from batwatt.protocol.events import envelope_events
from batwatt.results.writers import write_record
from batwatt.scheduling.registry import make, names
from batwatt.systems.powercap.scheduler import EnvelopeScheduler
from batwatt.systems.powercap.server_plan import Plan

COMBINATIONS = list(itertools.product(names("order"), names("backfilling"), names("response")))
FAST, SLOW = 3, 2
LOWEST_W = 3 * 5 + 2 * 8

jobs_of = st.lists(
    st.tuples(
        st.floats(0, 4000).map(lambda x: round(x, 3)),  # submission
        st.integers(1, FAST + SLOW + 1),  # hosts, now and then too many
        st.floats(1, 1500).map(lambda x: round(x, 3)),  # run time on a fast host
        st.one_of(st.none(), st.floats(0.3, 4.0)),  # walltime / run time
        st.booleans(),
    ),
    max_size=14,
)
powers = st.lists(st.floats(0, 700).map(lambda x: round(x, 1)), min_size=1, max_size=14)


class Witness(EnvelopeScheduler):
    """Notes the power that each plan of the response promises for its step."""

    def onSimulationBegins(self):
        self.promises: list[tuple[float, float, float]] = []
        self.checked: list[str] = []
        super().onSimulationBegins()

    def _respond(self, change, forecast_w=()):
        locked = self.cluster.locked
        before = list(self.cluster.pstate)
        plan = Plan(self.cluster)
        change(plan, self.injector.cap_w)
        if any(locked >> i & 1 and plan.state[i] != before[i] for i in range(len(before))):
            self.checked.append("a server in transition was touched")
        if plan.exceeds(self.injector.cap_w):
            awake = [i for i in plan.free_to_change() if not plan.sleeps(i)]
            asleep = Plan(self.cluster)
            asleep.put_to_sleep(asleep.free_to_change())
            if awake and not asleep.exceeds(self.injector.cap_w):
                self.checked.append(f"at {self.bs.time()} the cap is exceeded with servers {awake} awake, for nothing")
        self.promises.append((self.bs.time(), self.injector.cap_w, plan.power_w))
        return super()._respond(change, forecast_w)


def told(caps, folder):
    """The envelope as external events."""
    path = Path(folder) / "events.txt"
    path.write_text("".join(f"{line}\n" for line in envelope_events(envelope(*caps))))
    return read_events(path, forward_unknown=True)


def run(combination, rows, caps, text=False, events=(), **options):
    order, backfilling, response = combination
    platform = machine(FAST, SLOW)
    rows = [
        job(i, at, hosts, time, None if factor is None else round(time * factor, 3) + 1.0, flops)
        for i, (at, hosts, time, factor, flops) in enumerate(rows)
    ]
    scheduler = Witness(
        {
            "order": order,
            "backfilling": backfilling,
            "response": response,
            "platform": platform,
            "envelope": "events" if events else envelope(*caps),
            **options,
        }
    )
    dynamic = scheduler.needs_dynamic_jobs
    engine = Engine(
        platform,
        [workload_of(*rows, nb_res=len(platform))],
        EngineConfig(dynamic_jobs=dynamic, profile_reuse=dynamic, forward_unknown_events=bool(events)),
        events,
    )
    return simulate(engine, scheduler, ThroughText if text else None), scheduler


def check_jobs(record, rows, resubmits=False):
    """Every job of the workload has one row, ran on as many hosts as it asked for, and never before its submission."""
    ran = [row for row in record.jobs if row[8] is not None]
    originals = [row for row in record.jobs if "#" not in row[0]]
    assert sorted(int(row[0]) for row in originals) == list(range(len(rows)))
    assert len({row[0] for row in record.jobs}) == len(record.jobs)
    for row in ran:
        at, hosts, *_ = rows[int(row[0].split("#")[0])]
        assert from_text(row[14]).bit_count() == hosts
        assert row[8] >= at - 1e-6
    if not resubmits:
        assert len(originals) == len(record.jobs)
    for one, other in itertools.combinations(ran, 2):
        if from_text(one[14]) & from_text(other[14]):
            assert one[10] <= other[8] + 1e-6 or other[10] <= one[8] + 1e-6, f"{one[0]} and {other[0]} share a host"


def check_energy(record, platform):
    """The energy that is reported is the sum over hosts of power x time."""
    rows = record.consumed_energy
    for (t0, e0, *_), (t1, e1, *_) in itertools.pairwise(rows):
        assert t1 >= t0
        highest = sum(max(state.full_w for state in host.pstates) for host in platform.hosts)
        assert LOWEST_W * (t1 - t0) - 1e-6 <= e1 - e0 <= highest * (t1 - t0) + 1e-6


def check_power(record, scheduler):
    """Within each step no more is drawn than the plan promised (Eq. 2)."""
    steps = scheduler.promises
    for (t0, e0, *_), (t1, e1, *_) in itertools.pairwise(record.consumed_energy):
        if t1 - t0 < 1e-3:
            continue
        for i, (begin, _, promised) in enumerate(steps):
            end = steps[i + 1][0] if i + 1 < len(steps) else float("inf")
            if begin - 1e-6 <= t0 and t1 <= end + 1e-6:
                assert (e1 - e0) / (t1 - t0) <= promised + 1e-3, f"{t0}..{t1}: {(e1 - e0) / (t1 - t0)} W > {promised} W"


@pytest.mark.parametrize("combination", COMBINATIONS, ids="-".join)
@examples(6, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, caps=powers)
def test_laws(combination, rows, caps):
    record, scheduler = run(combination, rows, caps)
    check_jobs(record, rows)
    check_energy(record, machine(FAST, SLOW))
    assert scheduler.checked == []
    check_power(record, scheduler)


@examples(60)
@given(
    combination=st.sampled_from(COMBINATIONS), rows=jobs_of, caps=powers, victim=st.sampled_from(["lose", "resubmit"])
)
def test_the_text_of_the_wire_changes_nothing(combination, rows, caps, victim):
    direct, _ = run(combination, rows, caps, victim=victim)
    text, _ = run(combination, rows, caps, text=True, victim=victim)
    assert text == direct


@examples(200)
@given(combination=st.sampled_from([c for c in COMBINATIONS if c[2] != "none"]), rows=jobs_of, caps=powers)
def test_an_envelope_told_by_events_gives_the_same_result(combination, rows, caps):
    # without work to do, whether a step at the very time of Batsim's last words acts depends on how it splits messages
    rows = [(at, min(hosts, FAST + SLOW), *rest) for at, hosts, *rest in rows]
    assume(rows)
    if make("response", combination[2]).between_steps:
        # it looks at the queue: whether it sees a job of the very time of a step depends on that, too
        rows = [(at + 0.5 if at % 300 == 0.0 else at, *rest) for at, *rest in rows]
    with tempfile.TemporaryDirectory() as folder:
        by_events, _ = run(combination, rows, caps, events=told(caps, folder))
    by_file, _ = run(combination, rows, caps)
    assert by_events == by_file


@examples(60)
@given(
    combination=st.sampled_from(COMBINATIONS), rows=jobs_of, caps=st.lists(st.floats(250, 700), min_size=1, max_size=8)
)
def test_resubmitted_jobs_run_until_they_are_done(combination, rows, caps):
    record, _ = run(combination, rows, caps, victim="resubmit")
    check_jobs(record, rows, resubmits=True)
    last = {}
    for row in record.jobs:
        last[row[0].split("#")[0]] = row[7]
    # 250 W suffice for any job in some state: whatever is killed for power comes back until it is not
    assert "COMPLETED_KILLED" not in last.values()


@pytest.mark.parametrize("response", names("response"))
def test_same_input_same_bytes(response, tmp_path):
    rows = [(i * 37.5, 1 + i % 4, 100.0 + 13 * i, 1.5, i % 2 == 0) for i in range(12)]
    for name in ("a", "b"):
        record, _ = run(("slowdown", "easy", response), rows, [600, 200, 450, 90, 600])
        files = write_record(record, tmp_path / name)
    for path in files:
        other = path.with_name(path.name.replace("b_", "a_"))
        assert path.read_bytes() == other.read_bytes()
