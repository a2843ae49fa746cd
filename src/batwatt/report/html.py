"""Pages that need nothing but a browser: a template with its style, its script and charts as SVG."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from batwatt import __version__
from batwatt.errors import extra
from batwatt.report.glossary import Glossary

with extra("report"):
    from jinja2 import Environment, FunctionLoader, StrictUndefined


def page_of(template: str, *, glossary: Glossary, **values: Any) -> str:
    """Return the page of a template that extends `page.html.j2`; `values` are those of the templates."""
    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"terms": glossary.marked}
    return environment.get_template(template).render(
        version=__version__, style=_source("page.css"), script=_source("page.js"), **values
    )


def _source(name: str) -> str:
    return (files("batwatt.report") / name).read_text(encoding="utf-8")
