"""`batwatt slurm run` without --operate: nothing is changed in Slurm, and both sides are measured."""

import csv
import os

import pytest
from slurm_session import Session, cap_file
from toy_cluster import ToyCluster
from waiting import wait_for

READERS = {"squeue", "sinfo"}


def audited(cluster: ToyCluster) -> str:
    """Return the PATH of commands that write down their words before they run."""
    folder, path = cluster.folder / "audit", os.environ["PATH"]
    folder.mkdir()
    for name in ("squeue", "sinfo", "scontrol", "scancel", "sbatch"):
        (folder / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >> {cluster.folder}/commands.log\nPATH={path} exec {name} "$@"\n'
        )
        (folder / name).chmod(0o755)
    return f"{folder}:{path}"


def test_a_shadow_changes_nothing_and_measures_both(cluster, platform, monkeypatch):
    cap = cap_file(platform, (0, 900), (540, 1750))
    words = ("-s", "powercap", "-o", '{"response": "frugal"}', "--envelope", cap, "--once")
    numbers = [cluster.submit(2.0, 4) for _ in range(4)]
    monkeypatch.setenv("PATH", audited(cluster))
    with Session(platform, *words) as session:
        # what runs at the first poll is not the scheduler's
        session.until_told("NOTIFY", 1)
        cluster.command("scontrol", "release", ",".join(numbers[:2]))
        session.until_told("JOB_SUBMITTED", 2)
        cluster.command("scontrol", "release", ",".join(numbers[2:]))
        out = session.ends(60.0)
    ran = [line.split() for line in (cluster.folder / "commands.log").read_text().splitlines()]
    assert len(ran) > 20
    assert all(words[0] in READERS or words[:2] == ["scontrol", "show"] for words in ran), ran
    assert "do" not in {row["kind"] for row in session.rows()} and session.rows("would")
    lines = [line.split("\t") for line in out.splitlines()]
    table = {row[0]: dict(zip(lines[0], row, strict=True)) for row in lines[1:]}
    assert table["Slurm"]["jobs_started"] == table["scheduler"]["jobs_started"] == "4"
    # Slurm runs two jobs of four nodes at once, 1600 W, whatever the cap
    assert float(table["Slurm"]["energy_above_cap_j"]) > float(table["scheduler"]["energy_above_cap_j"])
    with (platform.parent / "session_starts.csv").open() as file:
        rows = {row["job"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(numbers)
    for row in rows.values():
        # a job lasts here as long as in Slurm, until the next poll
        lasted, slurm = (float(row[f"{kind}end_s"]) - float(row[f"{kind}start_s"]) for kind in ("", "slurm_"))
        assert slurm <= lasted + 1e-6 <= slurm + 120.0


@pytest.mark.deep
@pytest.mark.toy(min_job_age_s=2)
def test_what_slurm_has_forgotten_goes_on_in_the_shadow(cluster, platform):
    cap = cap_file(platform, (0, 150), (1800, 1750))
    words = ("-s", "powercap", "-o", '{"response": "frugal"}', "--envelope", cap, "--speed", "120")
    with Session(platform, *words) as session:
        wait_for(lambda: bool(session.rows("begin")), 20.0, "it begins")
        # on hold in Slurm: not announced
        kept, number = cluster.submit(1.0), cluster.submit(1.0)
        cluster.command("scontrol", "release", number)
        wait_for(lambda: cluster.command("squeue", "-h", "-j", number, check=False).stdout == "", 90.0, "it is gone")
        wait_for(lambda: len(session.events("JOB_COMPLETED")) == 1, 60.0, "it ends in the shadow")
    assert [data["job_id"] for data in session.events("JOB_SUBMITTED")] == [f"slurm!{number}"]
    assert session.events("JOB_COMPLETED")[0]["job_state"] == "COMPLETED_SUCCESSFULLY"
    assert cluster.job(kept)["Reason"] == "JobHeldUser" and not session.rows("do")
