"""Hooks of MkDocs to build the site: generated reference pages, pages from other folders, links.

The comment `<!-- generated: NAME ARGUMENTS -->` marks a generated part; NAME is a function of `GENERATED` below. The
next line is for readers of the repository; the site has the generated part in its place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command

from batwatt.cli.main import USAGE, application
from batwatt.results.figures import METRICS
from batwatt.results.run_files import FILES
from batwatt.run.find_scheduler import our_schedulers
from batwatt.scheduling.base import bounds_of
from batwatt.scheduling.registry import KINDS, describe, first_line

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "platforms/README.md": "data/platforms.md",
    "workloads/README.md": "data/workloads.md",
    "workloads/borg/README.md": "data/borg.md",
    "workloads/carbon/README.md": "data/jobs-in-phases.md",
    "workloads/pai/README.md": "data/pai.md",
    "power_profiles/README.md": "data/power-profiles.md",
    "power_profiles/carbon/README.md": "data/carbon.md",
    "workloads/periods/README.md": "data/periods.md",
    "tests/data/README.md": "data/recordings.md",
    "docker/README.md": "howto/containers.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "CHANGELOG.md": "about/changelog.md",
    "README.md": "index.md",
}
"""Files of the repository that are also pages of the site: path of the file -> path of the page."""
PAPERS, RESULTS = "papers", "results"
"""Folder of the repository with a folder for each paper, and the folder of the site with a page for each."""
OUTSIDE |= {
    f"{PAPERS}/{path.parent.name}/README.md": f"{RESULTS}/{path.parent.name}.md"
    for path in sorted((ROOT / PAPERS).glob("*/README.md"))
} | {f"{PAPERS}/README.md": f"{RESULTS}/index.md"}
SHIPPED = (".csv", ".csv.gz", ".png", ".svg")
"""Suffixes of the files of a paper that its page can show or link."""
BOOSTS = {"explanation": 1e-3, "about": 1e-3, RESULTS: 1e-6}
"""Folder of the site -> weight of its pages in the search, else 1. Words in headings weigh 1,000 times as much."""
PLURALS = {
    "policy": "carbon policies",
    "run_times": "run times",
    "strategy": "riskaware strategies",
    "victim": "victim rules",
}
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
MARK = re.compile(r"^<!-- generated: (\w+)(.*?) -->(?:\n_In a clone: .*_)?$", re.MULTILINE)


# pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the results pages to the navigation."""
    for section in config.nav or []:
        section.get("Results", []).extend(results_pages())
    return config


def results_pages() -> list[dict[str, str]]:
    """Return title and page of the first link of each table row of papers/README.md, each once."""
    index = PurePosixPath(PAPERS, "README.md")
    rows = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\)", (ROOT / index).read_text(encoding="utf-8"), re.MULTILINE)
    return [{title: page_at(os.path.normpath(index.parent / path))} for title, path in dict.fromkeys(rows)]


