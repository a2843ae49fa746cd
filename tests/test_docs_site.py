"""The site: what docs/hooks.py generates is complete, links between files become links between pages."""

from __future__ import annotations

import html
import importlib.util
import json
import re
from pathlib import Path, PurePosixPath

import pytest
import yaml
from cli_commands import COMMANDS, LEAVES

from batwatt.results.figures import METRICS
from batwatt.results.run_files import FILES
from batwatt.run.find_scheduler import our_schedulers
from batwatt.scheduling.registry import describe

pytest.importorskip("mkdocs", reason="no MkDocs: pip install -e '.[docs]'")

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MKDOCS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks_of_docs", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(hooks, name: str) -> str:
    return hooks.filled((DOCS / name).read_text(encoding="utf-8"))


def section(text: str, title: str) -> str:
    """What stands under a heading, until the next of any level."""
    return re.split(r"^##* ", text.partition(f" {title}\n")[2], maxsplit=1, flags=re.M)[0]


OUTPUTS = "reference/outputs.md"
TABLES = {
    **{(OUTPUTS, f"`PREFIX_{stem}.csv`"): [column.name for column in columns] for stem, columns in FILES.items()},
    (OUTPUTS, "`PREFIX_metrics.json`"): [metric.name for metric in METRICS],
    **{("reference/schedulers.md", name): list(kind.Options.model_fields) for name, kind in our_schedulers()},
}
"""Page and heading -> the names of the rows of the table below it."""


@pytest.mark.parametrize(("name", "title"), TABLES)
def test_a_table_shows_everything(hooks, name, title):
    rows = [row for row in section(page(hooks, name), title).splitlines() if row.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == TABLES[name, title]
    # a bar within a cell is escaped
    assert len({row.count("|") - row.count("\\|") for row in rows}) <= 1


def test_every_part_observation_and_reward_is_shown(hooks):
    gym = pytest.importorskip("batwatt.gym", reason="no Gymnasium: pip install -e '.[gym]'")
    declared = {"gym": gym.OBSERVATIONS | gym.REWARDS, "parts": [name for _, name, _ in describe()]}
    for name, rows in declared.items():
        text = page(hooks, f"reference/{name}.md")
        assert [row for row in rows if f"\n| `{row}` |" not in text] == []


def test_options_are_shown_with_their_ranges_and_choices(hooks):
    powercap = section(page(hooks, "reference/schedulers.md"), "powercap")
    assert "\n| `forecast_error` | number &gt;= 0 and &lt;= 10 |" in powercap
    assert "| `walltime`, `learned`, `exact` |" in powercap


def test_what_an_option_is_survives_the_markdown_of_the_site(hooks):
    """Braces at the end of a cell are attributes to `attr_list`, unless they are escaped."""
    markdown = pytest.importorskip("markdown")
    extensions = [name for name in ("tables", "attr_list", "md_in_html") if f"- {name}" in MKDOCS]
    page_html = markdown.markdown(page(hooks, "reference/schedulers.md"), extensions=extensions)
    shown = html.unescape(re.sub(r"<[^>]+>", "", page_html))
    for _, scheduler in our_schedulers():
        for field in scheduler.Options.model_fields.values():
            assert f"\n{field.description.replace('`', '')}\n" in shown


def test_every_command_and_option_is_shown(hooks):
    text = page(hooks, "reference/cli.md")
    for words in LEAVES:
        body = section(text, f"batwatt {words}")
        for param in COMMANDS[words].params:
            if param.param_type_name == "option" and param.expose_value:
                assert f"`{param.opts[0]}`" in body, (words, param.opts)


def test_links_between_files_become_links_between_pages(hooks):
    text = (
        "[a](../howto/batsim.md#one-command) [b](../../platforms/README.md) [c](../../workloads/borg/) [d](../../x.py)"
    )
    expected = "[a](../howto/batsim.md#one-command) [b](../data/platforms.md) [c](../data/borg.md) d"
    here = PurePosixPath("docs/reference/formats.md"), PurePosixPath("reference/formats.md")
    assert hooks.relinked(text, *here) == expected
    fenced = "```text\n[d](../../src/x.py)\n```\n"
    assert hooks.relinked(fenced, *here) == fenced
    paper = PurePosixPath("papers/x/README.md"), PurePosixPath("results/x.md")
    assert hooks.relinked("![f](f.png) [d](data/d.csv) [s](x.py) [i](../README.md)", *paper) == (
        "![f](x/f.png) [d](x/data/d.csv) s [i](index.md)"
    )
    back = hooks.relinked("[x](../docs/howto/parts.md)", PurePosixPath("docker/README.md"), PurePosixPath("howto/c.md"))
    assert back == "[x](parts.md)"


def test_every_page_is_in_the_navigation(hooks):
    """MkDocs warns of pages outside of it; here without a build."""

    class Loader(yaml.SafeLoader):
        """Reads the tags of MkDocs as nothing."""

    Loader.add_multi_constructor("", lambda *_: None)
    nav = json.dumps([yaml.load(MKDOCS, Loader)["nav"], hooks.results_pages()])
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    pages = [name for name in pages if name.count("/") < 2] + [
        uri for path, uri in hooks.OUTSIDE.items() if path.startswith("papers/")
    ]
    assert [name for name in pages if f'"{name}"' not in nav] == []
