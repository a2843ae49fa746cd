"""What a log requests is what schedulers plan with, whatever the reader; a request limits nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from builders import envelope, job, machine, played, starts

import batwatt as bw
from batwatt.run.prepared import PreparedRun
from batwatt.run.spec import RunSpec
from batwatt.schedulers.powercap import Powercap

pytestmark = pytest.mark.usefixtures("quiet")

MACHINES = bw.Platform.machines(10, 1, watts=100)
JOBS = ((1, 0, 100, 8, 120), (2, 1, 50, 10, 60))
"""Id, submission in s, run time in s, hosts, request in s; the first two leave two hosts free for 120 s."""
LAST = (3, 2, 50, 2)
"""A job that EASY starts at 2 s if it requests at most 118 s; else it waits for the second, until 150 s."""


def clock(seconds: float) -> str:
    """A date of Slurm, from 10 o'clock on."""
    return f"2024-03-01T10:{int(seconds) // 60:02}:{int(seconds) % 60:02}"


def swf(jobs) -> str:
    """A Standard Workload file."""
    return "; MaxProcs: 10\n" + "".join(
        f"{i} {submit} -1 {run} {hosts} -1 -1 {hosts} {asks} -1 1 1 1 1 1 -1 -1 -1\n"
        for i, submit, run, hosts, asks in jobs
    )


def sacct(jobs) -> str:
    """A dump of Slurm."""
    return "JobID|State|Submit|Start|ElapsedRaw|AllocCPUS|TimelimitRaw\n" + "".join(
        f"{i}|COMPLETED|{clock(submit)}|{clock(submit)}|{run}|{hosts}|{asks / 60:g}\n"
        for i, submit, run, hosts, asks in jobs
    )


def pbs(jobs) -> str:
    """Records of PBS."""
    return "".join(
        f"03/01/2024 12:00:00;E;{i}.s;user=u group=g queue=q ctime={1e9 + submit:.0f} qtime={1e9 + submit:.0f} "
        f"start={1e9 + submit:.0f} end={1e9 + submit + run:.0f} exec_host={'+'.join(f'n/{k}' for k in range(hosts))} "
        f"Resource_List.ncpus={hosts} Resource_List.walltime=00:{asks // 60:02}:{asks % 60:02} "
        f"resources_used.walltime=00:{run // 60:02}:{run % 60:02} Exit_status=0\n"
        for i, submit, run, hosts, asks in jobs
    )


def csv(jobs) -> str:
    """A table of jobs."""
    rows = "".join(f"{i},{submit},{run},{hosts},{asks}\n" for i, submit, run, hosts, asks in jobs)
    return f"id,arrival_time,length,cpus,estimate\n{rows}"


def converted(jobs) -> str:
    """Batsim's JSON with the field of a log."""
    rows = [
        {"id": str(i), "subtime": submit, "res": hosts, "profile": f"d{run}", "estimate_s": asks}
        for i, submit, run, hosts, asks in jobs
    ]
    profiles = {f"d{run}": {"type": "delay", "delay": run} for _, _, run, *_ in jobs}
    return json.dumps({"nb_res": 10, "jobs": rows, "profiles": profiles})


def limited(jobs) -> str:
    """Batsim's JSON with walltimes."""
    return converted(jobs).replace('"estimate_s"', '"walltime"')


READERS = {"swf": swf, "sacct": sacct, "pbs": pbs, "csv": csv, "estimate.json": converted, "walltime.json": limited}
EASY = {
    "easy": {},
    "powercap": {"order": "fcfs", "backfilling": "easy", "response": "none"},
    "jobpower": {"order": "fcfs"},
    "varcap": {"backfilling": "easy", "order": "fcfs"},
    "adaptive": {"parts": {"order": "fcfs"}},
    "multifactor": {"sched_interval_s": 1, "bf_interval_s": 1},
    "easyBackfill": {},
}
"""Schedulers that backfill by run times, with options."""
FOLLOWS = ("varcap", "adaptive")


