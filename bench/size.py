"""Size of the project by room and by kind, against the limits in bench/size.json: part of `make lint`.

    python bench/size.py             print the figures past their limits; exit code 1 where there is one
    python bench/size.py --all       print each figure with its limit
    python bench/size.py --write     take the figures as limits; one past its limit needs --raise, too

Lines are those of files as they are, with docstrings, comments and blank lines. A limit goes down with the commit that
gains, and up only in a commit that says why.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from batwatt.cli.main import ANYWHERE, application, commands_of, walk

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "batwatt"
LIMITS = Path(__file__).with_suffix(".json")
ROOMS = {
    "tests": ROOT / "tests",
    "bench": ROOT / "bench",
    "papers": ROOT / "papers",
    "docker": ROOT / "docker",
}
"""Rooms outside of the package."""
ENGLISH = {
    "clauses as subjects": re.compile(r"^(?:What|Whether|Who|How|Which|Where|When|Why)\b.*"),
    "answers to another text": re.compile(r"^(?:The same|It|They|These|Those|Refused|Likewise|So)\b.*"),
    "persons and turns": re.compile(
        r"\b(?:who|whoever|whom|nobody|somebody|anybody|everybody|so many|so much|for want of|anew|mends?|by what)\b",
        re.IGNORECASE,
    ),
}
"""Marks against plain technical English in docstrings (CONTRIBUTING.md); the first two in a first line."""
RISING = {"mean lines a file"}
"""Figures that may only rise."""
ROLES = {"asked", "chosen", "done", "found", "given", "kept", "known", "shown"}
"""Names of variables by their role in a sentence, in place of a noun of the field."""
_SCRIPTS = {".py", ".js", ".css", ".j2"}


def lines(folder: Path, suffixes: set[str] = _SCRIPTS) -> int:
    """Count the lines of source files below a folder, or of one file."""
    paths = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.suffix in suffixes]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def rooms() -> dict[str, int]:
    """Count the lines of each room of the package, of the schedulers, and of the other rooms."""
    package = {
        path
        for path in PACKAGE.iterdir()
        if path.is_dir() and path.name not in ("schedulers", "__pycache__", "_compiled")
    }
    counts = {f"batwatt/{path.name}": lines(path) for path in sorted(package)}
    counts["batwatt/*.py"] = sum(map(lines, PACKAGE.glob("*.py")))
    counts["schedulers"] = lines(ROOT / "schedulers")
    counts["src and schedulers"] = sum(counts.values())
    return (
        counts
        | {name: lines(path) for name, path in ROOMS.items() if path.is_dir()}
        | {"setup.py": lines(ROOT / "setup.py")}
    )


def files() -> dict[str, int]:
    """Count the modules of the package and of the schedulers, and their mean lines."""
    texts = [text for text, _ in trees()]
    return {"files": len(texts), "mean lines a file": round(sum(len(text.splitlines()) for text in texts) / len(texts))}


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield text and syntax tree of each module of the package and of the schedulers."""
    for folder in (PACKAGE, ROOT / "schedulers"):
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            yield text, ast.parse(text)


def kinds() -> dict[str, int]:
    """Count classes, class names with two definitions, functions, and lines with `Any`."""
    classes: Counter[str] = Counter()
    functions = lines_with_any = 0
    for text, tree in trees():
        lines_with_any += sum(bool(re.search(r"\bAny\b", line)) for line in text.splitlines())
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    public = {name for name, count in classes.items() if count > 1 and not name.startswith("_") and name != "Options"}
    return {
        "classes": classes.total(),
        "class names with two meanings": len(public),
        "functions": functions,
        "lines with Any": lines_with_any,
    }


def options() -> dict[str, int]:
    """Count commands, and options over all commands but `--help`, `--verbose` and `--quiet`, which stand anywhere."""
    commands = [one for _, one in walk(commands_of(application())) if not hasattr(one, "commands")]
    own = [one for command in commands for one in command.params if one.param_type_name == "option"]
    return {"commands": len(commands), "options": sum(one.name not in ANYWHERE for one in own)}


def words() -> dict[str, int]:
    """Count words of the documentation, exceptions to the import contracts, and imports of scripts past the API."""
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "papers").rglob("*.md"),
    ]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    scripts = [path for name in ("bench", "papers") for path in (ROOT / name).rglob("*.py")]
    past = re.compile(r"^\s*(from|import) batwatt\.", re.MULTILINE)
    return {
        "words of docs": sum(len(path.read_text(encoding="utf-8").split()) for path in pages),
        "ignored imports": sum(len(contract.get("ignore_imports", ())) for contract in contracts),
        "imports past the API": sum(len(past.findall(path.read_text(encoding="utf-8"))) for path in scripts),
    }


def english() -> dict[str, int]:
    """Count marks against plain technical English: docstrings, and variables named by role, of all but tests."""
    counts = dict.fromkeys([*ENGLISH, "variables named by role"], 0)
    for path in (path for name in ("src", "schedulers", "papers", "bench") for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                for name, mark in ENGLISH.items():
                    counts[name] += len(mark.findall(text))
            stored = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            name = getattr(node, "arg", None) if isinstance(node, ast.arg) else stored
            counts["variables named by role"] += name is not None and name.strip("_") in ROLES
    return counts


def main() -> int:
    """Compare figures with their limits; exit 1 where one is past its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print the figures within their limits, too")
    parser.add_argument("--write", action="store_true", help="take the figures as limits")
    parser.add_argument(
        "--raise", dest="raised", action="store_true", help="with --write: take figures past their limits, too"
    )
    arguments = parser.parse_args()
    figures = rooms() | files() | kinds() | options() | words() | english()
    limits: dict[str, int] = json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.is_file() else {}
    above = [
        name
        for name, figure in figures.items()
        if (figure < limits.get(name, 0) if name in RISING else figure > limits.get(name, 0))
    ]
    if arguments.write and (arguments.raised or not above):
        LIMITS.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        return 0
    for name, figure in figures.items() if arguments.all else [(name, figures[name]) for name in above]:
        mark = "  past the limit" if name in above else ""
        print(f"{name:<30} {figure:>7} {limits.get(name, 0):>7}{mark}")
    if above:
        print(f"bench/size.py: {len(above)} past bench/size.json: make it better, or change the limit and say why")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
