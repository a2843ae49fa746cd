"""Reader of SimGrid platforms (XML 4.x) as in Batsim, and the choice of the hosts that run jobs."""

from __future__ import annotations

import difflib
import logging
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import ParseError

from batwatt.checks import finite, shown
from batwatt.errors import InputError, argument
from batwatt.files import read_bytes
from batwatt.model.platform import (
    MAX_HOSTS,
    SLEEP_STATES,
    WATTS,
    Host,
    MachineSpec,
    Platform,
    PState,
    Sleep,
    machines_platform,
)
from batwatt.units import speed_flops

MASTER_HOST = "master_host"
"""Default name of the host that runs the resource manager and no job (Batsim's `-m`)."""

_ZONES = ("zone", "AS")
_GROUPS = ("cluster", "cabinet")
_HOSTS = ("host", "peer")
_HOST_KINDS = ("HOST_AVAIL", "SPEED", "POWER")
_LATENCIES = ("latency", "lat", "bb_lat", "loopback_lat")
_TIME_VARYING = ("availability_file", "state_file", "speed_file")
_ROLES = ("", "compute_node", "storage", "master")
_WATTS_HINT = "write 'idle:full' or 'idle:epsilon:full' per p-state, separated by commas"
_OLD_WATTS = WATTS[1]
_SLEEP_HINT = "write 'SLEEP:OFF:ON', three indices of p-states"

_log = logging.getLogger(__name__)


@dataclass
class _Frame:
    """An open element of the XML file."""

    tag: str
    attributes: dict[str, str]
    line: int
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Node:
    """A host of the file, before roles and numbers."""

    name: str
    attributes: dict[str, str]
    line: int
    properties: dict[str, str]
    zones: tuple[dict[str, str], ...]
    """Properties of the zones around the host, outermost first; complete after the file is read."""


def read_platform(
    path: Path | str, master: str = MASTER_HOST, roles: Mapping[str, str] = MappingProxyType({})
) -> Platform:
    """Read the compute hosts of a SimGrid platform file, with Batsim's numbers; `roles` replace those of the file.

    The host named `master` (or of role `master`) and storage hosts are left out. A host with another number of powers
    than of p-states has neither watts nor sleep p-states, as in a Batsim without `-E`. One line tells of hosts without
    watts among hosts with watts. Raises InputError.
    """
    nodes, latencies = _read_nodes(path, roles)
    seen: dict[str, int] = {}
    for node in nodes:
        if node.name in seen:
            problem = f"line {node.line}: a second host {node.name!r} (the first is on line {seen[node.name]})"
            raise InputError(path, problem, "give each host a name of its own")
        seen[node.name] = node.line
    compute = _without_services(nodes, master, path)
    if not compute:
        raise InputError(path, "no compute host", "add <host> or <cluster> elements besides the master")
    reader = _HostReader(path)
    ordered = sorted(compute, key=lambda node: node.name)
    hosts = tuple(reader.host(index, node) for index, node in enumerate(ordered))
    useless = [host for host in hosts if host.no_power]
    powerless = [host for host in hosts if not host.has_power]
    if useless or 0 < len(powerless) < len(hosts):
        first = (useless or powerless)[0]
        text = "%s: no energy is accounted for: %d of %d hosts have no usable powers (host %r: %s)"
        reason = first.no_power or "no wattage_per_state"
        _log.warning(text, path, len(powerless), len(hosts), first.name, reason)
    ignored = [f"latency (first of {len(latencies)}: {text}): times differ from Batsim's" for text in latencies[:1]]
    if storage := [node.name for node in nodes if node.properties.get("role", "").strip() == "storage"]:
        ignored.append(f"storage hosts (first of {len(storage)}: {storage[0]!r})")
    return Platform(hosts, source=str(path), not_simulated=tuple(ignored))


