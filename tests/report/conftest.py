from __future__ import annotations

import time

import pytest
from tables_of_tests import whole

from batwatt.report.page import write_report


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The folder of a campaign like the paper's, with its report and how long that took in s."""
    folder = whole(tmp_path_factory.mktemp("results") / "both")
    began = time.perf_counter()
    written = write_report(folder)
    return folder, written, time.perf_counter() - began
