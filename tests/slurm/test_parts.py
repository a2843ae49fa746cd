"""Parts of the bridge to Slurm that need none."""

import json
import os
import resource
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from zlib import crc32

import pytest
from slurm_session import cap_of
from waiting import wait_for

from batwatt.batsim import events as ev
from batwatt.batsim.journal import Journal, same_decisions
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.servers import expand
from batwatt.slurm.account import Account, Feed, PowerMeter, _AccountRow
from batwatt.slurm.actions import Actions, KillRule
from batwatt.slurm.book import Book
from batwatt.slurm.bridge import Bridge, SessionClock, Watched
from batwatt.slurm.commands import SlurmCommands, SlurmError, SlurmSilentError, in_turns
from batwatt.slurm.presence import ClusterLock, OtherSessionError, Presence
from batwatt.slurm.session import Session
from batwatt.slurm.snapshot import FIELDS, Handover, Mark, SlurmNode, Snapshot, job_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("gpu1", ("gpu1",)),
        ("n[1-3,7],gpu1", ("n1", "n2", "n3", "n7", "gpu1")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("r[1-2]c[0-1]", ("r1c0", "r1c1", "r2c0", "r2c1")),
    ],
)
def test_a_list_of_hosts(text, names):
    assert expand(text) == names


@pytest.mark.parametrize("text", ["n[1-3", "n[a-b]", "n[1-999999999]", "n[]", "n[1-2000][1-2000]"])
def test_a_list_of_hosts_that_is_none(text):
    with pytest.raises(ValueError, match=r"hosts"):
        expand(text)


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ("idle", "up"),
        ("mixed", "up busy"),
        ("idle+drain+powered_down", "off"),
        ("idle+powered_down+not_responding", "off"),
        ("idle+not_responding+powering_up", "switching_on"),
        ("idle+power_up+powered_down+not_responding", "switching_on"),
        ("idle+power_down", "switching_off"),
        ("idle+powering_down", "switching_off"),
        ("down+powered_down+not_responding", "off broken"),
        ("down", "broken"),
        ("idle+not_responding", "broken"),
        ("idle+drain", "up broken"),
    ],
)
def test_what_a_node_is(state, what):
    node = SlurmNode("n1", frozenset(state.split("+")), 16, "test" if state == "idle+drain" else "batwatt: off")
    names = ("up", "busy", "off", "switching_on", "switching_off", "broken")
    assert {name for name in names if getattr(node, name)} == set(what.split())


def scripted(answers):
    """Return commands of Slurm that answer from a dictionary by their first word."""
    slurm = SlurmCommands(Handover("partition", "green"), ["n1"])
    slurm.run = lambda *words: answers[words[0]](words)
    return slurm


NODE = SlurmNode("n1", frozenset(("idle",)), 16)
ROW = dict.fromkeys(FIELDS, "(null)") | {
    "JobArrayID": "7_1", "JobID": "7", "State": "PENDING", "Reason": "JobHeldUser", "NumNodes": "2", "MaxNodes": "4",
    "TimeLimit": "1-00:00:00", "Partition": "p", "UserName": "ada", "SubmitTime": "100", "EligibleTime": "N/A",
    "StartTime": "N/A", "EndTime": "N/A", "RestartCnt": "0", "PriorityLong": "0", "exit_code": "0", "NodeList": "",
    "ReqNodes": "", "Contiguous": "0", "tres-per-node": "N/A", "HetJobID": "N/A",
}  # fmt: skip


def squeue_of(**cells):
    """Return an answer of squeue, some cells of ROW changed, with the mark that it is told to put between cells."""
    row = (ROW | cells).values()
    return lambda words: "".join(f"{cell}|{words[-1].split(':|')[1].split('|')[0]}|" for cell in row)


def test_a_comment_cannot_pretend_to_be_another_job():
    squeue = squeue_of(admin_comment="green\n8|8|COMPLETED|None|1|1:00|bob|(null)|1|1|1|1|0|1|0||x")
    sinfo, scontrol = (lambda words: "n1|idle+cloud|16|disk | fan|\x1f\n"), (lambda words: "No reservations")
    slurm = scripted({"squeue": squeue, "sinfo": sinfo, "scontrol": scontrol})
    snapshot = slurm.read()
    assert set(snapshot.jobs) == {"7_1"}
    job = snapshot.jobs["7_1"]
    assert (job.nodes, job.limit_s, job.held, job.startable(200.0), job.handed) == (2, 86_400.0, True, True, False)
    assert snapshot.nodes["n1"].up