def _read_nodes(path: Path | str, roles: Mapping[str, str]) -> tuple[list[_Node], list[str]]:
    """Return the hosts of a file with their roles, and its elements with latency. Raises InputError."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import XMLParser

    builder = _Builder(path)
    parser = XMLParser(target=builder, forbid_dtd=False, forbid_entities=True, forbid_external=True)
    builder.parser = parser.parser
    try:
        parser.feed(_declared_first(read_bytes(path)))
        parser.close()
    except DefusedXmlException as error:
        what = type(error).__name__
        raise InputError(path, f"entities and external references are refused ({what})", "write them out") from None
    except ParseError as error:
        raise InputError(path, f"is not well-formed XML ({error})", "correct the file there") from None
    except (ValueError, LookupError) as error:
        raise InputError(path, f"is not XML in a known encoding ({error})", "save the file as UTF-8") from None
    for name, role in roles.items():
        node = next((node for node in builder.nodes if node.name == name), None)
        if node is None:
            raise InputError(f"-r {name} {role}", f"{path} has no host of that name", "name one of its hosts")
        node.properties["role"] = role
    return builder.nodes, builder.latencies


def _declared_first(data: bytes) -> bytes:
    """Move blank lines in front of the XML declaration behind it, where XML allows them."""
    text = data.lstrip()
    blanks = data[: len(data) - len(text)]
    if not (blanks and text.startswith(b"<?xml")):
        return data
    declaration, end, rest = text.partition(b"?>")
    return declaration + end + blanks + rest


def _without_services(nodes: list[_Node], master: str, path: Path | str) -> list[_Node]:
    """Return the compute hosts. Raises InputError unless exactly one host is the master, as in Batsim."""
    compute: list[_Node] = []
    masters: list[_Node] = []
    for node in nodes:
        role = node.properties.get("role", "").strip()
        if role not in _ROLES:
            place = f"{path}: line {node.line}: host {node.name!r}"
            raise InputError(place, f"unknown role {role!r}", f"use one of {', '.join(_ROLES[1:])}, or none")
        if node.name == master or role == "master":
            masters.append(node)
        elif role != "storage":
            compute.append(node)
    if len(masters) != 1:
        raise _no_one_master(path, master, masters, compute)
    return compute


def _no_one_master(path: Path | str, master: str, masters: list[_Node], compute: list[_Node]) -> InputError:
    if masters:
        names = ", ".join(repr(node.name) for node in masters[:5])
        problem = f"one host must be the master, which runs the resource manager and no job; found {names}"
        return InputError(path, problem, f"name one of them with {argument('master')}, and give no other the role")
    near = difflib.get_close_matches(master, (node.name for node in compute), n=1)
    example = near or [node.name for node in compute[:1]]
    problem = f"no host is called {master!r} or has the role 'master': none would run the resource manager"
    such = f" such as {argument('master', shlex.quote(example[0]))}" if example else ""
    return InputError(path, problem, f"choose a host, which then runs no job,{such}")


class _Builder:
    """Target of the XML parser that collects hosts and clusters, and skips elements of the network."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.parser: Any = None
        self.nodes: list[_Node] = []
        self.latencies: list[str] = []
        self._open: list[_Frame] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element. Raises InputError."""
        frame = _Frame(tag, attributes, self.parser.CurrentLineNumber)
        if not self._open:
            self._check_root(frame)
        elif tag == "prop":
            # of two of a name SimGrid reads the first
            self._open[-1].properties.setdefault(self._attribute(frame, "id"), self._attribute(frame, "value"))
        elif tag == "include":
            raise InputError(self._place(frame), "<include> is not read, nor by SimGrid", "write its hosts out")
        elif tag == "trace_connect" and attributes.get("kind", _HOST_KINDS[0]) in _HOST_KINDS:
            _log.warning("%s: host %r: <trace_connect> is ignored", self._place(frame), attributes.get("element"))
        self._note_latency(frame)
        self._open.append(frame)

    def end(self, tag: str) -> None:
        """Close an element, and add a host or a cluster, whose properties are complete."""
        frame = self._open.pop()
        if tag in _HOSTS:
            self._add(frame, self._attribute(frame, "id"), self._zones())
        elif tag in _GROUPS:
            prefix, suffix = self._attribute(frame, "prefix"), self._attribute(frame, "suffix")
            # a cluster is a zone, a cabinet only a part of a zone
            zones = (*self._zones(), frame.properties) if tag == "cluster" else self._zones()
            for number in self._radical(frame):
                self._add(frame, f"{prefix}{number}{suffix}", zones)

    def data(self, text: str) -> None:
        """Ignore text between elements."""

    def close(self) -> None:
        """End the file."""

    def _zones(self) -> tuple[dict[str, str], ...]:
        return tuple(frame.properties for frame in self._open if frame.tag in _ZONES)

    def _note_latency(self, frame: _Frame) -> None:
        for key in _LATENCIES:
            text = frame.attributes.get(key, "")
            # the unit does not matter: `0`, `0us` and `0.0` are no latency
            if text.strip(" .0abcdefghijklmnopqrstuvwxyz"):
                self.latencies.append(f"<{frame.tag}> {frame.attributes.get('id', '')!r} on line {frame.line}: {text}")
                return

    def _add(self, frame: _Frame, name: str, zones: tuple[dict[str, str], ...]) -> None:
        if not (name and name.isprintable()):
            raise InputError(self._place(frame), f"{name!r} is not a host name", "use printable characters")
        varying = [key for key in _TIME_VARYING if key in frame.attributes]
        if varying:
            _log.warning("%s: host %r: %s is ignored", self._place(frame), name, ", ".join(varying))
        if len(self.nodes) >= MAX_HOSTS:
            raise InputError(self._place(frame), f"more than {MAX_HOSTS} hosts", "is a radical mistyped?")
        self._attribute(frame, "speed")
        self.nodes.append(_Node(name, frame.attributes, frame.line, frame.properties, zones))

    def _check_root(self, frame: _Frame) -> None:
        if frame.tag != "platform":
            problem = f"the root is <{frame.tag[:60]}>, not <platform>"
            raise InputError(self._place(frame), problem, "give a SimGrid platform file")
        version = self._attribute(frame, "version")
        if version.strip().partition(".")[0] != "4":
            problem = f"platform version {version!r} is not 4.x"
            raise InputError(self._place(frame), problem, "convert the file with SimGrid's simgrid_update_xml")

    def _radical(self, frame: _Frame) -> Iterator[int]:
        text = self._attribute(frame, "radical")
        for piece in text.split(","):
            low, dash, high = (part.strip() for part in piece.partition("-"))
            high = high if dash else low
            if not (_is_index(low) and _is_index(high) and int(low) <= int(high)):
                problem = f"radical {shown(text)} is not a list of numbers and intervals"
                raise InputError(self._place(frame), problem, "write it as in '0-9,12,15-20'")
            if int(high) - int(low) >= MAX_HOSTS:
                raise InputError(self._place(frame), f"more than {MAX_HOSTS} hosts", "is the radical mistyped?")
            yield from range(int(low), int(high) + 1)

    def _attribute(self, frame: _Frame, name: str) -> str:
        if name not in frame.attributes:
            raise InputError(self._place(frame), f"<{frame.tag}> has no attribute {name!r}", "add it")
        return frame.attributes[name]

    def _place(self, frame: _Frame) -> str:
        name = frame.attributes.get("id")
        return f"{self.path}: line {frame.line}" + (f": {frame.tag} {name!r}" if name else "")


class _HostReader:
    """Builder of hosts from nodes; hosts with equal attributes share their p-states."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._pstates: dict[tuple[str, str | None, int], tuple[PState, ...]] = {}

    def host(self, index: int, node: _Node) -> Host:
        """Return the host with number `index`. Raises InputError with the host if one of its texts is malformed."""
        place = f"{self._path}: line {node.line}: host {node.name!r}"
        properties = {"role": "", **node.properties}
        zone_properties: dict[str, str] = {}
        for zone in node.zones:
            zone_properties.update(zone)
        name = next((key for key in WATTS if key in properties), "")
        watts, speeds = properties.get(name), node.attributes["speed"]
        cores = _index(node.attributes.get("core", "1"), f"{place}: core")
        initial = _index(node.attributes.get("pstate", "0"), f"{place}: pstate")
        sleeps: tuple[Sleep, ...] = ()
        problem = _unlike(speeds, watts)
        if not problem:
            pstates = self._states(speeds, watts, place, cores if name == _OLD_WATTS else 0)
            sleeps = _sleeps(properties.get(SLEEP_STATES), len(pstates), place)
            problem = _halting(pstates, sleeps)
        if problem:
            pstates, watts, sleeps = self._states(speeds, None, place), None, ()
        try:
            return Host(
                id=index,
                name=node.name,
                pstates=pstates,
                cores=cores,
                initial_pstate=initial,
                sleeps=sleeps,
                has_power=watts is not None,
                no_power=problem,
                properties=MappingProxyType(properties),
                zone_properties=MappingProxyType(zone_properties),
            )
        except ValueError as error:
            wrong = str(error).removeprefix(f"host {node.name!r}: ")
            raise InputError(place, wrong, "correct the host") from None

    def _states(self, speeds: str, watts: str | None, place: str, old_cores: int = 0) -> tuple[PState, ...]:
        """Return the p-states of a host; `old_cores` is its number of cores if its watts have the older form."""
        cached = self._pstates.get((speeds, watts, old_cores))
        if cached is not None:
            return cached
        try:
            flops = [speed_flops(text, zero=True) for text in speeds.split(",")]
        except ValueError as error:
            raise InputError(place, f"speed: {error}", "write one speed per p-state, as in '38.4Gf, 19.2Gf'") from None
        powers = [(0.0, 0.0, 0.0)] * len(flops)
        if watts is not None:
            powers = [_power(entry, place, old_cores) for entry in watts.split(",")]
        states = tuple(PState(speed, *power) for speed, power in zip(flops, powers, strict=True))
        self._pstates[speeds, watts, old_cores] = states
        return states


