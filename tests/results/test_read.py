"""Result files that are nearly right: one line, whatever is wrong with them."""

from __future__ import annotations

import pytest

from batwatt.errors import InputError
from batwatt.results import read
from batwatt.results.columns import CONSUMED_ENERGY, JOBS

HEADER = ",".join(column.name for column in JOBS)
ROW = '1,w0,p,0.000000,1,-1.000000,1,COMPLETED_SUCCESSFULLY,0.0,5.0,5.0,0.0,5.0,1.0,0,-1.000000,""'
ENERGY = ",".join(column.name for column in CONSUMED_ENERGY)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([f"{ROW},9,8", f"{ROW},9,8"], "line 2: has 19 fields where the header names 17"),
        ([f"x,{ROW}", ROW], "line 2: has 18 fields where the header names 17"),
        ([f"x,{ROW}", f"x,{ROW}"], "line 2: has 18 fields where the header names 17"),
        ([ROW, ROW.replace("w0", "w0,x")], "line 3: has 18 fields where the header names 17"),
        ([ROW, f"{ROW},"], "line 3: has 18 fields where the header names 17"),
        ([f"{ROW},", f"{ROW},"], "line 2: has 18 fields where the header names 17"),
        (["x" * 200_000 + f",{ROW}"], r"line 2: is not CSV \(field larger than field limit \(131072\)\)"),
    ],
)
def test_jobs_with_more_fields_than_columns(tmp_path, rows, line):
    (tmp_path / "r_jobs.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    with pytest.raises(InputError, match=rf"r_jobs\.csv: {line}; run the simulation again"):
        read.jobs(tmp_path / "r")


@pytest.mark.parametrize("rows", [["0.0,0.0,e,0.0,NA,7"], ["0.0,0.0,e,0.0,NA", "1.0,0.0,e,0.0,NA,7"]])
def test_energies_with_more_fields_than_columns(tmp_path, rows):
    (tmp_path / "r_consumed_energy.csv").write_text("\n".join([ENERGY, *rows]) + "\n")
    with pytest.raises(InputError, match=f"line {len(rows) + 1}: has 6 fields where the header names 5"):
        read.consumed_energy(tmp_path / "r")


def test_more_columns_in_the_header_are_left_alone(tmp_path):
    (tmp_path / "r_jobs.csv").write_text(f"{HEADER},more\n{ROW},x\n")
    assert read.jobs(tmp_path / "r")["profile"].tolist() == ["p"]
