from __future__ import annotations

from functools import partial

import pytest
from rows_of_runs import measure


@pytest.fixture
def found(tmp_path):
    return partial(measure, tmp_path)
