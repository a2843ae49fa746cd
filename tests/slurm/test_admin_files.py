"""Files that an administrator copies from docs/howto/slurm: loaded by a real slurmctld, and read by systemd."""

import shutil
import subprocess
from pathlib import Path

import pytest
from slurm_session import Session
from test_faults import FCFS
from waiting import wait_for

FILES = Path(__file__).resolve().parents[2] / "docs" / "howto" / "slurm"
UNITS = sorted(FILES.glob("*.service"))


def test_jobs_of_a_partition_are_handed_over_by_job_submit_lua(cluster, platform):
    """A user submits without -H; the default partition counts, others and lists of several do not."""
    shutil.copy(FILES / "job_submit.lua", cluster.folder)
    with (cluster.folder / "slurm.conf").open("a") as file:
        file.write("JobSubmitPlugins=lua\n")
    cluster.stop_controller()
    cluster.start_controller()
    wait_for(lambda: cluster.states().count("idle") == 8, 30, "all nodes are idle")

    def submit(*options):
        words = ("sbatch", "--parsable", "-N", "2", "-t", "10", "-o", "/dev/null", *options, "--wrap=sleep 1")
        process = cluster.as_user(*words)
        assert process.returncode == 0, process.stderr
        return process.stdout.strip(), process.stderr

    handed, others = [submit("-p", "green"), submit()], [submit("-p", "other"), submit("-p", "green,other")]
    for number, message in handed:
        job = cluster.job(number)
        assert (job["JobState"], job["Reason"], job["Priority"]) == ("PENDING", "JobHeldUser", "0")
        assert "partition green: the job is on hold until the power scheduler starts it" in message
    for number, message in others:
        assert "on hold" not in message
        wait_for(lambda n=number: cluster.job(n)["JobState"] == "COMPLETED", 20.0, "Slurm runs it by itself")
    with Session(platform, *FCFS, "--once") as session:
        session.ends()
    assert {data["job_id"] for data in session.decisions("EXECUTE_JOB")} == {f"slurm!{number}" for number, _ in handed}
    assert [cluster.job(number)["JobState"] for number, _ in handed] == ["COMPLETED"] * 2


def systemd_analyze(*words):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here: apt install systemd")
    return subprocess.run(("systemd-analyze", *words), capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_are_confined(unit):
    """In systemd's measure: 100 is unsafe, 60 medium, below 20 safe."""
    process = systemd_analyze("security", "--offline=true", "--threshold=60", "--no-pager", str(unit))
    assert process.returncode == 0, process.stdout


def test_systemd_reads_the_units(tmp_path):
    """A program that exists stands for /opt/batwatt/bin/batwatt."""
    assert [unit.name for unit in UNITS] == ["batwatt-release.service", "batwatt-slurm.service"]
    for unit in UNITS:
        text = unit.read_text()
        assert "ExecStart=/opt/batwatt/bin/batwatt slurm " in text
        (tmp_path / unit.name).write_text(text.replace("/opt/batwatt/bin/batwatt", "/bin/true"))
    process = systemd_analyze("verify", "--man=no", *(str(tmp_path / unit.name) for unit in UNITS))
    assert (process.returncode, process.stdout + process.stderr) == (0, "")
    slurm = UNITS[1].with_name("batwatt-slurm.service").read_text()
    (tmp_path / "batwatt-slurm.service").write_text(slurm.replace("/opt/batwatt/bin/batwatt", "/nowhere/batwatt"))
    assert systemd_analyze("verify", "--man=no", str(tmp_path / "batwatt-slurm.service")).returncode != 0
