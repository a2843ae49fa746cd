"""Read the rows of studies, and fill the tables of a paper's page, or compare them with the committed numbers.

`python -m papers.NAME.tables FOLDER` writes data/ from a folder of results, then the figures and the tables; `--check`
compares the tables with data/. On a page a table stands between `<!-- table NAME -->` and `<!-- end -->`, each on a
line of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml

from batwatt.studies.store import COPY, TABLE

PLACE = re.compile(r"^<!-- table (\S+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
NOTHING = "–"
WORDS = {"svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
"""Look of the words of SVG figures: they stay words, as their outlines are a third to a half of a file."""


def number(value: object, decimals: int, signed: bool = False) -> str:
    """Write a number with its decimals and a true minus; a dash for no number."""
    if value is None or not math.isfinite(float(value)):  # type: ignore[arg-type]
        return NOTHING
    text = f"{float(value):{'+' if signed else ''}.{decimals}f}"  # type: ignore[arg-type]
    return text.replace("-", "−") if float(text) else f"{0:.{decimals}f}"


def with_error(mean: float, error: float, decimals: int, signed: bool = False) -> str:
    """Write a mean ± its standard error; the mean alone if the error is no number."""
    spread = f" ± {number(error, decimals)}" if math.isfinite(error) else ""
    return number(mean, decimals, signed) + spread


def mean_text(values: pd.Series, decimals: int, signed: bool = False) -> str:
    """Write the mean of values ± its standard error."""
    return with_error(values.mean(), values.sem(), decimals, signed)


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Return a Markdown table; the first `texts` columns are texts, the others numbers."""
    rule = [":--"] * texts + ["--:"] * (len(heading) - texts)
    return "".join(f"| {' | '.join(line)} |\n" for line in (heading, rule, *rows))


def write(path: Path, frame: pd.DataFrame, float_format: str | None = None) -> None:
    """Write a file of data/, packed if its name ends in `.gz`; equal numbers give equal bytes."""
    how = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
    frame.to_csv(path, index=False, lineterminator="\n", float_format=float_format, compression=how)


def fill(page: Path, tables: Mapping[str, str], check: bool = False) -> list[str]:
    """Write the tables into a page unless `check`; return the names of the tables that differ.

    Raises ValueError if the page lacks a table or has another one.
    """
    text = page.read_text(encoding="utf-8")
    places = PLACE.findall(text)
    if sorted(name for name, _ in places) != sorted(tables):
        raise ValueError(f"{page}: tables {sorted(name for name, _ in places)}, expected {sorted(tables)}")
    if not check:
        new = PLACE.sub(lambda place: f"<!-- table {place[1]} -->\n\n{tables[place[1]]}\n<!-- end -->", text)
        page.write_text(new, encoding="utf-8")
    return [name for name, old in places if old != f"\n{tables[name]}\n"]


def lacking_of(results: Path) -> list[str]:
    """Return the declared comparisons of a folder of results without rows in its table, such as those left out."""
    declared, table = results / COPY, results / TABLE
    if not declared.is_file():
        return []
    studies = yaml.safe_load(declared.read_text(encoding="utf-8"))["comparisons"]
    there = set(pd.read_parquet(table, columns=["comparison"])["comparison"]) if table.is_file() else set()
    return [name for name in studies if name not in there]


def main(
    page: Path,
    tables: Callable[[], Mapping[str, str]],
    make: Callable[..., None],
    folders: Sequence[str] = (),
    words: Sequence[str] | None = None,
) -> int:
    """Run a paper's script: `make` the numbers from folders of results and fill the page, or `--check` the page.

    Return 1 if a checked table differs.
    """
    parser = argparse.ArgumentParser(description=make.__doc__)
    for name in folders:
        parser.add_argument(name, type=Path, nargs="?", help=f"folder of the results of {name}")
    parser.add_argument("--check", action="store_true", help="compare the page with the committed numbers")
    arguments = parser.parse_args(words)
    results = [getattr(arguments, name) for name in folders]
    if not arguments.check and None in results:
        parser.error("give the folders of results, or --check")
    if not arguments.check:
        lacking = [f"{folder}: {', '.join(names)}" for folder in results if (names := lacking_of(folder))]
        if lacking:
            print(f"{page.parent.name}: numbers and page stay as they are, as runs are missing in {'; '.join(lacking)}")
            return 0
        make(*results)
    changed = fill(page, tables(), arguments.check)
    state = ("DIFFERENT: " if arguments.check else "new ") + ", ".join(changed) if changed else "same"
    print(f"{page.parent.name}: {state}")
    return int(arguments.check and bool(changed))


WHERE = ["study", "label", "platform", "workload", "capacity"]
"""Parameters of a run without options and seeds."""
VARIES = ["cap_structure", "cap_range", "cap_step", "cap_period_s", "cap_mean", "cap_headroom", "cap_seed",
          "cap_saved", "cap_gained"]  # fmt: skip
"""Parameters of a capacity that a text describes."""
FIXED = "constant"
"""Structure of a capacity that does not vary."""


def table_of(results: Path) -> pd.DataFrame:
    """Return the table of a study with the names that the files of the pages have for two of its columns."""
    table = pd.read_parquet(results / "table.parquet")
    return table.rename(columns={"comparison": "study", "case": "label"})


def runs_of(results: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Return these columns of the runs of a study that ended well, numbers to 6 decimals.

    Raises ValueError if runs failed, as means would lack them.
    """
    frame = table_of(results)
    if failed := int((frame["status"] != "done").sum()):
        raise ValueError(f"{results}: {failed} of {len(frame)} runs failed; run the study again")
    return frame[list(columns)].round(6)


def options_of(frame: pd.DataFrame, defaults: Mapping[str, object]) -> pd.DataFrame:
    """Return a column per option, read from the column `options`; a default where a run has none."""
    options = [json.loads(text) for text in frame["options"]]
    return pd.DataFrame({name: [one.get(name, usual) for one in options] for name, usual in defaults.items()},
                        index=frame.index)  # fmt: skip


def with_capacities(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with `structure`, `range` (0 of a fixed capacity), `step`, `period_s` and `walk`."""
    fixed = frame["cap_structure"] == FIXED
    return frame.assign(
        structure=frame["cap_structure"].fillna("file"),
        range=frame["cap_range"].where(~fixed, 0.0).round(6),
        step=frame["cap_step"].round(6),
        period_s=frame["cap_period_s"],
        walk=frame["cap_seed"],
    )
