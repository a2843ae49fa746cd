"""Faults around `batwatt slurm run --operate` on a real Slurm, and what administrators see of a session."""

import json
import os
import signal
import socket
import time

import pytest
from slurm_session import Session, cap_file
from waiting import wait_for

FCFS = ("-s", "powercap", "-o", '{"response": "none", "backfilling": "easy", "order": "fcfs"}', "--operate")
FRUGAL = ("-s", "powercap", "-o", '{"response": "frugal"}', "--operate", "--allow-fall", "100", "--envelope")


def comment_of(cluster, number):
    """Return the administrator's comment on a job."""
    text = cluster.command("squeue", "-h", "-t", "all", "-j", number, "-O", "admin_comment:200").stdout.strip()
    return text.removeprefix("(null)")


def assert_given_back(cluster, numbers, held=()):
    """Assert that jobs which wait, but for those that stay `held`, and nodes are as if there had been no session.

    Slurm changes no job that has ended, so one that is shorter than a poll keeps its mark.
    """
    jobs = {number: cluster.job(number) for number in numbers}
    waiting = [job for number, job in jobs.items() if job["JobState"] == "PENDING" and number not in held]
    assert not [job for job in waiting if job["Priority"] == "0" or job["ReqNodeList"] != "(null)"]
    present = [number for number, job in jobs.items() if job["JobState"] in ("PENDING", "RUNNING")]
    assert not [number for number in present if comment_of(cluster, number).startswith("batwatt")]
    assert not any("drain" in state for state in cluster.states())
    assert "batwatt" not in cluster.command("sinfo", "-h", "-N", "-O", "NodeList:|,Comment:|,Reason:|").stdout


@pytest.mark.parametrize("freezes", [2, pytest.param(30, marks=pytest.mark.deep)])
def test_a_frozen_controller_is_waited_for(cluster, platform, freezes):
    """Slurm answers nothing from the moment at which a start is decided until after the time limit of its commands."""
    controller = int((cluster.folder / "slurmctld.pid").read_text())
    numbers = [cluster.submit(1.0, 4) for _ in range(2 * freezes)]
    with Session(platform, *FCFS, "--once") as session:
        for i in range(freezes):
            before = len(session.decisions("EXECUTE_JOB"))
            wait_for(lambda n=before: len(session.decisions("EXECUTE_JOB")) > n, 60.0, "a start is decided")
            os.kill(controller, signal.SIGSTOP)
            # commands give up after 5 s on this cluster
            time.sleep(7.0 if i % 4 == 0 else 0.5 * (i % 4))
            os.kill(controller, signal.SIGCONT)
        session.ends(200.0)
    jobs = [cluster.job(number) for number in numbers]
    assert [job["JobState"] for job in jobs] == ["COMPLETED"] * len(numbers)
    assert len(session.decisions("EXECUTE_JOB")) == len(numbers) + sum(int(job["Restarts"]) for job in jobs)


def test_a_signal_while_the_controller_is_down(cluster, platform, house):
    """Everything is given back once Slurm answers, whatever signals come; before that the process does not end."""
    running, waiting = cluster.submit(60.0, 1), [cluster.submit(1.0, 8), cluster.submit(1.0, 2, "-N", "2-4")]
    cluster.command("scontrol", "update", f"jobid={waiting[0]}", "admincomment=ticket [7]")
    cluster.command("scontrol", "update", "nodename=n3", "comment=fan is loud")
    with Session(platform, *FRUGAL, cap_file(platform, (0, 350))) as session:
        session.until_told("RESOURCE_STATE_CHANGED", 1, 40.0)
        assert comment_of(cluster, waiting[0]) == "batwatt: held [was ticket [7]]"
        cluster.stop_controller()
        for _ in range(2):
            session.process.send_signal(signal.SIGTERM)
            time.sleep(0.7)
        assert house.batwatt("slurm", "release", "-p", platform, "--partition", "green", "--wait", "0").code == 1
        assert session.process.poll() is None
        cluster.start_controller()
        assert session.process.wait(40) == 143
    assert_given_back(cluster, [running, *waiting])
    assert comment_of(cluster, waiting[0]) == "ticket [7]"
    # Slurm may have started it since
    assert cluster.job(waiting[1])["NumNodes"] in ("2-4", "3", "4")
    assert "fan is loud" in cluster.command("sinfo", "-h", "-n", "n3", "-O", "Comment").stdout


