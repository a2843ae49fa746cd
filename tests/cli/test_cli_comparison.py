"""`batwatt compare`, and envelopes that are written as one text."""

from __future__ import annotations

import html
import json
import os
import resource
import signal as signals

import pytest
from cli_house import JOBS, SMALL, unstyled

from batwatt.studies import cases as studies_cases

TRACE = "arrival_time,length,cpus,user\n" + "".join(
    f"{97 * i},{300 + 90 * (i % 5)},{1 + i % 3},{'ab'[i % 2]}\n" for i in range(25)
)
SOLAR = "time,power_kw\n" + "".join(
    f"2024-07-01T{hour:02d}:00Z,{max(0.0, 1.6 - 0.2 * abs(hour - 8)):.2f}\n" for hour in range(24)
)
ENVELOPE = "power:{folder}/solar.csv,peak_w=100,repeat=yes + constant:40"


@pytest.fixture
def site(house):
    house.write("jobs.csv", TRACE)
    house.write("solar.csv", SOLAR)
    return house


def compare(house, *args, envelope=ENVELOPE, machines=("--machines", 12, "--cores", 1)):
    words = ("-w", house.folder / "jobs.csv", *machines, "-e", house.out / "cmp")
    return house.batwatt("compare", *words, "--envelope", envelope.format(folder=house.folder), *args)


def test_from_raw_files_to_the_answer(site):
    cases = ("-c", 'no limit=powercap {"response": "none"}', "-c", 'LWW=varcap {"termination": "lww"}')
    done = compare(site, *cases, "-j", 1, "--json")
    assert done.code == 0, done.err
    rows = {row["case"]: row for row in json.loads(done.out)}
    assert list(rows) == ["no limit", "LWW"]
    names = ("jobs_finished", "jobs_rejected", "jobs_failed", "jobs_unfinished", "killed_walltime", "killed_power")
    assert all(sum(row[name] for name in names) >= 25 for row in rows.values())
    assert rows["no limit"]["violations"] > 0 and rows["LWW"]["violations"] == 0
    table = site.rows("cmp_comparison.csv")
    assert [row["case"] for row in table] == list(rows)
    page = (site.out / "cmp.html").read_text()
    assert "Comparison of 2 cases on 25 jobs" in page and "batwatt compare -w " in page
    jobs = site.rows("cmp_jobs.csv")
    assert len(jobs) == 25 * len(rows) and {row["user"] for row in jobs} == {"a", "b"}


def test_cases_need_no_label_and_the_systems_are_the_default(site, monkeypatch):
    done = compare(site, "-c", "easyBackfill", "-c", "varcap termination=lww", "-j", 1)
    assert done.code == 0, done.err
    assert [row["case"] for row in site.rows("cmp_comparison.csv")] == ["easyBackfill", "varcap termination=lww"]
    names = ("as today", "adaptive")
    monkeypatch.setattr(studies_cases, "SYSTEMS", {name: studies_cases.SYSTEMS[name] for name in names})
    for words in ((), ("-c", "systems")):
        assert compare(site, *words, "-j", 1).code == 0
        assert [row["case"] for row in site.rows("cmp_comparison.csv")] == list(names)


def test_options_as_pairs_as_an_object_and_as_a_file_are_the_same(house):
    options = '{"order": "slowdown", "response": "hfld", "forecast_error": 0.2, "shift": null}'
    file = house.write("options.json", options)
    pairs = ("-o", "order=slowdown", "-o", "response=hfld", "-o", "forecast_error=0.2", "-o", "shift=null")
    texts = []
    for words in (pairs, ("-o", options), ("-o", f"@{file}"), ("-o", "order=slowdown", "-o", f"@{file}")):
        done = house.batwatt(
            "run", "-p", SMALL, "-w", JOBS, "--envelope", house.envelope, *words, "-e", house.out / "x"
        )
        assert done.code == 0, done.err
        texts.append((house.out / "x_jobs.csv").read_text())
    assert len(set(texts)) == 1


