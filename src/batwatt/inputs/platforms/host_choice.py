"""Choice of the hosts of a platform that run jobs, by Batsim's options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_xml import MASTER_HOST, read_platform
from batwatt.model.platform import MachineSpec, Platform, machines_platform


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
            raise InputError("--mmax", f"{self.mmax} is not a number of hosts", "give 1 or more, or 0 for all")

    def of(self, platform: Platform, nb_res: int | None = None) -> Platform:
        """Return the platform with the hosts that run jobs; `nb_res` is the greatest one of the workloads.

        Raises InputError if there are fewer hosts.
        """
        bounds = (self.mmax, nb_res if self.mmax_workload else None)
        limits = [limit for limit in bounds if limit]
        if not limits:
            return platform
        if min(limits) > len(platform):
            option = "--mmax" if min(limits) == self.mmax else "--mmax-workload"
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