def test_what_cannot_be_given_back_is_listed(cluster, platform, monkeypatch):
    """The exit code of the signal would hide it from a service manager."""
    number = cluster.submit(1.0, 8)
    blocker = cluster.submit(60.0, 8)
    cluster.command("scontrol", "release", blocker)
    wait_for(lambda: cluster.job(blocker)["JobState"] == "RUNNING", 10.0, "it runs")
    patched(cluster, monkeypatch, "import batwatt.slurm.session\nbatwatt.slurm.session.GIVE_BACK_S = 1.0\n")
    with Session(platform, *FCFS) as session:
        session.until_told("JOB_SUBMITTED", 1)
        cluster.stop_controller()
        session.process.send_signal(signal.SIGTERM)
        assert session.process.wait(40) == 1
    assert "not given back within 1 s" in session.log.read_text()
    cluster.start_controller()
    assert "batwatt: held" in comment_of(cluster, number)


def patched(cluster, monkeypatch, text):
    """Let processes of Python run a text at their start."""
    folder = cluster.folder / "patch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")


def test_a_journal_that_goes_on_in_a_new_file_is_resumed_with_the_state_of_slurm(cluster, platform, monkeypatch):
    """The scheduler begins afresh: nodes of jobs that run are out of service until these end."""
    patched(cluster, monkeypatch, "import batwatt.slurm.bridge as b, batwatt.batsim.journal as k\nb.TOTALS_S = 0.0\n"
            "k.Journal.__init__.__defaults__ = (3000,)\n")  # fmt: skip
    numbers = [cluster.submit(4.0, 3) for _ in range(6)]
    session = Session(platform, *FCFS, "--once")
    with session:
        wait_for(lambda: cluster.job(numbers[1])["JobState"] == "RUNNING", 20.0, "two jobs run")
        wait_for(lambda: session.rows()[0].get("continues"), 20.0, "a new file")
        os.kill(session.process.pid, signal.SIGKILL)
        session.process.wait(10)
    with session:
        session.ends(90.0)
    assert "resumed" in session.log.read_text()
    jobs = [cluster.job(number) for number in numbers]
    assert [(job["JobState"], job["Restarts"]) for job in jobs] == [("COMPLETED", "0")] * 6


def test_a_session_that_keeps_what_it_has_is_resumed(cluster, platform):
    number = cluster.submit(1.0, 8)
    blocker = cluster.submit(30.0, 8)
    cluster.command("scontrol", "release", blocker)
    wait_for(lambda: cluster.job(blocker)["JobState"] == "RUNNING", 10.0, "it runs")
    session = Session(platform, *FCFS, "--on-exit", "keep")
    with session:
        session.until_told("JOB_SUBMITTED", 1)
        session.process.send_signal(signal.SIGTERM)
        assert session.process.wait(20) == 143
    assert cluster.job(number)["Reason"] == "JobHeldAdmin"
    with session:
        wait_for(lambda: "resumed" in session.log.read_text(), 20.0, "it is resumed")
        cluster.command("scancel", blocker)
        wait_for(lambda: cluster.job(number)["JobState"] == "COMPLETED", 30.0, "the job ends")
    assert [data["job_id"] for data in session.decisions("EXECUTE_JOB")] == [f"slurm!{number}"]


def test_jobs_that_the_scheduler_cannot_place_stay_with_slurm(cluster, platform):
    """Each is named once, and plain jobs go on; nodes of a reservation are not used."""
    words = ("reservationname=theirs", "starttime=now", "duration=60", "users=root", "nodes=n1,n2")
    cluster.command("scontrol", "create", "reservation", *words)
    demands = {
        cluster.submit(0.3, 1, "-w", "n4"): "--nodelist=n4",
        cluster.submit(0.3, 1, "--exclude=n4"): "--exclude=n4",
        cluster.submit(0.3, 2, "--contiguous"): "--contiguous",
        cluster.submit(0.3, 1, "--reservation=theirs"): "--reservation=theirs",
        cluster.submit(0.3, 1, "-p", "green,other"): "--partition=green,other",
    }
    plain = [cluster.submit(0.3, 2) for _ in range(4)]
    with Session(platform, *FCFS, "--once") as session:
        session.ends()
        lines = [line for line in session.log.read_text().splitlines() if "not taken over" in line]
    assert len(lines) == len(demands)
    for number, demand in demands.items():
        assert [line for line in lines if f"job {number}: not taken over: asks for {demand}" in line]
        assert cluster.job(number)["Reason"] == "JobHeldUser"
    for number in plain:
        job = cluster.job(number)
        nodes = cluster.command("scontrol", "show", "hostnames", job["NodeList"]).stdout.split()
        assert job["JobState"] == "COMPLETED" and not {"n1", "n2"} & set(nodes)
    assert_given_back(cluster, [*plain, *demands], held=demands)
    cluster.command("scancel", next(number for number, demand in demands.items() if "reservation" in demand))
    cluster.command("scontrol", "delete", "reservationname=theirs")
    # with --others release Slurm starts them itself
    with Session(platform, *FCFS, "--others", "release", "--fresh"):
        left = [number for number, demand in demands.items() if "reservation" not in demand]
        wait_for(lambda: all(cluster.job(number)["JobState"] == "COMPLETED" for number in left), 40.0, "all end")


