"""The report of a campaign: tables, pictures, and one page that needs nothing but a browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from plotly.offline import get_plotlyjs

from batwatt import __version__
from batwatt.files import whole_file
from batwatt.report import igsc22
from batwatt.report.exhibits import Exhibit, exhibits, write_pictures
from batwatt.report.grid import Grid, write_csv
from batwatt.report.outline import Outline, general_outline
from batwatt.report.table import INSTANCE, Campaign, read_campaign
from batwatt.report.tables import study_tables, summary, table2, table3
from batwatt.results.metrics import METRICS
from batwatt.results.style import drawing

REPORT = "report"
"""Folder of the report, within the campaign's."""


def write_report(results: Path | str) -> list[Path]:
    """Write the report of the campaign whose results are in a folder, into its subfolder `report`; returns the paths.

    The same results give the same bytes. Raises InputError.
    """
    campaign = read_campaign(results)
    outline = igsc22.outline(campaign) or general_outline(campaign)
    folder = campaign.folder / REPORT
    grids = [grid for grid in (table2(campaign, outline), table3(campaign, outline)) if grid is not None]
    grids += study_tables(campaign, outline)
    written = [path for grid in grids for path in grid.write(folder)]
    written.append(write_csv(summary(campaign, outline), folder / "summary.csv"))
    shown: list[Exhibit] = []
    images: dict[str, str] = {}
    with drawing():
        for exhibit in exhibits(campaign, outline):
            paths = list(write_pictures(exhibit, folder))
            written += paths
            shown.append(exhibit)
            if not exhibit.shown:
                images |= {path.stem: _embedded(path) for path in paths if path.suffix == ".png"}
    page = folder / "index.html"
    with whole_file(page) as out:
        out.write(_html(campaign, outline, grids, shown, images))
    return [page, *written]


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _html(
    campaign: Campaign, outline: Outline, grids: Sequence[Grid], shown: Sequence[Exhibit], images: Mapping[str, str]
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
        failed=_failed(campaign),
        grids=grids,
        exhibits=shown,
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


def _aside(campaign: Campaign, outline: Outline) -> list[str]:
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


def _facts(campaign: Campaign) -> list[tuple[str, str]]:
    """What the campaign consists of."""
    facts = [
        ("runs", f"{len(campaign.frame)} ({len(campaign.failed)} failed)"),
        ("algorithms", str(len(campaign.labels))),
    ]
    for study in campaign.studies:
        rows = campaign.frame[campaign.frame["study"] == study]
        instances = rows[list(INSTANCE)].drop_duplicates()
        parts = [f"{rows['label'].nunique()} algorithms", f"{len(instances)} instances"]
        parts += [
            f"{name}: {', '.join(sorted(values))}" if len(values) <= 4 else f"{len(values)} {name}s"
            for name in INSTANCE
            for values in (set(filter(None, instances[name].tolist())),)
            if values
        ]
        facts.append((f"study “{study}”", "; ".join(parts)))
    return facts


def _failed(campaign: Campaign) -> list[tuple[str, ...]]:
    """Study, algorithm, instance and error of the runs that failed."""
    names = ("study", "label", "workload", "envelope", "error", "status")
    return [
        (study, label, f"{workload} {envelope}".strip(), error or status)
        for study, label, workload, envelope, error, status in zip(
            *(campaign.failed[name].tolist() for name in names), strict=True
        )
    ]
