"""Files of the real Batsim 5 as those of a run."""

from __future__ import annotations

import csv

import pytest
from dialogues5 import REAL, Recording, names

from batwatt.errors import PeerError
from batwatt.results.run_files import consumed_energy, jobs, pstate_changes
from batwatt.run.batsim5_files import map_files

ENERGY = ("consumed_energy", "pstate_changes")
TABLES = ("jobs", *ENERGY)


def rows(path):
    return list(csv.DictReader(path.open()))


def out(name):
    return Recording(REAL, name).folder / "out"


FILES = ("schedule.json", *(f"{stem}.csv" for stem in TABLES))
WHOLE = [name for name in names(REAL) if all((out(name) / file).exists() for file in FILES)]


@pytest.mark.parametrize("name", WHOLE)
def test_files_of_the_real_batsim_5(name, tmp_path):
    prefix = tmp_path / "x"
    map_files(out(name), prefix, {})
    assert {path.name for path in tmp_path.iterdir()} == {f"x_{stem}.csv" for stem in TABLES}
    for stem in ENERGY:
        assert (tmp_path / f"x_{stem}.csv").read_bytes() == (out(name) / f"{stem}.csv").read_bytes()
    # the readers of figures understand them
    assert len(jobs(prefix)) == len(rows(out(name) / "jobs.csv"))
    assert len(consumed_energy(prefix)) == len(rows(out(name) / "consumed_energy.csv"))
    assert len(pstate_changes(prefix)) == len(rows(out(name) / "pstate_changes.csv"))


def test_without_energy_there_are_jobs_only(tmp_path):
    for name in ("jobs.csv", "pstate_changes.csv"):
        (tmp_path / name).write_bytes((out("kill") / name).read_bytes())
    map_files(tmp_path, tmp_path / "x", {})
    assert [path.name for path in tmp_path.glob("x_*")] == ["x_jobs.csv"]


def test_profiles_and_metadata(tmp_path):
    map_files(out("kill"), tmp_path / "x", {"w0!p": "too long"})
    mapped = {row["job_id"]: row for row in rows(tmp_path / "x_jobs.csv")}
    assert (mapped["p"]["profile"], mapped["p"]["metadata"], mapped["d"]["metadata"]) == ("long", "too long", "")
    for row in rows(out("kill") / "jobs.csv"):
        for column in row.keys() - {"profile", "metadata"}:
            assert mapped[row["job_id"]][column] == row[column]


def another(tmp_path, name, change):
    """The files of a Batsim, one of them changed."""
    for stem in TABLES:
        text = (out("fcfs") / f"{stem}.csv").read_text()
        (tmp_path / f"{stem}.csv").write_text(change(text) if stem == name else text)


@pytest.mark.parametrize("name", TABLES)
def test_files_of_another_batsim(name, tmp_path):
    another(tmp_path, name, lambda text: f"x{text}")
    with pytest.raises(PeerError, match=rf"the columns of Batsim's {name}\.csv are not"):
        map_files(tmp_path, tmp_path / "x", {})


@pytest.mark.parametrize("name", TABLES)
def test_a_row_that_is_cut(name, tmp_path):
    another(tmp_path, name, lambda text: text.rstrip("\n").rpartition(",")[0])
    with pytest.raises(PeerError, match=rf"Batsim's {name}\.csv: row \d+ has \d+ fields, its header"):
        map_files(tmp_path, tmp_path / "x", {})
