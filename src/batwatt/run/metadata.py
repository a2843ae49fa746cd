"""What made the files of a run: inputs by content, options, versions, and how long it took."""

from __future__ import annotations

import hashlib
import platform as python_platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from batwatt import __version__
from batwatt.engine.config import EngineConfig
from batwatt.files import is_file, write_json
from batwatt.inputs.platforms.host_choice import HostChoice
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.envelope_spec import EnvelopeSpec
from batwatt.inputs.series.signal_spec import SignalSpec
from batwatt.model.clock import Clock
from batwatt.model.machines import MachineSpec
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.workload import Workload
from batwatt.results.writers import file_of
from batwatt.run.spec import RunSpec
from batwatt.scheduling.options import EVENTS


def write_metadata(
    prefix: Path,
    spec: RunSpec,
    config: EngineConfig,
    clock: Clock | None,
    elapsed_s: float,
    about: Mapping[str, Any] | None = None,
) -> None:
    """PREFIX_metadata.json: what made these files (inputs by content, options, versions) and how long it took.

    `about`: what else there is to say about the engine.
    """
    given = spec.inputs
    first, *more = given.workloads
    inputs: dict[str, Any] = {"workload": first, "events": given.events}
    inputs |= {f"workload w{number}": path for number, path in enumerate(more, 1)}
    if isinstance(given.capacity, CapacitySpec):
        inputs |= {f"capacity {path.name}": path for path in given.capacity.files()}
    else:
        inputs["capacity"] = given.capacity
    if not isinstance(given.platform, MachineSpec):
        inputs["platform"] = given.platform
    # with all hosts, as then no platform is read
    options = replace(spec, inputs=replace(given, hosts=HostChoice())).scheduler_options()
    for name in ("platform", "envelope", "reference"):
        option = options.get(name)
        # a scheduler of somebody else may mean something else by it
        if isinstance(option, str | Path) and option != EVENTS and is_file(option):
            inputs[name] = Path(option)
        elif isinstance(option, Series):
            inputs[name] = option
    if isinstance(given.envelope, EnvelopeSpec):
        inputs |= {f"envelope {path.name}": path for path in given.envelope.files()}
    signals = {"carbon": given.carbon, "price": given.price}
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
        "capacity": _named(given.capacity) if given.capacity is not None else None,
        "inputs": {name: _input(content) for name, content in inputs.items() if content is not None},
        "hosts": asdict(given.hosts),
        "machines": asdict(given.platform) if isinstance(given.platform, MachineSpec) else None,
        "window_s": [given.window.begin_s, given.window.end_s] if given.window else None,
        "begin": None if clock is None else clock.date,
        "length_unit": given.length_unit,
        "job_log": asdict(given.log),
        "long_s": given.long_s,
        "delays_to_flops": given.delays_to_flops,
        "seed": spec.options.get("seed"),
        "versions": {
            "python": python_platform.python_version(),
            **{name: version_of(name) for name in ("pybatsim", "pyzmq", "procset", "numpy", "pandas")},
        },
        "elapsed_s": round(elapsed_s, 3),
        **({"envelope": str(given.envelope)} if isinstance(given.envelope, EnvelopeSpec) else {}),
        **{name: str(signal) for name, signal in signals.items() if isinstance(signal, SignalSpec)},
        **(about or {}),
    }
    # an option of a foreign scheduler may be NaN
    write_json(file_of(prefix, "metadata", ".json"), metadata, allow_nan=True)


def _option(value: Any) -> Any:
    """A value of an option as JSON; of an object what it is."""
    if isinstance(value, dict):
        return {str(key): _option(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_option(one) for one in value]
    return value if isinstance(value, str | int | float | None) else _named(value)


def _named(given: Any) -> str:
    return given.source if isinstance(given, Series | SignalIntegral | Workload | Platform) else str(given)


def _input(given: Path | Platform | Workload | Series | SignalIntegral) -> dict[str, str]:
    """An input by its content: a file, or an object that was built of one or in this process."""
    if isinstance(given, Path):
        return {"path": str(given), "sha256": hashlib.sha256(given.read_bytes()).hexdigest()}
    if isinstance(given, Workload):
        content = repr([(job.id, job.raw) for job in given.jobs] + [dict(given.raw_profiles)])
    elif isinstance(given, SignalIntegral):
        content = repr((given.edges_s.tolist(), given.values.tolist()))
    else:
        content = repr((given.times_s, given.values) if isinstance(given, Series) else given.hosts)
    return {"object": _named(given), "sha256": hashlib.sha256(content.encode()).hexdigest()}


def version_of(package: str) -> str | None:
    """The version of an installed package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
