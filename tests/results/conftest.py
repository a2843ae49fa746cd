from __future__ import annotations

from functools import partial

import pytest
from rows_of_runs import measure


@pytest.fixture
def measured(tmp_path):
    return partial(measure, tmp_path)