def _unlike(speeds: str, watts: str | None) -> str:
    """Return the reason why the powers of a host are not usable, not one per p-state; empty if they are."""
    powers, pstates = len((watts or "").split(",")), len(speeds.split(","))
    if watts is None or powers == pstates:
        return ""
    return f"wattage_per_state has {powers} entries for {pstates} p-states"


def _halting(pstates: tuple[PState, ...], sleeps: tuple[Sleep, ...]) -> str:
    """Return the reason why a host has no energy as it would compute at a speed of 0; empty if it does not."""
    moved = {index for sleep in sleeps for index in (sleep.sleep, sleep.switch_off, sleep.switch_on)}
    halts = [index for index, state in enumerate(pstates) if not state.speed_flops and index not in moved]
    return f"p-state {halts[0]} has a speed of 0 and is not in {SLEEP_STATES}" if halts else ""


def _power(entry: str, place: str, old_cores: int) -> tuple[float, float, float]:
    """Return idle, epsilon and full watts of one entry; in an entry of two, epsilon is idle. Raises InputError.

    SimGrid up to 3.27 reads `watt_per_state` of a host of `old_cores` cores as idle, one core busy, and full.
    """
    try:
        values = [finite(text) for text in entry.split(":")]
    except ValueError as error:
        raise InputError(place, f"wattage_per_state: {error}", _WATTS_HINT) from None
    if len(values) not in (2, 3) or not all(value >= 0.0 for value in values):
        problem = f"wattage_per_state: {shown(entry.strip())} is not two or three powers >= 0 W"
        raise InputError(place, problem, _WATTS_HINT)
    idle_w, epsilon_w, full_w = values[0], values[-2], values[-1]
    if old_cores == 1:
        epsilon_w = full_w
    elif old_cores and len(values) == 3:
        epsilon_w -= (full_w - epsilon_w) / (old_cores - 1)
        if not epsilon_w >= 0.0:
            problem = f"{_OLD_WATTS}: {shown(entry.strip())} is less than 0 W at no load, by idle:one core:full"
            raise InputError(place, problem, "write wattage_per_state with idle:epsilon:full")
    return idle_w, epsilon_w, full_w


