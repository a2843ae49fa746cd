"""The report of a campaign: tables, and one page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from batwatt.files import whole_set, write_text
from batwatt.report.conclusion import Conclusion, conclusion
from batwatt.report.glossary import Glossary
from batwatt.report.grid import Table, write_csv
from batwatt.report.html import Cell, Heading, Page, PageTable, Section, html_of, text_table
from batwatt.report.studies import Report, report_of
from batwatt.report.table import INSTANCE, OPTIMUM_SCHEDULER, SavedCampaign, read_campaign
from batwatt.results import style
from batwatt.results.figures import METRICS

REPORT, PAGE, SUMMARY = "report", "index.html", "summary.csv"
"""Folder of the report, within the campaign's, and two of its files."""
PLURALS = {"platform": "platforms", "workload": "workloads", "envelope": "envelopes", "capacity": "capacities"}


def write_report(results: Path | str, figures: Sequence[str] = ()) -> list[Path]:
    """Write the report of the campaign whose results are in a folder, into its subfolder `report`.

    The same results give the same bytes.

    Args:
        results: The folder of the campaign's results.
        figures: Formats in which each chart is also written as a file: png, svg, pdf.

    Returns:
        The paths of the files, the page first.

    Raises:
        InputError: The folder has no results, or a format is not one of these.
    """
    for kind in figures:
        style.kind_of(Path(f"figure.{kind}"))
    report = report_of(read_campaign(results))
    folder = report.campaign.folder / REPORT
    old = [path.name for path in folder.glob("plot-*.*")]
    with whole_set(folder, REPORT, last=(PAGE,), old=old) as part:
        written = [path for table in report.tables for path in table.write(part)]
        written.append(write_csv(report.summary, part / SUMMARY))
        top = conclusion(report)
        charts = [chart for figure in (*top.figures, *report.figures) for chart in figure.charts]
        written += [chart.write(part / f"{chart.id}.{kind}") for chart in charts for kind in figures]
        write_text(part / PAGE, _html(report, top))
    return [folder / PAGE, *(folder / path.name for path in written)]


def _html(report: Report, top: Conclusion) -> str:
    campaign, plan = report.campaign, report.plan
    failed = len(campaign.failed)
    names = [f"{table.name}.{kind}" for table in report.tables for kind in ("csv", "md")]
    sections = [
        Section("means", "Means by study", ["A click on a heading sorts."],
                tables=[_means(table, plan.reference) for table in report.tables], links=names),
        *(Section(figure.id, figure.title, figures=[figure]) for figure in (*top.figures, *report.figures)),
        Section("metrics", "What the words mean", ["summary.csv has the mean and the standard deviation of each."],
                tables=[_metrics()], links=[SUMMARY]),
        Section("about", "What was run", facts=[*_facts(campaign), *_studies(campaign)]),
    ]  # fmt: skip
    if failed:
        heads = ("study", "algorithm", "instance", "error")
        table = text_table("failures", "Runs that failed", heads, _failed(campaign))
        sections.append(Section("failed", "Runs that failed", tables=[table]))
    page = Page(
        plan.title, top.headline, top.sentences, top.findings, sections,
        {label: look.colour for label, look in plan.looks(campaign.labels).items()},
        f"{failed} run{'s' * (failed != 1)} failed, in no figure." if failed else "",
    )  # fmt: skip
    return html_of(page, Glossary(report.measures))


def _means(table: Table, reference: str | None) -> PageTable:
    """The table of a study as the page has it."""
    first, *columns = table.columns
    headings = tuple(Heading(column.heading, tip=column.meaning, group=column.group) for column in columns)
    rows = tuple(
        (texts[0], tuple(Cell(text, key=key) for text, key in zip(texts[1:], keys[1:], strict=True)))
        for texts, keys in zip(table.cells(), table.sort_keys(), strict=True)
    )
    return PageTable(table.name, table.title, first.heading, headings, rows, reference=reference, notes=table.notes)


def _metrics() -> PageTable:
    """Every metric with its meaning."""
    rows = [(metric.name, metric.unit, metric.meaning, metric.better) for metric in METRICS]
    return text_table("meanings", "Metrics", ("name", "unit", "meaning", "better"), rows)


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
