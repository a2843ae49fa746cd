"""Files of the real Batsim 5 as those of a run: what is mapped is its own, what is worked out is the engine's."""

from __future__ import annotations

import csv
import json

import golden5
import pytest

from batwatt.errors import PeerError
from batwatt.results.run_files import consumed_energy, jobs, pstate_changes, write_record
from batwatt.run.batsim5_files import map_files

ALL = ("jobs.csv", "consumed_energy.csv", "pstate_changes.csv", "machine_states.csv", "schedule.json")
NOT = {
    "odd_change_": "p-states set by force, of sleeping or switching hosts: rc2's own picture is broken then",
    "force_stop": "jobs that were running are not in jobs.csv",
    "latency": "communicates", "forward_profiles_begin_only": "communicates",
}  # fmt: skip
"""Recordings of which the states are not worked out, or not simulated, and why."""


def rows(path):
    return list(csv.DictReader(path.open()))


def whole(name):
    recording = golden5.Recording(name)
    return all((recording.folder / "out" / file).exists() for file in ALL) and not recording.exit_code


WHOLE = [name for name in golden5.names() if whole(name) and not name.startswith(tuple(NOT))]


@pytest.mark.parametrize("name", WHOLE)
def test_files_of_the_real_batsim_5(name, tmp_path):
    recording = golden5.Recording(name)
    record = recording.replay([])
    real, ours, mapped = recording.folder / "out", tmp_path / "ours", tmp_path / "mapped"
    platform = recording.engine().platform
    map_files(real, mapped, platform, {})
    write_record(record, ours)
    for stem in ("machine_states", "schedule", "jobs"):
        assert (tmp_path / f"mapped_{stem}.csv").read_text().partition("\n")[0] == (
            tmp_path / f"ours_{stem}.csv"
        ).read_text().partition("\n")[0]
    # every host is in the state that the engine has it in, at the end of each moment
    states = [{row["time"]: row for row in rows(tmp_path / f"{to}_machine_states.csv")} for to in ("mapped", "ours")]
    assert states[0] == states[1]
    schedules = [rows(tmp_path / f"{to}_schedule.csv")[0] for to in ("mapped", "ours")]
    for column, value in schedules[0].items():
        if column.startswith("time_"):
            assert float(value) == pytest.approx(float(schedules[1][column]), abs=1e-5), column
    for file in ("consumed_energy.csv", "pstate_changes.csv"):
        assert (tmp_path / f"mapped_{file}").read_bytes() == (real / file).read_bytes()
    # and the readers of figures understand them
    assert len(jobs(mapped)) == len(record.jobs)
    assert len(consumed_energy(mapped)) == len(record.consumed_energy)
    assert len(pstate_changes(mapped)) == len(record.pstate_changes)


def test_profiles_and_metadata(tmp_path):
    recording = golden5.Recording("kill")
    map_files(recording.folder / "out", tmp_path / "x", recording.engine().platform, {"w0!p": "too long"})
    mapped = {row["job_id"]: row for row in rows(tmp_path / "x_jobs.csv")}
    assert (mapped["p"]["profile"], mapped["p"]["metadata"], mapped["d"]["metadata"]) == ("long", "too long", "")
    theirs = {row["job_id"]: row for row in rows(recording.folder / "out" / "jobs.csv")}
    for name, row in theirs.items():
        for column in row.keys() - {"profile", "metadata"}:
            assert mapped[name][column] == row[column]


@pytest.mark.parametrize("name", ["jobs.csv", "consumed_energy.csv", "schedule.json"])
def test_files_of_another_batsim(name, tmp_path):
    recording = golden5.Recording("fcfs")
    out = tmp_path / "out"
    out.mkdir()
    for file in ALL:
        (out / file).write_bytes((recording.folder / "out" / file).read_bytes())
    text = (out / name).read_text()
    (out / name).write_text(json.dumps({}) if name.endswith("json") else text.replace("energy", "joules", 1))
    with pytest.raises(PeerError, match=name):
        map_files(out, tmp_path / "x", recording.engine().platform, {})