def test_what_readers_left_out_is_on_the_page(site):
    """The warnings of the command line, of the jobs, of the power and of requests."""
    cases = ("-c", "mine=varcap", "-j", 1)
    done = compare(site, *cases, envelope="constant:90")
    [end, *verdict, requests] = done.err.splitlines()
    assert verdict[0].startswith("Run “mine”: only it keeps to the envelope") and len(verdict) == 2
    assert end == "case mine has ended: 1 of 1 runs" and "jobs.csv: 25 of 25 jobs request no run time" in requests
    assert requests.removeprefix("WARNING: ") in html.unescape((site.out / "cmp.html").read_text())
    site.write("jobs.csv", TRACE + "99,0,1,a\n")
    site.write("solar.csv", SOLAR.replace("T00:00Z,0.00", "T00:00Z,-0.01"))
    done = compare(site, *cases)
    page = (site.out / "cmp.html").read_text()
    jobs = f"{site.folder}/jobs.csv: 1 of 26 jobs are skipped, their length or width is 0 or unknown"
    power = f"{site.folder}/solar.csv: 1 values below 0 (to -0.01) taken as 0"
    clock = f"0 s is 2024-07-01T00:00Z, the first row of {site.folder}/solar.csv; "
    clock += f"without dates, from 0 s on: {site.folder}/jobs.csv"
    lines = (jobs, power, clock)
    assert [f"WARNING: {line}" in done.err and f"<li>{line}</li>" in page for line in lines] == [True] * 3
    assert compare(site, *cases, "--quiet").err == "" and page.split("<main")[1].count("<li>") == 4


DYING = """import os, signal
from batwatt.schedulers.varcap import Varcap

class Dying(Varcap):
    def onSimulationBegins(self):
        os.kill(os.getpid(), signal.SIG{signal})
        super().onSimulationBegins()
"""


def three_cases(site, signal: str) -> tuple[str, ...]:
    """Of three cases the first one ends well, and the second one sends a signal."""
    return (
        "-c",
        "one=varcap",
        "-c",
        f"two={site.write('dying.py', DYING.format(signal=signal))}",
        "-c",
        'last=varcap {"backfilling": "easy"}',
        "-j",
        1,
    )


@pytest.mark.parametrize("signal, code", [("INT", 130), ("TERM", 143)])
def test_an_interrupted_comparison_keeps_the_cases_that_have_ended(site, signal, code):
    done = compare(site, *three_cases(site, signal), "--keep", "--by", "size")
    assert done.code == code
    assert done.err.splitlines()[1:] == [
        "case one has ended: 1 of 3 runs",
        f"the cases that have ended: {site.out}/cmp.html, _comparison.csv, _jobs.csv; the same command runs the others",
        f"batwatt: ended by SIG{signal}",
    ]
    assert [row["case"] for row in site.rows("cmp_comparison.csv")] == ["one"] and len(site.rows("cmp_jobs.csv")) == 25
    page = (site.out / "cmp.html").read_text()
    assert "Comparison of 1 case on 25 jobs" in page and page.count("its runs have not all ended") == 2
    assert "cmp-one_jobs.csv" in site.left and not [
        name for name in site.left if name.startswith((".batwatt", "cmp-last"))
    ]


def test_a_killed_comparison_leaves_the_page_of_the_cases_that_have_ended(site, monkeypatch):
    monkeypatch.setattr("batwatt.cli.comparison.SAVED_EVERY_S", 0.0)
    cases = three_cases(site, "KILL")
    child = os.fork()
    if child == 0:
        compare(site, *cases)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signals.SIGKILL
    assert [row["case"] for row in site.rows("cmp_comparison.csv")] == ["one"]
    assert "Comparison of 1 case on 25 jobs" in (site.out / "cmp.html").read_text()


def test_a_case_that_fails_costs_no_other(site):
    done = compare(site, "-c", "one=varcap", "-c", 'two=powercap {"envelope": "nowhere.csv"}', "-j", 1)
    assert done.code == 2 and "case 'two'" in done.err.splitlines()[-1]
    assert [row["case"] for row in site.rows("cmp_comparison.csv")] == ["one"]
    assert "nowhere.csv" in (site.out / "cmp.html").read_text()


def test_a_full_disk(site):
    """A limit on the size of files hits the cell of a run: one line, and no file is there."""
    words = ("-w", site.folder / "jobs.csv", "--machines", 12, "--cores", 1, "--envelope", "constant:900", "-j", 1)
    limits = (2000, resource.RLIM_INFINITY)
    command = ("--quiet", "compare", *words, "-c", "mine=varcap", "-e", site.out / "cmp")
    done = site.end(site.start(*command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)))
    assert done.code == 1 and "cannot be written (File too large); nothing finished is lost; make room" in done.line
    assert site.left == [".lock", "cells", "cmp_cells"]


