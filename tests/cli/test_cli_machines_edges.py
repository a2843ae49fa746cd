"""Corner cases of runs on machines that come and go: ids, options, capacities given twice, other schedulers."""

from __future__ import annotations

import json

import pytest

WALK = "3\n50 0\n60 3\n90 0\n120 3\n"


class Folder:
    """A folder with inputs, and commands on them."""

    def __init__(self, house):
        self.path, self.batwatt = house.folder, house.batwatt

    def __truediv__(self, name):
        return self.path / name


@pytest.fixture
def folder(house):
    (house.folder / "walk.txt").write_text(WALK)
    (house.folder / "constant.txt").write_text("1\n")
    (house.folder / "jobs.txt").write_text("a 0 100 1\nb 0 300 1\n")
    return Folder(house)


def risk(folder, jobs="jobs.txt", strategy="first-fit-aware", capacity="walk.txt", *more, **options):
    words = ["run", "-w", folder / jobs, "--machines", 3, "--cores", 1, "-s", "riskaware", "-e", folder / "o" / "x"]
    words += ["--capacity", folder / capacity] if capacity else []
    return folder.batwatt(*words, "-o", json.dumps({"strategy": strategy, **options}), *more)


def figures(folder):
    return json.loads((folder / "o" / "x_metrics.json").read_text())


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_ids_with_a_hash_are_kept_apart(folder, strategy):
    (folder / "hash.txt").write_text("a#b 0 300 1\na 0 30 1\n")
    done = risk(folder, "hash.txt", strategy, as_published=False)
    assert done.code == 0, done.err
    found = figures(folder)
    assert found["jobs_finished"] == 2 and found["completed_fraction"] == 1.0 and found["killed_power"] == 2
    rows = (folder / "o" / "x_jobs.csv").read_text().splitlines()[1:]
    assert sorted(row.split(",")[0] for row in rows) == ["a", "a#b", "a#b#1", "a#b#2"]


def test_ids_of_resubmitted_jobs_are_refused(folder):
    (folder / "hash.txt").write_text("3 0 100 1\n3#1 0 300 1\n")
    done = risk(folder, "hash.txt")
    assert done.code == 2 and done.err.count("\n") == 1 and "3#1" in done.err


@pytest.mark.parametrize("name,value", [("always", 10**20), ("pack", 10**20), ("distance", 10**20), ("quantiles", -1)])
def test_options_beyond_all_bounds_are_refused(folder, name, value):
    done = risk(folder, strategy="target-asap", **{name: value})
    assert done.code == 2 and done.err.count("\n") == 1 and name in done.err


@pytest.mark.parametrize("options", [{"distance": 1_000_000}, {"quantiles": 1}, {"quantiles": 0}, {"pack": 1_000_000}])
def test_large_and_odd_options_run(folder, options):
    done = risk(folder, strategy="packed-target-asap", **options)
    assert done.code == 0, done.err


def test_a_scheduler_that_follows_no_capacity_is_not_measured_by_one(folder):
    words = [
        "-w",
        folder / "jobs.txt",
        "--machines",
        3,
        "--capacity",
        folder / "constant.txt",
        "-e",
        folder / "o" / "x",
    ]
    for scheduler in ("easyBackfill", "replay"):
        done = folder.batwatt("run", *words, "-s", scheduler, "-o", "{}")
        assert done.code == 2 and "--capacity" in done.err and done.err.count("\n") == 1
    assert not (folder / "o").exists()


def test_the_capacity_may_be_an_option_but_not_another_one(folder):
    words = [
        "run",
        "-w",
        folder / "jobs.txt",
        "--machines",
        3,
        "--cores",
        1,
        "-s",
        "riskaware",
        "-e",
        folder / "o" / "x",
    ]
    inside = json.dumps({"strategy": "target-asap", "capacity": str(folder / "walk.txt")})
    done = folder.batwatt(*words, "--window", "0:200", "-o", inside)
    assert done.code == 0, done.err
    assert figures(folder)["capacity_core_s"] == 3 * (200 - 10 - 30)
    done = folder.batwatt(*words, "-o", inside, "--capacity", folder / "constant.txt")
    assert done.code == 2 and "option 'capacity'" in done.err


def test_options_of_other_schedulers_are_no_files(folder):
    words = ["-w", folder / "jobs.txt", "--machines", 3, "-e", folder / "o" / "x", "-s", "easyBackfill"]
    done = folder.batwatt("run", *words, "-o", json.dumps({"reference": "abc", "capacity": "big"}))
    assert done.code == 0, done.err


