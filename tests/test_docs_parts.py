"""docs/howto/parts.md: each example is a file that works as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_house import JOBS, ROOT, SMALL, House

from batwatt.testing import check_part

PAGE = (ROOT / "docs" / "howto" / "parts.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.S))
POWER = ("-p", SMALL, "-w", JOBS)
RISK = ("-w", ROOT / "workloads/risk-small.txt", "--window", "86400:108000", "--machines", 152, "--cores", 8)
RISK += ("--capacity", ROOT / "power_profiles/walk-small.csv")
CARBON = ROOT / "power_profiles" / "carbon" / "carbon-hourly.csv"
RUNS = {
    "order.py": (*POWER, "-o", '{"order": {"name": "patience", "limit_s": 60}}'),
    "backfilling.py": (*POWER, "-o", '{"backfilling": {"name": "shallow", "depth": 2}}'),
    "node_selection.py": (*RISK, "-s", "varcap", "-o", '{"node_selection": "even"}'),
    "response.py": (*POWER, "-o", '{"response": "sleep-idle"}'),
    "termination.py": (*RISK, "-s", "varcap", "-o", '{"termination": "fewest-cores"}'),
    "victim.py": (*RISK, "-s", "riskaware", "-o", '{"victim": {"name": "hourly", "every_s": 600}}'),
    "mapping.py": (*RISK, "-s", "varcap", "-o", '{"mapping": "wide-and-thin"}'),
    "preemption.py": (*RISK, "-s", "varcap", "-o", '{"preemption": "ten-times-shorter"}'),
    "strategy.py": (*RISK, "-s", "riskaware", "-o", '{"strategy": "last-fit"}'),
    "power_check.py": (*POWER, "-s", "jobpower", "-o", '{"power_check": {"name": "between", "share": 0.2}}'),
    "predictor.py": (*POWER, "-s", "jobpower", "-o", '{"predictor": "last"}'),
}


def part_of(name: str) -> str:
    """The name of the part that an example registers."""
    return re.search(r'^@(?:register\("\w+", |carbon_policy\()"([\w-]+)"', FILES[name], re.M)[1]


def written(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text(FILES[name], encoding="utf-8")
    return path


@pytest.mark.parametrize("name", RUNS)
def test_a_part_runs_and_keeps_the_laws(house: House, name):
    words = RUNS[name]
    if name == "response.py":
        words += ("--envelope", house.envelope)
    # before the plugin is loaded nobody knows the name
    alone = house.batwatt("run", *words, "-e", house.out / "y")
    assert alone.code == 2 and "See `batwatt policies`" in alone.err
    plugin = written(house.folder, name)
    done = house.batwatt("run", "--plugin", plugin, *words, "-e", house.out / "x")
    assert done.code == 0, done.err
    assert house.metrics()["jobs_finished"] > 0
    check_part(Path(name).stem, part_of(name), plugin=plugin, cases=2)


def test_varcap_refuses_a_backfilling_that_only_places(house: House):
    plugin = written(house.folder, "backfilling.py")
    words = (*RISK, "-s", "varcap", "-o", '{"backfilling": "shallow"}', "-e", house.out / "x")
    done = house.batwatt("run", "--plugin", plugin, *words)
    assert done.code == 2 and "'shallow' has no rule 'blocked', only 'place'" in done.line


def test_a_carbon_policy_runs_and_keeps_the_laws(house: House):
    plugin = written(house.folder, "policy.py")
    jobs = ROOT / "workloads" / "carbon" / "jobs.csv"
    words = ("-w", jobs, "--machines", 20, "--carbon", CARBON, "-s", "carbon", "-e", house.out / "x")
    done = house.batwatt("run", "--plugin", plugin, *words, "-o", '{"policy": "half-way", "wait_h": [10]}')
    assert done.code == 0, done.err
    check_part("policy", "half-way", plugin=plugin, cases=2)


def test_all_parts_of_one_file_are_listed(house: House):
    path = house.folder / "all.py"
    path.write_text("".join(FILES.values()), encoding="utf-8")
    done = house.batwatt("policies", "--plugin", path)
    assert done.code == 0, done.err
    for name in FILES:
        assert re.search(rf"^\w[\w ]*\t{part_of(name)}\t", done.out, re.M), name


def test_there_is_an_example_of_each_kind():
    assert FILES.keys() == {*RUNS, "policy.py"}
    assert max(text.count("\n") for text in FILES.values()) <= 40