def test_a_start_that_slurm_cannot_make_frees_its_nodes(cluster, platform):
    """A job would reach into a reservation of all nodes that begins in an hour, which no scheduler for Batsim knows."""
    words = ("reservationname=later", "starttime=now+1hour", "duration=60", "users=nobody", "nodes=ALL")
    cluster.command("scontrol", "create", "reservation", *words)
    number = cluster.submit(1.0, 8, limit_min=100)
    plain = [cluster.submit(0.3, 8, limit_min=5) for _ in range(3)]
    with Session(platform, *FCFS) as session:
        wait_for(lambda: all(cluster.job(n)["JobState"] == "COMPLETED" for n in plain), 60.0, "plain jobs end")
        wait_for(lambda: "not started in 3 attempts" in comment_of(cluster, number), 60.0, "it is left alone")
    starts = [data for data in session.decisions("EXECUTE_JOB") if data["job_id"].startswith(f"slurm!{number}")]
    assert len(starts) == 3 and "did not start within 2 s (ReqNodeNotAvail" in session.log.read_text()
    assert_given_back(cluster, [number, *plain])


def test_administrators_see_a_session(cluster, platform, house, monkeypatch):
    """Status, figures for Prometheus, and messages to the service manager."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(cluster.folder / "notify"))
    manager.settimeout(20.0)
    monkeypatch.setenv("NOTIFY_SOCKET", str(cluster.folder / "notify"))
    cluster.submit(60.0, 2)
    waiting = cluster.submit(60.0, 8)
    cluster.submit(1.0, 1, "-w", "n2")
    metrics, prefix = platform.parent / "batwatt.prom", platform.parent / "session"
    with Session(platform, *FRUGAL, cap_file(platform, (0, 1650)), "--metrics", str(metrics)) as session:
        session.until_told("JOB_SUBMITTED", 2)
        assert b"READY=1\nWATCHDOG=1" in manager.recv(4096)
        wait_for(lambda: "jobs waiting\t1" in house.batwatt("slurm", "status", "-e", prefix).out, 10.0, "a status")
        assert house.batwatt("slurm", "status", "-e", prefix).code == 0
        status = json.loads(house.batwatt("slurm", "status", "-e", prefix, "--json").out)
        assert (status["cap_w"], status["jobs"]["waiting"], status["state"]) == (1650.0, 1, "running")
        assert sum(status["nodes"].values()) == 8 and len(status["not_taken"]) == 1
        figures = dict(line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if line[0] != "#")
        assert figures["batwatt_slurm_cap_watts"] == "1650" and float(figures["batwatt_slurm_power_watts"]) <= 1650.0
        assert figures['batwatt_slurm_jobs{state="waiting"}'] == figures["batwatt_slurm_jobs_not_taken"] == "1"
        assert house.batwatt("slurm", "release", "-p", platform, "--partition", "green").code == 2
        session.process.send_signal(signal.SIGTERM)
        assert session.process.wait(20) == 143
    ended = house.batwatt("slurm", "status", "-e", prefix)
    assert ended.code == 1 and "ended" in ended.out
    messages = []
    while not messages or not messages[-1].startswith(b"STOPPING=1"):
        messages.append(manager.recv(4096))
    manager.close()
    assert cluster.job(waiting)["Priority"] != "0"
    assert house.batwatt("slurm", "status", "-e", platform.parent / "nothing").code == 2