def test_a_row_that_cannot_be_read_is_an_error():
    with pytest.raises(SlurmError, match="cannot be read"):
        scripted({"squeue": squeue_of(NumNodes="many")}).read()


def test_a_command_that_hangs_is_silence():
    slurm = SlurmCommands(Handover("partition", "p"), ["n1"])
    slurm.limit_s = 0.2
    with pytest.raises(SlurmSilentError, match="no answer within"):
        slurm.run("sleep", "5")
    with pytest.raises(SlurmError, match="cannot be run"):
        slurm.run("no-such-command")


@pytest.fixture
def book():
    """Return the book of the small platform, with a waiting job of two hosts."""
    book = Book(read_platform("platforms/small.xml"))
    raw = {"res": 2, "walltime": 60.0, "profile": "p60"}
    book.tell([ev.JobSubmitted(0.0, "slurm!12", raw, None)])
    return book


def test_a_job_through_its_attempts(book):
    book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1"), ev.CallMeLater(1.0, 9.0)])
    assert book.busy == 0b11 and book.calls == [9.0]
    book.decide([ev.KillJob(2.0, ["slurm!12"])])
    book.tell([ev.JobCompleted(3.0, "slurm!12", "COMPLETED_KILLED", 1, "0-1"), ev.RequestedCall(9.0)])
    assert book.killed == {"12"} and not book.busy and not book.calls
    book.decide([ev.RegisterJob(4.0, "slurm!12#1", {"res": 2, "walltime": 60.0, "profile": "p60"})])
    assert book.present["12"].id == "slurm!12#1" and not book.killed
    assert book.next_id("12") == "slurm!12@2"


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (ev.ExecuteJob(1.0, "slurm!13", "0"), "no such job"),
        (ev.ExecuteJob(1.0, "slurm!12", "0"), "takes 2"),
        (ev.ExecuteJob(1.0, "slurm!12", "0,99"), "takes 2"),
        (ev.ExecuteJob(1.0, "slurm!12", "x"), "EXECUTE_JOB slurm!12"),
        (ev.RegisterJob(1.0, "w0!3", {"res": 1}), "no job of Slurm"),
        (ev.RegisterJob(1.0, "slurm!99#1", {"res": 1}), "only the next attempt"),
        (ev.RegisterJob(1.0, "slurm!12#1", {"res": 2}), "only the next attempt"),
        (ev.SetResourceState(1.0, "0", "99"), "cannot be asked"),
        (ev.SetResourceState(1.0, "77", "0"), "hosts are"),
        (ev.KillJob(1.0, ["slurm!12"]), "waiting"),
        (ev.ToJobMessage(1.0, "slurm!12", "x"), "cannot do it"),
    ],
)
def test_what_no_scheduler_may_ask_for(book, decision, why):
    with pytest.raises(IllegalDecisionError, match=why):
        book.decide([decision])


def test_hosts_out_of_service_do_not_keep_a_request(book):
    sleep = book.platform.hosts[0].sleeps[0].sleep
    book.decide([ev.SetResourceState(1.0, "0-2", str(sleep))])
    assert book.complete(0b011) == []
    book.tell([ev.Notified(2.0, "event_machine_unavailable", {"type": "event_machine_unavailable", "resources": "2"})])
    assert book.complete(0b011) == [(0b011, sleep)]
    book.tell([ev.ResourceStateChanged(3.0, "0-1", str(sleep))])
    assert book.requests == [(0b100, sleep)] and book.switching == 0b100


def test_a_job_on_other_nodes_has_failed_but_one_that_completes_lists_only_those_not_yet_free(book):
    book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1")])
    squeue = squeue_of(NodeList=book.platform.hosts[0].name)
    nothing = {name: lambda words: "" for name in ("sinfo", "scontrol")}
    job = scripted({"squeue": squeue, **nothing}).read().jobs["7_1"]
    elsewhere = [
        Bridge._elsewhere(SimpleNamespace(book=book), book.present["12"], replace(job, state=state))
        for state in ("RUNNING", "COMPLETING")
    ]
    assert elsewhere == [True, False]