def _sleeps(text: str | None, count: int, place: str) -> tuple[Sleep, ...]:
    if text is None:
        return ()
    place = f"{place}: {SLEEP_STATES}"
    sleeps: list[Sleep] = []
    for triplet in text.split(","):
        pieces = triplet.split(":")
        if len(pieces) != 3:
            raise InputError(place, f"{shown(triplet.strip())} has not three parts", _SLEEP_HINT)
        sleeps.append(Sleep(*(_index(piece, place) for piece in pieces)))
    asleep = {sleep.sleep for sleep in sleeps}
    virtual = {index for sleep in sleeps for index in (sleep.switch_off, sleep.switch_on)}
    if max(asleep | virtual) >= count:
        raise InputError(place, f"{max(asleep | virtual)} is not a p-state of 0..{count - 1}", _SLEEP_HINT)
    if asleep & virtual:
        problem = f"p-state {min(asleep & virtual)} is both a sleep p-state and a transition"
        raise InputError(place, problem, _SLEEP_HINT)
    if len(asleep | virtual) >= count:
        raise InputError(place, f"none of the {count} p-states is left to compute", "add one to 'speed'")
    return tuple(sleeps)


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _index(text: str, place: str) -> int:
    text = text.strip()
    if not _is_index(text):
        raise InputError(place, f"{shown(text)} is not a number 0, 1, 2, ...", "correct it")
    return int(text)


