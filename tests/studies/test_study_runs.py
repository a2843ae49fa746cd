from __future__ import annotations

import fcntl
import json

import pytest
from builders import TWO

FAIL = "raise ValueError('no ' + 'luck')"


def test_a_study_gives_one_row_a_run(small):
    small.declare()
    ended = small.run()
    assert ended.code == 0 and small.state() == [4, 0, 0]
    assert ended.out.splitlines()[0].split() == ["comparison", "done", "failed", "missing"] and ended.err == ""
    assert (small.out / "table.parquet").is_file()
    rows = small.rows()
    assert [row["case"] for row in rows] == ["fcfs", "fcfs", "asc", "asc"]
    assert [row["workload"] for row in rows] == ["a", "b", "a", "b"]
    assert [row["makespan_s"] for row in rows] == [20.0, 40.0, 20.0, 40.0]
    assert [row["mean_slowdown"] for row in rows] == [1.5] * 4
    first = rows[0]
    assert first["comparison"] == "only" and first["platform"] == "p" and first["envelope"] == "envelope"
    assert first["options"] == '{"order":"fcfs","response":"none"}' and first["engine"] == "embedded"
    assert (first["backfilling"], first["order"], first["response"]) == (None, "fcfs", "none")
    assert first["status"] == "done" and first["error"] is None and first["seed"] is None
    assert first["lower_bound"] is None and first["proven_optimal"] is None
    assert small.out.joinpath("cells", f"{first['key']}.json").is_file()


def test_a_changed_file_reruns_just_what_it_touches(small):
    small.declare()
    small.run()
    before = small.bytes()
    # nothing has changed
    assert small.run().code == 0
    assert small.done_in_log() == 4 and small.bytes() == before
    path = small.folder / "w" / "a.json"
    path.write_text(path.read_text() + "\n")
    status = small.batwatt("status")
    assert small.state() == [2, 0, 2]
    assert "2 stale runs" in status.err
    # a larger grid runs what is new, and damaged cells again
    small.declare(grid={"order": ["desc", "asc", "fcfs"]}, workloads=["w/b.json"])
    for cell, damage in zip(small.cells(), (b"{", b'{"format": 1}', b"", b"[]"), strict=True):
        cell.write_bytes(damage)
    assert small.run().code == 0
    assert small.done_in_log() == 7 and "is changed or of another version: run again" in small.log()
    assert [row["case"] for row in small.rows()] == ["desc", "asc", "fcfs"]
    assert "2 stale runs removed" in small.batwatt("clean").out
    assert len(small.cells()) == 3 and "stale" not in small.batwatt("status").err


def test_a_changed_figure_is_computed_again(small):
    """A digit in the file of a cell; its rejections and its error count as well."""
    small.declare()
    assert small.run().code == 0
    before = small.bytes()
    for cell, change in zip(
        small.cells(), [{"figures": 1}, {"rejections": {"x": 1}}, {"elapsed_s": 7.0}, {}], strict=True
    ):
        content = json.loads(cell.read_text())
        if change.pop("figures", None):
            change = {"figures": content["figures"] | {"energy_j": content["figures"]["energy_j"] + 0.001}}
        cell.write_text(json.dumps(content | change))
    assert small.state() == [1, 0, 3]
    assert small.run().code == 0
    assert small.done_in_log() == 7 and small.log().count("is changed or of another version") == 3
    assert small.state() == [4, 0, 0] and small.bytes() == before


def test_a_failed_run_is_a_row_and_the_rest_goes_on(small):
    flag = small.folder / "flag"
    condition = f"self.settings.order == 'asc' and not Path({str(flag)!r}).exists()"
    small.declare(scheduler=small.slow(then=f"if {condition}: {FAIL}"))
    ended = small.run()
    assert ended.code == 1 and "2 runs failed" in ended.err
    rows = small.rows()
    assert [row["status"] for row in rows] == ["done", "done", "failed", "failed"]
    error = rows[2]["error"]
    assert "raised ValueError: no luck (slow.py:10, in onSimulationBegins)" in error
    assert str(small.folder) not in error and rows[2]["makespan_s"] is None
    assert "failed" in small.log() and "no luck" in small.log()
    # tried again, and fails again
    before = small.bytes()
    assert small.batwatt("resume").code == 1
    assert small.log().count("Z failed ") == 4 and small.done_in_log() == 2
    assert small.bytes() == before
    # what made it fail has gone
    flag.touch()
    assert small.batwatt("resume").code == 0
    assert [row["status"] for row in small.rows()] == ["done"] * 4


def test_files_are_kept_where_they_are_asked_for(small):
    small.declare(keep=[{"order": "asc", "workload": "a"}])
    assert small.run().code == 0
    key = small.rows()[2]["key"]
    assert [path.name for path in (small.out / "runs").iterdir()] == [key]
    names = {path.name for path in (small.out / "runs" / key).iterdir()}
    assert {"run_jobs.csv", "run_power.csv", "run_metrics.json", "run_metadata.json", "run_machine_states.csv"} <= names
    assert json.loads((small.out / "runs" / key / "run_metrics.json").read_text())["makespan_s"] == 20.0
    # what is asked for again replaces what is there, all files at once
    (small.out / "cells" / f"{key}.json").unlink()
    (small.out / "runs" / key / "run_jobs.csv").unlink()
    assert small.batwatt("resume").code == 0
    assert (small.out / "runs" / key / "run_jobs.csv").stat().st_size > 100
    # asking for more runs only those again; the table stays
    before = small.bytes()
    small.declare(keep=True)
    assert small.run().code == 0
    assert small.done_in_log() == 8 and len(list((small.out / "runs").iterdir())) == 4
    assert small.bytes() == before


