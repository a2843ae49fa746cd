"""Files of a run: the set under a prefix, whole or not at all, and its metadata."""

from __future__ import annotations

import hashlib
import platform as python_platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from glob import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batwatt._version import __version__
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.errors import InputError, argument
from batwatt.files import is_file, refuse_folder, sha256_of, whole_set, write_json
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.results.run_files import FILES, digests_of, file_of
from batwatt.scheduling.base import EVENTS

if TYPE_CHECKING:
    from batwatt.run.prepared import PreparedRun

OUTPUTS = (
    *((stem, ".csv") for stem in (*FILES, "capacity", "envelope", "job_power")),
    *(("metrics", ".json"), ("metadata", ".json"), ("platform", ".xml"), ("workload", ".json")),
)
"""Stem and suffix of every file that a run may leave."""


def outputs_of(prefix: Path) -> list[str]:
    """Return the names of the files that a run may leave under a prefix."""
    names = [file_of(prefix, stem, suffix).name for stem, suffix in OUTPUTS]
    more = prefix.parent.glob(f"{escape(prefix.name)}_workload[0-9]*.json")
    return names + [path.name for path in more if path.stem.rpartition("_workload")[2].isdigit()]


@contextmanager
def staging(prefix: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a prefix in a hidden folder, whose files appear under `prefix`, as a set, if the block succeeds.

    Otherwise nothing is left, not even folders made for it. Files of an earlier run under the same prefix that this
    one did not write are removed. Raises InputError if the place cannot be written.
    """
    option = argument("prefix", prefix)
    try:
        refuse_folder(prefix, argument("prefix"))
        # a set without jobs is none, for any reader
        last = [
            file_of(prefix, "jobs").name,
            *(file_of(prefix, stem, ".json").name for stem in ("metrics", "metadata")),
        ]
        old = outputs_of(prefix)
        with whole_set(prefix.parent, last=last, old=old, durable=durable, place=option) as part:
            yield part / prefix.name
    except OSError as error:
        raise InputError(option, f"cannot be written ({error.strerror})", "choose another place") from None


def write_metadata(prefix: Path, run: PreparedRun, elapsed_s: float, about: Mapping[str, Any] | None = None) -> None:
    """Write PREFIX_metadata.json: inputs and the other files by content, options, versions, and elapsed time in s.

    `about`: further facts about the engine.
    """
    spec, clock = run.spec, run.clock
    first, *more = spec.workloads
    inputs: dict[str, Any] = {"workload": first, "events": spec.events}
    inputs |= {f"workload w{number}": path for number, path in enumerate(more, 1)}
    for name in ("envelope", "capacity", "carbon", "price"):
        inputs |= _files_of(name, getattr(spec, name))
    if not isinstance(spec.platform, MachineSpec):
        inputs["platform"] = spec.platform
    for name in ("platform", "envelope", "reference"):
        option = spec.options.get(name)
        # a foreign scheduler may have another meaning for the option
        if isinstance(option, str | Path) and option != EVENTS and is_file(option):
            inputs[name] = Path(option)
        elif isinstance(option, Timeline):
            inputs[name] = option
    inputs |= {f"plugin {path.name}": path for path in spec.plugins}
    if spec.scheduler_name.endswith(".py"):
        inputs["scheduler"] = Path(spec.scheduler_name)
    texts = {"envelope": spec.envelope, "carbon": spec.carbon, "price": spec.price}
    metadata = {
        "batwatt": __version__,
        "engine": spec.engine,
        "engine_config": {name: getattr(run.config, name) for name in EngineConfig.__slots__},
        "scheduler": spec.scheduler_name,
        "options": {key: _option(value) for key, value in spec.options.items()},
        "capacity": _named(spec.capacity) if spec.capacity is not None else None,
        "inputs": {name: digest_of_input(content) for name, content in inputs.items() if content is not None},
        "hosts": asdict(spec.hosts),
        "machines": asdict(spec.platform) if isinstance(spec.platform, MachineSpec) else None,
        "window_s": [spec.window.begin_s, spec.window.end_s] if spec.window else None,
        "begin": None if clock is None else clock.date,
        "length_unit": spec.length_unit,
        "job_log": asdict(spec.log),
        "long_s": spec.long_s,
        "delays_to_flops": spec.delays_to_flops,
        "seed": spec.options.get("seed"),
        "versions": {
            "python": python_platform.python_version(),
            **{name: version_of(name) for name in ("pybatsim", "pyzmq", "procset", "numpy", "pandas")},
        },
        "elapsed_s": round(elapsed_s, 3),
        "files": digests_of(prefix),
        **{name: str(series) for name, series in texts.items() if _is_text(series)},
        **({"ignore_communication": True} if spec.ignore_communication else {}),
        **(about or {}),
    }
    # an option of a foreign scheduler may be NaN
    write_json(file_of(prefix, "metadata", ".json"), metadata, allow_nan=True)


def _option(value: Any) -> Any:
    """Return the value of an option as JSON; of an object its name or text."""
    if isinstance(value, dict):
        return {str(key): _option(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_option(one) for one in value]
    return value if isinstance(value, str | int | float | None) else _named(value)


def _is_text(series: SeriesSpec | Timeline | None) -> bool:
    """Return whether a text describes a series that is more than a file of watts in s."""
    return isinstance(series, SeriesSpec) and (series.path is None or series.quantity in ("carbon", "price"))


def _files_of(name: str, series: SeriesSpec | Timeline | None) -> dict[str, Any]:
    """Return the inputs of a series: itself, its only file, or several by their names."""
    if not isinstance(series, SeriesSpec):
        return {name: series}
    paths = series.files
    return {name: paths[0]} if len(paths) == 1 else {f"{name} {path.name}": path for path in paths}


def _named(source: Any) -> str:
    return source.source if isinstance(source, Timeline | Workload | Platform) else str(source)


def digest_of_input(source: Path | Platform | Workload | Timeline) -> dict[str, str]:
    """Return the digest of an input: a file, or an object that was built of one or in this process."""
    if isinstance(source, Path):
        return {"path": str(source), "sha256": sha256_of(source)}
    if isinstance(source, Workload):
        content = repr([(job.id, job.raw) for job in source.jobs] + [dict(source.raw_profiles)])
    elif isinstance(source, Timeline):
        content = repr((source.times_s, source.values, source.loop, source.period_s))
    else:
        content = repr(source.hosts)
    return {"object": _named(source), "sha256": hashlib.sha256(content.encode()).hexdigest()}


def version_of(package: str) -> str | None:
    """Return the version of an installed package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
