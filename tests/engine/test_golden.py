"""The embedded engine answers as the real Batsim 4.2.1 did, message by message, and writes the same files."""

from __future__ import annotations

import json

import pytest
from golden import (
    GOLDEN,
    OWN,
    Script,
    assert_same_files,
    by_date,
    dialogue,
    engine_of,
    needs_golden,
    scenarios,
)

from batwatt.engine.wire import check_answer, decode, encode
from batwatt.errors import IllegalDecisionError, InputError, ProtocolError
from batwatt.results.writers import write_record


def replay(folder, tmp_path):
    scenario = json.loads((folder / "scenario.json").read_text())
    lines = dialogue(folder)
    engine = engine_of(folder, scenario)
    script = Script(lines)
    ours = []
    aborted = False
    while not engine.ended:
        try:
            message = decode(encode(engine.message()))
            ours.append(message)
            engine.reply(check_answer(decode(script.answer(message["now"]))))
        except (IllegalDecisionError, InputError, ProtocolError):
            aborted = True
            break
    assert aborted == scenario["aborted"]
    theirs = [json.loads(text) for who, text in lines if who == "B"]
    mine, real = by_date(ours), by_date(theirs)
    assert list(mine) == list(real)
    for date, events in real.items():
        assert mine[date] == events, f"at {date}"
    if not aborted:
        prefix = tmp_path / "out"
        write_record(engine.close(), prefix)
        assert_same_files(prefix, folder)


@needs_golden
@pytest.mark.parametrize("folder", scenarios(GOLDEN, "dialogues"), ids=lambda path: path.name)
def test_dialogue_of_the_real_batsim(folder, tmp_path):
    replay(folder, tmp_path)


@pytest.mark.parametrize("folder", scenarios(OWN, ""), ids=lambda path: path.name)
def test_our_own_recordings_of_the_real_batsim(folder, tmp_path):
    replay(folder, tmp_path)
