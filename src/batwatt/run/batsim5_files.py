"""The files of Batsim 5 as those of Batsim 4.

`consumed_energy.csv` and `pstate_changes.csv` are the same in both. In `jobs.csv` the profile loses its workload's
name, and metadata are those of the scheduler, as Batsim 5 has none. `machine_states.csv` and `schedule.json` are left
out: a host of v5.0.0-rc2 that has computed never becomes idle again.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from pathlib import Path

from batwatt.errors import PeerError
from batwatt.files import whole_file
from batwatt.results.run_files import FILES, escaped, file_of


def map_files(folder: Path, prefix: Path, metadata: Mapping[str, str]) -> None:
    """Write files of Batsim 5 in a folder as those of a run under `prefix`; `metadata`: full job id -> text.

    Raises PeerError if they are not as v5.0.0-rc2 writes them.
    """
    # without energy Batsim 4 writes jobs only
    energy = ("consumed_energy", "pstate_changes") if (folder / "consumed_energy.csv").exists() else ()
    for name in energy:
        _check(folder / f"{name}.csv", name)
        shutil.copyfile(folder / f"{name}.csv", file_of(prefix, name))
    _check(folder / "jobs.csv", "jobs")
    with (
        (folder / "jobs.csv").open(newline="", encoding="utf-8") as file,
        whole_file(file_of(prefix, "jobs")) as out,
    ):
        out.write(",".join(column.name for column in FILES["jobs"]) + "\n")
        for row in csv.DictReader(file):
            load = row["workload_name"]
            row["profile"] = row["profile"].removeprefix(f"{load}!")
            about = metadata.get(f"{load}!{row['job_id']}", "")
            del row["metadata"]
            out.write(",".join([*escaped([*row.values()]), f'"{about}"']) + "\n")


def _check(path: Path, name: str) -> None:
    """Raise PeerError unless the columns of a file, and the number of fields of each row, are Batsim's."""
    names = [column.name for column in FILES[name]]
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            if next(rows, None) != names:
                raise PeerError(f"the columns of Batsim's {path.name} are not {','.join(names)}")
            for number, row in enumerate(rows, 1):
                if len(row) != len(names):
                    problem = f"row {number} has {len(row)} fields, its header {len(names)}"
                    raise PeerError(f"Batsim's {path.name}: {problem}")
    except FileNotFoundError:
        raise PeerError(f"Batsim ended well but wrote no {path.name}") from None