def test_a_host_is_out_after_two_looks():
    watched = Watched()
    assert watched.look(0b1, 0b11) == 0
    assert watched.look(0b1, 0b11) == 0b1
    assert watched.look(0b0, 0b11) == 0b1
    assert watched.look(0b1, 0b11) == 0b1
    assert [watched.look(0b0, 0b11) for _ in range(2)] == [0b1, 0]


# journal --------------------------------------------------------------------------------------------------------------


def journal_of_a_session(path):
    """Write a journal of a session with one exchange; return it and the reply."""
    journal = Journal(path)
    journal.begin(begin_s=5.0)
    message = ev.Message(1.0, [ev.RequestedCall(1.0)])
    reply = ev.Reply(1.0, [ev.CallMeLater(1.0, 7.0)])
    journal.exchange(message, reply)
    journal.write("note", what="test")
    journal.close()
    return journal, reply


def test_a_journal_without_its_last_half_line(tmp_path):
    journal, reply = journal_of_a_session(tmp_path / "j.jsonl")
    with journal.path.open("a") as file:
        file.write('{"kind": "exch')
    again = Journal(journal.path)
    begin, exchanges = again.session()
    assert begin["begin_s"] == 5.0 and same_decisions(exchanges[0][1], reply)
    assert not same_decisions(exchanges[0][1], ev.Reply(1.0, [ev.CallMeLater(1.0, 8.0)]))
    again.resume()
    again.write("end", why="over")
    again.close()
    assert Journal(journal.path).session() is None
    assert [json.loads(line)["n"] for line in journal.path.read_text().splitlines()] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda lines: [lines[0], lines[1].replace("7.0", "8.0"), lines[2]], "line 2: is no line of a journal, or not"),
        (lambda lines: [lines[0], "garbage\n", *lines[1:]], "line 2: is no line of a journal"),
        (lambda lines: [lines[0], lines[2]], "line 2: has the number 3: lines are missing"),
        (lambda lines: [lines[0], lines[1][:40], "\0" * 40 + "\n", lines[2]], "line 2: is no line of a journal"),
    ],
)
def test_a_damaged_journal_names_its_line_and_fresh_puts_it_aside(tmp_path, damage, problem):
    journal, _ = journal_of_a_session(tmp_path / "j.jsonl")
    journal.path.write_text("".join(damage(journal.path.read_text().splitlines(keepends=True))))
    with pytest.raises(InputError, match=rf"{problem}.*; give --fresh"):
        Journal(journal.path).session()
    fresh = Journal(journal.path)
    fresh.begin(begin_s=6.0)
    fresh.close()
    assert Journal(journal.path).session()[0]["begin_s"] == 6.0
    assert (tmp_path / "j.jsonl.1").exists()


def test_a_full_journal_goes_on_in_a_new_file(tmp_path):
    journal = Journal(tmp_path / "j.jsonl", most_bytes=1000)
    for i in range(12):
        journal.begin(begin_s=float(i))
        while not journal.full:
            journal.write("note", what="x" * 50)
    journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j.jsonl", *(f"j.jsonl.{i}" for i in range(1, 10))]
    begins = [json.loads((tmp_path / f"j.jsonl{end}").read_text().splitlines()[0]) for end in ("", ".1", ".9")]
    assert [row["begin_s"] for row in begins] == [11.0, 10.0, 2.0]


def test_a_journal_is_not_closed_under_the_line_of_another_thread(tmp_path, monkeypatch):
    journal, (inside, goes_on) = Journal(tmp_path / "j.jsonl"), (threading.Event(), threading.Event())
    journal.begin(begin_s=1.0)

    def slow(text):
        inside.set()
        goes_on.wait(20.0)
        return crc32(text)

    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr("zlib.crc32", slow)
        line = pool.submit(journal.write, "do", command="squeue")
        inside.wait(20.0)
        new = pool.submit(journal.begin, begin_s=2.0)
        assert not wait([new], 0.2).done
        goes_on.set()
        assert line.result() is new.result() is None
    journal.close()
    kinds = [[row["kind"] for row in Journal(tmp_path / name)._rows()] for name in ("j.jsonl.1", "j.jsonl")]
    assert kinds == [["begin", "do"], ["begin"]]


