"""Node selection (docs/explanation/node-selection.md), worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import job, machine, played, starts
from varcap_talk import scheduler

from batwatt.model.platform import Platform
from batwatt.schedulers.easy import Easy
from batwatt.scheduling.orders import Nodes
from batwatt.scheduling.registry import make

# 4 nodes of 8 cores: free, watts, speed
NODES = Nodes(
    np.arange(4), np.full(4, 8), np.array([8, 2, 5, 2]), np.array([100.0, 90, 80, 200]), np.array([1e9, 1e9, 5e8, 2e9])
)


@pytest.mark.parametrize(
    "choice,order",
    [
        ("first", [0, 1, 2, 3]),
        # 12.5, 11.25, 20, 12.5 nW per flop/s
        ("fewest-watts", [1, 0, 3, 2]),
        ("fastest", [3, 0, 1, 2]),
        ("packed", [1, 3, 2, 0]),
        ("spread", [0, 2, 1, 3]),
    ],
)
def test_weights(choice, order):
    assert make("node_selection", choice).preferred(NODES, 1).tolist() == order


def test_varcap():
    """2 of 4 cores are taken on machine 0, 3 on machine 1 and none on machine 2."""
    jobs = ("a 0 100 2", "b 1 100 3", "c 2 10 1")
    runs = scheduler(*jobs, machines=3, cores=4, node_selection="packed")
    assert runs == {"a": "0-100@0", "b": "1-101@1", "c": "2-12@1"}


def test_dedicated_machines_of_varcap():
    runs = scheduler("a 0 100 8", "b 1 10 4", machines=4, cores=4, node_selection="spread", nodes="dedicated")
    assert runs == {"a": "0-100@0,1", "b": "1-11@2"}


def test_powercap():
    """A slow server has the lower id."""
    platform = Platform(tuple(replace(host, id=i) for i, host in enumerate(reversed(machine(1, 1).hosts))))
    options = {"response": "none", "platform": platform, "node_selection": "fastest"}
    record = played(Easy(options), platform, job("a", 0, 1, 10))
    assert starts(record) == {"a": (0, "1")}
