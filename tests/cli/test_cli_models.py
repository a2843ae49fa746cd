"""`options_of`: fields of dataclasses as options, in order, and what a command receives."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from batwatt.cli.models import options_of


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Refuses `high` < 0; `kept` is no option."""

    high: Annotated[int, typer.Option("--high", help="A number.")] = 7
    kept: str = "as it is"

    def __post_init__(self) -> None:
        if self.high < 0:
            raise ValueError("too low")


@dataclass(frozen=True, kw_only=True)
class Outer:
    """An option, a model, an option."""

    name: Annotated[str, typer.Option("--name", help="A name.")]
    inner: Inner
    last: Annotated[bool, typer.Option("--last", help="A switch.")] = False


def called(*words: str):
    app, received = typer.Typer(), []

    @options_of
    def command(*, own: Annotated[int, typer.Option("--own", help="Its own.")] = 1, outer: Outer) -> None:
        """Do it."""
        received.append((own, outer))

    app.command()(command)
    assert list(inspect.signature(command).parameters) == ["own", "name", "high", "last"]
    return CliRunner().invoke(app, words), received


def test_a_command_receives_models():
    done, received = called("--name", "x", "--high", "3", "--own", "2")
    assert done.exit_code == 0 and received == [(2, Outer(name="x", inner=Inner(high=3)))]
    assert called("--name", "x", "--last")[1] == [(1, Outer(name="x", inner=Inner(), last=True))]


@pytest.mark.parametrize(("words", "code"), [(("--name", "x", "--high", "-1"), 1), ((), 2), (("--kept", "y"), 2)])
def test_what_a_model_refuses_begins_nothing(words, code):
    done, received = called(*words)
    assert done.exit_code == code and received == []
