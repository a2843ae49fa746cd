"""Small files for readers, and what readers say of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from batwatt.errors import InputError


def written(folder: Path, text: str, name: str = "jobs.csv") -> Path:
    """A file of this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(function, *args, **options) -> str:
    """The one short line in which a call refuses its input."""
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 500
    return line
