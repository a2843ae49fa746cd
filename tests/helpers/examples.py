"""How many examples hypothesis draws: as many as a test asks for, times a factor of the environment.

`BATWATT_EXAMPLES` is 0.1 by default, for a push; the nightly run of the workflow takes 3, and other ones each night.
Each test asks for so many that a third still finds what it was written for; on a push there are fewer, for its time.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

FACTOR = float(os.environ.get("BATWATT_EXAMPLES", "0.1"))
FEWEST = 10


def examples(count: int, **more: Any) -> settings:
    """Settings that draw `count` examples x the factor, without a limit on the time of one."""
    return settings(max_examples=max(min(count, FEWEST), round(count * FACTOR)), deadline=None, **more)
