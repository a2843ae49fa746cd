"""A declared study: comparisons of many runs, kept in a folder that a later call completes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from batwatt.api.comparison_result import Comparison
from batwatt.api.inputs import PathLike
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import is_folder
from batwatt.model.described import Described
from batwatt.results.compared import COMPARED, SAMPLE
from batwatt.run.arguments import checked, function_or_none, optional, path_or, several, text, workers_of

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.report.study import SavedStudy


def _texts(name: str, value: Any) -> list[str]:
    """Return several texts, or one. Raises InputError."""
    return several(name, [value] if isinstance(value, str) else value, text)


class Study(Described):
    """Results of a study: the table of its runs, and a `Comparison` for each name."""

    _makers = "study(declared) or Study.read(folder)"

    def __init__(self, saved: SavedStudy) -> None:
        self._saved = saved

    @classmethod
    @checked(folder=path_or)
    def read(cls, folder: PathLike) -> Self:
        """Return the results in a folder, which are not run again. Raises InputError for a folder without results."""
        # pandas takes a while to be loaded
        from batwatt.report.study import read_study

        return cls(read_study(Path(folder)))

    @property
    def folder(self) -> Path:
        """Folder of the results."""
        return self._saved.folder

    @property
    def table(self) -> pd.DataFrame:
        """Row for each run: its place in the study, its figures by name, and its error; docs: every column."""
        return self._saved.table

    @property
    def names(self) -> list[str]:
        """Names of the comparisons."""
        return [str(name) for name in self.table["comparison"].unique()]

    @property
    def errors(self) -> pd.DataFrame:
        """Rows of the runs that failed, with the column `error`."""
        return self._saved.failed

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Comparison:
        """Return the cases of a comparison on all of its samples, without rows of jobs. Raises InputError."""
        if name not in self.names:
            raise UnknownNameError("study", "comparison", name, self.names, "Name one of its comparisons.")
        return _comparison_of(self._saved, name)

    @checked(figures=_texts)
    def save(self, figures: Sequence[str] = ()) -> Path:
        """Write the page `report/index.html` with its tables into the folder of the study.

        Args:
            figures: Formats in which each chart of the page is also written as a file: png, svg, pdf.

        Returns:
            The page.

        Raises:
            batwatt.errors.InputError: The folder cannot be written.
        """
        from batwatt.report.page import write_report

        page, *_ = write_report(self.folder, figures)
        return page

    def facts(self) -> Mapping[str, object]:
        """Return the folder, and the number of runs of each comparison."""
        runs = self.table.groupby("comparison", sort=False).size()
        return {
            "folder": self.folder,
            "runs": len(self.table),
            "failed": len(self.errors),
            **{str(name): count for name, count in runs.items()},
        }


def _comparison_of(saved: SavedStudy, name: str) -> Comparison:
    """Return the runs of a comparison that have not failed as cases x samples. Raises InputError if there is none."""
    import pandas as pd

    from batwatt.report.study import DONE, cases_of, rejections_of

    rows = saved.done[saved.done["comparison"] == name]
    if rows.empty:
        raise InputError(f"comparison {name!r}", "has no result", "see the column `error` of the table")
    keys = ["case", "scheduler", *SAMPLE]
    table = rows.assign(window=1, seed=rows["seed"].fillna(0).astype(int))[[*keys, "jobs_total", *COMPARED]]
    # runs on several engines are one
    table = table.groupby(keys, sort=False, dropna=False).mean().dropna(axis="columns", how="all").reset_index()
    every = saved.frame[saved.frame["comparison"] == name]
    failed = every[every["status"] != DONE].groupby("case", sort=False)["error"]
    return Comparison(
        table=table,
        errors={
            str(case): f"{len(errors)} of {(every['case'] == case).sum()} runs failed, the first: {errors.iloc[0]}"
            for case, errors in failed
        },
        cases=cases_of(rows),
        workload=", ".join(rows["workload"].unique()),
        jobs=pd.DataFrame(),
        rejections={
            label: {cause: round(count * len(rows[rows["case"] == label])) for cause, count in counts.items()}
            for label, counts in rejections_of(rows).items()
            if counts
        },
    )


@checked(
    results=path_or,
    only=_texts,
    workers=optional(workers_of),
    dask=optional(text),
    progress=function_or_none,
)
def study(
    declared: PathLike | Mapping[str, Any],
    *,
    results: PathLike = "results",
    only: Sequence[str] = (),
    workers: int | None = None,
    dask: str | None = None,
    progress: Callable[[int, int, int, float], None] | None = None,
) -> Study:
    """Run the missing runs of a declared study, and return its results. Failed runs are tried again.

    Args:
        declared: A YAML file, a dict of the same keys, whose relative paths begin in the current folder, or the folder
            of results of an earlier call, which is completed as it was declared then.
        results: Folder of the folders of results; that of a study has its name.
        only: Comparisons to run. Default: all.
        workers: Processes on this machine. Default: all cores.
        dask: Address of a Dask cluster to run on instead.
        progress: Function of the numbers of ended, failed and all runs, and of the share of the work that remains.

    Returns:
        A `Study`; `study[name]` is a `Comparison`.

    Raises:
        batwatt.errors.BatwattError: Bad input; the column `error` of the table has the errors of runs.
    """
    from batwatt.studies.study import carry_out, study_from, study_in, study_of

    if isinstance(declared, Mapping):
        folder = study_from(declared, Path(results), Path.cwd())
    else:
        path = path_or("declared", declared)
        folder = study_of(path) if is_folder(path) else study_in(path, Path(results))
    carry_out(folder, only, progress or (lambda ended, failed, total, left: None), jobs=workers, dask=dask)
    return Study.read(folder.store.folder)
