"""Objects with facts, printed in one line, and in a notebook as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape


class Described(ABC):
    """Base of objects with a few facts, which are printed."""

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