def begins(path: Path, name: str, options) -> dict[str, float]:
    """The starts of the jobs in s."""
    limit = {"capacity": bw.Series((0.0,), (10.0,), "machines")} if name in FOLLOWS else {}
    jobs = bw.simulate(MACHINES, bw.Workload.read(path), name, options=options, **limit).jobs
    assert jobs["success"].all()
    return dict(zip(jobs["job_id"].astype(str).str.removesuffix(".s"), jobs["starting_time_s"], strict=True))


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("name", EASY)
def test_easy_tells_jobs_apart_that_differ_in_the_request_only(tmp_path, kind, name):
    begun = {}
    for asks in (60, 600):
        path = tmp_path / f"{asks}.{kind}"
        path.write_text(READERS[kind]([*JOBS, (*LAST, asks)]))
        begun[asks] = begins(path, name, EASY[name])["3"]
    assert begun[60] < 100 < begun[600]
    if name != "multifactor":
        assert begun == {60: 2.0, 600: 150.0}


@pytest.mark.parametrize("name", EASY)
def test_a_request_limits_nothing(tmp_path, caplog, name):
    """A job that requests 60 s and runs for 500 ends by itself; a scheduler from elsewhere is told 501 s."""
    path = tmp_path / "jobs.swf"
    path.write_text(swf([*JOBS, (3, 2, 500, 2, 60)]))
    with caplog.at_level("WARNING"):
        begun = begins(path, name, EASY[name])["3"]
    assert begun == 150.0 if name == "easyBackfill" else begun < 100.0
    text = f"{path}: 1 of 3 jobs run longer than they request: their walltimes are their run times, so none is killed"
    assert (text in caplog.messages) == (name == "easyBackfill")


def test_what_others_are_told(tmp_path, caplog):
    """A delay as long as its walltime is killed, so that 100 s become 101; no request becomes the run time."""
    path = tmp_path / "jobs.csv"
    path.write_text("arrival_time,length,cpus,estimate\n0,100,1,100\n1,99.5,1,50\n2,10,1,\n3,10,1,20\n")
    with caplog.at_level("WARNING"):
        jobs = bw.simulate(MACHINES, bw.Workload.read(path), "easyBackfill").jobs
    assert jobs.sort_values("submission_time_s")["requested_time_s"].tolist() == [101.0, 100.0, 11.0, 20.0]
    assert jobs["success"].all()
    assert [text.partition(": ")[2][:12] for text in caplog.messages] == ["1 of 4 jobs ", "1 of 4 jobs "]


def test_only_jobs_that_get_a_request_are_copied(tmp_path):
    (tmp_path / "jobs.csv").write_text("id,arrival_time,length,cpus,estimate\n1,0,100,8,120\n2,1,50,10,\n")
    load = bw.Workload.read(tmp_path / "jobs.csv")
    [run] = PreparedRun.of(RunSpec(platform=MACHINES, workloads=(load,), scheduler="easy")).engine_workloads
    assert [job is own for job, own in zip(run.jobs, load.jobs, strict=True)] == [True, False]
    assert (run.jobs[1].raw, "estimate_s" in load.jobs[1].raw) == ({**load.jobs[1].raw, "estimate_s": 50.0}, False)


@pytest.mark.parametrize("name", [name for name in EASY if name != "multifactor"])
@pytest.mark.parametrize("first", [120, ""])
def test_jobs_of_a_trace_without_a_request_are_planned_by_their_run_times(tmp_path, caplog, name, first):
    """The last job takes 50 s, and does not delay the second, or 500 s, and would."""
    for last, begin_s in ((50, 2.0), (500, 150.0)):
        path = tmp_path / f"{last}.csv"
        path.write_text(f"id,arrival_time,length,cpus,estimate\n1,0,100,8,{first}\n2,1,50,10,\n3,2,{last},2,\n")
        caplog.clear()
        with caplog.at_level("WARNING"):
            assert begins(path, name, EASY[name])["3"] == begin_s
        count = 2 if first else 3
        line = f"{path}: {count} of 3 jobs request no run time: they are planned by their exact run times"
        assert [text for text in caplog.messages if "request" in text] == [f"{line} (docs/explanation/run-times.md)"]


def test_exact_run_times_by_option(tmp_path):
    """The last job requests 600 s, and takes 50 of the 100 that the first one lasts."""
    path = tmp_path / "jobs.swf"
    path.write_text(swf([*JOBS, (*LAST, 600)]))
    for name in ("easy", "varcap", "jobpower"):
        assert begins(path, name, {**EASY[name], "run_times": "exact"})["3"] == 2.0


RESERVED = "nothing is reserved behind those that run, and none is backfilled before a reservation"


