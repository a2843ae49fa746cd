"""Pages that need nothing but a browser: a template with styles, scripts and the plots that these draw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from batwatt import __version__
from batwatt.errors import extra
from batwatt.report.glossary import Glossary

if TYPE_CHECKING:
    from batwatt.report.figures import ReportFigure

with extra("report"):
    from jinja2 import Environment, FunctionLoader, StrictUndefined


def page_of(
    template: str, *, kind: str, glossary: Glossary, figures: Iterable[ReportFigure],
    filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any,
) -> str:  # fmt: skip
    """The page of a template that extends `page.html.j2`, with what its figures draw.

    `kind` is what the reader chooses from: algorithms or cases. `values` are those of the templates.
    """
    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"terms": glossary.marked} | dict(filters or {})
    return environment.get_template(template).render(
        kind=kind,
        version=__version__,
        style=_source("page.css"),
        scripts=[_source(name) for name in ("plots.js", "page.js")],
        plots=_json({part.id: part.plot for figure in figures for part in figure.shown}),
        **values,
    )


def _source(name: str) -> str:
    return (files("batwatt.report") / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that may stand within <script>: a label cannot end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