@dataclass(frozen=True, slots=True)
class HostChoice:
    """Batsim's `--master-host`, `--mmax` (0: all hosts) and `--mmax-workload`.

    The first hosts in the order of Batsim's numbers run jobs; the least of `--mmax` and the workloads' `nb_res` counts.
    """

    master: str = MASTER_HOST
    mmax: int = 0
    mmax_workload: bool = False

    def __post_init__(self) -> None:
        if self.mmax < 0:
            raise InputError(argument("mmax"), f"{self.mmax} is not a number of hosts", "give 1 or more, or 0 for all")

    def of(self, platform: Platform, nb_res: int | None = None) -> Platform:
        """Return the platform with the hosts that run jobs; `nb_res` is the greatest one of the workloads.

        Raises InputError if there are fewer hosts.
        """
        bounds = (self.mmax, nb_res if self.mmax_workload else None)
        limits = [limit for limit in bounds if limit]
        if not limits:
            return platform
        if min(limits) > len(platform):
            option = argument("mmax" if min(limits) == self.mmax else "mmax_workload")
            problem = f"{option} requires {min(limits)} hosts but the platform has {len(platform)}"
            raise InputError(platform.source, problem, "give fewer, or another platform")
        return replace(platform, hosts=platform.hosts[: min(limits)])

    def batsim_args(self) -> list[str]:
        """Return the choice as options of a real Batsim."""
        args = [f"--master-host={self.master}"] if self.master != MASTER_HOST else []
        args += [f"--mmax={self.mmax}"] if self.mmax else []
        return args + (["--mmax-workload"] if self.mmax_workload else [])


def platform_of(platform: Path | MachineSpec | Platform, hosts: HostChoice) -> Platform:
    """Return the hosts of a platform, its file, or like machines that run jobs. Raises InputError."""
    return hosts.of(all_hosts(platform, hosts.master))


def all_hosts(platform: Path | MachineSpec | Platform, master: str) -> Platform:
    """Return the platform with all hosts but `master`. Raises InputError."""
    if isinstance(platform, Platform):
        return platform
    return _built(platform) if isinstance(platform, MachineSpec) else read_platform(platform, master)


@lru_cache(maxsize=4)
def _built(machines: MachineSpec) -> Platform:
    return machines_platform(machines, f"{machines.machines} machines of {machines.cores} cores")
