"""Faults played to `batwatt slurm run --operate` on a real Slurm of toy nodes; a line for each kind of trial.

python bench/slurm_trials.py [NAME...] [--source FOLDER] [--extra WORDS] [--count NAME=N] [-o FILE]

Prints name, number of trials, number that passed, and evidence. A trial judges by the state of Slurm (squeue, sinfo,
the files that jobs write) and by the exit code of the bridge. `--source` is the root of another checkout, to run the
same trials on another version. Needs root and Debian's slurmctld, slurmd, slurm-client and munge.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from slurm_lab import DAEMON_LIMIT_S, ROOT, Bridge, Cluster, Lab, new_cluster, numbers_of, summed, wait

FCFS = ("-s", "powercap", "-o", '{"response": "none", "backfilling": "easy", "order": "fcfs"}')
FRUGAL = ("-s", "powercap", "-o", '{"response": "frugal"}', "--envelope")
COUNTS = {"freezes": 30, "array": 5000, "separate": 1000, "latency": 20}
LONG_S = 900.0
"""Longest time in s in which thousands of jobs are announced, and given back."""
WAIT_S = 20.0
"""Longest time from sbatch to a start on an empty cluster, in s: some polls, and a boot."""

ROGUE = """\
import json, os, sys, zmq
log = open(sys.argv[2], "w", buffering=1)
socket = zmq.Context().socket(zmq.REP)
os.setgid(65534), os.setuid(65534)
socket.bind(sys.argv[1])
log.write("bound\\n")
while True:
    message = json.loads(socket.recv())
    log.write("message\\n")
    events = []
    for event in message.get("events", ()):
        if event["type"] == "JOB_SUBMITTED":
            data = {"job_id": event["data"]["job_id"], "alloc": "0"}
            events.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": data})
    socket.send_string(json.dumps({"now": message["now"], "events": events}))
