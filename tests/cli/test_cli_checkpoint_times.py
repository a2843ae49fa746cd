"""Times of checkpoints that Batsim's clock cannot tell: one line, nothing written."""

from __future__ import annotations

import pytest

JOBS = "arrival_time,length,cpus\n0,600,3\n0,3000,5\n100,9000,4\n200,4000,6\n300,8000,6\n"
WALK = "walk:range=0.6,mean=0.7,step=0.3,period=900"


@pytest.mark.parametrize("recovery_s", ["1e-9", "1e-6", "0"])
def test_tiny_recoveries(house, recovery_s):
    options = f'{{"checkpoint_s": 60, "recovery_s": {recovery_s}, "until_s": 100000}}'
    words = ["-w", house.write("j.csv", JOBS), "--machines", 8, "--capacity", WALK, "-s", "checkpoint", "-o", options]
    done = house.batwatt("run", *words, "-e", house.out / "x")
    if recovery_s == "1e-9":
        assert done.code == 2
        assert "job w0!1: recovery_s must be 0 or at least 1e-06 s, got 1e-09" in done.line
        assert not list(house.out.glob("x*"))
    else:
        assert done.code == 0
