"""The notebook runs, and what it prints is what it was committed with; `BATWATT_UPDATE_DOCS=1` writes that anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="no notebooks: pip install -e '.[docs]'")
nbclient = pytest.importorskip("nbclient", reason="no notebooks: pip install -e '.[docs]'")
pytest.importorskip("ipykernel", reason="no notebooks: pip install -e '.[docs]'")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "tutorials" / "notebook.ipynb"
LIMIT_S = 120


def printed(cell: Any) -> list[str]:
    """What a cell shows: its texts; of a picture that there is one."""
    texts = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if "image/png" in data:
            texts.append("a picture")
        else:
            texts.append(output.get("text") or data.get("text/plain") or "")
    return texts


def test_the_notebook_prints_what_comes_out(tmp_path):
    for name in ("platforms", "workloads", "power_profiles", "start"):
        (tmp_path / name).symlink_to(ROOT / name)
    committed = nbformat.read(NOTEBOOK, as_version=4)
    executed = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        executed, timeout=LIMIT_S, kernel_name="python3", resources=where, record_timing=False
    ).execute()
    assert any(printed(cell) == ["a picture"] for cell in executed.cells)
    if os.environ.get("BATWATT_UPDATE_DOCS"):
        for cell in executed.cells:
            for output in cell.get("outputs", ()):
                # the page shows texts and pictures
                output.get("data", {}).pop("text/html", None)
        executed.metadata = committed.metadata
        nbformat.write(executed, NOTEBOOK)
        return
    for ours, theirs in zip(committed.cells, executed.cells, strict=True):
        assert printed(ours) == printed(theirs), ours.source
