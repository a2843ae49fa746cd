"""Options of Batsim's command line, which SIMULATION_BEGINS reports to the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Batsim's options that change the simulation; `energy=None`: on if every host of the platform has its watts."""

    energy: bool | None = None
    compute_sharing: bool = False
    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    forward_unknown_events: bool = False
    sched_config: str = ""

    def payload(self) -> dict[str, Any]:
        """Return the `config` object of SIMULATION_BEGINS."""
        return {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": self.forward_profiles,
            "dynamic-jobs-enabled": self.dynamic_jobs,
            "dynamic-jobs-acknowledged": self.dynamic_jobs and self.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": self.dynamic_jobs and self.profile_reuse,
            "sched-config": self.sched_config,
            "forward-unknown-events": self.forward_unknown_events,
        }

    def begins(
        self, hosts: list[dict[str, Any]], workloads: Mapping[str, Any], profiles: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the data of SIMULATION_BEGINS."""
        return {
            "nb_resources": len(hosts),
            "nb_compute_resources": len(hosts),
            "nb_storage_resources": 0,
            "allow_compute_sharing": self.compute_sharing,
            "allow_storage_sharing": True,
            "config": self.payload(),
            "compute_resources": hosts,
            "storage_resources": [],
            "workloads": workloads,
            "profiles": profiles,
        }

    def batsim_args(self) -> list[str]:
        """Return the options of a real Batsim's command line; `energy` must not be None."""
        flags = {
            "-E": bool(self.energy),
            "--enable-compute-sharing": self.compute_sharing,
            "--enable-dynamic-jobs": self.dynamic_jobs,
            "--acknowledge-dynamic-jobs": self.acknowledge_dynamic_jobs,
            "--enable-profile-reuse": self.profile_reuse,
            "--forward-profiles-on-submission": self.forward_profiles,
            "--forward-unknown-events": self.forward_unknown_events,
        }
        config = [f"--sched-cfg={self.sched_config}"] if self.sched_config else []
        return [flag for flag, enabled in flags.items() if enabled] + config
