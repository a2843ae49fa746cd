"""Measure a poll of `batwatt slurm run` with 10, 100 and 1,000 jobs that wait on 8 toy nodes of a real Slurm.

python bench/slurm_poll.py [JOBS ...]
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from toy_cluster import ToyCluster
from waiting import wait_for

LASTS_S = 15.0
PAUSE_S = 0.1
"""Least pause between polls; commands of one poll follow each other sooner."""


def main() -> None:
    """Print a line for each number of jobs."""
    for count in [int(word) for word in sys.argv[1:]] or [10, 100, 1000]:
        folder = Path(tempfile.mkdtemp(prefix="poll-"))
        with ToyCluster(folder / "slurm").start() as cluster:
            for _ in range(count):
                cluster.submit(600.0, 8)
            (folder / "servers.toml").write_text(cluster.servers)
            batwatt = [sys.executable, "-m", "batwatt"]
            platform, journal = str(folder / "green.xml"), folder / "run_journal.jsonl"
            made = [*batwatt, "generate", "platform", str(folder / "servers.toml"), "-o", platform]
            subprocess.run(made, env=cluster.environment, check=True)
            words = [*batwatt, "slurm", "run", "-p", platform, "--partition", "green", "--operate", "-s", "powercap"]
            words += ["-o", '{"response": "none", "order": "fcfs"}']
            process = subprocess.Popen(
                [*words, "--poll", "0.2", "-e", str(folder / "run")], env=cluster.environment, stdout=subprocess.DEVNULL
            )
            wait_for(partial(_all_announced, journal, count), 120.0, "jobs are announced")
            time.sleep(LASTS_S)
            process.send_signal(signal.SIGTERM)
            process.wait(300)
            rows = [json.loads(line) for line in journal.read_text().splitlines()]
            ending = next(row for row in rows if row.get("what") == "ending")
            taking_s = _seconds(rows)
            mean_s = (ending["polling_s"] - taking_s) / ending["polls"]
            print(f"{count} jobs: {1e3 * mean_s:.0f} ms a poll, besides {taking_s:.1f} s to take them over")


def _all_announced(journal: Path, count: int) -> bool:
    return journal.exists() and journal.read_text().count('"type": "JOB_SUBMITTED"') >= count


def _seconds(rows: list[dict[str, object]]) -> float:
    """Return the time in s of the commands that announce jobs, without the pauses between polls."""
    times = [str(row["time"]) for row in rows if row["kind"] == "do" and row["job"] == "announce"]
    moments = [time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float(text[19:-1]) for text in times]
    return sum(gap for gap in np.diff(moments) if gap < PAUSE_S)


if __name__ == "__main__":
    main()
