"""Count what Eq. 7 decides in each reading of Algorithm 1, and record the power of Figure 3.

    python -m papers.igsc22.decisions
        write data/decisions.csv
    python -m papers.igsc22.decisions power
        write data/power.csv, in W at each change (minutes, for the best known schedule)

Each run of the study `readings` with the response HFLD is done again with its decisions
counted, one after the other; a row has the sums of one case and envelope. A decision is a call of `minimal_state`
(line 14), for one job above the cap. It is *vacuous* if Eq. 7 asks for the fastest state on all servers of the job, and
*slows* if it changes a state. `kept` counts the jobs that were slowed so and ended within their walltime, not killed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from batwatt.run.prepared import PreparedRun
from batwatt.run.run import perform, run
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.powercap.plan import Plan
from batwatt.schedulers.powercap.responses import HighestFlopsLowestDeadline, slowest_in_time
from batwatt.scheduling.job import Job
from batwatt.studies.grid import Cell
from batwatt.studies.optimum import run_optimum
from batwatt.studies.study import study_in
from papers.igsc22.measures import HFLD, OPTIMUM, THIRD
from papers.pages import write

HERE = Path(__file__).parent
STUDY = "readings"
ZOOM_S = 47_670, 47_790
"""Part of the two days that Figure 3 shows, around a fall of profile 3."""


class CountedDecisions(HighestFlopsLowestDeadline):
    """HFLD that counts its decisions by Eq. 7; `slowed_jobs` are the names of the jobs that these slowed down."""

    def __init__(self, turns: bool) -> None:
        super().__init__(turns)
        self.decisions = self.vacuous = self.slowing = 0
        self.slowed_jobs: set[str] = set()

    def minimal_state(self, plan: Plan, run: Job) -> None:
        """Count a decision and carry it out."""
        before = plan.parts(run.mask)
        fastest = {kind: plan.kinds[kind].compute[0] for (kind, _, _), _ in before}
        self.decisions += 1
        self.vacuous += all(slowest_in_time(plan, run, kind) == state for kind, state in fastest.items())
        super().minimal_state(plan, run)
        if dict(plan.parts(run.mask)) != dict(before):
            self.slowing += 1
            self.slowed_jobs.add(run.attempt.id)


def counts_of(cell: Cell) -> dict[str, int]:
    """Run a cell of the study and return its counts."""
    choice = cell.options["response"]
    response = CountedDecisions(isinstance(choice, dict) and choice["turns"])
    options = {name: value for name, value in cell.spec.options.items() if name != "response"}
    scheduler = type("Counting", (Powercap,), {"response": response})
    jobs = perform(PreparedRun.of(replace(cell.spec, scheduler=scheduler, options=options))).jobs
    ended_well = jobs[jobs["success"] == 1]
    names = ended_well["workload_name"].astype(str) + "!" + ended_well["job_id"].astype(str)
    return {
        "jobs": len(jobs), "finished": len(ended_well), "decisions": response.decisions, "vacuous": response.vacuous,
        "slowing": response.slowing, "slowed_jobs": len(response.slowed_jobs),
        "kept": len(response.slowed_jobs.intersection(names)),
    }  # fmt: skip


def rows(cells: list[Cell]) -> Iterator[dict[str, object]]:
    """Yield the counts of every run of the study with the response HFLD."""
    for cell in cells:
        if cell.comparison == STUDY and "hfld" in str(cell.options["response"]):
            assert cell.envelope is not None
            yield {"label": cell.case, "envelope": cell.envelope.name, "runs": 1} | counts_of(cell)


def power_rows(cells: list[Cell], scratch: Path) -> pd.DataFrame:
    """Run the algorithms of Figure 3 on google-288-00 under profile 3; return their power around a fall."""
    columns: dict[str, pd.Series] = {}
    for cell in cells:
        where = cell.comparison, cell.envelope and cell.envelope.name
        if where == ("profiles", THIRD) and cell.case in (OPTIMUM, HFLD):
            spec = replace(cell.spec, prefix=scratch / "run")
            (run_optimum if cell.scheduler == "optimum" else run)(spec)
            power = pd.read_csv(f"{spec.prefix}_power.csv", index_col="time_s")
            power = power[~power.index.duplicated(keep="last")]
            columns |= {cell.case: power["power_w"], "cap_w": power["cap_w"]}
    frame = pd.DataFrame(columns).sort_index()
    return frame.reindex(frame.index.union(ZOOM_S)).ffill().loc[slice(*ZOOM_S)].round(3)


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        cells = study_in(HERE / "study.yaml", Path(scratch)).cells
        if sys.argv[1:] == ["power"]:
            power = power_rows(cells, Path(scratch))
            sys.exit(power.to_csv(HERE / "data" / "power.csv", index_label="time_s", lineterminator="\n"))
    table = pd.DataFrame(rows(cells)).groupby(["label", "envelope"], sort=False, as_index=False).sum()
    write(HERE / "data" / "decisions.csv", table)
