from __future__ import annotations

import time

import pytest
from matplotlib.figure import Figure
from tables_of_tests import whole

from batwatt.report.page import write_report


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The folder of a campaign like the paper's, with its report and how long that took in s."""
    folder = whole(tmp_path_factory.mktemp("results") / "both")
    began = time.perf_counter()
    written = write_report(folder)
    return folder, written, time.perf_counter() - began


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures are not drawn, which takes most of the time of a report, but their files are there."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, out, **how: out.write(b"drawn elsewhere"))
