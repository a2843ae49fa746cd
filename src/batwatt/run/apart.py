"""A run whose engine is a process of its own: a real Batsim, 4 or 5, or the embedded engine behind a socket."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from batwatt.batsim.batsim5 import Dialect
from batwatt.batsim.bs import Link
from batwatt.batsim.wire import batsim_command, batsim_version, drive
from batwatt.errors import DeadlockError, InputError, PeerError, argument
from batwatt.files import write_text
from batwatt.inputs.batsim_files import converted_file, read_events
from batwatt.inputs.convert import workload_json
from batwatt.inputs.google_like import to_text
from batwatt.inputs.load import is_trace
from batwatt.inputs.servers import machines_xml
from batwatt.model.platform import MachineSpec, Platform
from batwatt.model.workload import Workload
from batwatt.protocol.events import batsim5_events, refuse_batsim5_events
from batwatt.results.run_files import file_of
from batwatt.run.batsim5_files import map_files
from batwatt.run.find_scheduler import attribute_errors
from batwatt.run.prepared import PreparedRun
from batwatt.run.spec import RunSpec

Watch = Callable[[Link], Link]
PLAYED = (sys.executable, "-m", "batwatt", "batsim")
"""Command line of the embedded engine as a process of its own."""


@dataclass(frozen=True)
class Apart:
    """A scheduler in this process and an engine in another, whose inputs are files; its files come under `prefix`."""

    prepared: PreparedRun
    prefix: Path
    watch: Watch
    platform_file: Path
    workloads: tuple[Path, ...]

    @classmethod
    def of(cls, prepared: PreparedRun, prefix: Path, watch: Watch) -> Apart:
        """Write inputs that the engine cannot read as they are; a generated capacity is for the scheduler only."""
        spec = prepared.spec
        platform = spec.platform
        if isinstance(platform, Platform):
            raise InputError(f"engine {spec.engine!r}", "needs the platform as a file", "use 'embedded'")
        if isinstance(platform, MachineSpec):
            platform = write_text(file_of(prefix, "platform", ".xml"), machines_xml(platform))
        paths = []
        for number, path in enumerate(spec.workloads):
            if isinstance(path, Workload):
                raise InputError(f"engine {spec.engine!r}", "needs the workload as a file", "use 'embedded'")
            if prepared.simulated or is_trace(path):
                target = file_of(prefix, f"workload{number or ''}", ".json")
                path = write_text(target, to_text(workload_json(prepared.engine_workloads[number])))
            paths.append(path)
        return cls(prepared, prefix, watch, platform, tuple(paths))

    @property
    def spec(self) -> RunSpec:
        """Specification of the run."""
        return self.prepared.spec

    def run(self) -> tuple[dict[str, Any], DeadlockError | None]:
        """Run the engine with the scheduler; return facts about it for the metadata, and a deadlock that left files.

        Raises BatwattError.
        """
        jobs = file_of(self.prefix, "jobs")
        if self.spec.engine == "wire":
            return {}, self._drive(self._batsim4(*PLAYED), "the engine process", jobs)
        binary = shutil.which(self.spec.batsim)
        if binary is None:
            problem = f"{self.spec.batsim!r} is not an executable on PATH"
            raise InputError(argument("batsim"), problem, "install Batsim 4.x or 5 or give its path")
        version, major = batsim_version(binary)
        if "batwatt" in version:
            problem = f"{binary!r} is batwatt, which plays Batsim ({version})"
            raise InputError(
                argument("batsim"), problem, f"give the path of a real one, or {argument('engine', 'wire')}"
            )
        if major >= 5:
            return {"batsim": {"version": version, "protocol": 5}}, self._batsim5(binary)
        events = self.spec.events
        if events is not None:
            refuse_batsim5_events(read_events(events, forward_unknown=True), events)
        return {"batsim": {"version": version, "protocol": 4}}, self._drive(self._batsim4(binary), "Batsim", jobs)

    def _batsim4(self, *program: str) -> Callable[[str], list[str]]:
        """Return the command line of a program with Batsim 4's options as a function of the scheduler's endpoint."""
        spec, config = self.spec, self.prepared.config
        args = [*config.batsim_args(), *spec.hosts.batsim_args(), "--disable-schedule-tracing"]
        if spec.engine == "batsim":
            args += spec.batsim_args
        elif spec.ignore_communication:
            args += ["--ignore-communication"]
        return batsim_command(program, self.platform_file, self.workloads, str(self.prefix), spec.events, args)

    def _drive(
        self, command: Callable[[str], list[str]], name: str, jobs: Path, dialect: Dialect | None = None
    ) -> DeadlockError | None:
        """Run the engine, which writes the file `jobs`; return a deadlock that left it."""
        try:
            with attribute_errors(self.spec.scheduler_name, self.prepared.scheduler):
                drive(self.prepared.scheduler, command, name, self.spec.patience_s, self.watch, dialect)
        except DeadlockError as error:
            if not jobs.exists():
                raise
            return error
        if not jobs.exists():
            raise PeerError(f"{name} ended well but wrote no {file_of(self.spec.prefix, 'jobs').name}")
        return None

    def _batsim5(self, binary: str) -> DeadlockError | None:
        """Run Batsim 5 on copies of the inputs that it can read, and map its files to those of Batsim 4."""
        spec, config = self.spec, self.prepared.config
        with TemporaryDirectory(prefix="batwatt-") as name:
            folder = Path(name)
            workloads = [
                write_text(folder / f"w{number}.json", to_text(converted_file(path, "batsim5")))
                for number, path in enumerate(self.workloads)
            ]
            events = None
            if spec.events is not None:
                lines = batsim5_events(read_events(spec.events, forward_unknown=True))
                events = write_text(folder / "events.txt", "".join(f"{line}\n" for line in lines))
            out = folder / "out"
            out.mkdir()
            energy = ["--energy-host"] if config.energy else []
            args = [*energy, "--trace-pstate-changes", *spec.hosts.batsim_args(), *spec.batsim_args]
            command = batsim_command((binary,), self.platform_file, workloads, f"{out}{os.sep}", events, args, 5)
            dialect = Dialect(config)
            deadlock = self._drive(command, "Batsim", out / "jobs.csv", dialect)
            map_files(out, self.prefix, dialect.metadata)
            return deadlock
