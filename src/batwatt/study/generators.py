"""Generators of a campaign's files, one file for each seed: parameters, content and name of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from batwatt.inputs.character import Walk, random_walk
from batwatt.inputs.formats import to_riskaware
from batwatt.inputs.series_files import to_csv
from batwatt.inputs.workloads.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.workloads.pmbs_synthetic import Synthetic, synthetic
from batwatt.inputs.workloads.varcap_like import VarcapLike
from batwatt.units import number_text


class Generator(NamedTuple):
    """A kind of generated file: the class of its parameters, its suffix, its content, and its usual name."""

    parameters: type[Any]
    suffix: str
    text: Callable[[Any, int], str]
    stem: Callable[[Any], str]


def _varcap(params: VarcapLike, seed: int) -> str:
    # only such campaigns need pandas
    from batwatt.inputs.workloads.varcap_synthetic import varcap_table

    return varcap_table(params, seed).to_csv(index=False, lineterminator="\n")


GENERATORS = {
    "google_like": Generator(
        GoogleLike, ".json", lambda params, seed: to_text(google_like(params, seed)), lambda params: "google-like"
    ),
    "pmbs": Generator(Synthetic, ".txt", lambda p, seed: to_riskaware(synthetic(p, seed)), "{0.kind}-{0.jobs}".format),
    "varcap": Generator(
        VarcapLike,
        ".csv",
        _varcap,
        lambda params: f"{params.like}-{params.jobs or round(params.expected_jobs)}",
    ),
    "walk": Generator(
        Walk,
        ".csv",
        lambda walk, seed: to_csv(random_walk(walk, seed)),
        lambda walk: f"walk-{walk.mean}-{walk.range}-{number_text(walk.period_s)}",
    ),
}
