"""`batwatt batsim`: the options, exit codes and files of Batsim 4.2.1, and a link of that name."""

from __future__ import annotations

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import zmq
from cli_house import JOBS, SMALL

from batwatt import __version__
from batwatt.batsim.batsim4 import EngineConfig

INPUTS = ("-p", SMALL, "-w", JOBS)
LINKED = "from batwatt.__main__ import main; main()"


@pytest.fixture
def link(house):
    """A link named `batsim` to a script that is `batwatt`."""
    path = house.folder / "batsim"
    path.symlink_to(house.write("batwatt", LINKED))
    return path


@pytest.fixture
def program(house, link):
    """An executable that calls the link, as PATH would."""

    path = house.write("launcher", f'#!/bin/sh\nexec {sys.executable} {link} "$@"\n')
    path.chmod(0o755)
    return path


def talk(endpoint, answers, patience_s=30.0):
    """Listen as a scheduler; return the messages of Batsim, each answered by `answers(events, now)`."""
    messages = []
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.setsockopt(zmq.RCVTIMEO, int(1000 * patience_s))
        socket.bind(endpoint)
        while not messages or messages[-1]["events"][0]["type"] != "SIMULATION_ENDS":
            messages.append(json.loads(socket.recv()))
            now = messages[-1]["now"]
            socket.send_json({"now": now, "events": answers(messages[-1]["events"], now)})
    return messages


def one_by_one(events, now):
    """Run each job on host 0 as it comes."""
    jobs = (event["data"]["job_id"] for event in events if event["type"] == "JOB_SUBMITTED")
    return [{"timestamp": now, "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": "0"}} for job in jobs]


def test_context_and_versions(house):
    """Launchers ask for them; files need not exist, as in Batsim."""
    done = house.batwatt("batsim", "-pnone", "-eout/x", "--dump-exec", "--no-sched", "--socket=ipc://s")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        '{"socket_endpoint":"ipc://s","redis_enabled":false,"redis_hostname":"127.0.0.1","redis_port":6379,'
        '"redis_prefix":"default","export_prefix":"out/x","external_scheduler":false}\n'
    )
    assert house.batwatt("batsim", "--version").out == f"v4.2.1+batwatt.{__version__}\n"
    assert house.batwatt("batsim", "--simgrid-version", "-p", "none").out.startswith("3.")


def test_link(house, link, program, endpoint):
    """A link is the command, also under another launcher, and no real Batsim for `run`."""
    done = house.end(house.start("--version", program=(link,)))
    assert (done.code, done.out) == (0, f"v4.2.1+batwatt.{__version__}\n")
    assert house.end(house.start("-p", "none", program=(link,))).code == 1
    refused = house.run("-o", '{"response": "none"}', "--engine", "batsim", "--batsim", program)
    assert refused.code == 2 and "is batwatt, which plays Batsim" in refused.line and house.left == []


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("-W", JOBS), "--workflow"),
        (("--WS", JOBS, 3), "--workflow-start"),
        (("--workflow-start", JOBS, 3), "--workflow-start"),
        (("--enable-redis",), "--enable-redis"),
        (("--sg-cfg", "a:b", "--sg-cfg=c:d"), "--sg-cfg"),
        (("--no-sched",), "--no-sched"),
    ],
)
def test_refused(house, words, name):
    done = house.batwatt("batsim", *INPUTS, *words)
    assert done.code == 2 and done.line.startswith(f"batwatt: {name}: ")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        ((), 255, "Missing option"),
        (("-p", "none"), 1, "none: cannot be read"),
        (("-p", SMALL, "-w", "none"), 2, "none: cannot be read"),
        (("-p", "none", "-w", JOBS, "--events", "no"), 3, "none, no: cannot be read"),
        ((*INPUTS, JOBS), 255, "extra argument"),
        ((*INPUTS, "--enable"), 255, "--enable is not a unique prefix: --enable-"),
        ((*INPUTS, "-e", "a", "--export=b"), 255, "--export is given twice"),
        ((*INPUTS, "-E", "-Eq"), 255, "-E is given twice"),
        ((*INPUTS, "--energy=yes"), 255, "does not take a value"),
        ((*INPUTS, "--mmax", "few"), 255, "--mmax"),
        ((*INPUTS, "-v", "loud"), 2, "give quiet, network-only, information or debug"),
        ((*INPUTS, "--enable-profile-reuse"), 2, "--enable-dynamic-jobs"),
        ((*INPUTS, "--sched-cfg", "a", "--sched-cfg-file", SMALL), 255, "are both given"),
        ((*INPUTS, "-r", "slow-1"), 2, "write HOST,HOST:ROLE"),
        ((*INPUTS, "-r", "slow-1:king"), 2, "unknown role 'king'"),
        ((*INPUTS, "-r", "nobody:storage"), 2, "has no host of that name"),
        ((*INPUTS, "-m", "nobody"), 2, "no host is called 'nobody'"),
        (("-p", SMALL, "-w", SMALL), 2, "is not JSON"),
    ],
)
def test_exit_codes(house, words, code, line):
    done = house.batwatt("batsim", *words)
    assert done.code == code and line in done.line and done.out == ""


