"""A figure of a page: its plots side by side below one legend."""

from __future__ import annotations

from dataclasses import dataclass

from batwatt.report.interactive import Plot


@dataclass(frozen=True)
class Shown:
    """A plot of the page: its id, a description for readers who cannot see it, the data of `plots.js`, and a title."""

    id: str
    alt: str
    plot: Plot
    title: str = ""


@dataclass(frozen=True)
class ReportFigure:
    """A figure with its plots; without any, `caption` says why."""

    id: str
    title: str
    caption: str
    shown: tuple[Shown, ...] = ()
