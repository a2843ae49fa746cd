"""The table of a campaign: one row a run, in the order of the declaration; interruptions do not change its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any

from batwatt.errors import extra
from batwatt.results.figures import METRICS
from batwatt.study.cells import Cell
from batwatt.study.execute import CellOutcome
from batwatt.study.generated import traits
from batwatt.study.spec import canonical, plain

with extra("campaign"):
    import pyarrow as pa

PARTS = ("backfilling", "order", "response", "strategy")
"""Options with columns of their own."""
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("study", "label", "platform", "workload", "envelope", "capacity")),
        *((name, pa.string()) for name in ("scheduler", "options")),
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("engine", *PARTS)),
        ("cap_structure", pa.string()),
        *(
            (f"cap_{name}", pa.float64())
            for name in ("range", "step", "period_s", "mean", "headroom", "saved", "gained")
        ),
        ("cap_seed", pa.int64()),
        *((name, pa.string()) for name in ("status", "error", "rejected_because")),
        *((figure.name, pa.int64() if figure.whole else pa.float64()) for figure in METRICS),
        ("lower_bound", pa.float64()),
        ("gap", pa.float64()),
        ("proven_optimal", pa.bool_()),
        ("key", pa.string()),
    ]
)
"""Name and type of every column, in order."""


def write_table(out: IO[bytes], cells: Iterable[Cell], records: Mapping[str, CellOutcome]) -> None:
    """Write the finished cells among `cells` as Parquet."""
    import pyarrow.parquet as pq

    rows = [_row(cell, records[cell.key]) for cell in cells if cell.key in records]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), out, compression="zstd")


def _row(cell: Cell, record: CellOutcome) -> dict[str, Any]:
    parts = {name: plain(cell.options[name]) if name in cell.options else None for name in PARTS}
    return {
        "study": cell.study,
        **cell.axes,
        "scheduler": cell.scheduler,
        "options": canonical(cell.options),
        **parts,
        **traits(cell.capacity),
        "status": record.status,
        "error": record.error,
        "rejected_because": None if record.rejections is None else canonical(record.rejections),
        **record.figures,
        "key": cell.key,
    }
