"""Workloads of Batsim 4 as JSON, checked as by Batsim, with the profiles that its hash tables drop."""

from __future__ import annotations

import logging
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from batwatt.checks import TOO_DEEP, checked_whole, load_json, shown
from batwatt.errors import InputError, UnknownNameError, UnsupportedError, argument, remark
from batwatt.model.workload import Composed, Delay, JobSpec, Parallel, Profile, Workload
from batwatt.protocol.numbers import MAX_INT, batsim_float, batsim_number, json_number, wire_floats
from batwatt.protocol.workload5 import refuse_batsim_5

_WORD = 2**64 - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907
_BUCKETS = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153,
            2938679, 5967347, 12117689)  # fmt: skip


def _hash(name: str) -> int:
    """Return `std::hash<std::string>` of libstdc++ on 64 bits (MurmurHash64A)."""
    data = name.encode("utf-8")
    state = _SEED ^ len(data) * _MULTIPLIER & _WORD
    for start in range(0, len(data), 8):
        chunk = data[start : start + 8]
        word = int.from_bytes(chunk, "little")
        if len(chunk) == 8:
            word = word * _MULTIPLIER & _WORD
            word = (word ^ word >> 47) * _MULTIPLIER & _WORD
        state = (state ^ word) * _MULTIPLIER & _WORD
    state = (state ^ state >> 47) * _MULTIPLIER & _WORD
    return state ^ state >> 47


