"""`batwatt optimum` from its inputs to its files, and the scheduler `planned` that carries its plans out."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from batwatt.cli import plan as cli_plan
from batwatt.cli.main import main
from batwatt.errors import InputError
from batwatt.results.figures import METRICS
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.schedulers.planned.optimum import Stand
from batwatt.studies.optimum import PlannedResult, run_optimum

ROOT = Path(__file__).resolve().parents[4]
SMALL = ROOT / "platforms" / "small.xml"


def spec_in(folder: Path) -> RunSpec:
    """Eight jobs on four servers under caps that do not let all of them run at once."""
    jobs = [{"id": i, "subtime": 40 * i, "res": 1 + i % 3, "walltime": 3000, "profile": f"p{i % 3}"} for i in range(8)]
    profiles = {
        "p0": {"type": "parallel_homogeneous", "cpu": 4e12, "com": 0},
        "p1": {"type": "delay", "delay": 90.5},
        "p2": {"type": "composed", "seq": ["p0", "p1"], "repeat": 1},
    }
    workload = folder / "w.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    envelope = folder / "e.csv"
    envelope.write_text("time_s,power_w\n0,600\n300,350\n600,500\n900,620\n")
    inputs = {"platform": SMALL, "workloads": (workload,), "envelope": envelope}
    return RunSpec(scheduler="optimum", options={"effort": 1}, prefix=folder / "out" / "opt", **inputs)


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    return spec_in(tmp_path)


@pytest.fixture(scope="module")
def planned(tmp_path_factory) -> tuple[RunSpec, PlannedResult]:
    """The specification and the result of one run."""
    spec = spec_in(tmp_path_factory.mktemp("planned"))
    return spec, run_optimum(spec)


def words_of(spec: RunSpec) -> list[str]:
    """The options of the command that runs it."""
    files = {"-p": spec.platform, "-w": spec.workloads[0], "--envelope": spec.envelope, "-e": spec.prefix}
    return [str(word) for pair in files.items() for word in pair]


def test_the_files_of_a_run(planned):
    spec, result = planned
    figures = json.loads(Path(f"{spec.prefix}_metrics.json").read_text())
    assert list(figures) == [*(metric.name for metric in METRICS), "lower_bound", "gap", "proven_optimal"]
    assert figures["mean_slowdown"] == pytest.approx(result.values["mean_slowdown"], abs=1e-6)
    assert (figures["violations"], figures["killed_power"], figures["killed_walltime"]) == (0, 0, 0)
    assert figures["jobs_finished"] == 8
    value = figures["mean_slowdown"]
    assert figures["gap"] == pytest.approx((value - figures["lower_bound"]) / value, abs=2e-6)
    metadata = json.loads(Path(f"{spec.prefix}_metadata.json").read_text())
    assert metadata["scheduler"] == "optimum" and metadata["options"] == {"effort": 1}
    assert metadata["optimum"]["raised_caps"] == 0 and metadata["versions"]["ortools"]


def test_an_effort_gives_the_same_bytes(planned, tmp_path):
    spec, _ = planned
    run_optimum(replace(spec, prefix=tmp_path / "again"))
    for stem in ("plan.json", "metrics.json", "jobs.csv", "pstate_changes.csv", "consumed_energy.csv"):
        assert Path(f"{spec.prefix}_{stem}").read_bytes() == (tmp_path / f"again_{stem}").read_bytes(), stem


def test_a_cap_that_nobody_can_keep_is_told(spec):
    # four servers that are on at 0 s draw more until they are asleep
    spec.envelope.path.write_text("time_s,power_w\n0,60\n300,350\n600,500\n900,620\n")
    result = run_optimum(replace(spec, options={"time_limit_s": 2}))
    metrics = result.values
    assert (result.problem.raised, metrics["violations"], metrics["jobs_finished"]) == (1, 1, 8)
    assert json.loads(Path(f"{spec.prefix}_metadata.json").read_text())["optimum"]["raised_caps"] == 1


def test_a_signal_in_the_search_keeps_the_best_so_far(spec, monkeypatch, capsys):
    @contextmanager
    def progress():
        def report(stand: Stand) -> None:
            if stand.phase == "search" and not sent:
                sent.append(stand)
                os.kill(os.getpid(), signal.SIGINT)

        yield report

    sent: list[Stand] = []
    monkeypatch.setattr(cli_plan, "_progress", progress)
    with pytest.raises(SystemExit) as ended:
        main(["optimum", *words_of(spec), "--time-limit", "7"])
    assert ended.value.code == 130 and "ended by SIGINT" in capsys.readouterr().err
    figures = json.loads(Path(f"{spec.prefix}_metrics.json").read_text())
    assert figures["jobs_finished"] == 8 and figures["violations"] == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"effort": 1, "time_limit_s": 3}, "effort.*goes without"),
        ({"effort": 0}, "effort.*>= 1"),
        ({"seed": -1}, "seed must be a whole number in 0"),
        ({"time_limit_s": 0}, "time_limit_s.*> 0"),
        ({"order": "fcfs"}, "order.*not one of the optimum"),
    ],
)
def test_options_are_checked(spec, options, text):
    with pytest.raises(InputError, match=text):
        run_optimum(replace(spec, options=options))


def test_a_job_that_the_caps_forbid_is_named(spec, capsys):
    spec.envelope.path.write_text("time_s,power_w\n0,100\n300,20\n")
    with pytest.raises(SystemExit) as ended:
        main(["optimum", *words_of(spec), "--time-limit", "2"])
    err = capsys.readouterr().err
    assert ended.value.code == 2 and err.count("\n") == 1 and "job w0!" in err and "can never run" in err
    assert not list(spec.prefix.parent.glob("*"))


def test_planned_wants_a_plan_for_its_platform(spec, tmp_path):
    with pytest.raises(InputError, match=r"'plan'.*needs one"):
        run(replace(spec, scheduler="planned", options={}))
    plan = tmp_path / "p.json"
    row = '{"time_s": 0.0, "hosts": "4", "pstate": 0}'
    plan.write_text(f'{{"format": 1, "states": [{row}], "jobs": []}}')
    with pytest.raises(InputError, match="names host 4 but there are 4"):
        run(replace(spec, scheduler="planned", options={"plan": str(plan)}))
    plan.write_text('{"format": 1, "states": [{"time_s": 0.0, "hosts": "0-", "pstate": 0}], "jobs": []}')
    with pytest.raises(InputError, match=r"states\[0\] hosts"):
        run(replace(spec, scheduler="planned", options={"plan": str(plan)}))
    # jobs that are not in it are rejected
    plan.write_text('{"format": 1, "states": [], "jobs": []}')
    result = run(replace(spec, scheduler="planned", options={"plan": str(plan)}))
    assert result.metrics["jobs_rejected"] == 8
