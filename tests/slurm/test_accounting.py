"""`batwatt slurm run --operate --qos` on a real Slurm with slurmdbd, fairshare and limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from slurm_session import Session
from toy_cluster import ToyCluster
from waiting import wait_for

FCFS = ("-s", "powercap", "-o", '{"response": "none", "order": "fcfs"}', "--operate")

pytestmark = [pytest.mark.deep, pytest.mark.toy(nodes=2, accounting=True)]


def submit_as_user(cluster: ToyCluster, run_s: float, *options: str) -> str:
    """Submit a job of one node on hold, as the user nobody; returns its number."""
    words = ("sbatch", "--parsable", "-H", "-N1", "-t5", "-o", "/dev/null", *options, f"--wrap=sleep {run_s}")
    return cluster.as_user(*words).stdout.strip()


def state(cluster: ToyCluster, number: str) -> str:
    """Return the state of a job."""
    return cluster.job(number)["JobState"]


def until_completed(cluster: ToyCluster, *numbers: str, limit_s: float = 60.0) -> None:
    """Wait until jobs have ended well."""
    wait_for(lambda: {state(cluster, number) for number in numbers} == {"COMPLETED"}, limit_s, f"{numbers} end")


def test_jobs_of_a_qos_are_operated_and_no_others(cluster: ToyCluster, platform: Path) -> None:
    numbers = [cluster.submit(0.5, 1 + i % 2, "--qos=green") for i in range(3)]
    numbers.append(submit_as_user(cluster, 0.5, "--qos=green"))
    theirs = cluster.submit(0.5, 1, "--qos=normal")
    with Session(platform, *FCFS, "--once", handover="--qos") as session:
        session.ends()
    assert [cluster.job(number)["QOS"] for number in numbers] == ["green"] * 4
    assert [state(cluster, number) for number in numbers] == ["COMPLETED"] * 4
    assert sorted(data["job_id"] for data in session.decisions("EXECUTE_JOB")) == [f"slurm!{n}" for n in numbers]
    job = cluster.job(theirs)
    assert (job["JobState"], job["Reason"], job["ReqNodeList"]) == ("PENDING", "JobHeldUser", "(null)")
    assert not any(theirs in row["command"].replace("=", " ").split() for row in session.rows("do"))


def test_jobs_that_change_their_qos_are_followed(cluster: ToyCluster, platform: Path) -> None:
    first = cluster.submit(4.0, 2, "--qos=green")
    leaving, coming = cluster.submit(0.5, 2, "--qos=green"), cluster.submit(0.5, 2, "--qos=normal")
    with Session(platform, *FCFS, handover="--qos") as session:
        wait_for(lambda: state(cluster, first) == "RUNNING", 20.0, "the first runs")
        cluster.command("scontrol", "update", f"jobid={leaving}", "qos=normal")
        cluster.command("scontrol", "update", f"jobid={coming}", "qos=green")
        until_completed(cluster, leaving, coming)
    starts = {row["job"] for row in session.rows("do") if "reqnodelist=n" in row["command"]}
    assert starts == {f"slurm!{first}", f"slurm!{coming}"}
    assert cluster.job(leaving)["ReqNodeList"] == "(null)"


@pytest.mark.parametrize("limit", ["MaxJobsPerUser=1", "MaxTRESPerUser=node=1"])
def test_a_job_over_a_limit_keeps_no_node(cluster: ToyCluster, platform: Path, limit: str) -> None:
    cluster.limit_qos(limit)
    long, limited = cluster.submit(30.0, 1, "--qos=green"), cluster.submit(0.5, 1, "--qos=green")
    other = submit_as_user(cluster, 0.5, "--qos=green")
    with Session(platform, *FCFS, handover="--qos") as session:
        # the node of the second goes to the job of another user, long before the first ends
        until_completed(cluster, other, limit_s=20.0)
        assert (state(cluster, long), state(cluster, limited)) == ("RUNNING", "PENDING")
        until_completed(cluster, long, limited)
    assert {state(cluster, number) for number in (long, limited, other)} == {"COMPLETED"}
    assert session.events("JOB_COMPLETED")[-1]["job_state"] == "COMPLETED_SUCCESSFULLY"


def test_a_limit_of_the_whole_qos_delays_jobs_only(cluster: ToyCluster, platform: Path) -> None:
    cluster.limit_qos("GrpTRES=node=1")
    numbers = [cluster.submit(2.0, 1, "--qos=green") for _ in range(3)]
    numbers += [submit_as_user(cluster, 2.0, "--qos=green") for _ in range(3)]
    with Session(platform, *FCFS, "--once", handover="--qos") as session:
        session.ends(120.0)
    assert [state(cluster, number) for number in numbers] == ["COMPLETED"] * 6


def test_a_job_over_a_limit_for_ever_keeps_no_node(cluster: ToyCluster, platform: Path) -> None:
    cluster.limit_qos("MaxWall=6")
    never = cluster.submit(0.5, 2, "--qos=green", limit_min=10)
    other = cluster.submit(0.5, 2, "--qos=green", limit_min=5)
    with Session(platform, *FCFS, handover="--qos"):
        until_completed(cluster, other)
        assert state(cluster, never) == "PENDING"
