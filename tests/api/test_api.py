"""`import batwatt`: results are those of the command line, byte for byte, from files and from objects."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_house import ROOT, SMALL

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.batsim_files import phase_workload
from batwatt.inputs.servers import machines_xml
from batwatt.model.work import constant
from batwatt.results.run_files import FILES
from batwatt.results.run_files import jobs as read_jobs
from batwatt.run.find_scheduler import scheduler_class
from batwatt.schedulers.carbon.execution import ShiftJob
from batwatt.schedulers.powercap import Powercap

GOOGLE, PROFILE = ROOT / "workloads" / "google-288-00.json", ROOT / "power_profiles" / "profile3.csv"
GRID = ROOT / "platforms" / "grid5000.xml"
TRACE = "arrival_time,length,cpus,checkpoint_s,recovery_s\n" + "".join(
    f"{37 * i},{300 + 90 * (i % 5)},{1 + i % 3},{3 + i % 3},{2 * (i % 4)}\n" for i in range(20)
)
CAPACITY = "time_s,machines\n" + "".join(f"{400 * i},{4 - i % 3}\n" for i in range(12))
SIGNAL = ROOT / "power_profiles" / "carbon" / "carbon-hourly.csv"


def small(house):
    return (SMALL, GOOGLE), {"envelope": house.envelope}, ("-p", SMALL, "-w", GOOGLE, "--envelope", house.envelope)


def machines(house, name, cores=2):
    trace, capacity = house.write("jobs.csv", TRACE), house.write("capacity.csv", CAPACITY)
    words = ("-w", trace, "--machines", 4, "--cores", cores, "--capacity", capacity, "-s", name)
    return (bw.Platform.machines(4, cores), trace, name), {"capacity": capacity}, words


def carbon(house):
    jobs = [ShiftJob(name, 900.0 * i, constant(3600.0 * (1 + i), 100.0), 1 + i % 2) for i, name in enumerate("abc")]
    owner, data = phase_workload(jobs, 3)
    platform = house.write("machines.xml", machines_xml(owner))
    workload = house.write("phases.json", json.dumps(data))
    options = {"signal": str(SIGNAL), "policy": "oracle", "deadline_h": 12.0}
    words = ("-p", platform, "-w", workload, "-s", "carbon", "-o", json.dumps(options))
    return (platform, workload, "carbon"), {"options": options}, words


CASES = {
    "powercap": small,
    "riskaware": lambda house: machines(house, "riskaware"),
    "checkpoint": lambda house: machines(house, "checkpoint", cores=1),
    "carbon": carbon,
}


@pytest.mark.parametrize("name", CASES)
def test_files_are_those_of_the_command_line(house, name):
    inputs, more, words = CASES[name](house)
    result = bw.simulate(*inputs, **more)
    assert not (house.out / "a_jobs.csv").exists()
    assert result.save(house.out / "a") == house.out / "a"
    done = house.batwatt("run", *words, "-e", house.out / "b")
    assert done.code == 0, done.err
    ours, theirs = (sorted(path.name[1:] for path in house.out.glob(f"{to}_*")) for to in "ab")
    assert ours == theirs
    for file in set(ours) - {"_metadata.json"}:
        assert house.file(f"a{file}") == house.file(f"b{file}"), file
    one, two = (json.loads(house.file(f"{to}_metadata.json")) for to in "ab")
    assert one.pop("elapsed_s") >= 0.0 and two.pop("elapsed_s") >= 0.0
    assert one == two
    assert result.metrics == house.metrics("a")


def test_objects_are_as_good_as_files(house):
    files = bw.simulate(GRID, GOOGLE, envelope=PROFILE)
    platform, workload, envelope = bw.Platform.read(GRID), bw.Workload.read(GOOGLE), bw.read_series(PROFILE)
    for _ in range(2):
        objects = bw.simulate(platform, workload, envelope=envelope)
        assert objects.metrics == files.metrics
        pd.testing.assert_frame_equal(objects.jobs, files.jobs)
    objects.save(house.out / "x")
    metadata = json.loads(house.file("x_metadata.json"))
    assert metadata["inputs"]["workload"]["object"] == str(GOOGLE)
    # an envelope that differs is another input
    again = bw.simulate(platform, workload, envelope=bw.Series(envelope.times_s, (*envelope.values[:-1], 1.0)))
    again.save(house.out / "y")
    other = json.loads(house.file("y_metadata.json"))["inputs"]
    assert other["envelope"]["sha256"] != metadata["inputs"]["envelope"]["sha256"]
    assert other["workload"] == metadata["inputs"]["workload"]


def test_tables_are_the_files_with_units(house):
    result = bw.simulate(SMALL, GOOGLE, envelope=house.envelope)
    prefix = result.save(house.out / "x")
    read = read_jobs(prefix)
    assert list(result.jobs)[:6] == [
        "job_id", "workload_name", "profile", "submission_time_s", "requested_number_of_resources", "requested_time_s",
    ]  # fmt: skip
    for column, name in zip(FILES["jobs"], result.jobs, strict=True):
        assert name.startswith(column.name)
        assert result.jobs[name].tolist() == pytest.approx(read[column.name].tolist(), nan_ok=True)
    power = pd.read_csv(house.out / "x_power.csv")
    np.testing.assert_allclose(result.power.to_numpy(), power.to_numpy(), atol=1e-6)
    states = pd.read_csv(house.out / "x_machine_states.csv")
    assert result.machines["nb_computing"].tolist() == states["nb_computing"].tolist()
    assert next(iter(result.machines)) == "time_s"


def test_a_scheduler_is_a_name_or_a_class(house):
    platform, workload = bw.Platform.read(GRID), bw.Workload.read(GOOGLE)
    theirs = bw.simulate(platform, workload, scheduler_class("easyBackfill"))
    assert theirs.metrics["jobs_finished"] == 288 and theirs.scheduler == "EasyBackfill"
    options = {"order": "asc", "response": "none"}
    named, made = (bw.simulate(platform, workload, one, options=options) for one in ("powercap", Powercap))
    assert named.metrics == made.metrics
    with pytest.raises(InputError, match="scheduler: is an instance of Powercap, which can run once; give the class"):
        bw.simulate(platform, workload, Powercap({"platform": platform}))


def test_communication_is_ignored_on_request(house):
    profile = {"type": "parallel_homogeneous", "cpu": 2e11, "com": 5}
    path = house.workload({"id": 1, "subtime": 0, "res": 1, "profile": "talk"}, talk=profile)
    platform = house.platform("a", "b")
    for function in (bw.simulate, bw.compare):
        with pytest.raises(InputError, match="give ignore_communication=True to run it as 0"):
            function(platform, path)
    assert bw.simulate(platform, path, "fcfs", ignore_communication=True).metrics["makespan_s"] == 1.0
    cases = {"a": bw.Case("fcfs"), "b": bw.Case("easy")}
    table = bw.compare(platform, path, cases=cases, ignore_communication=True).table
    assert list(table["jobs_finished"]) == [1, 1]
    (line,) = bw.Workload.read(path, ignore_communication=True).remarks
    assert line.endswith("1 of 1 profiles communicate (first: 'talk'): they run as if their 'com' were 0")


def test_studies_and_progress(tmp_path):
    study = {"workloads": [str(GOOGLE)], "envelopes": [str(PROFILE)], "options": {"response": "none"}}
    defaults = {"platforms": [str(GRID)], "scheduler": "powercap"}
    declared = tmp_path / "two.yaml"
    declared.write_text(json.dumps({"name": "two", "defaults": defaults, "comparisons": {"one": study}}))
    states = []
    results = bw.study(declared, results=tmp_path / "r", workers=1, progress=lambda *state: states.append(state))
    assert len(results.table) == 1 and states[-1][:3] == (1, 0, 1)
    pd.testing.assert_frame_equal(results.table, bw.study(tmp_path / "r" / "two", workers=1).table)
    pd.testing.assert_frame_equal(results.table, bw.Study.read(tmp_path / "r" / "two").table)
    states.clear()
    bw.simulate(GRID, GOOGLE, progress=lambda time_s, ended: states.append((time_s, ended)))
    assert states[-1][1] == 288 and states == sorted(states)


def test_a_study_has_comparisons(tmp_path, monkeypatch):
    """A declaration as a dict; two cases by text on two workloads, against the same cases by `compare` and by hand."""
    monkeypatch.chdir(ROOT)
    inputs = {"platforms": ["platforms/small.xml"], "envelopes": ["power_profiles/small.csv"]}
    loads = {"workloads": ["workloads/small.json"]}
    cases = {"free": {"case": "powercap response=none"}, "HFLD": "powercap response=hfld backfilling=easy"}
    follows = [{"label": "mean", "follow": "mean"}, {"label": "none", "follow": "none"}, "constant"]
    declared = {"name": "dict", "defaults": inputs | loads, "comparisons": {"a": {"cases": cases}, "b": {
        "cases": follows, "scheduler": "powercap", "options": {"response": "hfld"}}}}  # fmt: skip
    results = bw.study(declared, results=tmp_path, workers=1)
    assert results.names == [*results] == ["a", "b"] and results.errors.empty and "runs: 5" in repr(results)
    compared = bw.compare(inputs["platforms"][0], loads["workloads"][0], inputs["envelopes"][0], {
        "free": "powercap response=none", "HFLD": cases["HFLD"],
        "mean": bw.Case("powercap", {"response": "hfld"}, "mean"),
        "none": bw.Case("powercap", {"response": "hfld"}, "none"), "constant": "constant",
    })  # fmt: skip
    own = pd.concat([results["a"].table, results["b"].table]).set_index("case")
    for name in ("mean_wait_s", "energy_j", "energy_above_cap_j", "violations", "jobs_finished", "work_per_fed_host"):
        expected = compared.table.set_index("case")[name]
        pd.testing.assert_series_equal(own[name], expected, check_dtype=False, rtol=1e-9)
    assert own.loc["mean", "violations"] != own.loc["none", "violations"]
    assert results["b"].cases["none"].follow == "none" and results["b"].cases["mean"].follow == "mean"
    assert str(results["a"].verdict()) == str(bw.Study.read(tmp_path / "dict")["a"].verdict())
    assert results.save().read_text().startswith("<!DOCTYPE")
    page = results["a"].save(tmp_path / "a").with_suffix(".html").read_text()
    assert "HFLD" in page and not (tmp_path / "a_jobs.csv").exists()
    for wrong, line in ((lambda: results["c"], "no comparison 'c'"),
                        (lambda: results["a"].groups("user"), "rows of jobs"),
                        (lambda: bw.study({"name": float("nan")}), "is no declaration"),
                        (lambda: bw.study({"name": "x"}), "comparisons"),
                        (lambda: bw.Study(tmp_path), "is made of fields"),
                        (lambda: bw.Study.read(tmp_path / "x"), "no such folder")):  # fmt: skip
        with pytest.raises(InputError, match=line):
            wrong()


def test_a_comparison_of_a_study_names_what_failed(tmp_path):
    """Two engines give one row; the optimum fails without an envelope, the other case on neither workload."""
    small = ROOT / "workloads" / "small.json"
    (tmp_path / "other.json").write_text(small.read_text())
    inputs = {
        "platforms": [str(ROOT / "platforms" / "small.xml")],
        "workloads": [str(small), str(tmp_path / "other.json")],
    }
    bad = tmp_path / "bad.py"
    bad.write_text("from batwatt.schedulers.powercap import Powercap\nclass Bad(Powercap):\n"
                   "    def onJobSubmission(self, job):\n        raise RuntimeError('it broke')\n")  # fmt: skip
    declared = {
        "name": "x",
        "comparisons": {"one": inputs | {"engines": ["embedded", "wire"], "cases": ["easy", str(bad)]}},
    }
    results = bw.study(declared, results=tmp_path / "r", workers=1)
    compared = results["one"]
    assert len(results.table) == 8 and len(results.errors) == 4
    assert compared.table["case"].tolist() == ["easy", "easy"] and len(compared.summary) == 1
    ((case, error),) = compared.errors.items()
    assert case == str(bad) and error.startswith("4 of 4 runs failed, the first: ") and "it broke" in error
    assert "not run: " in repr(compared)


def test_planners(house):
    period = ROOT / "workloads" / "periods" / "period.json"
    plan = bw.plan_checkpoints(period)
    assert plan == bw.plan_checkpoints(json.loads(period.read_text()))
    assert plan == json.loads(house.batwatt("plan", "checkpoint", period).out)
    job = ROOT / "workloads" / "carbon" / "job.json"
    words = ("--carbon", SIGNAL, "--deadline", 86400, "--start", 3600)
    plan = bw.plan_carbon(job, SIGNAL, deadline_s=86400.0, start_s=3600.0)
    assert plan == json.loads(house.batwatt("plan", "carbon", job, *words).out)
    signal = bw.read_signal(f"{SIGNAL},days=2")
    assert bw.plan_carbon(json.loads(job.read_text()), signal, deadline_s=86400.0, start_s=3600.0) == plan
    with pytest.raises(InputError, match="deadline"):
        bw.plan_carbon(job, SIGNAL, deadline_s=60.0)


def test_the_optimum_is_that_of_the_command_line(house):
    jobs = [{"id": i, "subtime": 0, "res": 4, "walltime": 100, "profile": "work"} for i in range(2)]
    load = house.workload(*jobs, work={"type": "parallel_homogeneous", "cpu": 1e12, "com": 0})
    cap = house.write("plenty.csv", "time_s,power_w\n0,100000\n300,90000\n")
    result = bw.optimum(SMALL, load, cap, effort=1)
    result.save(house.out / "a")
    words = ("-p", SMALL, "-w", load, "--envelope", cap, "--effort", 1, "-e", house.out / "b")
    assert house.batwatt("optimum", *words).code == 0
    for name in ("plan.json", "metrics.json", "jobs.csv", "power.csv"):
        assert house.file(f"a_{name}") == house.file(f"b_{name}")
    assert result.metrics == house.metrics("b") and result.metrics["lower_bound"] <= result.metrics["mean_slowdown"]
    # lengths of a trace are work in the plan as in the replay, though servers are slower than the fastest
    frame = pd.DataFrame({"submission_time_s": [0, 10], "length_s": [400, 700], "hosts": [1, 2]})
    result = bw.optimum(SMALL, bw.Workload.from_frame(frame), bw.Series((0.0,), (2000.0,)), effort=1)
    assert result.metrics["jobs_finished"] == 2 and result.metrics["violations"] == 0


def test_figures_and_notebooks(house, tmp_path):
    result = bw.simulate(SMALL, GOOGLE, envelope=house.envelope)
    gantt = result.gantt("mine")
    assert gantt._repr_png_()[:4] == b"\x89PNG"
    axes = result.plot()
    assert axes.get_ylabel() == "power (kW)" and result.plot(axes) is axes
    for name, figure in (("power", axes.figure), ("gantt", gantt)):
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    for thing in (result, bw.Platform.read(SMALL), bw.Workload.synthetic(seed=1), bw.Series((0.0, 1.0), (2.0, 3.0))):
        html = thing._repr_html_()
        assert html.startswith("<table>") and html.count("<tr>") == len(thing.facts())
        assert type(thing).__name__ in repr(thing)
    dark = bw.simulate(bw.Platform.read(house.platform("a", "b", watts=False)), GOOGLE, options={"response": "none"})
    for ask in (lambda: dark.power, dark.plot):
        with pytest.raises(InputError, match="is not known"):
            ask()
    with pytest.raises(InputError, match="job_power: there is no envelope"):
        _ = dark.job_power
