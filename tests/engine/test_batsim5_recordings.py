"""The embedded engine says what the real Batsim 5 (v5.0.0-rc2) said, byte for byte, and writes the same files."""

from __future__ import annotations

import json
import math

import golden5
import pytest
from golden import numbers_close, rows_of

from batwatt.errors import BatwattError, IllegalDecisionError, UnsupportedError
from batwatt.results.batsim5_files import write_record5

COMMUNICATION = {
    "error_forward_unused_profile": "a job of it communicates over links",
    "forward_profiles_begin_only": "a job of it communicates over links",
    "latency": "a job of it communicates, over links with latency",
}
"""What a platform without a network does not simulate: refused when the workload is read."""
ROUNDING = {
    "easy200": "SimGrid adds up the time between events, the engine does not: the last digits of 12 decimals differ",
    "thirds": "likewise the mean power within the 3e-13 s between a message and its answer",
}
GUESSED = ("external_event_lists", "batsim_version", "batsim_commit")
"""Fields of SimulationBegins that were guessed for the recordings; the engine does not send them."""
OF_THE_COMMAND = ("batsim_arguments", "batsim_execution_context_json")
WRONG_IN_RC2 = ("time_computing", "time_idle")
"""A host that has computed is never idle again in rc2's totals."""


def test_what_communicates_is_refused():
    for name in COMMUNICATION:
        with pytest.raises(UnsupportedError, match=r"communicates .* bytes"):
            golden5.Recording(name).engine()


@pytest.mark.parametrize("name", [name for name in golden5.names() if name not in COMMUNICATION])
def test_dialogue_of_the_real_batsim_5(name, tmp_path):
    recording = golden5.Recording(name)
    sent: list[str] = []
    if recording.exit_code and not recording.stopped:
        with pytest.raises(BatwattError) as caught:
            recording.replay(sent)
        assert "\n" not in str(caught.value)
        if recording.hello and recording.exit_code < 0 and name != "error_no_wattage":
            assert isinstance(caught.value, IllegalDecisionError)
            assert caught.value.exit_code == 1
    else:
        record = recording.replay(sent)
        assert (record is None) == recording.stopped
        if record is not None:
            compare_files(record, recording.folder / "out", tmp_path, name)
    assert len(sent) == len(recording.asked)
    for ours, theirs in zip(sent, recording.asked, strict=True):
        if '"SimulationBeginsEvent"' in theirs:
            assert begins(ours) == begins(theirs)
        elif name in ROUNDING:
            assert same_but_rounding(json.loads(ours), json.loads(theirs)), theirs
        else:
            # guessed for the recordings: that profiles are there without a request
            assert ours == (theirs.replace(',"profiles": []', "") if "JobsKilledEvent" in theirs else theirs)


def begins(text):
    message = json.loads(text)
    data = message["events"][0]["event"]
    for workload in data["workloads"]:
        workload["filename"] = workload["filename"].rpartition("/")[2]
    for name in GUESSED:
        data.pop(name, None)
    assert all(name in data for name in OF_THE_COMMAND)
    message["events"][0]["event"] = {key: value for key, value in data.items() if value or key != "profiles"}
    for name in OF_THE_COMMAND:
        del message["events"][0]["event"][name]
    return json.dumps(message)


def same_but_rounding(ours, theirs):
    if isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=0.0, abs_tol=1.5e-12 * max(1.0, theirs))
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same_but_rounding(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same_but_rounding, ours, theirs))
    return ours == theirs


def compare_files(record, folder, tmp_path, name):
    theirs = {path.name for path in folder.iterdir()} - {"machine_states.csv"}
    write_record5(record, f"{tmp_path}/", pstates="pstate_changes.csv" in theirs)
    assert {path.name for path in tmp_path.iterdir()} == theirs
    for path in (folder / name for name in theirs if name.endswith(".csv")):
        ours, theirs = rows_of(tmp_path / path.name), rows_of(path)
        assert list(ours[0] if ours else []) == list(theirs[0] if theirs else [])
        assert len(ours) == len(theirs)
        before = None
        for mine, real in zip(ours, theirs, strict=True):
            for column, value in real.items():
                if column == "epower" and name in ROUNDING and before == real["time"]:
                    continue
                assert numbers_close(mine[column], value), f"{path.name} {real}: {column}"
            before = real.get("time")
    text = (folder / "schedule.json").read_text()
    real = json.loads(text.replace("-nan", "0.0"))
    mine = json.loads((tmp_path / "schedule.json").read_text())
    assert list(mine) == list(real)
    for key in real.keys() - set(WRONG_IN_RC2) - {"batsim_version"}:
        assert numbers_close(str(mine[key]), str(real[key])), f"schedule.json: {key}"
