"""The figures of campaigns with the scheduler `checkpoint`."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from batwatt.report.figures import Report
from batwatt.report.grid import written
from batwatt.report.papers import checkpoint
from batwatt.report.papers.checkpoint import MEAN_YIELD, MIN_YIELD, OVERHEAD
from batwatt.report.papers.checkpoint_claims import CLAIMS, break_even_grid, claims
from batwatt.report.papers.pmbs23 import ABORTED, GOODPUT
from batwatt.report.papers.varcap import FIXED
from batwatt.report.papers.varcap_charts import charts_of
from batwatt.report.papers.varcap_claims import claims_table
from batwatt.report.papers.varcap_figures import Drawn, charts_report
from batwatt.report.papers.varcap_plans import RANGE, Axis, Plot, general_plan
from batwatt.report.table import SavedCampaign
from batwatt.results.style import Look

COST = Axis("checkpoint_s", "time of a checkpoint, C (s)")
RECOVERY = Axis("recovery_s", "time of a recovery, R (s)")
STEP = Axis("step", "largest change, k (share of all machines)")
PERIOD = Axis("period_s", "time between changes (s)", True)
WARNING = Axis("warning_s", "a change is told so long before (s)")
ASKED = Axis("asked_yield", "least yield asked for")
WHO = Axis("label", "")

PLANS = (
    Plot("ranges", "Ranges", "algorithms by range, C = R = 60 s", RANGE, "label",
         measures=(GOODPUT, ABORTED, MEAN_YIELD)),
    Plot("costs", "Costs", "the time of checkpoints and recoveries, C = R", COST, "label",
         measures=(GOODPUT, OVERHEAD, MEAN_YIELD)),
    Plot("recoveries", "Recoveries", "the time of recoveries, C = 60 s", RECOVERY, "label",
         measures=(GOODPUT, OVERHEAD)),
    Plot("steps", "Changes", "the largest change, C = R = 300 s", STEP, "label", measures=(GOODPUT, ABORTED, OVERHEAD)),
    Plot("frequency", "Frequency", "how often the capacity changes, C = R = 300 s", PERIOD, "label",
         measures=(GOODPUT, ABORTED, OVERHEAD)),
    Plot("warning", "Warnings", "changes told too late for some checkpoints", WARNING, "label",
         measures=(GOODPUT, ABORTED, OVERHEAD)),
    Plot("prepare", "Preparing", "who is checkpointed before a change", WHO, "label", kind="bars",
         measures=(GOODPUT, OVERHEAD)),
    Plot("endless", "Starvation", "jobs without an end", ASKED, "label", measures=(GOODPUT, MIN_YIELD, MEAN_YIELD)),
    Plot("single", "Break-even", "jobs of one processor, by trace and time between changes", COST, "label",
         measures=(GOODPUT,)),
)  # fmt: skip


def report(declared: SavedCampaign) -> Report | None:
    """The report of a campaign with the scheduler `checkpoint`: charts of what varies in each study."""
    if not (declared.with_goodput["scheduler"] == checkpoint.SCHEDULER).any():
        return None
    campaign = checkpoint.named(declared)
    plan = checkpoint.plan_of(campaign)
    points = checkpoint.points(campaign, declared)
    found = claims(points)
    tables = [*claims_table(found, CLAIMS, "what is said (section of the paper)"), *break_even_grid(points)]
    drawn = drawn_of(points, plan.looks(campaign.labels))
    return charts_report(declared, campaign, plan, points, drawn, found, tables, checkpoint.MEASURES)


def drawn_of(frame: pd.DataFrame, looks: Mapping[str, Look]) -> Drawn:
    """Every figure that there are runs for, in the order of the plans, then those of other studies."""
    known = {plan.stem: plan for plan in PLANS}
    studies = {str(study): rows for study, rows in frame.groupby("study", sort=False)}
    found: Drawn = []
    for study in dict.fromkeys([*(study for study in known if study in studies), *studies]):
        rows = studies[study]
        plan = known.get(study) or general_plan(study, rows)
        found.append((plan, charts_of(plan, _parts(plan, rows) if study in known else [("", rows)], looks)))
    return [(plan, panels) for plan, panels in found if panels]


def _parts(plan: Plot, rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows by trace and, where it is not what varies, by time between changes."""
    if plan.x is ASKED:
        rows = rows.assign(label=rows["label"].str.partition(" fair")[0])
    varied = rows[rows["structure"] != FIXED]
    apart = [name for name in ("trace", "period_s") if name != plan.x.column and varied[name].nunique() > 1]
    parts = rows.groupby(apart, sort=False) if apart else [((), rows)]
    return [
        (", ".join(f"{written(value)} s" if isinstance(value, float) else str(value) for value in point),
         _everywhere(part, plan.x.column))
        for point, part in parts
    ]  # fmt: skip


def _everywhere(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows that say nothing of what varies stand at every value of it: a line across."""
    without = rows[column].isna()
    values = pd.DataFrame({column: rows.loc[~without, column].unique()})
    return pd.concat([rows[~without], rows[without].drop(columns=column).merge(values, how="cross")], ignore_index=True)
