"""Platforms of servers described in TOML, and lists of hosts in Slurm's notation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from batwatt.checks import model_error, validated
from batwatt.errors import InputError
from batwatt.files import read_text
from batwatt.model.platform import (
    MACHINE,
    MAX_HOSTS,
    MIN_SWITCH_S,
    SLEEP_SPEED,
    MachineSpec,
    State,
    described,
    switch_speed,
)
from batwatt.units import speed_text

_PART = re.compile(r"[^,\[\]]+|\[[^\]]*\]|,")


def expand(text: str) -> tuple[str, ...]:
    """Return the names in a list of hosts such as `n[01-03,7],gpu1`. Raises ValueError."""
    return tuple(name for part in _parts(text) for name in _names(part))


def _parts(text: str) -> Iterator[list[str]]:
    """Yield each part between commas outside of brackets, as plain texts and texts in brackets."""
    part: list[str] = []
    tokens = _PART.findall(text)
    if "".join(tokens) != text:
        raise ValueError(f"{text!r} is not a list of hosts")
    for token in tokens:
        if token == ",":
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _names(part: Iterable[str]) -> list[str]:
    names = [""]
    for token in part:
        ends = _numbers(token[1:-1]) if token.startswith("[") else [token]
        if len(names) * len(ends) > MAX_HOSTS:
            raise ValueError(f"{''.join(part)!r} names more than {MAX_HOSTS} hosts")
        names = [name + end for name in names for end in ends]
    return names


def _numbers(text: str) -> list[str]:
    numbers: list[str] = []
    for interval in text.split(","):
        low, dash, high = interval.partition("-")
        if not (low.isdecimal() and (high.isdecimal() or not dash)):
            raise ValueError(f"{text!r} are not numbers of hosts")
        last = int(high or low)
        if last - int(low) >= MAX_HOSTS:
            raise ValueError(f"{text!r} are more than {MAX_HOSTS} hosts")
        numbers += [f"{number:0{len(low)}d}" for number in range(int(low), last + 1)]
    return numbers


def document(comment: str, hosts: Iterable[str]) -> str:
    """Return the platform file of some lines of hosts, with a master host and a network that takes no time."""
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        f"  <!-- {comment} -->",
        '  <zone id="AS0" routing="Vivaldi">',
        *host_xml("master_host", 'speed="1Gf"', {"wattage_per_state": "0:0"}),
    ]
    return "\n".join([*lines, *hosts, "  </zone>", "</platform>", ""])


def host_xml(name: str, attributes: str, properties: Mapping[str, str]) -> list[str]:
    """Return the XML lines of one host."""
    # imported here, as it loads network modules, too
    from xml.sax.saxutils import quoteattr

    return [
        f'    <host id={quoteattr(name)} coordinates="0 0 0" {attributes}>',
        *(f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in sorted(properties.items())),
        "    </host>",
    ]


def machines_xml(machines: MachineSpec, maker: str = "batwatt generate platform") -> str:
    """Return the SimGrid platform (XML 4.1) of machines and a master host; each host has the property `machine`.

    Its comment names `maker`, the command that generates it.
    """
    attributes, properties = described(machines.states, len(machines.computing), 1)
    lines: list[str] = []
    for machine, name in machines.host_names:
        lines += host_xml(name, attributes, properties | {MACHINE: machine})
    comment = f"{machines.machines} machines of {machines.cores} cores. Made by `{maker}`."
    return document(comment, lines)


MAX_COUNT = 100_000
"""Greatest number of servers of one type."""

_SLEEP_KEYS = ("sleep_w", "off_s", "off_j", "on_s", "on_j")
_HINT = 'write as in: [[server]] name = "node", count = 4, states = [["38.4Gf", 200.5]]'


NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=MIN_SWITCH_S, le=1e9, allow_inf_nan=False)]


class ServerState(BaseModel):
    """A computation p-state: speed of one core, power in W with all cores busy, and power in W without work.

    Also accepted as a list `[speed, watts]` or `[speed, watts, idle_watts]`; `idle_watts` is `watts` by default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    speed: Annotated[str, BeforeValidator(speed_text)]
    watts: NotNegative
    idle_watts: NotNegative | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            if len(value) not in (2, 3):
                raise ValueError("a state is [speed, watts] or [speed, watts, idle_watts]")
            return dict(zip(("speed", "watts", "idle_watts"), value, strict=False))
        return value

    @model_validator(mode="after")
    def _idle_below_full(self) -> ServerState:
        if self.idle_watts is not None and not self.idle_watts <= self.watts:
            raise ValueError(f"idle_watts {self.idle_watts:g} is more than watts {self.watts:g}")
        return self


