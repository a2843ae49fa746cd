"""`batwatt slurm run` without --operate: nothing is changed in Slurm, and both sides are measured."""

import csv
import os

from slurm_session import Session
from toy_cluster import FOLDERS, ToyCluster, until

READERS = {"squeue", "sinfo"}


def audited(cluster: ToyCluster) -> None:
    """Let a cluster's commands write down their words before they run."""
    folder = cluster.folder / "audit"
    folder.mkdir()
    for name in ("squeue", "sinfo", "scontrol", "scancel", "sbatch"):
        (folder / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >> {cluster.folder}/commands.log\nPATH={FOLDERS} exec {name} "$@"\n'
        )
        (folder / name).chmod(0o755)
    cluster.environment["PATH"] = f"{folder}:{os.environ['PATH']}"


def test_a_shadow_changes_nothing_and_measures_both(cluster, platform):
    cap = platform.parent / "watts.csv"
    cap.write_text("time_s,power_w\n0,900\n600,1750\n")
    audited(cluster)
    log = cluster.folder / "commands.log"
    words = ("-s", "powercap", "-o", '{"response": "frugal"}', "--envelope", str(cap), "--once")
    numbers = [cluster.submit(3.0, 4) for _ in range(4)]
    for number in numbers[:2]:
        cluster.command("scontrol", "release", number)
    log.unlink()
    with Session(cluster, platform, *words) as session:
        session.until_told("JOB_SUBMITTED", 4)
        ran = [line.split() for line in log.read_text().splitlines()]
        for number in numbers[2:]:
            cluster.command("scontrol", "release", number)
        log.unlink()
        out = session.ends(60.0)
    ran += [line.split() for line in log.read_text().splitlines()]
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


def test_a_shadow_leaves_slurm_alone_when_it_is_ended(cluster, platform):
    number = cluster.submit(1.0, 8)
    before = cluster.job(number)
    with Session(cluster, platform, "-s", "powercap", "-o", '{"response": "none"}') as session:
        session.until_told("JOB_SUBMITTED", 1)
        until(lambda: bool(session.rows("would")), 10.0, "a decision")
    after = cluster.job(number)
    assert {name: after[name] for name in ("JobState", "Reason", "Priority")} == {
        name: before[name] for name in ("JobState", "Reason", "Priority")
    }
