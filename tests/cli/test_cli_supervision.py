"""Two processes: if either side dies, falls silent or talks nonsense, the other ends and says so in one line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket as sockets
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import zmq
from cli_house import JOBS, SMALL, alive, children, scheduler
from false_batsim import false_batsim
from waiting import wait_for

from batwatt.cli import exits

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
NONE = ("-o", '{"response": "none"}')
BEGINS = json.dumps({"now": 0.0, "events": [{"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": {
    "nb_resources": 1, "nb_compute_resources": 1, "nb_storage_resources": 0, "allow_compute_sharing": False,
    "allow_storage_sharing": True, "storage_resources": [], "workloads": {}, "profiles": {},
    "compute_resources": [{"id": 0, "name": "a"}],
    "config": {"redis-enabled": False, "profiles-forwarded-on-submission": False, "dynamic-jobs-enabled": False,
               "dynamic-jobs-acknowledged": False, "forward-unknown-events": False},
}}]})  # fmt: skip
ENDS = json.dumps({"now": 1.0, "events": [{"timestamp": 1.0, "type": "SIMULATION_ENDS", "data": {}}]})
WRONG = {
    "ends at once": (("script", "echo 'CRITICAL: no such platform'; exit 3"), "exit code 3", "no such platform"),
    "prints garbage": (("garbage",), "SIGKILL"),
    "sleeps in another process": (("script", "sleep 60"), "silent for 1 s"),
    "talks nonsense and stays": (("talk", 0, "hello"), "not a JSON", "hello"),
    "begins and dies": (("talk", 7, BEGINS), "exit code 7"),
    "writes nothing": (("talk", 0, BEGINS, ENDS), "wrote no x_jobs.csv"),
    "is no program": (None, "cannot be started"),
}
"""What a Batsim does -> the part of a false one, and parts of the line on stderr."""


@pytest.mark.parametrize("name", WRONG)
def test_a_batsim_that_goes_wrong(house, name):
    part, *texts = WRONG[name]
    batsim = house.write("batsim", "not a program")
    batsim.chmod(0o755)
    if part:
        false_batsim(batsim, *part)
    before = set(children(os.getpid()))
    began = time.monotonic()
    options = ("--engine", "batsim", "--batsim", batsim, "--timeout", 1 if "silent" in texts[0] else 60, *NONE)
    done = house.run(*options, platform=house.platform("a"))
    # neither its sleep nor the limit was waited for
    assert time.monotonic() - began < 45.0
    assert done.code in (1, 2) and house.left == []
    assert [text for text in texts if text not in done.line] == []
    assert set(children(os.getpid())) <= before


TALK = """import time
        from pathlib import Path
        Path(__file__).with_name("talking").touch()
        time.sleep(0.05)
        self.bs.wake_me_up_at(self.bs.time() + 1)"""
SLOW = scheduler("Slow", decide=TALK)


def slow_run(house, *more):
    """A run over the wire that never ends, and the pid of its engine process once they talk."""
    slow = house.write("slow.py", SLOW)
    words = ("-p", SMALL, "-w", JOBS, "-s", slow, "-e", house.out / "x", "--engine", "wire", *more)
    process = house.start("run", *words)
    wait_for(lambda: (house.folder / "talking").exists() or process.poll() is not None)
    (child,) = engines(process.pid)
    return process, child


def engines(pid):
    """The engine processes that `pid` started."""
    return [child for child in children(pid) if b"batsim" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")]


@linux
@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGKILL, "was ended by SIGKILL"), (signal.SIGSTOP, "silent for 6 s")]
)
def test_the_engine_process_is_killed_or_stopped(house, number, said):
    process, child = slow_run(house, *(("--timeout", 6) if number == signal.SIGSTOP else ()))
    os.kill(child, number)
    done = house.end(process)
    assert (done.code, house.left) == (1, []) and said in done.line and not alive(child)


DEEP = [pytest.param(number, marks=pytest.mark.deep) for number in (signal.SIGINT, signal.SIGHUP)]


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, *DEEP])
def test_the_run_is_ended(house, number):
    process, child = slow_run(house)
    process.send_signal(number)
    done = house.end(process)
    if number != signal.SIGKILL:
        assert (done.code, house.left) == (128 + number, []) and number.name in done.line
    wait_for(lambda: not alive(child))


@linux
def test_the_run_is_killed_and_batsim_is_in_a_script(house):
    """Processes of a wrapper script end, too, even those that ignore SIGTERM."""
    pid = house.folder / "pid"
    batsim = false_batsim(house.folder / "batsim", "script", f"trap '' TERM; echo $$ > {pid}; sleep 60; sleep 60")
    words = ("-p", house.platform("a"), "-w", JOBS, "-e", house.out / "x", "--engine", "batsim", "--batsim", batsim)
    process = house.start("run", *words, *NONE)
    wait_for(lambda: pid.exists() and pid.read_text())
    process.kill()
    process.communicate()
    wait_for(lambda: not alive(int(pid.read_text())))


# `batwatt serve` ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def bound(kind, endpoint):
    """A socket of this kind, at an endpoint."""
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 200)
        socket.setsockopt(zmq.RCVTIMEO, 60000)
        (socket.bind if kind == zmq.REP else socket.connect)(endpoint)
        yield socket


def test_the_other_side_never_comes(house, endpoint, monkeypatch):
    monkeypatch.chdir(house.folder)
    done = house.batwatt("serve", *NONE, "--socket", endpoint, "--timeout", 0.3)
    assert (done.code, house.left) == (1, [])
    assert done.err.splitlines() == [
        f"listening on {endpoint}; waiting for Batsim to connect, for 0.3 s at most",
        f"batwatt: Batsim has been silent for 0.3 s and never connected to {endpoint}",
    ]


def test_a_scheduler_whose_batsim_dies(house, endpoint):
    address = ("127.0.0.1", int(endpoint.rpartition(":")[2]))

    def listens() -> bool:
        """A readiness check, which connects and leaves, is not Batsim."""
        with contextlib.suppress(ConnectionRefusedError), sockets.create_connection(address):
            return True
        return False

    def batsim() -> list[object]:
        wait_for(listens)
        with bound(zmq.REQ, endpoint) as socket:
            socket.send_string(BEGINS)
            return json.loads(socket.recv())["events"]

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(batsim)
        done = house.batwatt("serve", "--socket", endpoint, *NONE)
    assert answer.result() == []
    assert done.code == 1 and "Batsim closed the connection" in done.err.strip().split("\n")[-1]


# signals at any moment ------------------------------------------------------------------------------------------------

# a library that takes for ever to load, and says that it is being loaded
STUCK = """
import time
from pathlib import Path

