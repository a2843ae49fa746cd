"""Help, the list of policies, usage errors, and libraries that a command does without."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest
from cli_commands import COMMANDS, GROUPS, LEAVES, examples, scripts
from cli_house import unstyled
from test_readme import check_command

from batwatt.cli.main import ALL, ANYWHERE, FIRST, HELP_ALL, SHORT, _needed
from batwatt.run.find_scheduler import describe_schedulers
from batwatt.scheduling.registry import describe

SMALL = ("-p", "platforms/small.xml", "-w", "workloads/small.json", "--envelope", "power_profiles/profile3.csv")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("word", ["--help", HELP_ALL])
def test_help(house, command, word, monkeypatch):
    """It fits 80 columns, nothing is cut, each option has a text, and the example parses and can be pasted."""
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        done = house.batwatt(*command.split(), word)
        assert (done.code, done.err) == (0, "") and max(map(len, done.out.splitlines())) <= width
        # a line that goes on has a backslash at its end
        example = "\n".join(line.strip() for line in done.out.partition("Example:")[2].splitlines())
        pasted = [shlex.split(line) for line in example.replace("\\\n", " ").splitlines() if line[:3] == "bat"]
        first = [line for line in scripts(command)[0] if line.startswith("batwatt ")]
        for line in examples(command) if word == HELP_ALL else first:
            assert shlex.split(line) in pasted, line
    assert "…" not in done.out and all(getattr(param, "help", None) for param in COMMANDS[command].params)
    assert any(line.startswith(f"batwatt {command}".strip()) for line in examples(command))
    for line in examples(command):
        check_command(line)


@pytest.mark.parametrize("group", GROUPS)
def test_lists_of_commands_have_whole_sentences(house, group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for word in ("--help", HELP_ALL):
        text = house.batwatt(*group.split(), word).out.partition("Commands:\n")[2].partition("\n\n")[0]
        rows = [line.split(maxsplit=1) for line in text.splitlines()]
        assert len(rows) >= 2 and all(sentence.endswith(".") and "..." not in sentence for _, sentence in rows), rows
        names = [name for name, _ in rows]
        every = {words.removeprefix(f"{group} ") for words in COMMANDS if words.rpartition(" ")[0] == group and words}
        assert set(names) == (FIRST if not group and word == "--help" else every)


def test_the_first_help_lists_what_most_need(house):
    out = house.batwatt("--help").out
    listed = re.findall(r"^  ([a-z]+)  ", out.partition("Commands:\n")[2], re.MULTILINE)
    assert listed == ["init", "run", "compare", "study", "policies", "account", "convert", "serve", "slurm"]
    assert out.partition("Example:")[2].split()[:2] == ["batwatt", "compare"]
    assert "--install-completion" not in out and house.batwatt("--help", "run").out.count("\n  study  ") == 1
    # what is behind it works, too
    assert house.batwatt("characterise", "constant:5").code == 0
    assert "--install-completion" in house.batwatt(HELP_ALL).out and _needed(["--install-completion"]) is ALL


def test_a_short_help_has_at_most_15_options_and_names_the_other(house, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in LEAVES:
        texts = [house.batwatt(*command.split(), word).out for word in ("--help", HELP_ALL)]
        short, every = (_options(text) for text in texts)
        options = [param for param in COMMANDS[command].params if param.param_type_name == "option"]
        assert len(short) <= 15, command
        if command in SHORT:
            assert len(short) == len(SHORT[command].split()) + 1
            assert short[-1] == HELP_ALL and f"All {len(options) - own(command)} options" in texts[0], command
        else:
            assert len(options) - own(command) == len(short)
        assert len(every) == len(options), command
        for param in options:
            assert param.name == "help_all" or any(param.opts[-1] in row for row in every), (command, param.name)
    assert all(set(names.split()) <= {param.name for param in COMMANDS[name].params} for name, names in SHORT.items())


def _options(text: str) -> list[str]:
    """Return the names of options in a help."""
    return re.findall(r"^  (-.*?)(?:  |$)", text.partition("Options:\n")[2].partition("\n\n")[0], re.MULTILINE)


def own(command: str) -> int:
    """Count the options that a command has from `batwatt` itself."""
    return sum(param.name in ANYWHERE and not param.expose_value for param in COMMANDS[command].params)


def test_an_option_that_the_short_help_leaves_out_works(house):
    done = house.batwatt("run", "-p", "platforms/small.xml", "-w", "workloads/small.json", "--long", "0")
    assert done.code == 2 and "--long: 0 is not a number of seconds > 0" in done.line
    # anywhere in the line
    words = ["compare", HELP_ALL, "-w", "workloads/small.json"]
    assert "--seeds N" in house.batwatt(*words).out
    assert "--seeds" not in house.batwatt("compare", "--help", "-w", "workloads/small.json").out


@pytest.mark.parametrize("group", GROUPS)
def test_no_command_shows_help(house, group):
    done = house.batwatt(*group.split())
    assert done.code == 2 and "Usage" in done.out + done.err


@pytest.mark.parametrize("command", LEAVES)
def test_usage_errors_are_one_line(house, command):
    for words in (command.split(), [*command.split(), "--no-such-option"]):
        if words[-1] == "--no-such-option" or any(param.required for param in COMMANDS[command].params):
            done = house.batwatt(*words)
            # that of Batsim's parser
            code = 255 if command == "batsim" else 2
            assert (done.code, done.out, house.left) == (code, "", [])
            assert f"see `batwatt {command} --help`" in done.line
    assert "No such option: --no-such-option" in done.line


def test_policies_are_complete(house, terminal):
    done = house.batwatt("policies")
    lines = [line.split("\t") for line in done.out.splitlines()]
    for name, line in [*describe_schedulers(), *(row[1:] for row in describe())]:
        assert line.endswith(".") and len(line) > 20
        assert any(row[1] == name and line in row[2] for row in lines), name
    kinds = {row[1]: row[0] for row in lines}
    assert kinds["immediate"] == "policy"
    terminal(80)
    text = house.batwatt("policies").out
    assert {"schedulers", "orders", "backfillings", "responses"} <= set(unstyled(text).splitlines())
    assert "choose with: -s NAME" in text and "choose with" not in done.out


# libraries -----------------------------------------------------------------------------------------------------------

HEAVY = {"numpy", "pandas", "pyarrow", "matplotlib", "ortools", "jinja2", "pulp", "redis", "zmq"}
SHOW = "import json, sys; print(json.dumps([n for n, m in sys.modules.items() if getattr(m, '__spec__', None)]))"
HELPS = """
import contextlib, io, json, sys, typer
from batwatt.cli.main import application, main