def test_a_full_disk_leaves_a_journal_that_is_resumed(tmp_path):
    journal, _ = journal_of_a_session(tmp_path / "j.jsonl")
    journal.resume()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 20, limits[1]))
    try:
        with pytest.raises(OSError):
            journal.write("note", what="too long")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.write("note", what="there is room again")
    journal.close()
    assert [row["n"] for row in Journal(journal.path)._rows()] == [1, 2, 3, 4, 5]


OTHERS_FILE = "is a pipe, or also the file of another name"


@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        (lambda path, other: path.symlink_to(other), "is a link"),
        (lambda path, other: path.symlink_to(other.with_name("new")), "is a link"),
        (lambda path, other: path.hardlink_to(other), OTHERS_FILE),
        (lambda path, other: os.mkfifo(path), OTHERS_FILE),
    ],
)
@pytest.mark.parametrize("name", ["s_journal.jsonl", "s_starts.csv", "s_power.csv"])
def test_planted_files_of_a_session(tmp_path, name, plant, problem):
    """A journal loses a half last line, and a new account its earlier rows, but no file elsewhere."""
    thesis, folder = tmp_path / "thesis.tex", tmp_path / "out"
    thesis.write_text("first\nmine")
    folder.mkdir()
    plant(folder / name, thesis)
    with pytest.raises(InputError, match=rf"{name}: cannot be written \({problem}\)"):
        if name.endswith(".jsonl"):
            Journal(folder / name).begin()
        else:
            Account(read_platform("platforms/small.xml"), folder / "s", shadow=False).open(resumed=False)
    assert thesis.read_text() == "first\nmine" and not (tmp_path / "new").exists()


def test_a_clock_that_jumps_moves_no_session(monkeypatch):
    clock = SessionClock(2e9, 60.0)
    before_s = clock.now_s()
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert 0.0 <= clock.now_s() - before_s < 60.0
    # set back by decades between two processes: the time goes on from the last message
    identity = {"speed": 60.0}
    last = [(ev.Message(500.0, []), ev.Reply(500.0, []))]
    spec = SimpleNamespace(fresh=False, operate=True, speed=60.0, identity=identity)
    journal = SimpleNamespace(session=lambda: ({"begin_s": 2e9, **identity}, last), path="x")
    clock, past, begin = Session._resumed(SimpleNamespace(spec=spec, journal=journal))
    assert list(past) == last and "totals" not in begin and 500.0 <= clock.now_s() < 560.0
    spec.identity = {"speed": 1.0}
    with pytest.raises(InputError, match=r"with speed 60.0, not 1.0; give the same, or --fresh"):
        Session._resumed(SimpleNamespace(spec=spec, journal=journal))


def test_a_command_without_an_answer_stops_no_other_and_is_repeated(book):
    """Slurm is silent while the first of two starts is carried out: the second goes on, the first comes again."""
    calls, notes, stalled = [], [], threading.Event()

    class Stalled(SlurmCommands):
        def launch(self, job, hosts):
            calls.append((job.number, tuple(hosts)))
            if job.number == "12" and len(calls) < 3:
                stalled.wait(20.0)
                raise SlurmSilentError("scontrol: no answer within 60 s")

    book.tell([ev.JobSubmitted(0.0, "slurm!13", {"res": 1, "walltime": 60.0, "profile": "p60"}, None)])
    book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1"), ev.ExecuteJob(1.0, "slurm!13", "2")])
    machine = Stalled(Handover("partition", "p"), ["n1"])
    job = job_of_row()
    jobs = {number: replace(job, number=number) for number in ("12", "13")}
    snapshot = Snapshot(0.0, 0.0, jobs, {host.name: NODE for host in book.platform.hosts})
    actions = Actions(machine, book, KillRule(), "", lambda what, **values: notes.append((what, values["job"])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("batwatt.slurm.actions.TURN_S", 0.2)
        patch.setattr("batwatt.slurm.actions.AGAIN_S", 0.0)
        actions.act(snapshot, 0)
        assert [call[0] for call in calls] == ["12", "13"] and book.present["13"].launched_s > 0.0
        # under way: not begun again
        actions.act(snapshot, 0)
        assert len(calls) == 2 and not notes
        stalled.set()
        wait_for(lambda: notes == [("failed", "slurm!12")], 5.0, "the silence is noted")
        actions.act(snapshot, 0)
        assert len(calls) == 2
        actions.act(snapshot, 0)
    actions.finish()
    assert [call[0] for call in calls] == ["12", "13", "12"] and not book.present["12"].requested


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (Mark("held"), "batwatt: held"),
        (Mark("left", "a [b]\n\0c"), "batwatt: left a b c"),
        (
            Mark("started", "", "2-4", "see [ticket 7]\nand more]"),
            "batwatt: started [nodes 2-4] [was see [ticket 7]\nand more]]",
        ),
        (Mark("held", "why", "", "batwatt is fine"), "batwatt: held why [was batwatt is fine]"),
    ],
)
def test_a_mark_stores_what_was_there(mark, text):
    assert str(mark) == text
    again = Mark.of(text)
    assert (again.state, again.nodes, again.before) == (mark.state, mark.nodes, mark.before)
    assert Mark.of(mark.before) is None and Mark.of("batwatts: held") is None


