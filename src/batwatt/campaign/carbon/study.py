"""Carrying out studies of shifted jobs: a part for each synthetic job, kept as soon as it is done, and their tables."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from pydantic import model_validator

from batwatt.campaign.carbon.study_plans import FIGURES, PlanTask, plans_of, table_of
from batwatt.campaign.carbon.study_spec import CarbonStudies, Permutation
from batwatt.campaign.cells import digest_of_sources, sources_of
from batwatt.campaign.processes import Died, cpu_count, in_processes
from batwatt.campaign.spec import canonical, folder_name
from batwatt.campaign.store import CampaignStopped, SavedRecord, Store, check_studies
from batwatt.campaign.yaml_model import parse_declared
from batwatt.errors import InputError, extra
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.files import read_integral
from batwatt.units import DAY_S, HOUR_S

with extra("campaign"):
    import pyarrow  # noqa: F401 (pandas writes the table with it)

FORMAT = 1
"""Version of what a key is made of, and of the files of parts."""
CODE = (
    *("_version.py", "units.py", "model/phases.py", "model/signal_integral.py", "campaign/carbon/study_plans.py"),
    *(
        f"systems/carbon/{name}.py"
        for name in ("execution", "optimum", "optimum_table", "policies", "starts", "windows")
    ),
)
"""The sources that determine the figures."""
SUMMARY = "summary.csv"
MARGIN_S = 2 * DAY_S
"""How much of the signal is read beyond all deadlines, for plans that turn out to be late."""
WHO = ["study", "pattern", "length_h", "startup_s", "startup_w", "wait_h", "deadline_h"]
"""The columns that distinguish permutations."""
_DECIMALS = 6

Report = Callable[[int, int, int, float], None]


class PlanRecord(SavedRecord):
    """What is kept of a synthetic job: its FIGURES, a value for each arrival."""

    figures: dict[str, list[float | int]]

    @model_validator(mode="after")
    def _complete(self) -> PlanRecord:
        if list(self.figures) != list(FIGURES) or len(set(map(len, self.figures.values()))) > 1:
            raise ValueError("figures of another version")
        return self


@dataclass(frozen=True)
class StudyDeclaration:
    """Declared studies with their folder, the signal, and all permutations."""

    text: str
    origin: Path
    declared: CarbonStudies
    store: Store[PlanRecord]
    permutations: tuple[Permutation, ...]

    @cached_property
    def integral(self) -> SignalIntegral:
        """The signal, as far as jobs can reach. Raises InputError."""
        part = self.declared.signal
        path = self.origin.parent / part.file
        if not path.is_file():
            problem = f"the signal {part.file!r} is not there ({path})"
            raise InputError(self.origin, problem, "get the file, see the README of the folder, or name another")
        file = SignalFile(path, column=part.column, zone=part.zone, begin=part.begin, wanted="carbon")
        return read_integral(file, self.needed_s + MARGIN_S)

    @property
    def needed_s(self) -> float:
        """Until when the signal must be known for all deadlines."""
        last = {study: self._times(study)[-1] for study in self.declared.studies}
        return max(last[each.study] + each.deadline_h * HOUR_S for each in self.permutations)

    def _times(self, study: str) -> tuple[float, ...]:
        return tuple((self.declared.studies[study].arrivals or self.declared.arrivals).times_s.tolist())

    def tasks(self) -> list[PlanTask]:
        """One for each permutation. Raises InputError."""
        integral = self.integral
        integral.covers(self.needed_s, "a job that arrives last")
        code = digest_of_sources(sources_of(CODE), ())
        signal = hashlib.sha256(integral.edges_s.tobytes() + integral.values.tobytes()).hexdigest()
        tasks = []
        for each in self.permutations:
            times_s = self._times(each.study)
            identity = [FORMAT, code, signal, repr(each.model), each.wait_s, times_s]
            key = hashlib.sha256(canonical(identity).encode()).hexdigest()
            tasks.append(PlanTask(key, each, times_s, integral))
        return tasks


def studies_in(path: Path, results: Path, name: str | None = None) -> StudyDeclaration:
    """The studies of a YAML file. Raises InputError."""
    text = read_text(path)
    declared = parse_declared(text, path, CarbonStudies)
    folder = results / folder_name(name, declared.name)
    permutations = [each for study, given in declared.studies.items() for each in given.permutations(study, path)]
    store = Store(folder, PlanRecord, f"batwatt carbon study {path}", indent=None)
    return StudyDeclaration(text, path.resolve(), declared, store, tuple(permutations))


def carry_out_studies(
    declaration: StudyDeclaration, jobs: int | None, only: Sequence[str], report: Report
) -> dict[str, pd.DataFrame]:
    """Work out what is not done, and write the tables; returns the summary of each study that is complete.

    `jobs` processes (None: all cores). `only` names the studies to work out (none: all); the tables have all parts that
    are finished. Raises InputError, and CampaignStopped with all that is finished kept.
    """
    studies = declaration.declared.studies
    check_studies(only, studies)
    tasks, store = declaration.tasks(), declaration.store
    with store.locked():
        store.declare(declaration.text, declaration.origin)
        done, damaged = store.load(task.key for task in tasks)
        store.log(*damaged)
        wanted = {task.key: task for task in tasks if not only or task.permutation.study in only}
        left = [task for key, task in wanted.items() if key not in done]
        began = time.monotonic()
        store.log(f"start: {len(left)} of {len(wanted)} jobs to plan")
        report(len(wanted) - len(left), 0, len(wanted), 1.0)
        for count, record in enumerate(_worked_out(left, jobs or cpu_count(), store), 1):
            store.save(record)
            done[record.key] = record
            report(len(wanted) - len(left) + count, 0, len(wanted), 1.0 - count / len(left))
        frames = [table_of(task.permutation, done[task.key].figures) for task in tasks if task.key in done]
        table = pd.concat(frames, ignore_index=True)
        store.write_table(lambda out: table.to_parquet(out, index=False))
        summary = summary_of(table)
        store.write(store.folder / SUMMARY, summary.to_csv(index=False, lineterminator="\n"))
        store.log(f"end: {time.monotonic() - began:.1f} s")
    unfinished = {task.permutation.study for task in tasks if task.key not in done}
    return {study: summary[summary["study"] == study] for study in studies if study not in unfinished}


def summary_of(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each permutation: figures as means over its arrivals, how many these are, and how often it is late."""
    grouped = table.groupby(WHO, sort=False)
    means = grouped[[name for name in FIGURES if name != "arrival_s"]].mean().round(_DECIMALS)
    means.insert(0, "arrivals", grouped.size())
    means["suspend_late_share"] = grouped["suspend_late_s"].agg(lambda late_s: (late_s > 0.0).mean()).round(_DECIMALS)
    return means.reset_index()


def _worked_out(tasks: Sequence[PlanTask], jobs: int, store: Store[PlanRecord]) -> Iterator[PlanRecord]:
    """What each task gives, as they are ready."""
    if jobs == 1:
        yield from map(_one, tasks)
        return
    with closing(in_processes(_one, tasks, jobs)) as records:
        for record in records:
            if isinstance(record, Died):
                problem = "a worker process died (killed from outside, or out of memory)"
                raise CampaignStopped(f"{problem}; nothing finished is lost; then: {store.resume}")
            yield record


def _one(task: PlanTask) -> PlanRecord:
    return PlanRecord(key=task.key, figures=plans_of(task))
