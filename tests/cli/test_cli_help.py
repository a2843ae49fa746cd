"""Help, the list of policies, usage errors, and what is printed after a run."""

from __future__ import annotations

import pytest
from cli_commands import COMMANDS, GROUPS, LEAVES, examples
from cli_house import unstyled
from test_readme import check_command

from batwatt.run.find_scheduler import describe_schedulers
from batwatt.scheduling.registry import describe


@pytest.mark.parametrize("width", ["80", "120"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_an_example(house, command, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    done = house.batwatt(*command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert f"batwatt {command}".strip() in done.out.partition("Example:")[2]
    assert max(map(len, done.out.splitlines())) <= int(width)
    if width == "120":
        assert "…" not in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_parse(command):
    lines = examples(command)
    assert any(line.startswith(f"batwatt {command}".strip()) for line in lines)
    for line in lines:
        check_command(line)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is(command):
    assert all(getattr(param, "help", None) for param in COMMANDS[command].params)


def test_there_are_commands():
    assert {"", "run", "generate", "carbon", "carbon plan", "campaign run"} < set(COMMANDS) and len(LEAVES) > 30


@pytest.mark.parametrize("group", GROUPS)
def test_no_command_shows_help(house, group):
    done = house.batwatt(*group.split())
    assert done.code == 2 and "Usage" in done.out + done.err


@pytest.mark.parametrize("command", LEAVES)
def test_an_unknown_option_is_one_line(house, command):
    done = house.batwatt(*command.split(), "--no-such-option")
    assert done.code == 2 and done.out == "" and house.left == []
    assert "No such option: --no-such-option" in done.line and f"see `batwatt {command} --help`" in done.line


@pytest.mark.parametrize("command", [words for words in LEAVES if any(p.required for p in COMMANDS[words].params)])
def test_what_is_missing_is_one_line(house, command):
    done = house.batwatt(*command.split())
    assert done.code == 2 and done.out == "" and house.left == []
    assert "Missing " in done.line and f"see `batwatt {command} --help`" in done.line


@pytest.mark.parametrize(
    "words,expected",
    [
        (["rnu"], "No such command 'rnu'"),
        (["run", "-p", "x"], "Missing option '-w' / '--workload'"),
        (["run", "--platfrom", "x"], "--platform"),
        (["policies", "riskaware", "extra"], "extra"),
        (["run", "-p"], "-p"),
    ],
)
def test_usage_errors_are_one_line(house, words, expected):
    done = house.batwatt(*words)
    assert done.code == 2 and expected in done.line and "--help`" in done.line


def test_version(house):
    done = house.batwatt("--version")
    assert done.code == 0 and done.out.startswith("batwatt ")


def test_policies_are_complete(house, terminal):
    done = house.batwatt("policies")
    lines = [line.split("\t") for line in done.out.splitlines()]
    rows = [(name, line, "") for name, line in describe_schedulers()]
    rows += [(name, line, aliases) for _, name, aliases, line in describe()]
    for name, line, aliases in rows:
        assert line.endswith(".") and len(line) > 20
        assert any(found[1] == name and line in found[2] and aliases in found[2] for found in lines), name
    terminal(80)
    shown = house.batwatt("policies").out
    for heading in ("schedulers", "orders", "backfillings", "responses"):
        assert heading in unstyled(shown).splitlines()
    assert "choose with: -s NAME" in shown and "choose with" not in done.out


def test_a_runs_table_and_files(house, terminal):
    terminal(120)
    done = house.run("--envelope", house.envelope)
    assert done.code == 0 and done.err.count("\n") == 1 and "3 of 8 jobs are delays" in done.err
    *table, files = unstyled(done.out).splitlines()
    assert "slow-" in done.out and "kills" in done.out and files.startswith(f"files: {house.out / 'x'}_*.csv")
    # two columns more than in 80 characters, since not all jobs ran at full speed
    assert "stretch" in done.out and max(map(len, table)) <= 97


def test_compare(house):
    cases = ["-c", 'HFLD={"response": "hfld"}', "-c", 'no configuration={"response": "none"}']
    words = ["-p", house.platform("a"), "-w", house.workload({"id": 1, "subtime": 0, "res": 1, "profile": "nap"})]
    done = house.batwatt("compare", *words, "--envelope", house.envelope, "-e", house.out / "c", *cases, "--keep")
    assert done.code == 0 and "HFLD" in done.out and "no configuration" in done.out
    assert {"c.html", "c-hfld_jobs.csv", "c-no-configuration_metrics.json"} <= set(house.left)


def test_markup_in_names_is_not_interpreted(house):
    done = house.run(workload=house.folder / "[bold]:warning:.json")
    assert "[bold]:warning:.json: cannot be read" in done.line