def kept_parts(parts: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[str]:
    """Return the parts of unused composed profiles that Batsim keeps.

    `parts` are those of each unused composed profile, `names` all profiles in the order of the file. Batsim visits the
    profiles and drops those that no remaining one names: parts visited before their composed profile remain.
    """
    if not parts:
        return []
    named = Counter(part for sequence in parts.values() for part in sequence)
    remaining = []
    for name in hash_order(names):
        if named[name]:
            remaining.append(name)
        else:
            named.subtract(parts.get(name, ()))
    return remaining


def hash_order(names: Iterable[str]) -> list[str]:
    """Return distinct names in the order in which `std::unordered_map<std::string, ...>` of libstdc++ iterates.

    A name goes to the front of its bucket, the first of a bucket to the front of all; a full table is rebuilt with
    about twice the buckets (a prime), into which its names are inserted in the order of iteration.
    """
    hashes = {name: _hash(name) for name in names}
    sizes = iter(_BUCKETS)
    size = next(sizes)
    following: dict[str | None, str | None] = {None: None}
    before: dict[int, str | None] = {}  # bucket -> the name before its first

    def put_first(name: str) -> None:
        head = following[None]
        following[None], following[name] = name, head
        if head is not None:
            before[hashes[head] % size] = name
        before[hashes[name] % size] = None

    def put(name: str) -> None:
        bucket = hashes[name] % size
        if bucket in before:
            previous = before[bucket]
            following[name], following[previous] = following[previous], name
        else:
            put_first(name)

    for count, name in enumerate(hashes):
        if count == size:
            size = next(sizes)
            walked = _walk(following)
            following, before = {None: None}, {}
            for other in walked:
                put(other)
        put(name)
    return _walk(following)


def _walk(following: dict[str | None, str | None]) -> list[str]:
    names = []
    name = following[None]
    while name is not None:
        names.append(name)
        name = following[name]
    return names


_log = logging.getLogger(__name__)
MAX_TASKS = 10_000_000
"""Greatest number of tasks of a composed profile."""

NOT_SIMULATED = (
    "parallel_homogeneous_pfs",
    "data_staging",
    "send",
    "recv",
    "smpi",
    "usage_trace",
)
"""Profile types of Batsim 4.x that the embedded engine does not model."""

_COMMUNICATING = ("parallel", "parallel_homogeneous", "parallel_homogeneous_total")
_REAL_BATSIM = "run it on the real Batsim: `batwatt run --engine batsim`"


def parse_profile(raw: Any, where: object) -> Profile:
    """Parse the profile of a JSON object.

    The caller checks the names in a composed profile. Raises UnsupportedError for profiles that only Batsim runs
    (communications, storage, traces), InputError for those that Batsim refuses.
    """
    if not isinstance(raw, dict):
        problem = f"a profile must be an object, got {shown(raw)}"
        raise InputError(where, problem, 'write {"type": "delay", "delay": 10}')
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise InputError(where, f"'type' must be a text, got {shown(kind)}", f"use one of {', '.join(_READERS)}")
    reader = _READERS.get(kind)
    if reader is None:
        if kind in NOT_SIMULATED:
            raise UnsupportedError(where, f"profiles of type {kind!r} are not simulated by batwatt", _REAL_BATSIM)
        raise UnknownNameError(where, "profile type", kind, [*_READERS, *NOT_SIMULATED], "Batsim 4.x aborts on it.")
    return reader(raw, where, _integer(raw.get("ret", 0), "ret", where, -MAX_INT - 1))


def parse_job(raw: Any, workload_name: str, where: object, *, owned: bool = False) -> JobSpec:
    """Parse the job of a JSON object; the name of its workload prefixes its id. Raises InputError.

    An `owned` object becomes the one of the job, instead of a copy.
    """
    if not isinstance(raw, dict):
        raise InputError(where, f"a job must be an object, got {shown(raw)}", 'write {"id": 1, "subtime": 0, ...}')
    own = full_id(raw.get("id"), workload_name, where)
    try:
        submit, hosts, profile = raw["subtime"], raw["res"], raw["profile"]
    except KeyError as error:
        raise InputError(f"{where} (id {raw['id']!r})", f"no field {error}", "add it, Batsim requires it") from None
    if not (type(submit) in (int, float) and 0 <= submit < math.inf):
        submit = _number(submit, "subtime", f"{where} (id {raw['id']!r})")
    if not (type(hosts) is int and 1 <= hosts <= MAX_INT):
        hosts = _integer(hosts, "res", f"{where} (id {raw['id']!r})", 1)
    if type(profile) is not str:
        place = f"{where} (id {raw['id']!r})"
        raise InputError(place, f"'profile' must be a text, got {shown(profile)}", "name one of the profiles")
    walltime = raw.get("walltime", -1)
    if not (type(walltime) in (int, float) and (walltime == -1 or 0 < walltime < math.inf)):
        place = f"{where} (id {raw['id']!r})"
        raise InputError(place, f"'walltime' must be > 0 s, got {shown(walltime)}", "leave it out for no limit (or -1)")
    try:
        sent = _sent(raw, owned)
        sent["id"] = own
        limit = None if walltime == -1 else batsim_number(walltime)
        return JobSpec(own, batsim_number(submit), hosts, profile, limit, sent)
    except RecursionError:
        raise InputError(where, TOO_DEEP, "flatten the job") from None
    except (OverflowError, ValueError):
        raise InputError(where, "a number is too large for a double", "give seconds") from None


def workload_object(text: str, path: Path | str) -> Any:
    """Return the JSON of the text of a Batsim workload file. Raises InputError."""
    if text.strip() and text.lstrip()[0] not in "{[":
        hint = "end its name in that of its format, as in .swf, .sacct or .csv"
        raise InputError(path, "is not JSON, and its name is that of no format of jobs", hint)
    return load_json(text, path, parse_float=batsim_float)


def parse_workload(
    data: Any,
    name: str,
    where: object,
    *,
    simulate: bool = True,
    ignore_communication: bool = False,
    owned: bool = False,
) -> Workload:
    """Parse the workload of a JSON object: jobs by (submission time, full id) and the profiles that they use.

    With `simulate=False` (for the real Batsim) profiles that only Batsim models are accepted; they are in
    `raw_profiles` but not in `profiles`. Raises InputError.

    With `ignore_communication` each `com` becomes 0, and a remark counts the profiles where it was not. The objects in
    `data` are copied unless they are `owned`: then they become those of the workload.
    """
    if not isinstance(data, dict):
        problem = f"a workload must be an object, got {shown(data)}"
        raise InputError(where, problem, 'write {"nb_res": 4, "jobs": [...], "profiles": {...}}')
    if "nb_res" not in data and "application_model" in str(data):
        hint = "give the log that it was made of: of Cirrus 2024_Q1_CPU-sacct-subset.csv"
        raise InputError(where, "is a workload of ElastiSim, which states iterations, no run times", hint)
    listed = data.get("jobs")
    if (
        "nb_res" not in data
        and isinstance(listed, list)
        and any(isinstance(job, dict) and "job_id" in job for job in listed)
    ):
        hint = "give the text of sacct -P, in a file whose name ends in .sacct"
        raise InputError(where, "looks like sacct --json of Slurm, which batwatt does not read", hint)
    nb_res = _integer(_required(data, "nb_res", where), "nb_res", where, 1)
    raw_jobs = _required(data, "jobs", where)
    if not isinstance(raw_jobs, list):
        raise InputError(where, f"'jobs' must be a list, got {shown(raw_jobs)}", "write the jobs between [ and ]")
    raw_profiles = _required(data, "profiles", where)
    if not isinstance(raw_profiles, dict):
        raise InputError(where, f"'profiles' must be an object, got {shown(raw_profiles)}", "write name: profile pairs")

    refuse_batsim_5(raw_profiles, where)
    jobs: dict[str, JobSpec] = {}
    place = str(where)
    for index, raw in enumerate(raw_jobs):
        job = parse_job(raw, name, f"{place}: jobs[{index}]", owned=owned)
        if job.id in jobs:
            raise InputError(f"{where}: jobs[{index}]", f"a second job {job.id!r}", "give each job an id of its own")
        jobs[job.id] = job
    silent = {key: _without_communication(raw) for key, raw in raw_profiles.items()} if ignore_communication else {}
    # silent profiles are compared with those of the file
    profiles = _Profiles(raw_profiles | silent, place, simulate, owned and not ignore_communication)
    for job in jobs.values():
        if job.profile not in profiles.widths:
            profiles.use(job.profile, f"{place}: job {job.id!r}")
        width = profiles.widths[job.profile]
        if width is not None and width != job.hosts:
            problem = f"'res' is {job.hosts} but its profile {job.profile!r} describes {width} hosts"
            raise InputError(f"{where}: job {job.id!r}", problem, "make the number of 'cpu' values equal to 'res'")
    profiles.keep_parts()
    if ignored := [key for key in profiles.sent if silent.get(key, raw_profiles[key]) != raw_profiles[key]]:
        text = "%s: %d of %d profiles communicate (first: %r): they run as if their 'com' were 0"
        remark(_log, text, where, len(ignored), len(profiles.sent), ignored[0])
    return Workload(
        name=name,
        jobs=tuple(sorted(jobs.values(), key=attrgetter("submit_time_s", "id"))),
        profiles=profiles.parsed,
        raw_profiles=profiles.sent,
        nb_res=nb_res,
        source=str(where),
    )


class _Profiles:
    """The profiles that jobs use, each checked once; a composed profile comes after its parts."""

    def __init__(self, raw: Mapping[str, Any], where: str, simulate: bool, owned: bool) -> None:
        self.raw, self.where, self.simulate, self.owned = raw, where, simulate, owned
        self.parsed: dict[str, Profile] = {}
        self.sent: dict[str, Mapping[str, Any]] = {}
        self.widths: dict[str, int | None] = {}
        """Number of hosts that the matrices of a profile require, None if it is not fixed."""
        self.tasks: dict[str, int] = {}
        """Number of tasks of a composed profile."""

    def use(self, name: str, user: str) -> None:
        """Check a profile and all of its parts; `user` is the job or profile that names it, for messages."""
        opened: dict[str, Composed] = {}
        todo: list[tuple[str, str, bool]] = [(name, user, False)]
        while todo:
            name, user, parts_done = todo.pop()
            if parts_done:
                self._close(name, opened.pop(name))
                continue
            if name in self.widths:
                continue
            place = f"{self.where}: profile {name!r}"
            if name in opened:
                raise InputError(place, "contains itself", "take the cycle out of 'seq'")
            profile = self._parse(name, user, place)
            if isinstance(profile, Composed):
                opened[name] = profile
                todo.append((name, user, True))
                todo.extend((part, place, False) for part in dict.fromkeys(reversed(profile.sequence)))
                continue
            if profile is not None:
                self.parsed[name] = profile
            several = isinstance(profile, Parallel) and profile.flops is not None
            self.widths[name] = len(profile.flops) if several else None  # type: ignore[union-attr, arg-type]

    def keep_parts(self) -> None:
        """Check and add the parts of unused composed profiles that Batsim keeps."""
        parts = {
            name: _composed(raw, f"{self.where}: profile {name!r}", 0).sequence
            for name, raw in self.raw.items()
            if name not in self.widths and isinstance(raw, dict) and raw.get("type") == "composed"
        }
        self.simulate = False
        for name in kept_parts(parts, self.raw):
            self.use(name, f"{self.where}: a composed profile")

    def _parse(self, name: str, user: str, place: str) -> Profile | None:
        if name not in self.raw:
            raise UnknownNameError(user, "profile", name, self.raw, "Add it to 'profiles' of the workload.")
        raw = self.raw[name]
        profile: Profile | None = None
        try:
            profile = parse_profile(raw, place)
        except UnsupportedError:
            if self.simulate:
                raise
        try:
            sent = self.sent[name] = _sent(raw, self.owned)
            # json makes an object of each
            sent["type"] = sys.intern(sent["type"])
        except RecursionError:
            raise InputError(place, TOO_DEEP, "flatten the profile") from None
        return profile

    def _close(self, name: str, profile: Composed) -> None:
        widths = {self.widths[part] for part in profile.sequence} - {None}
        if len(widths) > 1:
            sizes = " and ".join(str(width) for width in sorted(width for width in widths if width is not None))
            problem = f"its parts describe {sizes} hosts"
            raise InputError(f"{self.where}: profile {name!r}", problem, "a job has one number of hosts")
        self.widths[name] = widths.pop() if widths else None
        self.tasks[name] = profile.repeat * sum(self.tasks.get(part, 1) for part in profile.sequence)
        if self.simulate and not self.tasks[name] <= MAX_TASKS:
            problem = f"a job of it runs more than {MAX_TASKS} tasks one after another"
            raise UnsupportedError(f"{self.where}: profile {name!r}", problem, f"repeat fewer, or {_REAL_BATSIM}")
        if all(part in self.parsed for part in profile.sequence):
            self.parsed[name] = profile


def _delay(raw: Mapping[str, Any], where: object, ret: int) -> Delay:
    delay = _number(_required(raw, "delay", where), "delay", where)
    if not delay > 0.0:
        raise InputError(where, f"'delay' must be > 0 s, got {delay!r}", "Batsim refuses empty delays")
    return Delay(delay, ret)


def _cpu_without_com(raw: Mapping[str, Any], where: object) -> float:
    cpu = _number(_required(raw, "cpu", where), "cpu", where)
    com = _number(_required(raw, "com", where), "com", where)
    _refuse_communication(com, where)
    return cpu


def _parallel(raw: Mapping[str, Any], where: object, ret: int) -> Parallel:
    values: dict[str, list[float]] = {}
    for key in ("cpu", "com"):
        listed = _required(raw, key, where)
        if not isinstance(listed, list):
            problem = f"{key!r} must be a list of numbers, got {shown(listed)}"
            raise InputError(where, problem, "write it between [ and ]")
        values[key] = [_number(value, f"{key}[{index}]", where) for index, value in enumerate(listed)]
    cpu, com = values["cpu"], values["com"]
    if not cpu:
        raise InputError(where, "'cpu' is empty", "give the flops of each host")
    if len(com) != len(cpu) ** 2:
        problem = f"'com' has {len(com)} values but {len(cpu)} hosts need {len(cpu) ** 2}"
        raise InputError(where, problem, "give one value per ordered pair of hosts")
    _refuse_communication(max(com), where)
    return Parallel(flops=tuple(cpu), return_code=ret)


def _composed(raw: Mapping[str, Any], where: object, ret: int) -> Composed:
    sequence = _required(raw, "seq", where)
    if not (isinstance(sequence, list) and sequence and all(isinstance(part, str) for part in sequence)):
        raise InputError(where, f"'seq' must be a list of profile names, got {shown(sequence)}", "name at least one")
    return Composed(tuple(sequence), _integer(raw.get("repeat", 1), "repeat", where, 1), ret)


_READERS: dict[str, Callable[[Mapping[str, Any], object, int], Profile]] = {
    "delay": _delay,
    "parallel": _parallel,
    "parallel_homogeneous": lambda raw, where, ret: Parallel(_cpu_without_com(raw, where), return_code=ret),
    "parallel_homogeneous_total": lambda raw, where, ret: Parallel(None, _cpu_without_com(raw, where), return_code=ret),
    "composed": _composed,
}


def _refuse_communication(com: float, where: object) -> None:
    if com > 0.0:
        problem = f"'com' is {com:g} but batwatt simulates no communication"
        raise UnsupportedError(
            where, problem, f"give {argument('ignore_communication', True)} to run it as 0, or {_REAL_BATSIM}"
        )


def _without_communication(raw: Any) -> Any:
    """Return a profile with 0 for each positive `com`."""
    if not (isinstance(raw, dict) and raw.get("type") in _COMMUNICATING and "com" in raw):
        return raw
    com = raw["com"]
    return {**raw, "com": [_silent(each) for each in com] if isinstance(com, list) else _silent(com)}


def _silent(com: Any) -> Any:
    return 0 if (json_number(com) or 0.0) > 0.0 else com


def _sent(raw: dict[str, Any], owned: bool) -> dict[str, Any]:
    """Return an object with floats as Batsim sends them: this one if it is owned, else a copy."""
    sent = raw if owned else dict(raw)
    for key, value in raw.items():
        if not _plain(value):
            sent[key] = wire_floats(value, 1)
    return sent


def _plain(value: Any) -> bool:
    return type(value) is str or (type(value) is int and value <= MAX_INT)


def full_id(raw_id: Any, workload: str, where: object) -> str:
    """Return the full id `w0!3` of a job; by Batsim's rule an id that contains the workload's name is full already.

    Raises InputError.
    """
    if type(raw_id) is int:
        raw_id = str(raw_id)
    if type(raw_id) is not str:
        raise InputError(where, f"'id' must be a text or an integer, got {shown(raw_id)}", "give each job an id")
    name = raw_id
    if workload in raw_id:
        prefix, _, name = raw_id.partition("!")
        if prefix != workload:
            problem = f"id {raw_id!r} holds the workload's name {workload!r}, which Batsim misreads"
            raise InputError(where, problem, f"rename it, or write '{workload}!NAME'")
    if not name or "!" in name:
        raise InputError(where, f"id {raw_id!r} is not a name without '!'", "rename the job")
    return f"{workload}!{name}"


def _required(raw: Mapping[str, Any], key: str, where: object) -> Any:
    if key not in raw:
        raise InputError(where, f"no field {key!r}", "add it, Batsim requires it")
    return raw[key]


def _number(value: Any, name: str, where: object) -> float:
    """Return a finite number >= 0. Raises InputError."""
    number = json_number(value)
    if number is None:
        raise InputError(where, f"{name!r} must be a finite number >= 0, got {shown(value)}", "correct the value")
    return number


def _integer(value: Any, name: str, where: object, low: int) -> int:
    if type(value) is int and low <= value <= MAX_INT:
        return value
    return checked_whole(where, repr(name), value, low, MAX_INT, what="an integer", hint="correct the value")