@pytest.mark.parametrize(("level", "allowed"), [("", False), ("None", False), ("Operator", True)])
def test_a_user_needs_the_right_to_operate(monkeypatch, level, allowed):
    slurm = scripted(
        {"scontrol": lambda words: "SlurmUser = slurm(64030)\nClusterName = toy", "sacctmgr": lambda words: level}
    )
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    if allowed:
        assert slurm.cluster(operates=True)[0] == "toy"
    else:
        with pytest.raises(InputError, match="nobody may not change jobs of others; run as root or slurm"):
            slurm.cluster(operates=True)
    monkeypatch.setattr("os.geteuid", lambda: 64030)
    assert slurm.cluster(operates=True)[0] == "toy"


def job_of_row(**cells):
    """Return the job of ROW, some of its cells changed."""
    return job_of(list((ROW | cells).values()), Handover("partition", "green"))


@pytest.mark.parametrize(
    ("cells", "demand"),
    [
        ({}, ""),
        ({"Feature": "fast"}, "--constraint=fast"),
        ({"ReqNodes": "n2"}, "--nodelist=n2"),
        ({"Licenses": "lic:1"}, "--licenses=lic:1"),
        ({"tres-per-node": "gres:gpu:1"}, "--gres=gres:gpu:1"),
        ({"Reservation": "R"}, "--reservation=R"),
        ({"HetJobID": "11"}, "a heterogeneous job=11"),
        ({"Contiguous": "1"}, "--contiguous"),
        ({"Contiguous": "1", "NumNodes": "1"}, ""),
        ({"Partition": "green,other"}, "--partition=green,other"),
    ],
)
def test_a_demand_that_no_scheduler_knows(cells, demand):
    assert job_of_row(**cells).demand == demand


def test_an_array_is_one_job_where_all_of_its_tasks_are_changed():
    calls = []
    slurm = scripted({"scontrol": lambda words: calls.append(words[1:3]) or ""})
    slurm._arrays = {"7": {"7_1", "7_2"}, "8": {"8_1", "8_2", "8_3"}}
    jobs = [replace(job_of_row(), number=number) for number in ("7_1", "7_2", "8_1", "8_2", "9")]
    assert slurm.take(jobs) == {} and calls == [("update", "jobid=7,8_1,8_2,9")]

    def refuse(words):
        error = SlurmError("no")
        error.output = "7: Job has already finished" if "7" in words[2].removeprefix("jobid=").split(",") else ""
        if error.output:
            raise error
        return ""

    slurm.run = lambda *words: refuse(words)
    assert set(slurm.take(jobs)) == {"7_1", "7_2"}
    assert [[job.number for job in turn] for turn in in_turns(jobs, 2)] == [["7_1", "7_2", "8_1", "8_2"], ["9"]]


def test_hosts_that_were_off_before_the_session_are_woken_as_power_allows(book):
    """The scheduler has weighed none of them: two of 200 W fit below the cap, a host of its own request at once."""
    changes = []
    names = [host.name for host in book.platform.hosts]
    full_w = [host.pstates[host.sleeps[0].switch_on].full_w for host in book.platform.hosts]
    machine = SimpleNamespace(switch=lambda what, nodes: changes.append((what, nodes)))
    actions = Actions(machine, book, KillRule(), "", lambda what, **values: None)
    nodes = {name: replace(NODE, name=name, flags=frozenset(("idle", "powered_down"))) for name in names}
    book.requested = 0b1
    actions.act(Snapshot(0.0, 0.0, {}, nodes), book.everyone, full_w[1] + full_w[2] + full_w[3] / 2.0)
    actions.finish()
    assert changes == [("power_up", names[:3])]