def test_events_of_a_later_study_are_read_before_the_first_run(small):
    small.house.write("events.txt", "{")
    small.declare_all({"one": small.study, "two": small.study | {"events": "events.txt"}})
    ended = small.run()
    assert ended.code == 2 and "events.txt: line 1: " in ended.line and not small.cells()


def test_studies_one_at_a_time_give_the_same_table(small):
    """Equal runs of two studies are one."""
    other = small.study | {"workloads": ["w/b.json"], "label": "B {order}"}
    yaml = small.declare_all({"one": small.study, "two": other})
    assert small.run("--only", "two").code == 0
    assert small.done_in_log() == 2 and [row["comparison"] for row in small.rows()] == ["one"] * 2 + ["two"] * 2
    assert small.run("--only", "one").code == 0
    rows = small.rows()
    assert small.done_in_log() == 4 and [row["comparison"] for row in rows] == ["one"] * 4 + ["two"] * 2
    assert [row["case"] for row in rows[4:]] == ["B fcfs", "B asc"] and rows[4]["key"] == rows[1]["key"]
    assert "no comparison 'tow'; did you mean 'two'?" in small.run("--only", "tow", yaml=yaml).line


def test_a_folder_is_resumed_as_it_was_run(small):
    yaml = small.declare()
    small.run()
    before = small.bytes()
    small.cells()[0].unlink()
    small.declare(grid={"order": ["desc"]})
    ended = small.batwatt("resume")
    assert ended.code == 0 and f"{yaml} has changed since" in ended.err
    assert small.bytes() == before and small.done_in_log() == 5
    # moved as a whole, it still finds its inputs
    moved = small.folder.with_name("moved")
    cell = small.cells()[0]
    small.folder.rename(moved)
    (moved / "results" / "tiny" / "cells" / cell.name).unlink()
    assert small.house.batwatt("study", moved / "results" / "tiny").code == 0


def test_the_log_and_the_files(small):
    scheduler = small.slow(then="self.logger.warning('hm')")
    small.declare(workloads=["w/a.json"], grid={"order": ["fcfs"]}, keep=True, scheduler=scheduler)
    small.run()
    assert "\n" in small.log() and "  hm" in small.log()
    assert "start: 1 of 1 runs to do, batwatt" in small.log() and "Z end: 0 failed" in small.log()
    assert "s only: fcfs, p a envelope embedded" in small.log()
    names = [".lock", "cells", "origin.json", "report", "runs", "study.log", "study.yaml", "table.parquet"]
    assert sorted(path.name for path in small.out.iterdir()) == names
    with (small.out / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = small.run()
        assert ended.code == 1 and "another process works on this study" in ended.line
        # looking is allowed
        assert small.batwatt("status").code == 0


def test_the_optimum_is_a_row_with_its_bound(small):
    """Two jobs that each need all servers follow each other: 1.5 is the best there is, and provably so."""
    envelope = small.house.write("plenty.csv", "time_s,power_w\n0,100000\n300,90000\n3600,90000\n").name
    flops = {"nb_res": 4, "jobs": TWO, "profiles": {"nap": {"type": "parallel_homogeneous", "cpu": 1e12, "com": 0}}}
    jobs = small.house.write("flops.json", json.dumps(flops)).name
    case = {"label": "Optimum", "scheduler": "optimum", "options": {"effort": 1}}
    small.declare(workloads=[jobs], envelopes=[envelope], cases=[case], keep=[{"case": "Optimum"}])
    ended = small.run()
    assert ended.code == 0, small.rows()[-1]["error"]
    best = small.rows()[-1]
    assert best["case"] == "Optimum" and best["scheduler"] == "optimum" and best["options"] == '{"effort":1}'
    assert best["mean_slowdown"] == pytest.approx(1.5) and best["violations"] == 0
    assert best["proven_optimal"] is True and best["gap"] == 0.0
    assert best["lower_bound"] == pytest.approx(1.5)
    assert (small.out / "runs" / best["key"] / "run_plan.json").is_file()


def test_status_and_clean_import_no_scheduler(small):
    """Only run and resume do; a file that has changed since is one that has not run."""
    imports = small.folder / "imports"
    text = f"open({str(imports)!r}, 'a').write('x')\nfrom batwatt.schedulers.powercap import Powercap\n\n\n"
    small.house.write("own.py", f"{text}class Own(Powercap):\n    pass\n")
    small.declare(scheduler="own.py", seeds=[1], options={"response": "none", "forecast_error": 0.1})
    assert small.run().code == 0
    count = len(imports.read_text())
    assert small.state() == [4, 0, 0] and "0 stale" in small.batwatt("clean").out
    small.house.write("own.py", f"{text}class Own(Powercap):\n    old = 1\n")
    assert small.state() == [0, 0, 4]
    for content in ("[]", '{"study": "../../tiny.yaml"}', '{"study": "../../tiny.yaml", "schedulers": {"x": 3}}'):
        (small.out / "origin.json").write_text(content)
        assert small.batwatt("status").code == (2 if content == "[]" else 0)
    assert len(imports.read_text()) == count
    (small.out / "origin.json").write_text('{"study": "../../tiny.yaml"}')
    assert small.batwatt("resume").code == 0 and len(imports.read_text()) > count
