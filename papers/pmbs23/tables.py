"""Make the numbers, the figures and the tables of the riskaware paper's page.

python -m papers.pmbs23.tables results/pmbs23
    write data/runs.csv.gz from the results of study.yaml and data/inputs.csv, then figures and tables
python -m papers.pmbs23.tables --check
    compare the tables with these files and data/peer.csv
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pandas as pd

from papers import batsim, pages
from papers.pages import NOTHING, markdown, with_error
from papers.pmbs23 import peer
from papers.pmbs23.figures import draw_all
from papers.pmbs23.frames import RULES, STRATEGIES, TYPES, frame_of, inputs_of
from papers.pmbs23.measures import MEASURES, OF_INPUTS, SINGLE, samples_of
from papers.statements import NO, Samples, Verdicts, counts_table, measurable, statements_of, statements_table, verdicts

HERE = Path(__file__).parent
PAGE, DATA = HERE / "README.md", HERE / "data"
READINGS = {
    "types": {("range", kind, 8.0): name for kind, name in TYPES.items()},
    "blurred": {("range", "3types", 8.0): "as in the text", ("blurred", "3types", 8.0): "blurred by 5 %"},
    "often": {
        ("period", "uniform", 400.0): "a load of 26 machines",
        ("moving", "uniform", 400.0): "walks that always move",
        ("longer", "uniform", 400.0): "jobs of 209,664 / n hours",
    },
}


def judged(runs: pd.DataFrame, inputs: pd.DataFrame) -> dict[str, Verdicts]:
    """Return the verdicts by each of the rules; those of the inputs are the same."""
    statements = statements_of(HERE)
    properties = Samples({(name,): inputs[name].to_numpy(float) for name in inputs})
    shared = verdicts(statements, OF_INPUTS, properties).measured
    by_rules = {}
    for rules in RULES:
        samples = samples_of(runs, rules)
        measures = measurable(MEASURES, samples)
        measured = verdicts(statements, measures, samples, measures.keys() & SINGLE).measured
        by_rules[rules] = Verdicts(statements, {**measured, **shared})
    return by_rules


def goodputs(runs: pd.DataFrame, points: Mapping[tuple[str, str, float], str]) -> str:
    """Return mean goodput and its standard error at points, a row for each strategy and rules."""
    texts = runs.groupby(["label", "rules", "sweep", "type", "value"])["goodput_percent"].agg(
        lambda values: with_error(values.mean(), values.sem(), 1)
    )
    rows = [
        [label, rules, *(texts.get((label, rules, *point), NOTHING) for point in points)]
        for label, rules in product(STRATEGIES.values(), RULES)
    ]
    return markdown(["strategy", "rules", *points.values()], (row for row in rows if NOTHING not in row), texts=2)


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table, from the files of a folder."""
    runs = pd.read_csv(folder / "runs.csv.gz")
    by_rules = judged(runs, pd.read_csv(folder / "inputs.csv"))
    return {
        "summary": counts_table(by_rules),
        "peer": peer.table(STRATEGIES),
        "batsim": batsim.table(HERE, STRATEGIES),
        "contradicted": statements_table(by_rules, words=(NO,)),
        **{name: goodputs(runs, points) for name, points in READINGS.items()},
        "statements": statements_table(by_rules),
    }


def make(results: Path) -> None:
    """Make the numbers, the figures and the tables of the riskaware paper's page from the results of study.yaml."""
    inputs_of().to_csv(DATA / "inputs.csv", index=False, lineterminator="\n")
    runs, how = frame_of(results), {"method": "gzip", "mtime": 0}
    runs.to_csv(DATA / "runs.csv.gz", index=False, lineterminator="\n", compression=how)
    draw_all(runs, HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("pmbs23",)))
