"""The report of a campaign: tables, pictures, and one page that needs nothing but a browser."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

from batwatt.files import whole_set, write_text
from batwatt.report.conclusion import Conclusion, conclusion
from batwatt.report.figures import Report, ReportFigure, figures, write_pictures
from batwatt.report.glossary import Glossary
from batwatt.report.goodput import goodput_report
from batwatt.report.grid import write_csv
from batwatt.report.html import page_of
from batwatt.report.interactive import on_page
from batwatt.report.report_plan import ReportPlan, general_plan
from batwatt.report.table import COMPARED, INSTANCE, SavedCampaign, read_campaign
from batwatt.report.tables import SUMMARY, study_tables, summary, table2, table3
from batwatt.results.metrics import METRICS
from batwatt.results.style import drawing

REPORT, PAGE = "report", "index.html"
"""Folder of the report, within the campaign's."""
PLURALS = {"platform": "platforms", "workload": "workloads", "envelope": "envelopes", "capacity": "capacities"}


def write_report(results: Path | str) -> list[Path]:
    """Write the report of the campaign whose results are in a folder, into its subfolder `report`; returns the paths.

    The same results give the same bytes. Raises InputError.
    """
    with drawing():
        return _write(report_of(read_campaign(results)))


def report_of(campaign: SavedCampaign) -> Report:
    """The report of a campaign: of goodput where machines come and go, else of kills and violations."""
    if len(campaign.with_goodput):
        return goodput_report(campaign)
    plan = general_plan(campaign)
    first = [table for table in (table2(campaign, plan), table3(campaign, plan)) if table is not None]
    frames = {SUMMARY: summary(campaign, plan)}
    points = campaign.per_instance(plan.main).assign(study=plan.main)
    tables = first + study_tables(campaign, plan)
    return Report(campaign, plan, tables, frames, figures(campaign, plan), points, COMPARED)


def _write(report: Report) -> list[Path]:
    """Write tables, further CSV files by name, figures as they are drawn, and the page; returns the paths."""
    folder = report.campaign.folder / REPORT
    with whole_set(folder, REPORT, last=(PAGE,)) as part:
        written = [path for table in report.tables for path in table.write(part)]
        written += [write_csv(frame, part / name) for name, frame in report.frames.items()]
        shown: list[ReportFigure] = []
        images: dict[str, str] = {}
        for figure in report.figures:
            paths = list(write_pictures(figure, part))
            written += paths
            shown.append(figure)
            if not figure.shown:
                pngs = {path.stem: path.read_bytes() for path in paths if path.suffix == ".png"}
                images |= {stem: base64.b64encode(png).decode("ascii") for stem, png in pngs.items()}
        write_text(part / PAGE, _html(report, conclusion(report), shown, images))
    return [folder / PAGE, *(folder / path.name for path in written)]


def _html(report: Report, top: Conclusion, shown: Sequence[ReportFigure], images: Mapping[str, str]) -> str:
    campaign, plan = report.campaign, report.plan
    groups: dict[str, list[str]] = {}
    for label in plan.ordered(campaign.labels):
        groups.setdefault(plan.groups[label], []).append(label)
    return page_of(
        "campaign.html.j2",
        kind="algorithm",
        title=plan.title,
        glossary=Glossary(report.measures),
        figures=(*top.figures, *shown),
        plan=plan,
        conclusion=top,
        facts=_facts(campaign),
        studies=_studies(campaign),
        failed=_failed(campaign),
        grids=report.tables,
        shown=shown,
        images=images,
        groups=groups,
        colours={label: on_page(look.colour) for label, look in plan.looks(campaign.labels).items()},
        chosen=(*plan.shown, *_table_only(campaign, plan)),
        total=len(campaign.labels),
        metrics=METRICS,
    )


def _table_only(campaign: SavedCampaign, plan: ReportPlan) -> list[str]:
    """The algorithms that are in no figure, only in the tables of further studies: shown from the beginning."""
    studies = (plan.main, plan.variants)
    figured = set(campaign.frame.loc[campaign.frame["study"].isin(studies), "label"])
    return [label for label in campaign.labels if label not in figured]


def _facts(campaign: SavedCampaign) -> list[tuple[str, str]]:
    """What the campaign consists of."""
    facts = [
        ("runs", f"{len(campaign.frame)} ({len(campaign.failed)} failed)"),
        ("algorithms", str(len(campaign.labels))),
    ]
    without = len(campaign.done) - len(campaign.with_goodput)
    if 0 < without < len(campaign.done):
        facts.append(("without goodput", f"{without} runs: in no figure"))
    return facts


def _studies(campaign: SavedCampaign) -> list[tuple[str, str]]:
    """What each study consists of."""
    facts = []
    for study in campaign.studies:
        rows = campaign.frame[campaign.frame["study"] == study]
        instances = rows[list(INSTANCE)].drop_duplicates()
        parts = [f"{rows['label'].nunique()} algorithms", f"{len(instances)} instances"]
        parts += [
            f"{name}: {', '.join(sorted(values))}" if len(values) <= 4 else f"{len(values)} {PLURALS[name]}"
            for name in INSTANCE
            for values in (set(filter(None, instances[name].tolist())),)
            if values
        ]
        facts.append((f"study “{study}”", "; ".join(parts)))
    return facts


def _failed(campaign: SavedCampaign) -> list[tuple[str, ...]]:
    """Study, algorithm, instance and error of the runs that failed."""
    rows = campaign.failed[["study", "label", "error", "status", *INSTANCE[1:]]].itertuples(index=False)
    return [(study, label, " ".join(filter(None, instance)), error or status)
            for study, label, error, status, *instance in rows]  # fmt: skip