def test_groups(site):
    cases = ("-c", "mine=varcap", "-c", "other=powercap", "-j", 1)
    lines = compare(site, *cases, "--by", "size").out.split("\n\n")
    assert [part.split("\t", 2)[:2] for part in lines] == [["case", "mean_bounded_slowdown"], ["case", "group"]]
    groups = json.loads(compare(site, *cases, "--by", "size", "--by", "user", "--json").out)["groups"]
    assert [row["group"] for row in groups] == ["1 host", "2 to 4 hosts"] * 2 + ["a", "b"] * 2
    assert [row["jobs"] for row in groups] == [9, 16] * 2 + [13, 12] * 2
    rows = site.rows("cmp_groups.csv")
    assert [(row["case"], row["group"]) for row in rows] == [(row["case"], row["group"]) for row in groups]


def test_charts_as_files(house):
    """Each chart of the page in each format; those of an earlier run are not left behind. Delays may run as work."""
    words = ("-p", SMALL, "-w", JOBS, "--envelope", house.envelope, "-e", house.out / "c", "-c", "a={}", "-j", 1)
    done = house.batwatt("compare", *words, "--figures", "svg, png", "--delays-to-flops")
    assert done.code == 0 and "are delays" not in done.err
    charts = sorted(path.name for path in house.out.glob("c_plot-*"))
    assert "c_plot-power-0.svg" in charts and {name.rpartition(".")[2] for name in charts} == {"svg", "png"}
    done = house.batwatt("compare", *words, "--no-delays-to-flops")
    assert done.code == 0 and "case 'a': " in done.err and "3 of 8 jobs are delays" in done.err
    assert not list(house.out.glob("c_plot-*"))


def test_settings_are_cases(site):
    """LABEL=OPTIONS is a case of powercap, next to cases that name a scheduler: equal rows."""
    cases = ("-c", 'a={"order": "asc"}', "-c", 'b=powercap {"order": "asc"}', "-c", "c=varcap")
    done = compare(site, *cases, "--json", "--samples", 2, "--by", "size")
    assert done.code == 0, done.err
    first, second, third = json.loads(done.out)["cases"]
    assert {**first, "case": "b"} == second and third["mean_wait_s"] != first["mean_wait_s"]
    assert {row["window"] for row in site.rows("cmp_comparison.csv")} == {"1", "2"}
    assert "over 2 windows" in html.unescape((site.out / "cmp.html").read_text())


def test_an_envelope_that_is_written_as_text(site):
    envelope = ENVELOPE.format(folder=site.folder)
    words = ("-w", site.folder / "jobs.csv", "--machines", 12, "--cores", 1, "-s", "varcap")
    done = site.batwatt("run", *words, "--envelope", envelope, "-e", site.out / "a")
    assert done.code == 0, done.err
    made = site.out / "a_envelope.csv"
    again = site.batwatt("run", *words, "--envelope", made, "-e", site.out / "b")
    assert again.code == 0, again.err
    assert site.file("a_jobs.csv") == site.file("b_jobs.csv") and site.metrics("a") == site.metrics("b")
    about = json.loads(site.file("a_metadata.json"))
    assert about["envelope"].startswith("power:") and list(about["inputs"]) == ["workload", "envelope"]


@pytest.mark.parametrize(("head", "unit"), [("price (EUR/MWh)", "EUR"), ("price (money/MWh)", "money")])
def test_the_cost_is_in_the_currency_of_the_price(site, terminal, head, unit):
    """The heading of the table and of the page; a program gets none if the price does not say."""
    site.write("price.csv", f"time_s,{head}\n0,100\n3600,200\n")
    words = ("-c", "mine=varcap", "-j", 1, "--price", f"{site.folder}/price.csv,repeat=yes")
    (row,) = json.loads(compare(site, *words, "--json").out)
    assert row["currency"] == (unit if unit == "EUR" else None)
    assert f"cost ({unit})" in (site.out / "cmp.html").read_text()
    terminal(200)
    assert unit in unstyled(compare(site, *words).out).split("─")[0].split()