Path(__file__).with_name("loading").touch()
try:
    time.sleep(60)
except BaseException as error:
    raise SystemError("swallowed") from error
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_libraries_are_loaded(house, monkeypatch, number):
    (house.folder / "lib").mkdir()
    house.write("lib/typer.py", STUCK)
    monkeypatch.setenv("PYTHONPATH", str(house.folder / "lib"))
    process = house.start("run", "-p", SMALL, "-w", JOBS)
    wait_for((house.folder / "lib" / "loading").exists)
    process.send_signal(number)
    ended = house.end(process)
    assert (ended.code, ended.err) == (128 + number, f"batwatt: ended by {number.name}\n")
    # the installed command does that, too
    (ours,) = entry_points(group="console_scripts", name="batwatt")
    assert ours.value == "batwatt.__main__:main"


def test_in_a_destructor_where_nothing_can_be_raised(capsys):
    class Late:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    def command() -> None:
        Late()
        time.sleep(30)

    began = time.monotonic()
    assert exits.exit_code_of(command) == 143
    assert time.monotonic() - began < 20.0
    assert capsys.readouterr().err == "batwatt: ended by SIGTERM\n"


def test_two_at_once_interrupt_once(capsys):
    """What cleans up after the first is not interrupted by the second."""
    cleaned = []

    def command() -> None:
        try:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(30)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            cleaned.append(True)

    assert exits.exit_code_of(command) == 143 and cleaned
    assert capsys.readouterr().err == "batwatt: ended by SIGTERM\n"


def test_while_an_error_is_told(capsys, monkeypatch):
    texts = []
    real = exits._complain

    def complain(text, error, code):
        if not texts:
            texts.append(text)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        return real(text, error, code)

    monkeypatch.setattr(exits, "_complain", complain)

    def command() -> None:
        raise ValueError

    assert exits.exit_code_of(command) == 130 and texts
    assert capsys.readouterr().err == "batwatt: ended by SIGINT\n"
