"""Objects with facts, printed in one line, and in a notebook as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Self

from batwatt.errors import InputError


class Described(ABC):
    """Base of objects with a few facts, which are printed; `_makers` are the calls that make one."""

    _makers: ClassVar[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make an object of its fields. Raises InputError for the path of a file."""
        if args and isinstance(args[0], str | Path):
            raise InputError(
                f"{cls.__name__}({str(args[0])!r})", "is made of fields, not of a file", f"call {cls._makers}"
            )
        return super().__new__(cls)

    @abstractmethod
    def facts(self) -> Mapping[str, object]:
        """Return name -> value with its unit."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}: {value}' for name, value in self.facts().items())})"

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"
        rows = "".join(
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>"
            for name, value in self.facts().items()
        )
        return f"<table><caption><b>{type(self).__name__}</b></caption><tbody>{rows}</tbody></table>"