def test_words_are_read_as_batsim_reads_them(house, endpoint):
    """Two delays of 5 s one after the other on host 0, a prefix that is a folder, and all words that are taken."""
    load = house.workload(*({"id": n, "subtime": at, "res": 1, "profile": "nap"} for n, at in ((1, 0), (2, 10))))
    house.out.mkdir()
    words = ("-r", "slow-1,fast-2:storage", "-r", "fast-1:master", "-mfast-1", "--mmax=1", "--mmax-workload")
    words += ("--sched-cfg", "--text", "--disable-storage", "--disable-machine", "--forward-unknown-events")
    words += ("--acknowledge", "--redis-hostname", "r", "--redis-port=1", "--redis-prefix=x", "--sg-log", "a", "-q")
    words += ("--workflow-jobs-limit", 1, "--ignore-beyond-last-workflow", "--sg-log=b", "-v", "network-only")
    platform = house.write("p.xml", SMALL.read_text().replace("master_host", "host"))
    with ThreadPoolExecutor() as pool:
        process = house.start(*("batsim", "-Ep", platform, f"-w{load}", "-s", endpoint, "-e", f"{house.out}/", *words))
        messages = pool.submit(talk, endpoint, one_by_one).result()
        done = house.end(process)
    assert (done.code, done.out, done.err) == (0, "", "")
    begins = messages[0]["events"][0]["data"]
    assert [host["name"] for host in begins["compute_resources"]] == ["host"]
    assert begins["allow_storage_sharing"] is False
    settings = {"redis-hostname": "r", "redis-port": 1, "redis-prefix": "x", "sched-config": "--text"}
    assert begins["config"] == EngineConfig().payload() | settings | {"dynamic-jobs-acknowledged": True}
    names = ["_consumed_energy.csv", "_jobs.csv", "_pstate_changes.csv", "_schedule.csv"]
    assert house.left == names
    times = [(row["job_id"], row["starting_time"], row["finish_time"]) for row in house.rows("_jobs.csv")]
    assert times == [("1", "0.000000", "5.000000"), ("2", "10.000000", "15.000000")]


def test_several_lists_of_events_and_no_workload(house, endpoint):
    """Events of two files in order of time; without a workload the simulation ends after them."""
    lists = [
        house.write(f"e{host}", json.dumps({"type": "machine_unavailable", "resources": str(host), "timestamp": at}))
        for host, at in ((0, 7), (1, 3))
    ]
    with ThreadPoolExecutor() as pool:
        said = pool.submit(talk, endpoint, one_by_one)
        words = [word for path in lists for word in ("--events", path)]
        done = house.batwatt("batsim", "-p", SMALL, "-s", endpoint, "-e", house.out / "x", *words)
    assert done.code == 0 and done.err.splitlines()[-1].endswith(
        "_schedule.trace (Pajé) is not written; --disable-schedule-tracing expects none"
    )
    heard = [
        (m["now"], e["data"].get("resources")) for m in said.result() for e in m["events"] if e["type"] == "NOTIFY"
    ]
    assert heard[:2] == [(3.0, "1"), (7.0, "0")]
    assert house.left == ["x_jobs.csv", "x_machine_states.csv", "x_schedule.csv"]


@pytest.mark.parametrize(
    ("alloc", "code", "line"),
    [("0-1", 1, "illegal decision EXECUTE_JOB"), (None, 0, "batwatt: deadlock: nothing can happen any more")],
)
def test_ends_without_all_jobs(house, endpoint, alloc, code, line):
    """An illegal decision leaves no files; a deadlock leaves all, and no SIMULATION_ENDS, as in Batsim."""

    def answers():
        with pytest.raises(zmq.Again):
            talk(endpoint, lambda events, now: decision(events, now, alloc), 2.0)

    def decision(events, now, alloc):
        return [event | {"data": event["data"] | {"alloc": alloc}} for event in one_by_one(events, now) if alloc]

    load = house.workload({"id": 1, "subtime": 0, "res": 1, "profile": "nap"})
    with ThreadPoolExecutor() as pool:
        pool.submit(answers)
        words = ("-p", SMALL, "-w", load, "-s", endpoint, "-e", house.out / "x", "--disable-schedule-tracing")
        done = house.batwatt("batsim", *words)
    assert done.code == code and line in done.err.splitlines()[-1]
    assert house.left == ([] if code else ["x_jobs.csv", "x_machine_states.csv", "x_schedule.csv"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_launcher_ends_it_while_no_scheduler_listens(house, link, endpoint, number):
    process = house.start(*INPUTS, "-s", endpoint, "-e", house.out / "x", program=(link,))
    assert process.stderr.readline() == f"asking the scheduler at {endpoint}; waiting for its answer for ever\n"
    process.send_signal(number)
    done = house.end(process, 5.0)
    assert (done.code, house.left) == (128 + number, []) and number.name in done.err
