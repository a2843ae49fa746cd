"""`batwatt engine --protocol 5`: the command line of Batsim 5, its dialogue and its files."""

from __future__ import annotations

import contextlib
import json
import struct
import threading

import pytest
import zmq

NAP = {"nap": {"type": "DelayProfile", "delay": 5}}
HELLO = {
    "batprotocol_version": "1.0.0",
    "decision_component_name": "test",
    "decision_component_version": "1",
    "decision_component_commit": "",
    "requested_simulation_features": {},
}


def reply(now, *events):
    stamped = [{"timestamp": now, "event_type": f"{name}Event", "event": data} for name, data in events]
    return json.dumps({"now": now, "events": stamped}).encode()


def first_come(message):
    """Start each job on host 0."""
    placement = {
        "host_allocation": "0",
        "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": {},
    }
    submitted = [one["event"]["job_id"] for one in message["events"] if one["event_type"] == "JobSubmittedEvent"]
    return reply(message["now"], *(("ExecuteJob", {"job_id": job, "allocation": placement}) for job in submitted))


class Component(threading.Thread):
    """A decision component; `heard` are the init text and the messages."""

    def __init__(self, endpoint, decide=first_come):
        super().__init__()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 200)
        self._socket.bind(endpoint)
        self._decide = decide
        self.heard = []
        self.over = False

    def run(self):
        with self._context, self._socket, contextlib.suppress(zmq.ZMQError):
            data = self._next()
            self.heard.append((int.from_bytes(data[:4], "little"), data[4:].decode()))
            self._socket.send(b"\2\0\0\0" + reply(0, ("EDCHello", HELLO)))
            while not self.heard[-1:] or "SimulationEnds" not in str(self.heard[-1]):
                self.heard.append(json.loads(self._next().removesuffix(b"\0")))
                self._socket.send(self._decide(self.heard[-1]))

    def _next(self):
        """The next message. Raises ZMQError where none comes any more."""
        while not self._socket.poll(50):
            if self.over:
                break
        return self._socket.recv(zmq.NOBLOCK)


def play(house, endpoint, *words, decide=first_come, to="out/"):
    component = Component(endpoint, decide)
    component.start()
    platform = house.platform("n10", "n2")
    given = ("-p", platform, "-s", endpoint, "-e", f"{house.folder}/{to}", "--timeout", 10)
    done = house.batwatt("engine", "--protocol", 5, *given, *words)
    component.over = True
    component.join()
    return done, component.heard


@pytest.mark.parametrize(
    ("energy", "files", "to"), [("--energy", ["consumed_energy.csv"], "out/"), ("--no-energy", [], "out/x-")]
)
def test_a_simulation(house, endpoint, energy, files, to):
    workload = house.workload({"id": 1, "subtime": 2, "res": 1, "profile": "nap"}, **NAP)
    events = house.write("e.txt", '{"type": "generic", "timestamp": 3, "data": "hi"}\n')
    words = ("-w", workload, "--events", events, "--init", "so", energy, "-r", "n2", "compute_node")
    done, heard = play(house, endpoint, *words, to=to)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"asking the scheduler at {endpoint}; waiting for its answer for 10 s at most\n"
    assert heard[0] == (2, "so")
    begins = heard[1]["events"][0]["event"]
    assert [host["name"] for host in begins["computation_hosts"]] == ["n2", "n10"]
    assert begins["workloads"] == [{"name": "w0", "filename": str(workload)}]
    told = [(message["now"], event["event_type"]) for message in heard[2:] for event in message["events"]]
    assert told == [
        (2.0, "JobSubmittedEvent"),
        (2.0, "AllStaticJobsHaveBeenSubmittedEvent"),
        (3.0, "ExternalEventOccurredEvent"),
        (3.0, "AllStaticExternalEventsHaveBeenInjectedEvent"),
        (7.0, "JobCompletedEvent"),
        (7.0, "SimulationEndsEvent"),
    ]
    prefix = to.removeprefix("out/")
    written = sorted([f"{prefix}jobs.csv", f"{prefix}schedule.json", *(prefix + name for name in files)])
    assert house.left == written


def test_what_makes_batsim_5_abort_is_one_line(house, endpoint):
    workload = house.workload({"id": 1, "subtime": 2, "res": 1, "profile": "nap"}, **NAP)

    def decide(message):
        return reply(message["now"], ("KillJobs", {"job_ids": ["w0!1"]})) if message["now"] else first_come(message)

    done, heard = play(house, endpoint, "-w", workload, "--no-energy", decide=decide)
    line = done.err.splitlines()[-1]
    assert (done.code, house.left, len(heard)) == (1, [], 3)
    assert line == "batwatt: illegal decision KillJobs w0!1: the job was never started"


@pytest.mark.parametrize(("energy", "code"), [((), 2), (("--no-energy",), 1)])
def test_too_few_watts_are_refused_unless_energy_is_left_out(house, energy, code):
    """Batsim 5 with --energy-host: «Found 1 energetic profiles for 2 pstates»; before the scheduler is asked."""
    platform = house.platform("n1", "n2")
    text = platform.read_text().replace('speed="2e11f"', 'speed="2e11f, 1e11f"')
    platform.write_text(text)
    words = ("-p", platform, "-s", "tcp://127.0.0.1:9", "-e", f"{house.folder}/out/", "--timeout", 0.2)
    done = house.batwatt("engine", "--protocol", 5, *words, *energy)
    assert done.code == code, done.err
    refused = (
        f"batwatt: {platform}: host 'n1': wattage_per_state has 1 entries for 2 p-states; give one power per p-state"
    )
    assert done.err.startswith(refused) == (code == 2)


def test_a_batsim_5_may_name_a_scheduler_but_no_file(house, endpoint):
    """Its text would have a file of this machine run."""
    trace = house.folder / "ran"
    evil = house.write("evil.py", f"open({str(trace)!r}, 'w')\n")
    server = house.start("serve", "--socket", endpoint, "--timeout", 10)
    init = json.dumps({"scheduler": str(evil)}).encode()
    with zmq.Context() as context, context.socket(zmq.REQ) as batsim:
        batsim.setsockopt(zmq.LINGER, 0)
        batsim.connect(endpoint)
        batsim.send(struct.pack("<I", len(init)) + init)
        served = house.end(server)
    assert served.code == 2 and not trace.exists()
    assert "the text that Batsim has for its scheduler: scheduler must be a name" in served.err