@pytest.mark.parametrize(("text", "commands"), [("Invalid job id specified for job 13", 1), ("no right to do this", 7)])
def test_a_batch_without_one_job(text, commands):
    """Slurm does what it can of a list and fails: the error belongs to the job that it names, or to one by halves."""
    calls = []

    def answer(words):
        calls.append(words)
        if "13" in words[2].removeprefix("jobid=").split(","):
            error = SlurmError(text)
            error.output = text
            raise error
        return ""

    slurm = scripted({"scontrol": answer})
    jobs = [replace(job_of_row(), number=str(i)) for i in range(10, 18)]
    assert list(slurm.take(jobs)) == ["13"]
    assert calls[0][2:] == ("jobid=10,11,12,13,14,15,16,17", "priority=0", "admincomment=batwatt: held [nodes 2-4]")
    assert len(calls) == commands


def test_a_file_that_is_no_journal(tmp_path):
    (tmp_path / "j.jsonl").write_text("hello\n")
    with pytest.raises(InputError, match="line 1: is no line of a journal"):
        Journal(tmp_path / "j.jsonl").session()
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputError, match=r"pipe\.jsonl: is a pipe, not a file"):
        Journal(tmp_path / "pipe.jsonl").session()


def test_a_job_that_ended_before_a_restart_is_in_the_account_once(tmp_path):
    """The last totals may be older than the end of a job, which Slurm still reports."""
    platform = read_platform("platforms/small.xml")
    account = Account(platform, tmp_path / "s", shadow=False)
    account.open(resumed=False)
    account._rows |= {number: _AccountRow("ada", 1, 5.0, 15.0) for number in ("7_1", "8")}
    totals = json.loads(json.dumps(account.totals(), allow_nan=False))
    account._rows["7_1"].state = "COMPLETED"
    account._finish("7_1")
    job = replace(job_of_row(Partition="green"), state="COMPLETED", hosts=("n1",), start_s=15.0, end_s=20.0)
    for last in (totals, None):
        again = Account(platform, tmp_path / "s", shadow=False)
        again.open(last, resumed=True)
        again.jobs(Snapshot(30.0, 0.0, {"7_1": job}, {}), {"7_1"}, None, lambda date_s: date_s)
        assert len((tmp_path / "s_starts.csv").read_text().splitlines()) == 2
        assert again.waits[""] == [10.0] * (1 if last is None else 2)


def test_the_account_of_a_session_has_no_formulas(tmp_path):
    account = Account(read_platform("platforms/small.xml"), tmp_path / "out/s", shadow=False)
    account.open(resumed=False)
    account._rows["7"] = _AccountRow("=cmd|' /C calc'!A0", 2, -1.5, 4.0)
    account.close()
    header, row = (tmp_path / "out/s_starts.csv").read_text().splitlines()
    assert header.startswith("job,user,nodes,submit_s,start_s")
    assert row.startswith("7,'=cmd|' /C calc'!A0,2,-1.500,4.000,,")
    account.open(resumed=True)
    account.close()
    assert len((tmp_path / "out/s_starts.csv").read_text().splitlines()) == 2


class Nodes:
    """Comments of the nodes of a cluster, as a machine sees them."""

    names = ("n1", "n2")
    handover = Handover("partition", "green")

    def __init__(self):
        self.comments = {"n1": "fan [is] loud", "n2": "", "n3": ""}

    def node_comments(self):
        return dict(self.comments)

    def comment_nodes(self, comments):
        self.comments |= comments


def test_one_at_a_time(monkeypatch):
    nodes = Nodes()
    one, other = ClusterLock(nodes, "test-cluster"), ClusterLock(nodes, "test-cluster")
    with one.held():
        assert nodes.comments["n1"].startswith("batwatt ") and nodes.comments["n1"].endswith(" [was fan [is] loud]")
        with pytest.raises(InputError, match="another `batwatt slurm` operates it on this machine"), other.held():
            pass
        # another machine has a socket of its own, and sees the comment
        monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
        with (
            pytest.raises(InputError, match=r"on \S+ operates partition green, seen \d s ago; end that one first"),
            ClusterLock(nodes, "test-cluster-2").held(),
        ):
            pass
        one._next_s = 0.0
        one.beat()
    assert nodes.comments == {"n1": "fan [is] loud", "n2": "", "n3": ""}