def walk(command, words=()):
    yield words
    for name, one in getattr(command, "commands", {}).items():
        yield from walk(one, (*words, name))

for words in walk(typer.main.get_command(application())):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    assert "Usage: batwatt" in stream.getvalue(), words
"""


def imported(code: str) -> set[str]:
    """The modules, but those that are only announced, that a new process has imported after some code."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{SHOW}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_helps_and_engines_import_nothing_that_takes_long(tmp_path):
    assert not imported(HELPS) & (HEAVY | {"pydantic"})
    # a run of powercap, with its figures and all its files
    words = ["run", "-s", "powercap", *SMALL, "-e", str(tmp_path / "x")]
    modules = imported(f"from batwatt.cli.main import main\ntry: main({words!r})\nexcept SystemExit: pass")
    assert (tmp_path / "x_metrics.json").exists() and "batwatt.results.metrics" in modules
    assert not modules & (HEAVY - {"numpy"})


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("study", "papers/igsc22/study.yaml"), "study"),
        (("study", "results/igsc22", "--page"), "study"),
        (("optimum", *SMALL), "optimum"),
        (("compare", *SMALL, "-c", 'none={"response": "none"}'), None),
    ],
    ids=["study", "page", "optimum", "compare"],
)
def test_an_extra_that_is_not_installed_is_asked_for(tmp_path, words, extra):
    """Before anything is done; the page of a comparison needs none."""
    optional = ("pyarrow", "ortools", "pulp", "highspy", "distributed")
    code = f"import sys\nfor name in {optional}: sys.modules[name] = None\nfrom batwatt.cli.main import main\nmain()"
    prefix = ("-e", str(tmp_path / "run")) if words[0] in ("optimum", "compare") else ()
    done = subprocess.run([sys.executable, "-c", code, *words, *prefix], capture_output=True, text=True)
    if extra is None:
        assert done.returncode == 0 and (tmp_path / "run.html").is_file()
    else:
        [line] = done.stderr.splitlines()
        assert done.returncode == 2 and not list(tmp_path.iterdir())
        assert line.startswith(f"batwatt: batwatt[{extra}]: the library ")
        assert f"pip install -e '.[{extra}]' in the clone" in line
