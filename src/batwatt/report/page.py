"""The report of a campaign: tables, pictures, and one page that needs nothing but a browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from plotly.offline import get_plotlyjs

from batwatt import __version__
from batwatt.files import whole_file, whole_set
from batwatt.report.charts import keys_of_labels
from batwatt.report.figures import ReportFigure, figures, write_pictures
from batwatt.report.grid import Table, write_csv
from batwatt.report.papers import checkpoint, igsc22, pmbs23, varcap
from batwatt.report.papers.checkpoint_charts import drawn_of as checkpoint_charts
from batwatt.report.papers.checkpoint_claims import CLAIMS as CHECKPOINT_CLAIMS
from batwatt.report.papers.checkpoint_claims import break_even_grid
from batwatt.report.papers.checkpoint_claims import claims as checkpoint_claims
from batwatt.report.papers.pmbs23_claims import claims, claims_table
from batwatt.report.papers.pmbs23_tables import all_means, box_figures, mean_tables
from batwatt.report.papers.varcap_charts import all_means as marks
from batwatt.report.papers.varcap_claims import claims as varied_claims
from batwatt.report.papers.varcap_claims import claims_table as varied_claims_table
from batwatt.report.papers.varcap_figures import chart_exhibits, drawn_of
from batwatt.report.papers.varcap_plans import hours_apart
from batwatt.report.papers.varcap_tables import tables
from batwatt.report.report_plan import ReportPlan, general_plan
from batwatt.report.table import INSTANCE, SavedCampaign, read_campaign
from batwatt.report.tables import study_tables, summary, table2, table3
from batwatt.results.metrics import METRICS
from batwatt.results.style import drawing

REPORT, PAGE = "report", "index.html"
"""Folder of the report, within the campaign's."""
SUMMARY = "summary.csv"
FURTHER = {
    "means.csv": "those by the value of a parameter",
    "claims-numbers.csv": "the numbers compared with the paper's claims",
}
"""Further files -> what they have."""
PLURALS = {"platform": "platforms", "workload": "workloads", "envelope": "envelopes", "capacity": "capacities"}


def write_report(results: Path | str) -> list[Path]:
    """Write the report of the campaign whose results are in a folder, into its subfolder `report`; returns the paths.

    The same results give the same bytes. Raises InputError.
    """
    campaign = read_campaign(results)
    outline = igsc22.outline(campaign)
    with drawing():
        if outline is None and checkpoint.is_checkpointed(campaign):
            return _checkpoint_report(campaign)
        if outline is None and varcap.is_varied(campaign):
            return _varied_report(campaign)
        if outline is None and pmbs23.has_goodput(campaign):
            return _goodput_report(pmbs23.named(campaign))
        return _envelope_report(campaign, outline or general_plan(campaign))


def _envelope_report(campaign: SavedCampaign, outline: ReportPlan) -> list[Path]:
    """The report of a campaign under envelopes: each algorithm compared with the optimum."""
    grids = [grid for grid in (table2(campaign, outline), table3(campaign, outline)) if grid is not None]
    grids += study_tables(campaign, outline)
    return _write(campaign, outline, grids, {}, figures(campaign, outline))


def _goodput_report(campaign: SavedCampaign) -> list[Path]:
    """The report of a campaign on machines that come and go: boxes by the value of a parameter."""
    outline = pmbs23.outline(campaign)
    labels = list(outline.drawn)
    swept = pmbs23.sweeps(pmbs23.points(campaign))
    found = claims(swept)
    grids = [*mean_tables(swept, labels), *claims_table(found)]
    frames = _numbers(all_means(swept, labels), found)
    return _write(campaign, outline, grids, frames, box_figures(swept, keys_of_labels(labels, outline.looks(labels))))


def _varied_report(declared: SavedCampaign) -> list[Path]:
    """The report of a campaign on capacities that texts describe: charts of what varies in each study."""
    campaign = varcap.named(declared, hours_apart(declared.studies))
    outline = varcap.outline(campaign)
    points = varcap.points(campaign, declared)
    drawn = drawn_of(points, {label: outline.looks(campaign.labels)[label] for label in outline.drawn})
    found = varied_claims(points)
    grids = [*varied_claims_table(found), *tables(points, outline.drawn)]
    frames = _numbers(marks(drawn), found) | {SUMMARY: summary(declared, general_plan(declared))}
    return _write(campaign, outline, grids, frames, chart_exhibits(drawn, points, campaign))


