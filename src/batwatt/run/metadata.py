"""Metadata of the files of a run: inputs by content, options, versions, and elapsed time."""

from __future__ import annotations

import hashlib
import platform as python_platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from batwatt._version import __version__
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.files import is_file, write_json
from batwatt.inputs.platform_files import HostChoice
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, Platform
from batwatt.model.signal import Clock
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.results.run_files import digests_of, file_of
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import EVENTS


def write_metadata(
    prefix: Path,
    spec: RunSpec,
    config: EngineConfig,
    clock: Clock | None,
    elapsed_s: float,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write PREFIX_metadata.json: inputs and the other files by content, options, versions, and elapsed time in s.

    `about`: further facts about the engine.
    """
    described = spec.inputs
    first, *more = described.workloads
    inputs: dict[str, Any] = {"workload": first, "events": described.events}
    inputs |= {f"workload w{number}": path for number, path in enumerate(more, 1)}
    for name in ("envelope", "capacity", "carbon", "price"):
        inputs |= _files_of(name, getattr(described, name))
    if not isinstance(described.platform, MachineSpec):
        inputs["platform"] = described.platform
    # with all hosts, as then no platform is read
    options = replace(spec, inputs=replace(described, hosts=HostChoice())).scheduler_options()
    for name in ("platform", "envelope", "reference"):
        option = options.get(name)
        # a foreign scheduler may have another meaning for the option
        if isinstance(option, str | Path) and option != EVENTS and is_file(option):
            inputs[name] = Path(option)
        elif isinstance(option, Timeline):
            inputs[name] = option
    inputs |= {f"plugin {path.name}": path for path in spec.plugins}
    if spec.scheduler_name.endswith(".py"):
        inputs["scheduler"] = Path(spec.scheduler_name)
    texts = {"envelope": described.envelope, "carbon": described.carbon, "price": described.price}
    metadata = {
        "batwatt": __version__,
        "engine": spec.engine,
        "engine_config": {name: getattr(config, name) for name in EngineConfig.__slots__},
        "scheduler": spec.scheduler_name,
        "options": {key: _option(value) for key, value in spec.options.items()},
        "capacity": _named(described.capacity) if described.capacity is not None else None,
        "inputs": {name: _input(content) for name, content in inputs.items() if content is not None},
        "hosts": asdict(described.hosts),
        "machines": asdict(described.platform) if isinstance(described.platform, MachineSpec) else None,
        "window_s": [described.window.begin_s, described.window.end_s] if described.window else None,
        "begin": None if clock is None else clock.date,
        "length_unit": described.length_unit,
        "job_log": asdict(described.log),
        "long_s": described.long_s,
        "delays_to_flops": described.delays_to_flops,
        "seed": spec.options.get("seed"),
        "versions": {
            "python": python_platform.python_version(),
            **{name: version_of(name) for name in ("pybatsim", "pyzmq", "procset", "numpy", "pandas")},
        },
        "elapsed_s": round(elapsed_s, 3),
        "files": digests_of(prefix),
        **{name: str(series) for name, series in texts.items() if _is_text(series)},
        **({"ignore_communication": True} if described.ignore_communication else {}),
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


def _input(source: Path | Platform | Workload | Timeline) -> dict[str, str]:
    """Return the digest of an input: a file, or an object that was built of one or in this process."""
    if isinstance(source, Path):
        return {"path": str(source), "sha256": hashlib.sha256(source.read_bytes()).hexdigest()}
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