def test_cores_are_for_machines_that_are_made(folder):
    made = folder / "p.xml"
    assert folder.batwatt("generate", "machines", "--machines", 3, "--cores", 1, "-o", made).code == 0
    words = ["-w", folder / "jobs.txt", "-p", made, "-s", "riskaware", "--capacity", folder / "walk.txt"]
    done = folder.batwatt("run", *words, "--cores", 7, "-e", folder / "o" / "x")
    assert done.code == 2 and "--cores" in done.err
    assert risk(folder, strategy="target-asap").code == 0
    ours = (folder / "o" / "x_jobs.csv").read_bytes()
    done = folder.batwatt("run", *words, "-o", '{"strategy": "target-asap"}', "-e", folder / "o" / "y")
    assert done.code == 0 and (folder / "o" / "y_jobs.csv").read_bytes() == ours


def test_powercap_runs_on_made_machines(folder):
    (folder / "e.csv").write_text("time_s,power_w\n0,25\n")
    words = ["-w", folder / "jobs.txt", "--machines", 3, "--envelope", folder / "e.csv", "-e", folder / "o" / "x"]
    done = folder.batwatt("run", *words, "-s", "powercap")
    assert done.code == 0, done.err


def test_what_waits_when_the_window_ends_is_unfinished_and_not_rejected(folder):
    (folder / "none.txt").write_text("0\n")
    done = risk(folder, "jobs.txt", "target-asap", "none.txt", "--window", "0:200")
    assert done.code == 0, done.err
    found = figures(folder)
    assert found["jobs_rejected"] == 0 and found["jobs_unfinished"] == 2 and found["goodput"] is None


def test_without_energy_no_machine_is_switched(folder):
    assert risk(folder, "jobs.txt", "target-asap", "walk.txt", "--no-energy").code == 0
    without = figures(folder)
    assert not (folder / "o" / "x_pstate_changes.csv").exists()
    assert risk(folder, strategy="target-asap").code == 0
    figures_with = figures(folder)
    assert without["goodput"] == pytest.approx(figures_with["goodput"], abs=1e-6)


def whole(folder, **fields):
    """A job that was released earlier, beside one whose profile has the name that its restart would take."""
    job = {"id": "a", "subtime": 10, "res": 1, "profile": "left", **fields}
    other = {"id": "b", "subtime": 10, "res": 1, "profile": "d150"}
    profiles = {"left": {"type": "delay", "delay": 145}, "d150": {"type": "delay", "delay": 9}}
    (folder / "w.json").write_text(json.dumps({"nb_res": 3, "jobs": [job, other], "profiles": profiles}))


def test_a_restart_takes_the_whole_length_whatever_profiles_are_called(folder):
    whole(folder, release_s=5, length_s=150)
    (folder / "once.txt").write_text("3\n50 0\n60 3\n")
    done = risk(folder, "w.json", "first-fit-aware", "once.txt", as_published=False)
    assert done.code == 0, done.err
    rows = [row.split(",") for row in (folder / "o" / "x_jobs.csv").read_text().splitlines()]
    lasted = {row[0]: float(row[9]) for row in rows[1:]}
    assert lasted["a"] == pytest.approx(40.0, abs=1e-3) and lasted["a#1"] == pytest.approx(150.0, abs=1e-3)


@pytest.mark.parametrize(
    "fields",
    [
        {"release_s": "abc", "length_s": 150},
        {"release_s": 5, "length_s": None},
        {"release_s": -3, "length_s": 150},
        {"release_s": 5, "length_s": 0},
        {"release_s": 1e9, "length_s": 150},
        {"release_s": 5, "length_s": 1},
    ],
)
def test_releases_and_lengths_that_cannot_be_are_refused(folder, fields):
    whole(folder, **fields)
    done = risk(folder, "w.json", "target-asap")
    assert done.code == 2 and done.err.count("\n") == 1 and "w0!a" in done.err
    assert not (folder / "o" / "x_metrics.json").exists()


def test_a_capacity_before_the_beginning_is_refused(folder):
    (folder / "early.csv").write_text("time_s,machines\n-50,3\n0,1\n")
    done = risk(folder, capacity="early.csv")
    assert done.code == 2 and "-50" in done.err and done.err.count("\n") == 1