def _checkpoint_report(declared: SavedCampaign) -> list[Path]:
    """The report of a campaign with the scheduler `checkpoint`: charts of what varies in each study."""
    campaign = checkpoint.named(declared)
    outline = checkpoint.outline(campaign)
    points = checkpoint.points(campaign, declared)
    drawn = checkpoint_charts(points, outline.looks(campaign.labels))
    found = checkpoint_claims(points)
    grids = [
        *varied_claims_table(found, CHECKPOINT_CLAIMS, "what is said (section of the paper)"),
        *break_even_grid(points),
    ]
    frames = _numbers(marks(drawn), found) | {SUMMARY: summary(declared, general_plan(declared))}
    return _write(campaign, outline, grids, frames, chart_exhibits(drawn, points, campaign))


def _numbers(means: pd.DataFrame, claimed: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The files with what is behind figures and claims."""
    return {"means.csv": means} | ({} if claimed.empty else {"claims-numbers.csv": claimed})


def _write(
    campaign: SavedCampaign,
    outline: ReportPlan,
    grids: Sequence[Table],
    frames: Mapping[str, pd.DataFrame],
    made: Iterable[ReportFigure],
) -> list[Path]:
    """Write tables, further CSV files by name, figures as they are made, and the page; returns the paths."""
    folder = campaign.folder / REPORT
    with whole_set(folder, REPORT, last=(PAGE,)) as part:
        written = [path for grid in grids for path in grid.write(part)]
        written += [write_csv(frame, part / name) for name, frame in frames.items()]
        if SUMMARY not in frames:
            written.append(write_csv(summary(campaign, outline), part / SUMMARY))
        shown: list[ReportFigure] = []
        images: dict[str, str] = {}
        for exhibit in made:
            paths = list(write_pictures(exhibit, part))
            written += paths
            shown.append(exhibit)
            if not exhibit.shown:
                images |= {path.stem: _embedded(path) for path in paths if path.suffix == ".png"}
        with whole_file(part / PAGE) as out:
            out.write(_html(campaign, outline, grids, list(frames), shown, images))
    return [folder / PAGE, *(folder / path.name for path in written)]


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _html(
    campaign: SavedCampaign,
    outline: ReportPlan,
    grids: Sequence[Table],
    further: Sequence[str],
    shown: Sequence[ReportFigure],
    images: Mapping[str, str],
) -> str:
    home = files("batwatt.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((home / "page.html.j2").read_text(encoding="utf-8"))
    looks = outline.looks(campaign.labels)
    groups: dict[str, list[str]] = {}
    for label in outline.ordered(campaign.labels):
        groups.setdefault(outline.groups[label], []).append(label)
    return template.render(
        outline=outline,
        facts=_facts(campaign),
        studies=_studies(campaign),
        failed=_failed(campaign),
        grids=grids,
        further={name: FURTHER[name] for name in further if name in FURTHER},
        figures=shown,
        images=images,
        groups=groups,
        colours={label: look.colour for label, look in looks.items()},
        chosen=(*outline.shown, *_aside(campaign, outline)),
        total=len(campaign.labels),
        metrics=METRICS,
        version=__version__,
        style=(home / "page.css").read_text(encoding="utf-8"),
        script=(home / "page.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
        plots=_json({part.id: part.plot for exhibit in shown for part in exhibit.shown}),
    )


def _aside(campaign: SavedCampaign, outline: ReportPlan) -> list[str]:
    """The algorithms that are in no figure, only in the tables of further studies: shown from the beginning."""
    studies = (outline.main, outline.variants)
    figured = set(campaign.frame.loc[campaign.frame["study"].isin(studies), "label"])
    return [label for label in campaign.labels if label not in figured]


def _json(value: Any) -> str:
    """JSON that may stand within <script>: a label cannot end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


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
    names = ("study", "label", "error", "status", *INSTANCE[1:])
    return [
        (study, label, " ".join(filter(None, instance)), error or status)
        for study, label, error, status, *instance in zip(
            *(campaign.failed[name].tolist() for name in names), strict=True
        )
    ]