def test_a_session_that_was_killed_elsewhere_frees_the_cluster_after_minutes():
    nodes = Nodes()
    nodes.comments["n3"] = "batwatt elsewhere partition green 2026-01-01T00:00:00+00:00"
    with ClusterLock(nodes, "test-cluster").held():
        nodes.comments["n2"] = f"batwatt elsewhere partition green {datetime.now(UTC).isoformat()}"
        lock = ClusterLock(nodes, "test-cluster")
        with pytest.raises(OtherSessionError, match="elsewhere operates partition green"):
            lock.beat()


def test_a_comment_that_begins_like_a_mark_is_none():
    nodes = Nodes()
    nodes.comments["n1"] = "batwatt is down since yesterday"
    with ClusterLock(nodes, "test-cluster").held():
        assert nodes.comments["n1"].endswith(" [was batwatt is down since yesterday]")
    assert nodes.comments["n1"] == "batwatt is down since yesterday"


def test_a_mark_that_cannot_be_renewed_is_warned_of_once(tmp_path, caplog):
    def beat():
        raise SlurmError("no right to comment")

    presence = Presence(tmp_path / "status.json", None, "", SimpleNamespace(beat=beat))
    presence.status = lambda bridge: {"state": "running", "cap_w": None, "power_w": 1.0, "jobs": {}}
    presence.beat(None)
    presence.beat(None)
    assert caplog.text.count("no right to comment") == 1


# a poll ---------------------------------------------------------------------------------------------------------------


class Answers(SlurmCommands):
    """Commands that report jobs as they are told, and write down what they change."""

    def __init__(self, book):
        super().__init__(Handover("partition", "green"), [host.name for host in book.platform.hosts])
        self.jobs, self.calls = {}, []

    def read(self, tracked=()):
        nodes = {name: replace(NODE, name=name) for name in self.names}
        return Snapshot(100.0, time.monotonic(), {job.number: job for job in self.jobs}, nodes)

    def change(self, *words):
        self.calls.append(words)

    def excluded(self):
        return {}


def bridge_of(book, machine, **values):
    """Return a bridge on these commands, without a scheduler; its journal is a list."""
    notes = []
    spec = {"feed": None, "meter": PowerMeter(), "tell_signals": False, "releases": False, "poll_s": 5.0} | values
    actions = Actions(machine, book, KillRule(), "", lambda what, **values: notes.append(what))
    journal = SimpleNamespace(write=lambda kind, **values: None, note=lambda what, **values: notes.append(what))
    account = Account(book.platform, None, shadow=False)
    account._write = lambda stem, row: None
    parts = (machine, book, actions, journal, account, SessionClock(0.0), deque(), {}, lambda bridge: None)
    return Bridge(SimpleNamespace(**spec), *parts), notes


def held_job(number="12", **values):
    """Return a job that was taken over."""
    return replace(job_of_row(Partition="green"), **{"number": number, "mark": Mark("held"), **values})


def test_a_start_that_failed_counts_once_though_its_poll_is_repeated(book):
    machine = Answers(book)
    bridge, notes = bridge_of(book, machine)
    book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1")])
    book.present["12"].launched_s, book.present["12"].restarts = 0.0, 0
    machine.jobs = [held_job(restarts=1), held_job("13", mark=None, held=False)]
    machine.excluded = lambda: (_ for _ in ()).throw(SlurmSilentError("squeue: no answer"))
    for _ in range(2):
        with pytest.raises(SlurmSilentError):
            bridge._poll(2.0)
    assert (bridge.failed_starts, bridge._tries) == (0, {})
    machine.excluded = dict
    events = bridge._poll(3.0)
    assert [type(event) for event in events] == [ev.JobCompleted, ev.JobSubmitted]
    assert (bridge.failed_starts, bridge._tries) == (1, {"12": 1}) and notes.count("start failed") == 3