"""
"""A peer of the user nobody that starts what it is told of; arguments: endpoint, file of its log."""


@dataclass
class Try:
    """A trial: what was tried, whether it passed, and what was seen."""

    name: str
    passed: bool
    seen: str = ""


# trials ---------------------------------------------------------------------------------------------------------------


def freezes(lab: Lab) -> Iterator[Try]:
    """Stop slurmctld for a while, just before and while a start is carried out."""
    cluster, cap = lab.cluster, lab.cap("time_s,power_w\n0,900\n")
    long_s = [65.0, 25.0, 12.0, 12.0]
    bridge: Bridge | None = None
    for i in range(lab.counts["freezes"]):
        lasts_s = long_s.pop() if i % 7 == 6 and long_s else round(lab.draw.uniform(1.0, 8.0), 1)
        if bridge is None:
            cluster.clean()
            bridge = Bridge(lab, *FRUGAL, cap).start()
            if not bridge.until_true(lambda: len(cluster.drained()) >= 3, 40.0):
                yield Try(f"freeze {i}", False, f"no node was switched off: {bridge.last()}")
                bridge.end()
                bridge = None
                continue
        before = len(bridge.decisions("EXECUTE_JOB"))
        numbers = [cluster.sbatch("-N", str(1 + k // 2)) for k in range(3)]
        where = ("before a poll", "at a reply", "in a reply")[i % 3]
        if where != "before a poll":
            bridge.until_starts(before + 1, 15.0)
        pause_s = {"before a poll": 0.4, "at a reply": 0.0, "in a reply": 0.12}[where] * lab.draw.random()
        time.sleep(pause_s)
        process = cluster.controller()
        os.kill(process, signal.SIGSTOP)
        time.sleep(lasts_s)
        os.kill(process, signal.SIGCONT)
        ended = cluster.until("COMPLETED", numbers, 75.0, bridge)
        problems = []
        if not bridge.lives():
            problems.append(f"the bridge ended with {bridge.process.returncode}: {bridge.last()}")
        elif not ended:
            states = Counter(f"{job['State']}({job['Reason']})" for job in cluster.jobs(*numbers).values())
            problems.append(f"after 75 s {dict(states)}")
        elif not cluster.drained():
            problems.append("no node is drained any more")
        runs = [len(cluster.runs(number)) for number in numbers]
        if max(runs) > 1 or any(job["RestartCnt"] != "0" for job in cluster.jobs(*numbers).values()):
            problems.append(f"started {runs} times")
        yield Try(f"{lasts_s:g} s {where}", not problems, "; ".join(problems))
        if problems:
            bridge.end()
            bridge = None
    if bridge is not None:
        bridge.end()


def holds(lab: Lab) -> Iterator[Try]:
    """Hold a job as an administrator while it runs, after slurmctld was stopped during its start; it must stay held."""
    cluster, cap = lab.cluster, lab.cap("time_s,power_w\n0,900\n")
    for count in range(1, 4):
        cluster.clean()
        name = f"stopped after command {count} of the start"
        with Bridge(lab, *FRUGAL, cap) as bridge:
            bridge.until_begun()
            number = cluster.sbatch("-N1", run_s=60.0)
            bridge.until_commands(number, count, 20.0)
            process = cluster.controller()
            os.kill(process, signal.SIGSTOP)
            time.sleep(8.0)
            os.kill(process, signal.SIGCONT)
            if not cluster.until("RUNNING", [number], 75.0, bridge):
                yield Try(name, False, f"{name}: {cluster.jobs(number)[number]['State']} 75 s later")
                continue
            time.sleep(2.0)
            cluster.command("scontrol", "requeuehold", number)
            time.sleep(10.0)
            job = cluster.jobs(number)[number]
            held = job["State"] == "PENDING" and job["PriorityLong"] == "0"
            yield Try(name, held, "" if held else f"{name}: {job['State']} although an administrator holds it")


def sigterm(lab: Lab) -> Iterator[Try]:
    """End a session in seven states; nothing of it may be left in Slurm."""
    yield _ending(lab, "jobs announced")
    starts = [_ending(lab, "start under way") for _ in range(3)]
    yield Try("start under way", all(one.passed for one in starts), "; ".join(filter(None, (s.seen for s in starts))))
    yield _ending(lab, "nodes off")
    yield _ending(lab, "SIGTERM twice")
    yield _ending(lab, "slurmctld stopped for 10 s")
    yield _ending(lab, "slurmctld away for 10 s")
    yield _ending(lab, "slurmctld away for long")


def _ending(lab: Lab, name: str) -> Try:
    cluster = lab.cluster
    cluster.clean()
    under_way, off = name == "start under way", name == "nodes off"
    if not under_way and not off:
        blocker = cluster.sbatch("-N8", "-p", "other", run_s=300.0, hold=False)
        cluster.until("RUNNING", [blocker], 20.0)
    widths = ["1"] * 6 if under_way else ["1-4", "2-4", "8", "1", "6-8"] + ["1"] * (25 if "twice" in name else 0)
    numbers = [cluster.sbatch("-N", width, run_s=60.0) for width in widths]
    cluster.command("scontrol", "update", f"jobid={numbers[1]}", "admincomment=paid by physics")
    before = cluster.jobs(*numbers)
    cap = lab.cap("time_s,power_w\n0,350\n" if off else "time_s,power_w\n0,1750\n")
    with Bridge(lab, *(FRUGAL if off else FCFS), *([cap] if off else [])) as bridge:
        if under_way:
            bridge.until_starts(1, 30.0)
            time.sleep(0.3 * lab.draw.random())
        else:
            bridge.until_announced(numbers)
        if off:
            wait(lambda: len(cluster.drained()) >= 3, 40.0)
        away_s = 10.0 if "10 s" in name else None
        process = cluster.controller()
        if "stopped" in name:
            os.kill(process, signal.SIGSTOP)
        elif "slurmctld" in name:
            cluster.stop_controller()
        began = time.monotonic()
        bridge.process.send_signal(signal.SIGTERM)
        if "twice" in name:
            time.sleep(0.2)
            bridge.process.send_signal(signal.SIGTERM)
        if away_s is not None:
            time.sleep(away_s)
            if "stopped" in name:
                os.kill(process, signal.SIGCONT)
            else:
                cluster.start_controller()
        code = bridge.until_end(DAEMON_LIMIT_S)
        took_s = time.monotonic() - began
    problems = []
    if name.endswith("long"):
        if code in (0, 143):
            problems.append(f"code {code} although nothing was given back")
        elif code < 0:
            problems.append(f"no end within {DAEMON_LIMIT_S:g} s")
        release = subprocess.Popen(
            [sys.executable, "-m", "batwatt", "slurm", "release", "-p", str(lab.platform), "--partition", "green"],
            env=lab.environment(cluster), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(10.0)
        cluster.start_controller()
        said = release.communicate(timeout=200)[1].strip().splitlines()
        if release.returncode:
            problems.append(f"release: code {release.returncode}, {said[-1][:120] if said else ''}")
    elif code != 143:
        problems.append(f"code {code}")
    problems += summed(cluster.left(before))
    if under_way and problems:
        time.sleep(5.0)
        problems.append(f"5 s later {len(cluster.left(before))} left")
    return Try(name, not problems, f"{name}: " + "; ".join([*problems, f"{took_s:.1f} s"]) if problems else "")


@dataclass(frozen=True)
class Constraint:
    """A request of a job: words for sbatch, and what the nodes (numbers) of its run must satisfy."""

    name: str
    words: tuple[str, ...]
    satisfied: Callable[[list[int]], bool] = lambda nodes: True
    jobs: int = 1


CONSTRAINTS = (
    Constraint("feature", ("-N1", "-C", "small"), lambda nodes: min(nodes) >= 5),
    Constraint("exclude", ("-N2", "--exclude=n1"), lambda nodes: 1 not in nodes),
    Constraint("nodelist", ("-N1", "-w", "n2"), lambda nodes: nodes == [2]),
    Constraint("licenses", ("-N1", "--licenses=lic:1"), jobs=2),
    Constraint("gres", ("-N1", "--gres=gpu:1"), lambda nodes: nodes == [4]),
    Constraint("reservation", ("-N1", "--reservation=R"), lambda nodes: max(nodes) <= 2),
    Constraint("contiguous", ("-N3", "--contiguous"), lambda nodes: len(nodes) == 3 and nodes[2] - nodes[0] == 2),
    Constraint("range", ("-N2-4",), lambda nodes: 2 <= len(nodes) <= 4),
    Constraint("hetjob", ("-N1", ":", "-N1")),
    Constraint("tasks", ("-n40",), lambda nodes: len(nodes) >= 3),
)


def constraints(lab: Lab) -> Iterator[Try]:
    """Hand jobs over that ask for more than nodes, each with three plain ones."""
    for one in CONSTRAINTS:
        yield _constrained(lab, one)


def _constrained(lab: Lab, one: Constraint) -> Try:
    cluster = lab.cluster
    cluster.clean()
    if one.name == "contiguous":
        cluster.sbatch("-w", "n2", "-p", "other", run_s=300.0, hold=False)
    if one.name == "reservation":
        cluster.command("scontrol", "create", "reservation", "ReservationName=R", "starttime=now", "duration=60",
                        "nodes=n[1-2]", "users=root")  # fmt: skip
    special = [cluster.sbatch(*one.words) for _ in range(one.jobs)]
    if one.name == "hetjob":
        special = [f"{special[0]}+0", f"{special[0]}+1"]
    plain = [cluster.sbatch("-N1") for _ in range(3)]
    problems = []
    with Bridge(lab, *FCFS) as bridge:
        cluster.until("COMPLETED", [*plain, *special], 20.0, bridge)
        if not cluster.until("COMPLETED", plain, 15.0, bridge):
            states = {f"{job['State']}({job['Reason']})" for job in cluster.jobs(*plain).values()}
            problems.append(f"plain jobs {', '.join(sorted(states))} after 35 s")
        if not bridge.lives():
            problems.append(f"the bridge ended: {bridge.last()}")
        code = bridge.end()
    if code != 143:
        problems.append(f"code {code}")
    cluster.until("COMPLETED", [*plain, *special], 20.0)
    jobs = cluster.jobs()
    for number in [*special, *plain]:
        job = jobs[number]
        if job["State"] == "COMPLETED":
            nodes = numbers_of(job["NodeList"])
            if number in special and not one.satisfied(nodes):
                problems.append(f"ran on {job['NodeList']}")
            if number in plain and one.name == "reservation" and min(nodes) <= 2:
                problems.append("a plain job ran on a reserved node")
        elif job["State"] == "PENDING" and job["Reason"] == "JobHeldUser" and number in special:
            # as its user left it: that is well if it is said
            if not bridge.names(number.partition("+")[0]):
                problems.append("not taken over, and not named")
        else:
            problems.append(f"{'plain' if number in plain else 'job'} {job['State']}({job['Reason']}) at the end")
    seen = "; ".join(dict.fromkeys(problems))
    return Try(one.name, not problems, f"{one.name}: {seen}" if problems else "")


WHOLE = "time_s,power_w\n0,1600\n"
FAULTS: tuple[tuple[str, str | None, float], ...] = (
    ("truncated", "time_s,power_w\n0,16", 3.0),
    ("empty", "", 3.0),
    ("removed", None, 5.0),
    ("garbage", "\x00\x7f<html>502 Bad Gateway</html>\n1,2,3\n", 3.0),
    ("value 0", "time_s,power_w\n0,0\n", 4.0),
    ("fall of 90 %", "time_s,power_w\n0,160\n", 4.0),
)
"""Name, content of the file (None: removed), and time in s for which it lasts."""


def envelope(lab: Lab) -> Iterator[Try]:
    """Damage the file of the envelope under running jobs, which must go on."""
    cluster = lab.cluster
    bridge: Bridge | None = None
    for name, text, lasts_s in FAULTS:
        if bridge is None or not bridge.lives():
            cluster.clean()
            path = Path(lab.cap(WHOLE))
            bridge = Bridge(lab, *FRUGAL, str(path)).start()
        result = _damaged(cluster, bridge, name, path, text, lasts_s)
        yield result
        if not result.passed:
            bridge.end()
            bridge = None
    if bridge is not None:
        bridge.end()
    if "--allow-fall" in lab.help:
        cluster.clean()
        path = Path(lab.cap(WHOLE))
        with Bridge(lab, *FRUGAL, str(path), "--allow-fall", "100") as one:
            result = _damaged(cluster, one, "allowed fall of 90 %", path, "time_s,power_w\n0,160\n", 12.0)
        yield Try("allowed fall", "started again" in result.seen or "PENDING" in result.seen, f"allowed: {result.seen}")
    now = datetime.now(UTC)
    over = _dated(now - timedelta(days=2), now - timedelta(days=1))
    last = _dated(now - timedelta(hours=1), now)
    for name, first, later in (
        ("dates over", last, over),
        ("last row now", last, last),
        ("begins with dates over", over, over),
    ):
        cluster.clean()
        path = Path(lab.cap(first))
        with Bridge(lab, *FRUGAL, str(path)) as one:
            yield _damaged(cluster, one, name, path, later, 4.0)


def _dated(*dates: datetime) -> str:
    return "time,power_w\n" + "".join(f"{date:%Y-%m-%dT%H:%M:%SZ},1600\n" for date in dates)


def _damaged(cluster: Cluster, bridge: Bridge, name: str, path: Path, text: str | None, lasts_s: float) -> Try:
    numbers = [cluster.sbatch("-N1", run_s=lasts_s + 7.0) for _ in range(3)]
    if not cluster.until("RUNNING", numbers, 25.0, bridge):
        states = {job["State"] for job in cluster.jobs(*numbers).values()}
        return Try(name, False, f"{name}: jobs did not start {states}: {bridge.last()}")
    whole = path.read_text()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    time.sleep(lasts_s)
    path.write_text(whole)
    problems = []
    cluster.until("COMPLETED", numbers, 12.0)
    jobs = cluster.jobs(*numbers).values()
    again = sum(job["RestartCnt"] != "0" for job in jobs)
    if again:
        problems.append(f"{again} of 3 jobs killed and started again")
    other = Counter(job["State"] for job in jobs if job["State"] != "COMPLETED")
    if other:
        problems.append(f"jobs {dict(other)}")
    if not bridge.lives():
        problems.append(f"the bridge ended with {bridge.process.returncode}: {bridge.last()}")
    cluster.command("scancel", *numbers, check=False)
    return Try(name, not problems, f"{name}: " + "; ".join(problems) if problems else "")


def machines(lab: Lab) -> Iterator[Try]:
    """Start a second bridge that cannot see the lock file of the first: another machine, another user."""
    lab.cluster.clean()
    other = "hostname other-machine; mount -t tmpfs none /run; mkdir -p /run/t; export TMPDIR=/run/t; exec"
    apart = ("unshare", "--uts", "--mount", "sh", "-c", f'{other} "$@"', "sh")
    yield _second(lab, "another machine", lab.cluster, "", apart)
    # Python may be in a folder of root
    capability = "+dac_read_search"
    drop = ("setpriv", "--reuid", "slurm", "--regid", "slurm", "--clear-groups", "--inh-caps", capability,
            "--ambient-caps", capability)  # fmt: skip
    with new_cluster("slurm") as cluster:
        yield _second(lab, "SlurmUser, then root", cluster, "slurm", (), drop)


def _second(
    lab: Lab, name: str, cluster: Cluster, user: str, around: Sequence[str], first: Sequence[str] = ()
) -> Try:  # fmt: skip
    problems = []
    with Bridge(lab, *FCFS, cluster=cluster, around=first, user=user) as one:
        if not one.until_begun():
            return Try(name, False, f"{name}: the first did not begin: {one.last()}")
        with Bridge(lab, *FCFS, cluster=cluster, around=around) as two:
            numbers = [cluster.sbatch("-N2", run_s=2.0) for _ in range(4)]
            if not wait(lambda: not two.lives(), 30.0):
                problems.append("the second operates as well")
            elif two.process.returncode != 2:
                problems.append(f"the second ended with {two.process.returncode}: {two.last()}")
        if not cluster.until("COMPLETED", numbers, 30.0):
            problems.append(f"jobs {dict(Counter(job['State'] for job in cluster.jobs(*numbers).values()))}")
        runs = [len(cluster.runs(number)) for number in numbers]
        if max(runs) > 1:
            problems.append(f"jobs started {runs} times")
        if not one.lives():
            problems.append(f"the first ended with {one.process.returncode}: {one.last()}")
    return Try(name, not problems, f"{name}: " + "; ".join(problems) if problems else "")


def rogue(lab: Lab) -> Iterator[Try]:
    """Let another user answer at the port of Batsim."""
    endpoint = "tcp://127.0.0.1:28000"
    token = lab.token
    if not token and (option := re.search(r"--token[\w-]*", lab.help)):
        path = lab.folder / "token"
        path.write_text("0123456789abcdef0123456789abcdef\n")
        path.chmod(0o600)
        token = (option[0], str(path))
    yield _rogue(lab, "defaults", endpoint, ())
    yield _rogue(lab, "TCP without a token", endpoint, ("--socket", endpoint))
    if token:
        yield _rogue(lab, "a peer without the token", endpoint, ("--socket", endpoint, *token))
    else:
        yield Try("a peer without the token", False, "a peer without the token: there is no token")


def _rogue(lab: Lab, name: str, endpoint: str, words: Sequence[str]) -> Try:
    cluster = lab.cluster
    cluster.clean()
    number, log = cluster.sbatch("-N1"), lab.folder / "rogue.txt"
    log.unlink(missing_ok=True)
    peer = subprocess.Popen([sys.executable, "-c", ROGUE, endpoint, str(log)], stderr=subprocess.PIPE, text=True)
    problems = []
    try:
        if not wait(lambda: log.exists() and "bound" in log.read_text(), 10.0):
            return Try(name, False, f"{name}: the peer cannot listen")
        with Bridge(lab, *words) as bridge:
            bridge.until_true(lambda: "message" in log.read_text(), 15.0)
            time.sleep(3.0)
            job = cluster.jobs(number)[number]
            if "message" in log.read_text() and not words:
                problems.append("connected to it")
            if job["State"] != "PENDING" or cluster.runs(number):
                problems.append(f"the job of root is {job['State']}")
            if words and bridge.lives():
                problems.append("is not refused")
    finally:
        peer.kill()
        peer.wait()
    return Try(name, not problems, f"{name}: " + "; ".join(problems) if problems else "")


def many(lab: Lab) -> Iterator[Try]:
    """Announce and give back thousands of jobs: the tasks of an array, then jobs of their own."""
    for name in ("array", "separate"):
        count = lab.counts[name]
        if not count:
            continue
        with new_cluster() as cluster:
            blocker = cluster.sbatch("-N8", "-p", "other", run_s=5000.0, hold=False)
            cluster.until("RUNNING", [blocker], 20.0)
            if name == "array":
                cluster.sbatch("-N1", f"--array=1-{count}")
            else:
                line = f"seq {count} | xargs -P 4 -I@ sbatch -Q -H -N1 -t10 -o /dev/null --wrap=true"
                subprocess.run(["sh", "-c", line], env=cluster.environment, check=True, timeout=900)
            jobs = cluster.jobs()
            before = {number: job for number, job in jobs.items() if number != blocker}
            began = time.monotonic()
            bridge = Bridge(lab, *FCFS, cluster=cluster).start()
            bridge.until_announced(list(before), LONG_S, 0.5)
            told_s, told = time.monotonic() - began, len(bridge.announced())
            began = time.monotonic()
            code = bridge.end(LONG_S)
            given_s = time.monotonic() - began
            problems = [f"code {code}" + f" (killed after {LONG_S:g} s)" * (code < 0)] if code != 143 else []
            problems += summed(cluster.left(before))
            text = f"{name}: {told} of {len(before)} announced in {told_s:.0f} s, given back in {given_s:.1f} s"
            yield Try(name, not problems and told == len(before), "; ".join([text, *problems]))


def latency(lab: Lab) -> Iterator[Try]:
    """Measure the time from sbatch to the first line of a job at real speed, on an empty cluster under a constant cap.

    The first job comes when idle nodes have been switched off.
    """
    cluster, count = lab.cluster, lab.counts["latency"]
    cluster.clean()
    waits_s: list[float] = []
    cap = lab.cap("time_s,power_w\n0,1000\n")
    with Bridge(lab, *FRUGAL, cap, speed=1.0, poll_s=5.0) as bridge:
        bridge.until_begun()
        time.sleep(20.0)
        for i in range(count):
            number = cluster.sbatch("-N", str((1, 2, 4, 1, 3)[i % 5]))
            date_s = time.time()
            cluster.until("COMPLETED", [number], 320.0, bridge)
            waits_s.append(cluster.runs(number)[0] - date_s if cluster.runs(number) else math.inf)
            yield Try(f"job {i}", waits_s[i] <= WAIT_S, "" if waits_s[i] <= WAIT_S else f"{waits_s[i]:.1f} s")
            time.sleep(lab.draw.uniform(2.0, 10.0))
    values = f"median {statistics.median(waits_s):.1f} s, max {max(waits_s):.1f} s"
    yield Try("lives", bridge.process.returncode == 143, values)


TRIALS: dict[str, Callable[[Lab], Iterator[Try]]] = {
    one.__name__: one for one in (freezes, holds, sigterm, constraints, envelope, machines, rogue, many, latency)
}


@contextmanager
def laboratory(arguments: argparse.Namespace) -> Iterator[Lab]:
    """A lab for the arguments."""
    counts = COUNTS | {name: int(value) for name, value in (text.split("=") for text in arguments.count)}
    lab = Lab(arguments.source.resolve(), shlex.split(arguments.extra), counts, shlex.split(arguments.token))
    try:
        lab.prepare()
        yield lab
    finally:
        lab.close()


def main() -> None:
    """Run the trials."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TRIALS)}")
    parser.add_argument("--source", type=Path, default=ROOT, help="root of the checkout that runs")
    parser.add_argument("--extra", default="", help="more words for `batwatt slurm run`")
    parser.add_argument("--token", default="", help="words that give `batwatt slurm run` its token")
    parser.add_argument("--count", action="append", default=[], metavar="NAME=N", help=f"of {COUNTS}")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="print each trial on stderr")
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {}
    for name in arguments.names or TRIALS:
        began, tries = time.monotonic(), []
        with laboratory(arguments) as lab:
            for one in TRIALS[name](lab):
                tries.append(one)
                if arguments.verbose:
                    print(f"  {name}: {'ok' if one.passed else 'FAILED'} {one.name}: {one.seen}", file=sys.stderr)
        results[name] = [asdict(one) for one in tries]
        seen = Counter(one.seen for one in tries if one.seen)
        evidence = " | ".join(text if times == 1 else f"{times}x {text}" for text, times in seen.items()) or "all well"
        passed = sum(one.passed for one in tries)
        print(
            f"{name:<12} n={len(tries):<3} passed={passed:<3} {time.monotonic() - began:4.0f} s  {evidence}", flush=True
        )
        if arguments.output:
            arguments.output.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
