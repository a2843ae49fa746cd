"""The files that `batwatt init` writes: those of the repository, or their copies in the package of a wheel."""

from __future__ import annotations

import shutil
from pathlib import Path

_SAME = """
platforms/small.toml platforms/small.xml platforms/grid5000.toml platforms/grid5000.xml
platforms/marconi100-48.toml platforms/marconi100-48.xml
workloads/small.json workloads/google-288-00.json workloads/risk-small.txt
workloads/site/jobs.sacct workloads/borg/day-691200.txt power_profiles/site/solar.csv
workloads/carbon/job.json workloads/carbon/jobs.csv workloads/carbon/ml.json
power_profiles/small.csv power_profiles/profile3.csv power_profiles/walk-small.csv
power_profiles/carbon/carbon-hourly.csv power_profiles/carbon/price-hourly.csv
start/first.yaml workloads/cloud/jobs.csv workloads/pm100-like.json
workloads/periods/period.json workloads/periods/change.json workloads/periods/figure1.json
workloads/periods/starving.json
"""
SOURCES = {
    "README.md": "start/README.md",
    "my_policy.py": "start/my_policy.py",
    **{name: name for name in _SAME.split()},
}
"""File of a start -> its file in the repository."""
PACKED = "start"
"""Folder of a wheel's package with the files of a start."""


def copy_start(repository: Path, folder: Path) -> None:
    """Copy the files of a start from the repository into a folder; `setup.py` does so for a wheel."""
    for name, source in SOURCES.items():
        _copy(repository / source, folder / name)


def write_start(folder: Path) -> None:
    """Copy the files of a start from this installation into a folder."""
    package = Path(__file__).parents[1]
    packed = package / PACKED
    if not packed.is_dir():
        # an editable installation: src/batwatt is in the repository
        copy_start(package.parents[1], folder)
        return
    for name in SOURCES:
        _copy(packed / name, folder / name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
