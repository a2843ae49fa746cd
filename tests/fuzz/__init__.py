"""Hostile inputs: every one is read, or refused in one line. See `driver`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
