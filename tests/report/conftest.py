from __future__ import annotations

import pytest
from tables_of_tests import whole

from batwatt.report.page import write_report


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The folder of a study like the paper's, and the files of its report."""
    folder = whole(tmp_path_factory.mktemp("results") / "both")
    return folder, write_report(folder)
