"""A toy cluster for the tests of this folder: a real slurmctld and 8 nodes, if the packages are there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_house import House
from toy_cluster import ToyCluster, missing_program


@pytest.fixture
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyCluster]:
    """A running Slurm of its own, for commands of this process and of its children; skips without its packages.

    A test may give the arguments of `ToyCluster`.
    """
    mark = request.node.get_closest_marker("toy")
    arguments = mark.kwargs if mark else {}
    accounting = arguments.get("accounting", False)
    lacking = missing_program(accounting=accounting)
    if lacking is not None:
        packages = f"slurmctld slurmd slurm-client munge{' slurmdbd mariadb-server-core' if accounting else ''}"
        pytest.skip(f"no real Slurm here ({lacking}): apt install {packages}")
    try:
        toy = started(arguments)
    except AssertionError:
        # another process has taken one of its ports
        toy = started(arguments)
    with toy:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, toy.environment[name])
        yield toy


def started(arguments: Mapping[str, Any]) -> ToyCluster:
    """Start a cluster in a folder of its own. Raises AssertionError."""
    # munge's socket may not have a long path
    folder = Path(tempfile.mkdtemp(prefix="toy-"))
    folder.chmod(0o755)
    return ToyCluster(folder / "slurm", **arguments).start()


@pytest.fixture
def platform(cluster: ToyCluster, house: House) -> Path:
    """The platform file of the cluster, made by the command."""
    path, servers = house.folder / "green.xml", house.write("servers.toml", cluster.servers)
    assert house.batwatt("generate", "platform", servers, "-o", path).code == 0
    return path
