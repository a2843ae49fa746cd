"""Pages of the docs with tables that a script makes, between `<!-- table NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batwatt.errors import InputError, UnknownNameError
from batwatt.files import whole_file

MARK = re.compile(r"^<!-- *(table\b.*?|end) *-->$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page: its text, and where each of its tables begins and ends in it."""

    path: Path
    text: str
    places: tuple[tuple[str, int, int], ...]

    def filled(self, tables: Mapping[str, str]) -> str:
        """The text with these tables."""
        text = self.text
        for name, begin, end in reversed(self.places):
            text = f"{text[:begin]}\n\n{tables[name]}\n{text[end:]}"
        return text

    def different(self, tables: Mapping[str, str]) -> list[str]:
        """The names of the tables that are other ones on the page."""
        return [name for name, begin, end in self.places if self.text[begin:end] != f"\n\n{tables[name]}\n"]


def read_page(path: Path, names: Collection[str]) -> Page:
    """A page. Raises InputError if it is not there, or has a table that is not of `names` or does not end."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read ({error})", "the tables stand on it") from None
    places = []
    open_: re.Match[str] | None = None
    for mark in MARK.finditer(text):
        line = f"{path}, line {text.count(chr(10), 0, mark.start()) + 1}"
        if mark[1] != "end":
            if open_ is not None:
                raise InputError(line, f"{mark[0]} before the end of {open_[0]}", "put <!-- end --> between them")
            name = mark[1].removeprefix("table").strip()
            if name not in names:
                raise UnknownNameError(line, "table", name, names, "Such a marker is <!-- table NAME -->.")
            open_ = mark
        elif open_ is None:
            raise InputError(line, "<!-- end --> of no table", "put <!-- table NAME --> before it")
        else:
            places.append((open_[1].removeprefix("table").strip(), open_.end(), mark.start()))
            open_ = None
    if open_ is not None:
        raise InputError(path, f"{open_[0]} has no end", "put <!-- end --> after it")
    return Page(path, text, tuple(places))


def read_pages(docs: Path, files: Sequence[str], names: Collection[str]) -> list[Page]:
    """The pages, which have every table among them. Raises InputError."""
    pages = [read_page(docs / file, names) for file in files]
    there = {name for page in pages for name, _, _ in page.places}
    missing = [name for name in names if name not in there]
    if missing:
        hint = f"put <!-- table {missing[0]} --> and <!-- end --> on one of them"
        raise InputError(docs, f"the table {missing[0]!r} is on none of {', '.join(files)}", hint)
    return pages


def write(pages: Sequence[Page], tables: Mapping[str, str]) -> None:
    """Put the tables on the pages; says which pages changed."""
    for page in pages:
        changed = page.different(tables)
        with whole_file(page.path) as out:
            out.write(page.filled(tables))
        print(f"{page.path.name}:", f"new {', '.join(changed)}" if changed else "same")


def check(pages: Sequence[Page], tables: Mapping[str, str]) -> int:
    """Compare the tables of the pages; names each page that differs, and is 1 if there is one."""
    code = 0
    for page in pages:
        changed = page.different(tables)
        print(f"{page.path.name}:", f"DIFFERENT: {', '.join(changed)}" if changed else "same")
        code |= bool(changed)
    return code


@dataclass(frozen=True)
class Script:
    """A script that makes the tables of pages from folders of results; `name` is its own.

    `make` writes them and returns an exit code; `tables_of` reads every table from what it wrote.
    """

    name: str
    docs: Path
    pages: Sequence[str]
    tables: Collection[str]
    folders: Sequence[str]
    make: Callable[..., int]
    tables_of: Callable[[Path], Mapping[str, str]]

    def main(self, words: Sequence[str] | None = None) -> int:
        """Make the tables, or check them; the exit code is 1 if a page has another table, 2 for bad input."""
        parser = argparse.ArgumentParser(prog=self.name, description=f"Make the tables of {', '.join(self.pages)}.")
        folders = f"results of {', '.join(self.folders)}"
        parser.add_argument("results", type=Path, nargs="*", help=folders)
        parser.add_argument("--check", action="store_true", help="compare with the pages instead of writing them")
        parser.add_argument("--docs", type=Path, default=self.docs, help="folder of the pages")
        given = parser.parse_args(words)
        if len(given.results) != (0 if given.check else len(self.folders)):
            parser.error(f"give either {folders} or --check")
        try:
            if given.check:
                return check(read_pages(given.docs, self.pages, self.tables), self.tables_of(given.docs))
            return self.make(*given.results, given.docs)
        except InputError as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return error.exit_code
