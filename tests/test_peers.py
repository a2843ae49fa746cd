"""Rules of `bench/peers.py`: builds that are refused, the jobs that all programs get, ratios, and what peers leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
sys.path.insert(0, str(BENCH))
import peers  # noqa: E402  (bench/ is not installed)


def program(folder: Path, printed: str = "1.4.0") -> Path:
    """Write a program without an ELF that prints its version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "batsched"
    path.write_text(f"#!/bin/sh\necho {printed}\n")
    path.chmod(0o755)
    return path


def meson(folder: Path, kind: str, optimization: str) -> None:
    """Write what a build folder of meson tells of its options."""
    options = [{"name": "buildtype", "value": kind}, {"name": "optimization", "value": optimization}]
    (folder / "meson-info").mkdir()
    (folder / "meson-info" / "intro-buildoptions.json").write_text(json.dumps(options))


@pytest.mark.parametrize(
    ("kind", "optimization", "build_type", "remark"),
    [
        ("release", "3", "meson release (-O3)", ""),
        ("debugoptimized", "2", "meson debugoptimized (-O2)", ""),
        ("debug", "0", "meson debug (-O0)", peers.REFUSED),
        ("plain", "0", "meson plain (-O0)", peers.REFUSED),
        ("plain", "plain", "meson plain", "build type unknown"),
    ],
)
def test_build_of_a_folder_of_meson(tmp_path, monkeypatch, kind, optimization, build_type, remark):
    program(tmp_path / "build")
    meson(tmp_path / "build", kind, optimization)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "batsched").symlink_to(tmp_path / "build" / "batsched")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    build = peers.build_of("batsched")
    assert (build.version, build.build_type) == ("1.4.0", build_type)
    assert peers.remark({"batsched": build}, "batsim", "batsched") == remark


@pytest.mark.parametrize(
    ("units", "optimised"),
    [
        (["GNU C++17 12.2.0 -O2 -g", "GNU C11 12.2.0 -g -O3"], True),
        (["GNU C++17 12.2.0 -O2 -g", "GNU C11 12.2.0 -g"], False),
        (["GNU C++17 12.2.0 -O2 -O0 -g"], False),
        ([], None),
    ],
)
def test_build_of_an_installed_program(tmp_path, monkeypatch, units, optimised):
    program(tmp_path)
    lines = "".join(f"echo '  DW_AT_producer : (indirect string): {unit}'\n" for unit in units)
    (tmp_path / "readelf").write_text(f'#!/bin/sh\n[ "$1" = --debug-dump=info ] || exit 0\n{lines}')
    (tmp_path / "readelf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert peers.build_of("batsched").optimised is optimised


@pytest.mark.parametrize(("printed", "version"), [("3.2.0", "3.2.0"), ("4.0.0", ""), ("batwatt 0.1.0", "")])
def test_only_a_pybatsim_of_3_counts(tmp_path, monkeypatch, printed, version):
    program(tmp_path, printed).rename(tmp_path / "pybatsim")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert peers.pybatsim_version() == version


def test_jobs_end_before_their_requested_time():
    rows = [line.split() for line in peers.swf(200).splitlines() if not line.startswith(";")]
    assert [int(row[0]) for row in rows] == list(range(1, 201))
    assert all(len(row) == 18 and int(row[3]) < int(row[8]) and 1 <= int(row[7]) <= peers.HOSTS for row in rows)
    assert [int(row[1]) for row in rows] == sorted(int(row[1]) for row in rows)


def test_ratios_are_those_of_the_same_round():
    theirs = [peers.Usage(1.0, cpu_s, 1.0) for cpu_s in (2.0, 6.0, 12.0)]
    ours = [peers.Usage(1.0, cpu_s, 1.0) for cpu_s in (1.0, 1.0, 4.0)]
    assert peers.times(theirs, ours) == (3.0, "3.00 x (2.00-6.00)")


def test_a_program_that_fails_is_an_error(tmp_path):
    assert peers.whole([sys.executable, "-c", "sum(range(10**6))"], tmp_path).cpu_s > 0
    with pytest.raises(subprocess.CalledProcessError):
        peers.whole([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_outcomes_of_the_peers(tmp_path):
    (tmp_path / "ours_schedule.csv").write_text("nb_jobs_finished,mean_waiting_time\n7,12.500000\n")
    assert peers.of_schedule("ours", tmp_path) == peers.Outcome(7, 12.5)
    (tmp_path / "accasim").mkdir()
    (tmp_path / "accasim" / "sched-jobs.swf").write_text("1;1;__\n2;1;__\n")
    (tmp_path / "accasim" / "stats-jobs.swf").write_text("Total jobs: 2\nAvg. waiting times: 4458.31\n")
    assert peers.of_accasim(tmp_path) == peers.Outcome(2, 4458.31)
    results = tmp_path / "cqsim" / "data" / "Results"
    results.mkdir(parents=True)
    (results / "jobs.rst").write_text("2;3;3;380.0;98.0;10.0;12.0;22.0;120.0\n3;1;1;713.0;500.0;2.0;38.0;40.0;540.0\n")
    assert peers.of_cqsim(tmp_path) == peers.Outcome(2, 6.0)