@pytest.mark.parametrize(
    ("name", "options", "effect"),
    [
        ("fcfs", {}, None),
        ("easy", {}, RESERVED),
        ("powercap", {"response": "none", "backfilling": "none"}, "the order 'slowdown' takes them as endless"),
        ("powercap", {"response": "none", "backfilling": "none", "order": "asc_size"}, None),
        ("varcap", {}, "they are planned by their exact run times"),
        ("multifactor", {}, "they have the time limit of their partition"),
        ("easy", {"run_times": {"name": "walltime", "otherwise_s": 60}}, None),
    ],
)
def test_jobs_of_batsim_without_a_walltime_are_counted(tmp_path, caplog, name, options, effect):
    path = tmp_path / "jobs.json"
    path.write_text(limited([(1, 0, 100, 1, 120), (2, 2, 10, 1, 20)]).replace(', "walltime": 20', ""))
    with caplog.at_level("WARNING"):
        begins(path, name, options)
    line = f"1 of 2 jobs request no run time: {effect} (docs/explanation/run-times.md)"
    assert [text for text in caplog.messages if "request" in text] == ([line] if effect else [])


def test_an_endless_job_reserves_nothing_and_is_not_backfilled(tmp_path):
    """The first job has no walltime: the last, of 500 s, starts before the second. Without one of its own it waits."""
    path = tmp_path / "jobs.json"
    for rows, asks, begin_s in (([120, 60, 500], 120, 2.0), ([120, 60, 501], 501, 150.0)):
        jobs = [(1, 0, 100, 8, rows[0]), (2, 1, 50, 10, rows[1]), (3, 2, 500, 2, rows[2])]
        path.write_text(limited(jobs).replace(f', "walltime": {asks}', ""))
        jobs = bw.simulate(MACHINES, bw.Workload.read(path), "easy").jobs
        assert jobs.set_index("job_id")["starting_time_s"]["3"] == begin_s


@pytest.mark.parametrize("name", ["riskaware", "checkpoint"])
def test_plans_by_exact_run_times_say_so(tmp_path, caplog, name):
    path = tmp_path / "jobs.swf"
    path.write_text(swf(JOBS))
    with caplog.at_level("WARNING"):
        bw.simulate(bw.Platform.machines(2, 10), bw.Workload.read(path), name, capacity=bw.Series((0.0,), (2.0,), "m"))
    line = "plans are by exact run times, which no site has: the requests of 2 of 2 jobs are not used"
    assert [text for text in caplog.messages if "request" in text] == [line]


def test_a_job_that_began_before_the_window_has_requested_the_rest(tmp_path):
    """In the window from 60 s on the first job has 40 s left and, as it requested 120 s, is expected to go on for 60.

    The second takes all hosts from 100 s on; the third, of 70 s, would delay it, and of 50 s would not.
    """
    begun = {}
    for asks in (50, 70):
        path = tmp_path / f"{asks}.swf"
        path.write_text(swf([(1, 0, 100, 8, 120), (2, 61, 50, 10, 60), (3, 62, 20, 2, asks)]))
        jobs = bw.simulate(MACHINES, bw.Workload.read(path, window=(60, 200)), "easy").jobs
        begun[asks] = dict(zip(jobs["job_id"], jobs["starting_time_s"], strict=True))
    assert begun[50] == {"1": 60.0, "2": 100.0, "3": 62.0}
    assert begun[70] == {"1": 60.0, "2": 100.0, "3": 150.0}


@pytest.mark.parametrize("response", ["hfld", "idsb", "iafs", "frugal", "none"])
@pytest.mark.parametrize("victim", ["resubmit", "checkpoint"])
def test_a_request_plans_as_a_walltime_that_no_job_reaches(response, victim):
    """So do the requests of jobs that go on after a kill, of which less is left."""
    rng = random.Random(7)
    rows = [(i, 50 * i, rng.randint(1, 2), rng.randint(60, 900)) for i in range(12)]
    caps = envelope(*(rng.choice((60.0, 150.0, 400.0)) for _ in range(40)), 400.0)
    records = []
    for field in ("walltime", "estimate_s"):
        jobs = [job(*row, flops=True) | {field: 30.0 * row[3] + 7 * row[0]} for row in rows]
        options = {"response": response, "victim": victim, "envelope": caps, "platform": machine(2, 2)}
        records.append(starts(played(Powercap(options), machine(2, 2), *jobs, energy=True)))
    assert records[0] == records[1]
    assert len(records[0]) >= len(rows)
