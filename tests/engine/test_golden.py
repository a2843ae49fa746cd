"""The embedded engine answers as the real Batsim 4.2.1 did, message by message, and writes the same files."""

from __future__ import annotations

import json

import pytest
from golden import Script, assert_same_files, by_date, dialogue, engine_of, scenarios

from batwatt.batsim.batsim4 import decode, read_reply, write_message
from batwatt.errors import DeadlockError, IllegalDecisionError, InputError, ProtocolError
from batwatt.results.run_files import write_record

KINDS = ("golden", "findings", "own", "rules", "random")


def replay(folder, tmp_path):
    scenario = json.loads((folder / "scenario.json").read_text())
    lines = dialogue(folder)
    engine = engine_of(folder, scenario)
    script = Script(lines)
    ours = []
    stopped = False
    while not engine.ended:
        try:
            message = decode(write_message(engine.message()))
            ours.append(message)
            engine.reply(read_reply(script.answer(message["now"])))
        except (IllegalDecisionError, InputError, ProtocolError, DeadlockError):
            stopped = True
            break
    deadlock = scenario.get("deadlock", False)
    assert stopped == (scenario["aborted"] or deadlock)
    if deadlock:
        return  # Batsim goes on until nothing is left to happen and then ends as if all were well
    theirs = [json.loads(text) for who, text in lines if who == "B"]
    mine, real = by_date(ours), by_date(theirs)
    assert list(mine) == list(real)
    for date, events in real.items():
        assert mine[date] == events, f"at {date}"
    if not stopped:
        prefix = tmp_path / "out"
        write_record(engine.close(), prefix)
        assert_same_files(prefix, folder)


@pytest.mark.parametrize("folder", scenarios(*KINDS), ids=lambda path: path.name)
def test_dialogue_of_the_real_batsim(folder, tmp_path):
    replay(folder, tmp_path)
