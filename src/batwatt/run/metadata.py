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
from batwatt.inputs.limits import CapacitySpec, EnvelopeSpec
from batwatt.inputs.platform_files import HostChoice
from batwatt.inputs.series import SignalSpec
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
    if isinstance(described.capacity, CapacitySpec):
        inputs |= {f"capacity {path.name}": path for path in described.capacity.files()}
    else:
        inputs["capacity"] = described.capacity
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
    if isinstance(described.envelope, EnvelopeSpec):
        inputs |= {f"envelope {path.name}": path for path in described.envelope.files()}
    signals = {"carbon": described.carbon, "price": described.price}
    for name, signal in signals.items():
        inputs[name] = signal.file.path if isinstance(signal, SignalSpec) else signal
    inputs |= {f"plugin {path.name}": path for path in spec.plugins}
    if spec.scheduler_name.endswith(".py"):
        inputs["scheduler"] = Path(spec.scheduler_name)
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
        **({"envelope": str(described.envelope)} if isinstance(described.envelope, EnvelopeSpec) else {}),
        **{name: str(signal) for name, signal in signals.items() if isinstance(signal, SignalSpec)},
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
