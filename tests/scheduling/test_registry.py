"""Names of parts, and parts of distributions that go wrong."""

from __future__ import annotations

import importlib.metadata
import logging

import pytest

from batwatt.errors import InputError, UnknownNameError
from batwatt.schedulers.powercap import Powercap  # registers its parts
from batwatt.scheduling import registry
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.registry import describe, find, load_distributed, make, register


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """What a test registers is not there for the next one."""
    monkeypatch.setattr(registry, "_parts", {kind: dict(parts) for kind, parts in registry._parts.items()})
    load_distributed.cache_clear()
    yield
    load_distributed.cache_clear()


@pytest.mark.parametrize("name", [None, " ", "a\n", 5])
def test_a_name_is_a_text(name):
    with pytest.raises(ValueError, match="order: a name must be a printable text"):
        register("order", name)


def test_nobody_takes_a_name_of_another_part():
    with pytest.raises(ValueError, match=r"is already batwatt\.scheduling\.orders"):
        register("order", "FCFS")(type("Mine", (FirstCome,), {}))
    with pytest.raises(ValueError, match="FirstCome has another name already"):
        register("order", "first-come")(FirstCome)
    assert isinstance(make("order", "fcfs"), FirstCome)


def test_a_name_with_capitals_can_be_chosen():
    part = register("order", "MyOrder")(type("MyOrder", (FirstCome,), {}))
    assert {find("order", name) for name in ("MyOrder", "myorder")} == {part}
    assert [name for _, name, _ in describe() if name == "MyOrder"] == ["MyOrder"]


def test_a_part_without_the_method_of_its_kind_is_refused():
    register("order", "nothing")(type("Nothing", (), {}))
    with pytest.raises(InputError, match=r"^option 'order': nothing has no method key\(\)"):
        Powercap({"order": "nothing"})


def test_a_class_is_no_part():
    with pytest.raises(InputError, match=r"FirstCome is a class, not an object of it; write FirstCome\(\)"):
        make("order", FirstCome)


class Entry:
    """An entry point of an installed distribution."""

    dist = None

    def __init__(self, name: str, error: BaseException | None) -> None:
        self.name = name
        self.value = f"{name}.parts"
        self.error = error

    def load(self) -> None:
        if self.error is not None:
            raise self.error
        register("order", self.name)(type("Theirs", (FirstCome,), {"__doc__": "Of a distribution."}))


@pytest.mark.parametrize("error", [ValueError("x\ny"), SystemExit(3)])
def test_one_broken_distribution_does_not_take_the_others_down(monkeypatch, caplog, error):
    entries = [Entry("broken", error), Entry("sound", None)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    with caplog.at_level(logging.WARNING):
        names = [name for kind, name, _ in describe() if kind == "order"]
    assert "sound" in names and "fcfs" in names
    (warning,) = caplog.messages
    line = f"parts of broken: broken.parts cannot be loaded: {type(error).__name__}: {error}; correct or remove it"
    assert warning == line
    with pytest.raises(UnknownNameError):
        find("order", "theirs")


def test_who_interrupts_is_obeyed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Entry("slow", KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        load_distributed()