def test_a_start_that_a_limit_holds_back_pauses_longer_each_time(book, monkeypatch):
    machine = Answers(book)
    bridge, _ = bridge_of(book, machine)
    for pauses_s in ({"12": 30.0}, {"12": 60.0}):
        book.present["12"].status, book.present["12"].mask = "waiting", 0
        book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1")])
        book.present["12"].launched_s, book.present["12"].restarts = time.monotonic() - 3.0, 0
        machine.jobs = [held_job(held=False, reason="QOSMaxNodePerUserLimit"), held_job("13", mark=None, held=False)]
        machine.excluded = lambda: (_ for _ in ()).throw(SlurmSilentError("squeue: no answer"))
        with pytest.raises(SlurmSilentError):
            bridge._poll(2.0)
        machine.excluded = dict
        bridge._poll(3.0)
        assert bridge._pauses_s == pauses_s and bridge._tries == {"12": 0}
    assert bridge._skipped["12"] == pytest.approx(time.monotonic() + 30.0, abs=5.0)


def test_a_kill_during_a_start_waits_for_its_command(book):
    """Slurm may make the start after it was killed; its nodes are not free before."""
    machine, stalled = Answers(book), threading.Event()
    machine.launch = lambda job, hosts: stalled.wait(20.0)
    bridge, _ = bridge_of(book, machine)
    machine.jobs = [held_job()]
    book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("batwatt.slurm.actions.TURN_S", 0.1)
        assert bridge._poll(2.0) == []
        book.decide([ev.KillJob(3.0, ["slurm!12"])])
        assert bridge._poll(4.0) == [] and book.busy == 0b11
        stalled.set()
        wait_for(lambda: not bridge.actions.under_way() & {"slurm!12"}, 5.0, "the start ends")
        machine.jobs = [held_job(held=False)]
        assert bridge._poll(5.0) == bridge._poll(5.5) == []
        assert any("priority=0" in words for words in machine.calls)
        machine.jobs = [held_job()]
        assert [type(event) for event in bridge._poll(6.0)] == [ev.JobCompleted, ev.JobKilled]
    bridge.actions.finish()


@pytest.mark.parametrize("status", ["waiting", "void", "over"])
def test_a_job_that_is_no_longer_handed_over_is_given_back(book, status):
    machine = Answers(book)
    bridge, _ = bridge_of(book, machine)
    book.present["12"].status = status
    machine.jobs = [held_job(handed=False)]
    bridge._poll(2.0)
    assert [words[1:3] for words in machine.calls] == [("release", "12"), ("update", "jobid=12")]
    assert book.present["12"].status == ("over" if status == "over" else "void")
    bridge.actions.finish()


def test_the_envelope_goes_on_while_slurm_is_silent(book, tmp_path):
    machine = Answers(book)
    feed = Feed(cap_of(tmp_path / "w.csv", (0, 500), (100, 300)))
    feed.check()
    bridge, notes = bridge_of(book, machine, feed=feed)
    bridge._poll(10.0)
    watts = bridge.account.energy.watts
    for now_s in (110.0, 210.0):
        bridge._silent(now_s, SlurmSilentError("no answer"))
    assert bridge.account.cap_w == 300.0 and bridge.account.energy.joules == 200.0 * watts
    assert notes.count("Slurm is silent") == 1 and bridge.snapshot is None
    bridge.actions.finish()


def test_the_mark_of_a_job_that_is_requeued_stays(book):
    """Killed before it was seen to run: its comment is not restored beside the command that marks it again."""
    machine = Answers(book)
    bridge, _ = bridge_of(book, machine)
    book.decide([ev.ExecuteJob(1.0, "slurm!12", "0-1")])
    book.decide([ev.KillJob(1.0, ["slurm!12"])])
    running = {"state": "RUNNING", "held": False, "hosts": tuple(machine.names[:2])}
    machine.jobs = [held_job(**running), held_job("13", **running)]
    bridge._poll(2.0)
    comments = [words[2:] for words in machine.calls if words[1] == "update"]
    assert sorted(comments) == [("jobid=12", "admincomment=batwatt: held"), ("jobid=13", "admincomment=")]
    bridge.actions.finish()


def test_a_job_that_has_ended_is_marked_once_it_is_back():
    slurm = scripted({})
    calls = []
    slurm.run = lambda *words: calls.append(words) or ""
    slurm.requeue_held(replace(job_of_row(), state="FAILED"))
    slurm.requeue_held(replace(job_of_row(), state="RUNNING"))
    assert [words[1] for words in calls] == ["requeuehold", "update", "update", "requeuehold"]