def page_at(path: str) -> str:
    """Return the page or file of the site for a path of the repository, or ""."""
    folder, _, name = path.partition("/")
    if folder == "docs":
        return name
    if folder == PAPERS and path.endswith(SHIPPED):
        return f"{RESULTS}/{name}"
    return OUTSIDE.get(path) or OUTSIDE.get(f"{path}/README.md", "")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages from other folders of the repository."""
    for path, uri in OUTSIDE.items():
        if (ROOT / path).exists() and files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for path in sorted((ROOT / PAPERS).rglob("*.*")):
        if path.name.endswith(SHIPPED):
            uri = page_at(path.relative_to(ROOT).as_posix())
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert generated parts, turn links between files of the repository into links between pages, set the boost."""
    text = filled(markdown)
    back = {uri: path for path, uri in OUTSIDE.items() if uri != "index.md"}
    uri = page.file.src_uri
    if boost := BOOSTS.get(uri.partition("/")[0]):
        page.meta["search"] = {"boost": boost}
    return relinked(text, PurePosixPath(back.get(uri, f"docs/{uri}")), PurePosixPath(uri))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark names, which assets/site.css keeps in one line in tables: a browser breaks `--name` after its hyphens."""
    return re.sub(r"<code>([^\s<]{1,40})</code>", r'<code class="name">\1</code>', html)


def relinked(text: str, path: PurePosixPath, uri: PurePosixPath) -> str:
    """Return a file of the repository as the page `uri`: a link to a file that is not a page becomes its text."""

    def link(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        name, _, anchor = target.partition("#")
        if not name or "://" in target or target.startswith("mailto:"):
            return match[0]
        page = page_at(os.path.normpath(path.parent / name))
        if not page:
            return words
        relative = os.path.relpath(page, uri.parent)
        return f"{image}[{words}]({relative}{'#' if anchor else ''}{anchor})"

    def outside_fences() -> Iterator[str]:
        end = 0
        for fence in FENCE.finditer(text):
            yield LINK.sub(link, text[end : fence.start()])
            yield fence[0]
            end = fence.end()
        yield LINK.sub(link, text[end:])

    return "".join(outside_fences())


def filled(text: str) -> str:
    """Return the text with its generated parts."""
    return MARK.sub(lambda mark: GENERATED[mark[1]](*mark[2].split()), text)


# generated parts


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *(tuple(_cell(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """Escape text outside of code: no tags, no emphasis, no attributes in braces."""
    parts = re.split("(`[^`]*`)", text)
    parts[::2] = [
        re.sub(r"([*_\[\]{}])", r"\\\1", words.replace("<", "&lt;").replace(">", "&gt;")) for words in parts[::2]
    ]
    return "".join(parts)


def cli() -> str:
    """Return every command with its arguments, options and examples."""
    parts = [part for words, command in _commands(get_command(application()), "") for part in _command(words, command)]
    return "\n\n".join(parts)


def _commands(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield f"{words} {name}".strip(), command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{words} {name}".strip())


def _command(words: str, command: Any) -> Iterator[str]:
    yield f"{'#' * (2 + words.count(' '))} batwatt {words}"
    text, _, example = (command.help or "").partition("Example:")
    yield _plain(" ".join(text.split()))
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param not in arguments and not getattr(param, "hidden", False)]
    if hasattr(command, "commands"):
        return
    names = f" {USAGE[words]}" if words in USAGE else "".join(f" {_argument(param)}" for param in arguments)
    yield f"```text\nbatwatt {words}{names}{' [OPTIONS]' if options else ''}\n```"
    if example.strip():
        yield f"```bash\n{_example(example)}\n```"
    if arguments:
        rows = [(f"`{_argument(param)}`", _plain(param.help or "")) for param in arguments]
        yield table(("argument", "meaning"), rows)
    if options:
        yield table(("option", "meaning", "default"), [_option(param) for param in options])


def _argument(param: Any) -> str:
    name = (param.metavar or param.name).upper()
    return name if param.required else f"[{name}]"


def _example(text: str) -> str:
    """Return the lines of an example; a continued line ends in a backslash, as in a shell."""
    return re.sub(r"\n(?=[ \t])", r" \\\n", text.strip())


def _option(param: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    return names, _plain(param.help or ""), "needed" if param.required else _default(param)


def _default(param: Any) -> str:
    default = getattr(param, "show_default", None)
    if isinstance(default, str):
        return _plain(default)
    if param.default is None or isinstance(param.default, bool) or callable(param.default) or param.default == ():
        return ""
    return f"`{param.default}`"


def schedulers() -> str:
    """Return every option of every scheduler of the package, from the models that read them."""
    parts = []
    for name, scheduler in our_schedulers():
        fields = scheduler.Options.model_fields
        rows = [(f"`{option}`", _values(option, field), _plain(field.description or ""), _json(field.default))
                for option, field in fields.items()]  # fmt: skip
        parts += [f"## {name}", _plain(first_line(scheduler)), table(("option", "value", "meaning", "default"), rows)]
    return "\n\n".join(parts)


def _values(option: str, field: Any) -> str:
    """Return the values that the model of an option allows."""
    if option in KINDS:
        return f"[{option.replace('_', ' ')}](parts.md#{_plural(option).replace(' ', '-')})"
    union = get_origin(field.annotation) in (Union, UnionType)
    kinds = get_args(field.annotation) if union else (field.annotation,)
    for kind in kinds:
        if get_origin(kind) is Literal:
            return ", ".join(f"`{value}`" for value in get_args(kind))
    for kind, words in ((bool, "true or false"), (int, "whole number"), (float, "number"), (Path, "file")):
        if kind in kinds:
            return _plain(f"{words}{bounds_of(field)}")
    return "list" if get_origin(field.annotation) in (list, tuple) else "text"


def _json(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value, default=str)}`"


def parts() -> str:
    """Return every registered part by its kind."""
    rows: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in KINDS}
    for kind, name, line in describe():
        rows[kind].append((f"`{name}`", _plain(line)))
    head = ("name", "rule")
    return "\n\n".join(f"## {_plural(kind).capitalize()}\n\n{table(head, group)}" for kind, group in rows.items())


def kinds() -> str:
    """Return the schedulers that have each kind of part as an option."""
    options = {name: scheduler.Options.model_fields for name, scheduler in our_schedulers()}
    owners = {kind: [f"`{name}`" for name, fields in options.items() if kind in fields] for kind in KINDS}
    rows = [(f"`{kind}`", "all" if len(names) == len(options) else ", ".join(names)) for kind, names in owners.items()]
    return table(("option", "schedulers"), rows)


def _plural(kind: str) -> str:
    return PLURALS.get(kind, f"{kind.replace('_', ' ')}s")


def columns(stem: str) -> str:
    """Return the columns of a file of a run."""
    rows = [(f"`{column.name}`", column.unit, _plain(column.meaning)) for column in FILES[stem]]
    return table(("column", "unit", "meaning"), rows)


def metrics() -> str:
    """Return every metric of a run."""
    rows = [(f"`{metric.name}`", metric.unit, _plain(metric.meaning), metric.better) for metric in METRICS]
    return table(("metric", "unit", "meaning", "better"), rows)


def observations() -> str:
    """Return the columns of an observation of an agent."""
    from batwatt.gym import OBSERVATIONS

    rows = []
    for column in OBSERVATIONS.values():
        meaning = column.meaning + " (of each job)" * column.of_jobs
        rows.append((f"`{column.name}`", column.unit, _plain(meaning), column.normalised))
    return table(("column", "unit", "meaning", "entry"), rows)


def rewards() -> str:
    """Return the rewards of an agent, with the figures of a run that are their sums."""
    from batwatt.gym import REWARDS

    rows = [(f"`{one.name}`", one.figure.unit, _plain(one.meaning), f"`{one.figure.name}`") for one in REWARDS.values()]
    return table(("reward", "unit", "meaning", "figure of the run"), rows)


GENERATED: dict[str, Callable[..., str]] = {
    function.__name__: function for function in (cli, schedulers, kinds, parts, columns, metrics, observations, rewards)
}
