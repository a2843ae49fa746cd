"""The report of a campaign: tables, and one page that needs nothing but a browser."""

from __future__ import annotations

from pathlib import Path

from batwatt.files import whole_set, write_text
from batwatt.report.conclusion import conclusion
from batwatt.report.glossary import Glossary
from batwatt.report.grid import write_csv
from batwatt.report.html import page_of
from batwatt.report.interactive import on_page
from batwatt.report.studies import Report, report_of
from batwatt.report.table import INSTANCE, OPTIMUM_SCHEDULER, SavedCampaign, read_campaign
from batwatt.results.figures import METRICS

REPORT, PAGE, SUMMARY = "report", "index.html", "summary.csv"
"""Folder of the report, within the campaign's, and two of its files."""
PLURALS = {"platform": "platforms", "workload": "workloads", "envelope": "envelopes", "capacity": "capacities"}


def write_report(results: Path | str) -> list[Path]:
    """Write the report of the campaign whose results are in a folder, into its subfolder `report`; returns the paths.

    The same results give the same bytes. Raises InputError.
    """
    report = report_of(read_campaign(results))
    folder = report.campaign.folder / REPORT
    with whole_set(folder, REPORT, last=(PAGE,)) as part:
        written = [path for table in report.tables for path in table.write(part)]
        written.append(write_csv(report.summary, part / SUMMARY))
        write_text(part / PAGE, _html(report))
    return [folder / PAGE, *(folder / path.name for path in written)]


def _html(report: Report) -> str:
    campaign, plan, top = report.campaign, report.plan, conclusion(report)
    groups: dict[str, list[str]] = {}
    for label in plan.ordered(campaign.labels):
        groups.setdefault(plan.groups[label], []).append(label)
    return page_of(
        "campaign.html.j2",
        kind="algorithm",
        title=plan.title,
        glossary=Glossary(report.measures),
        figures=(*top.figures, *report.figures),
        plan=plan,
        conclusion=top,
        facts=_facts(campaign),
        studies=_studies(campaign),
        failed=_failed(campaign),
        grids=report.tables,
        shown=report.figures,
        groups=groups,
        colours={label: on_page(look.colour) for label, look in plan.looks(campaign.labels).items()},
        chosen=plan.shown,
        total=len(campaign.labels),
        metrics=METRICS,
    )


def _facts(campaign: SavedCampaign) -> list[tuple[str, str]]:
    """What the campaign consists of."""
    facts = [
        ("runs", f"{len(campaign.frame)} ({len(campaign.failed)} failed)"),
        ("algorithms", str(len(campaign.labels))),
    ]
    optimum = campaign.done[campaign.done["scheduler"] == OPTIMUM_SCHEDULER]
    if len(optimum):
        proven = int(optimum["proven_optimal"].eq(True).sum())
        facts.append(("optimum", f"proven in {proven} of {len(optimum)} runs, else the best known schedule"))
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
