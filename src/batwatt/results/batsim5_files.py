"""Write a run's record as the files of Batsim 5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from batwatt.files import write_text
from batwatt.model.record import Record
from batwatt.results.run_files import FILES, write_columns, write_rows

_ONLY_4 = ("scheduling_time", "simulation_time")


def write_record5(record: Record, prefix: str, *, ended: bool = True, pstates: bool = False) -> None:
    """Write `PREFIXjobs.csv`, and `PREFIXconsumed_energy.csv` of a run with energy.

    Also write `PREFIXschedule.json` if the run `ended`, and `PREFIXpstate_changes.csv` with `pstates`.
    """
    # metadata of a job of Batsim 5 is empty and without quotes
    columns = [replace(column, form="text") if column.form == "quoted" else column for column in FILES["jobs"]]
    write_columns(Path(prefix + "jobs.csv"), columns, record.jobs.columns())
    if record.energy:
        name = "consumed_energy"
        write_columns(Path(f"{prefix}{name}.csv"), FILES[name], record.consumed_energy.columns())
    if pstates:
        write_rows(Path(prefix + "pstate_changes.csv"), FILES["pstate_changes"], record.pstate_changes)
    if ended:
        forms = {"text": '"%s"', "int": "%d", "fixed": "%.6f"}
        lines = [f'  "{column.name}": {forms[column.form] % record.schedule[column.name]}'
                 for column in FILES["schedule"] if column.name not in _ONLY_4]  # fmt: skip
        write_text(Path(prefix + "schedule.json"), "{\n" + ",\n".join(lines) + "\n}\n")
