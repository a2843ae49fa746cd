"""Platform files in campaigns of which not all hosts run jobs."""

from __future__ import annotations

import json

import pytest
import yaml

HOSTS = "".join(f'<host id="{name}" speed="1Gf"/>' for name in ("n1", "n10", "n2", "boss"))


@pytest.fixture
def declared(tmp_path):
    (tmp_path / "p.xml").write_text(f'<platform version="4.1"><zone id="z">{HOSTS}</zone></platform>')
    job = {"id": 1, "subtime": 0, "res": 1, "profile": "nap"}
    load = {"nb_res": 1, "jobs": [job], "profiles": {"nap": {"type": "delay", "delay": 5}}}
    (tmp_path / "w.json").write_text(json.dumps(load))

    def cells(**platform: object):
        from batwatt.study.campaign import check_inputs
        from batwatt.study.cells import expand
        from batwatt.study.spec import Campaign
        from batwatt.study.yaml_model import read_declared

        study = {"platforms": [platform], "workloads": ["w.json"], "options": {"response": "none"}}
        path = tmp_path / "c.yaml"
        path.write_text(yaml.safe_dump({"name": "c", "studies": {"s": {**study, "scheduler": "powercap"}}}))
        found, _ = expand(read_declared(path, Campaign), path, tmp_path, tmp_path)
        check_inputs(found)
        return found

    return cells


def test_the_master_and_the_first_hosts(declared, tmp_path):
    from batwatt.errors import InputError
    from batwatt.study.execute import execute, task_of

    [all_hosts] = declared(files="p.xml", master_host="boss")
    [two_hosts] = declared(files="p.xml", master_host="boss", mmax=2)
    [other] = declared(files="p.xml", master_host="n1")
    assert len({all_hosts.key, two_hosts.key, other.key}) == 3
    assert (two_hosts.inputs.hosts.master, two_hosts.inputs.hosts.mmax) == ("boss", 2)
    outcome = execute(task_of(two_hosts, True, tmp_path))
    assert (outcome.status, outcome.error) == ("done", None)
    [totals] = [text for name, text in outcome.files.items() if name.endswith("_schedule.csv")]
    head, row = (line.split(",") for line in totals.decode().splitlines())
    assert row[head.index("nb_computing_machines")] == "2"
    with pytest.raises(InputError, match="no host is called 'master_host'"):
        declared(files="p.xml")
    with pytest.raises(InputError, match="--mmax asks for 9 hosts but the platform has 3"):
        declared(files="p.xml", master_host="boss", mmax=9)
    with pytest.raises(InputError, match="`master_host` and `mmax` go with `files` only"):
        declared(machines=2, cores=1, mmax=1)
