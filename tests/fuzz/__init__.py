"""Hostile inputs: each is read, or refused in one line. See `__main__`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
