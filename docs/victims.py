"""Write the table of docs/explanation/victims.md: two systems on shipped inputs, with each rule for victims.

python docs/victims.py [--check]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from papers import pages  # noqa: E402 (papers/ is not installed)
from papers.pages import markdown  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "victims.md"
RISK = ["-w", "workloads/risk-small.txt", "--machines", "32", "--cores", "8"]
WALK = ["--capacity", "power_profiles/walk-small.csv", "--window", "86400:259200"]
SYSTEMS: dict[str, tuple[list[str], dict[str, object]]] = {
    "powercap, HFLD, profile 3": (
        ["-p", "platforms/grid5000.xml", "-w", "workloads/google-288-00.json", "--envelope",
         "power_profiles/profile3.csv"], {"response": "hfld"}),
    "varcap, base": ([*RISK, *WALK, "-s", "varcap"], {}),
}  # fmt: skip
RULES: dict[str, object] = {
    "lose": "lose",
    "resubmit": "resubmit",
    "checkpoint, C = R = 60 s": {"name": "checkpoint", "checkpoint_s": 60, "recovery_s": 60},
    "checkpoint, C = R = 600 s": {"name": "checkpoint", "checkpoint_s": 600, "recovery_s": 600},
    "migrate": "migrate",
}


def rows() -> list[tuple[str, ...]]:
    """Run each system with each rule; return a row for each."""
    table = []
    for system, (words, options) in SYSTEMS.items():
        for rule, victim in RULES.items():
            with tempfile.TemporaryDirectory() as folder:
                victim_options = json.dumps(options | {"victim": victim})
                command = [sys.executable, "-m", "batwatt", "run", *words, "-o", victim_options, "-e", f"{folder}/x"]
                subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
                table.append((system, rule, *_figures(json.loads(Path(folder, "x_metrics.json").read_text()))))
    return table


def _figures(metrics: dict[str, float | None]) -> tuple[str, ...]:
    goodput = metrics["goodput"]
    killed = metrics["killed_power"] if goodput is None else metrics["terminations"]
    work = metrics["finished_work_fraction"]
    return (
        f"{killed:.0f}",
        f"{metrics['jobs_finished']:.0f}",
        "" if work is None else f"{100 * work:.1f}",
        "" if goodput is None else f"{100 * goodput:.2f}",
    )


def tables() -> dict[str, str]:
    """Return the table."""
    head = ("system", "victim", "runs lost", "jobs finished", "finished work (%)", "goodput (%)")
    return {"victims": markdown(head, rows(), texts=2)}


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, lambda: None))