class ServerType(BaseModel):
    """Servers that are alike: p-states and, all five or none, the power in W asleep and the costs of transitions.

    `nodes` names the hosts as Slurm does, such as `n[01-16]`; else `count` hosts are called `NAME-1` and so on.

    `off_s` and `off_j` are the duration (s) and energy (J) of falling asleep, `on_s` and `on_j` those of waking up.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,62}$")]
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    nodes: str | None = None
    states: Annotated[list[ServerState], Field(min_length=1)]
    cores: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    sleep_w: NotNegative | None = None
    off_s: Seconds | None = None
    off_j: NotNegative | None = None
    on_s: Seconds | None = None
    on_j: NotNegative | None = None

    @model_validator(mode="after")
    def _sleep_whole_or_not_at_all(self) -> ServerType:
        missing = [key for key in _SLEEP_KEYS if getattr(self, key) is None]
        if missing and len(missing) < len(_SLEEP_KEYS):
            raise ValueError(f"servers that sleep need {', '.join(missing)} too")
        return self

    @model_validator(mode="after")
    def _nodes_or_count(self) -> ServerType:
        if self.nodes is None:
            if "count" not in self.model_fields_set:
                raise ValueError("needs count, or nodes")
        elif "count" in self.model_fields_set:
            raise ValueError("has both count and nodes")
        elif not expand(self.nodes):
            raise ValueError("nodes names no host")
        return self

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names of the hosts; without `nodes` padded with zeros, to keep the order of numbers as texts."""
        if self.nodes is not None:
            return expand(self.nodes)
        width = len(str(self.count))
        return tuple(f"{self.name}-{number:0{width}d}" for number in range(1, self.count + 1))


def read_server_types(path: Path | str) -> list[ServerType]:
    """Read the `[[server]]` tables of a TOML file. Raises InputError with the server and the key."""
    try:
        data = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"is not TOML ({error})", _HINT) from None
    except (RecursionError, ValueError) as error:
        raise InputError(path, f"is not TOML that can be read ({type(error).__name__})", _HINT) from None
    unknown = sorted(set(data) - {"server"})
    if unknown:
        raise InputError(path, f"unknown key {unknown[0]!r}", _HINT)
    tables = data.get("server")
    if not (isinstance(tables, list) and tables):
        raise InputError(path, "has no [[server]]", _HINT)
    types: list[ServerType] = []
    for number, table in enumerate(tables, start=1):
        place = _place(path, number, table)
        types.append(validated(ServerType, table, partial(_error_of, place)))
        if types[-1].name in [other.name for other in types[:-1]]:
            raise InputError(place, "a second server of this name", "choose another name")
    return types


def platform_xml(types: Sequence[ServerType], title: str = "servers") -> str:
    """Return the SimGrid platform (XML 4.1) of these servers and a master host, with a network that takes no time.

    P-states are the computation states in order, then sleep, switching off and switching on. Raises InputError.
    """
    names = [server.name for server in types]
    if len(set(names)) != len(names) or not names:
        raise InputError(title, "server types must have distinct names, and be at least one", "rename them")
    counts = ", ".join(f"{len(server.host_names)} {server.name}" for server in types)
    comment = "".join(char if char.isprintable() else " " for char in f"{title}: {counts}.")
    comment = re.sub("--+", "-", " ".join(comment.split()))
    lines: list[str] = []
    for server in types:
        attributes, properties = described(_states(server), len(server.states), server.cores)
        for name in server.host_names:
            lines += host_xml(name, attributes, properties)
    return document(f"{comment} Made by `batwatt generate platform`.", lines)


def read_platform_xml(path: Path | str) -> str:
    """Return the platform XML of a TOML file; its comment names the file. Raises InputError."""
    return platform_xml(read_server_types(path), title=Path(path).name)


def _states(server: ServerType) -> list[State]:
    """Return the computation p-states, then, if the server sleeps, sleep, switching off and switching on."""
    computing = [
        (state.speed, state.watts if state.idle_watts is None else state.idle_watts, state.watts)
        for state in server.states
    ]
    sleep_w, off_s, off_j, on_s, on_j = (getattr(server, key) for key in _SLEEP_KEYS)
    if sleep_w is None:
        return computing
    # a transition is one flop at the speed of its p-state
    sleeping = [(SLEEP_SPEED, sleep_w), (switch_speed(off_s), off_j / off_s), (switch_speed(on_s), on_j / on_s)]
    return computing + [(speed, power_w, power_w) for speed, power_w in sleeping]


def _place(path: Path | str, number: int, table: object) -> str:
    name = table.get("name") if isinstance(table, dict) else None
    return f"{path}: server {name!r}" if isinstance(name, str) else f"{path}: server number {number}"


def _error_of(place: str, error: Mapping[str, Any]) -> InputError:
    """Return pydantic's error of a table with key, message and value."""
    return model_error(place, error, _HINT, ".".join(map(str, error["loc"])), ServerType.model_fields)
