"""Dumps of sacct as jobs: each rule of the docstring by hand, and real dumps where there are some."""

from __future__ import annotations

import gzip
import logging
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.traces.convert import convert_file, format_of, read_trace
from batwatt.inputs.traces.job_log import USUAL, LogOptions, duration_s

ROOT = Path(__file__).resolve().parents[2]
ODDITIES = ROOT / "tests" / "data" / "oddities.sacct"
SITES = ROOT.parent / "shared" / "data" / "sites" / "sacct"
needs_sites = pytest.mark.skipif(not SITES.is_dir(), reason=f"no real dumps in {SITES}")


def written(folder: Path, text: str, name: str = "dump.sacct") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def jobs_in(path: Path, options: LogOptions = USUAL):
    return read_trace(path, log=options)


def test_oddities(caplog):
    with caplog.at_level(logging.WARNING):
        jobs = jobs_in(ODDITIES)
    assert [record.getMessage() for record in caplog.records] == [
        f"{ODDITIES}: 8 jobs; 7 of 15 lines of jobs are left out: 1 malformed, 1 pending, 1 running, "
        "1 without a run time, 1 never ran, 1 without a width, 1 listed twice",
        # the submission of 103
        f"{ODDITIES}: 0 s is 2024-03-01T09:59:50Z, the first submission",
    ]
    assert [(job.id, job.submit_s, job.run_s, job.cpus, job.requested_s) for job in jobs] == [
        ("101", 10, 3600, 4, 93784),
        ("102", 20, 3600, 8, 7200),
        ("103_1", 0, 300, 1, 300),
        ("103_2", 0, 300, 1, None),
        ("104+0", 10, 60, 2, None),
        ("104+1", 10, 60, 3, None),
        ("105", 10, 20, 2, 600),
        ("105-2", 30, 40, 2, 600),
    ]
    physics = {"user": "ann", "group": "physics", "queue": "long"}
    short = {"user": "bob", "queue": "short"}
    chem = {"user": "eve", "group": "chem", "queue": "long"}
    assert [dict(job.extra) for job in jobs] == [
        # its own energy, not that of its step
        {"memory": 8, "start_s": 1810, "power_w": 10, **physics},
        # 500 MB x 8; the step with the most
        {"memory": 3.90625, "start_s": 1810, "power_w": 2, **physics},
        # 2^31 + 2800 MB are 2800 MB a CPU
        {"memory": 2.734375, "start_s": 10, **short},
        {"memory": 125, "start_s": 10, **short},
        {"start_s": 10, "power_w": 1, **short},
        {"start_s": 10, "power_w": 1, **short},
        {"start_s": 10, **chem},
        # the step stands behind the second run
        {"start_s": 190, "power_w": 10, **chem},
    ]


def test_nodes_instead_of_cpus():
    # 109 has one, but no CPU
    assert [job.cpus for job in jobs_in(ODDITIES, LogOptions(width="nodes"))] == [1, 2, 1, 1, 1, 1, 1, 1, 1]


HEAD = "JobID|Submit|Start|End|Elapsed|NCPUS"
LINE = "7|2024-07-01T12:00:00|2024-07-01T12:10:00|2024-07-01T13:10:00|01:00:00|2"


@pytest.mark.parametrize(
    "head,line,submit_start_run_cpus",
    [
        (HEAD, LINE, (0, 600, 3600, 2)),
        # no start: none is known; a submission by its eligibility
        ("JobID|Eligible|Elapsed|ReqCPUS", "7|2024-07-01T12:00:00|1-00:00:01|3", (0, None, 86401, 3)),
        # a run time of its ends; a submission by its start
        ("jobid|start|end|alloctres", "7|2024-07-01T12:00:00|2024-07-01T12:00:09|mem=1G,cpu=5", (0, 0, 9, 5)),
        # the first field with something counts
        ("JobID|Submit|ElapsedRaw|Elapsed|AllocCPUS|NCPUS", "7|2024-07-01T12:00:00||00:05|0|4", (0, None, 5, 4)),
        # s since 1970, and sacct -p with a separator at the end
        ("JobIDRaw|Submit|Start|ElapsedRaw|NCPUS|", "7|1719828000|1719828060|30|1|", (0, 60, 30, 1)),
        # offsets from UTC
        ("JobID|Submit|Start|ElapsedRaw|NCPUS", "7|2024-07-01T12:00:00Z|2024-07-01T14:00:05+0200|9|1", (0, 5, 9, 1)),
        # a start before the submission is by another clock
        ("JobID|Submit|Start|ElapsedRaw|NCPUS", "7|2024-07-01T12:00:00|2024-07-01T11:59:59|9|1", (0, 0, 9, 1)),
    ],
)
def test_which_field_counts(tmp_path: Path, head: str, line: str, submit_start_run_cpus):
    [job] = jobs_in(written(tmp_path, f"{head}\n{line}\n"))
    assert (job.submit_s, job.extra.get("start_s"), job.run_s, job.cpus) == submit_start_run_cpus


@pytest.mark.parametrize("tz,jobs", [("Europe/Berlin", 1), ("UTC", 0), ("Asia/Tokyo", 0)])
def test_the_hour_that_comes_twice_is_told(tmp_path: Path, caplog, tz: str, jobs: int):
    rows = [f"{n}|2024-10-27T0{n}:30:00|2024-10-27T05:00:00|x|00:10|1\n" for n in (1, 2, 3)]
    jobs_in(written(tmp_path, f"{HEAD}\n{''.join(rows)}"), LogOptions(tz=tz))
    lines = [line for line in caplog.messages if "in an hour that" in line]
    assert len(lines) == jobs and all(f"1 jobs are submitted in an hour that {tz} has twice" in line for line in lines)


def test_time_zones_and_begin(tmp_path: Path):
    # in Berlin 02:30 comes twice on that day, first in summer time: 00:30 UTC; 03:30 is 02:30 UTC
    dump = written(tmp_path, f"{HEAD}\n1|2024-10-27T02:30:00|2024-10-27T03:30:00|x|00:10|1\n")
    berlin = LogOptions(tz="Europe/Berlin")
    assert jobs_in(dump)[0].extra["start_s"] == 3600
    assert jobs_in(dump, berlin)[0].extra["start_s"] == 7200
    begun = LogOptions(tz="Europe/Berlin", begin="2024-10-27")
    assert (jobs_in(dump, begun)[0].submit_s, jobs_in(dump, begun)[0].extra["start_s"]) == (9000, 16200)
    utc = LogOptions(begin="2024-10-27T02:00:00Z")
    assert jobs_in(dump, utc)[0].submit_s == 1800


def test_submitted_before_the_beginning(caplog):
    jobs = jobs_in(ODDITIES, LogOptions(begin="2024-03-01T10:00:10"))
    assert [(job.id, job.submit_s) for job in jobs] == [("102", 0), ("105-2", 10)]
    # 101, both of 103 and of 104, and the first run of 105
    assert "6 of 8 jobs are left out, submitted before 2024-03-01T10:00:10" in caplog.text


@pytest.mark.parametrize(
    "options,said",
    [
        ({"tz": "Europe/Atlantis"}, "tz 'Europe/Atlantis' is no known time zone"),
        ({"tz": "Europe/Atlantis", "begin": "2024-01-01"}, "tz 'Europe/Atlantis' is no known time zone"),
        ({"begin": "tomorrow"}, "begin 'tomorrow' is not a date"),
        ({"begin": -5}, "begin '-5' is not a date"),
        ({"begin": [5]}, "begin must be a text, got list"),
        ({"tz": 5}, "tz must be a text, got 5"),
        ({"fields": 5}, "fields must be names, got 5"),
        ({"width": "gpus"}, "no value of width 'gpus'"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(InputError, match=said):
        LogOptions(**options)


def test_steps_apart_from_their_jobs(tmp_path: Path):
    head = "JobID|Submit|ElapsedRaw|NCPUS|ConsumedEnergy"
    lines = ["8.0||5|1|2K", "8.1||5|1|1.5K", "7|2024-07-01T12:00:00|10|1|", "8|2024-07-01T12:00:00|10|1|", "7.0|||1|30"]
    jobs = jobs_in(written(tmp_path, "\n".join([head, *lines]) + "\n"))
    assert [(job.id, job.extra["power_w"]) for job in jobs] == [("7", 3), ("8", 200)]


def test_joined_dumps(tmp_path: Path):
    other = LINE.replace("7|", "8|", 1)
    again = LINE.replace("12:10:00", "12:30:00")
    # the name that a later run would have is taken
    taken = LINE.replace("7|", "7-2|", 1)
    path = written(tmp_path, "\n".join([HEAD, LINE, HEAD, other, LINE, again, taken, ""]))
    assert [job.id for job in jobs_in(path)] == ["7", "8", "7-3", "7-2"]


def test_converted_from_its_beginning(tmp_path: Path):
    path = written(tmp_path, f"{HEAD}\n{LINE}\n")
    [job] = convert_file(path, log=LogOptions(begin="2024-07-01")).workload["jobs"]
    assert (job["subtime"], job["start_s"]) == (43200, 43800)


def test_found_by_its_header(tmp_path: Path):
    text = f"{HEAD}\n{LINE}\n"
    assert format_of(written(tmp_path, text, "dump.txt")) == format_of(written(tmp_path, text, "a.csv")) == "sacct"
    assert format_of(written(tmp_path, "1 0 5 2\n", "b.txt")) == "txt"
    assert format_of(written(tmp_path, "arrival_time|length|cpus\n", "b.csv")) == "csv"
    packed = tmp_path / "dump.txt.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert [job.id for job in read_trace(packed)] == ["7"]


def test_with_commas(tmp_path: Path):
    head = "JobID,QOS,NCPUS,NNodes,AllocTRES,Submit,Start,End,ElapsedRaw,State\n"
    lines = '1,high,36,1,"billing=8,cpu=40",1703688808,1703688818,1703688878,60,COMPLETED\n'
    path = written(tmp_path, head + lines, "subset.csv")
    [job] = read_trace(path)
    assert (job.id, job.run_s, job.cpus, dict(job.extra)) == ("1", 60, 40, {"start_s": 10, "qos": "high"})
    assert format_of(written(tmp_path, "arrival_time,length,cpus,JobID\n0,1,1,7\n", "own.csv")) == "csv"


def test_without_a_header(tmp_path: Path):
    path = written(tmp_path, f"{LINE}\n", "dump.txt")
    log = LogOptions(fields=tuple(HEAD.split("|")))
    assert read_trace(path, log=log)[0].id == "7"
    assert convert_file(path, log=log).workload["jobs"][0] == {
        "id": "7", "subtime": 0, "res": 2, "walltime": 7200, "profile": "delay3600", "start_s": 600,
    }  # fmt: skip
    # with it, it is no job
    assert len(read_trace(written(tmp_path, f"{HEAD}\n{LINE}\n"), log=log)) == 1


@pytest.mark.parametrize(
    "text,said",
    [
        ("", "line 1 names no fields such as JobID"),
        (f"{LINE}\n", "line 1 names no fields such as JobID"),
        ("User|Submit|Elapsed|NCPUS\n", "line 1 names no fields such as JobID"),
        ("JobID|Submit|Elapsed\n", "has no field of the width; sacct has alloccpus, alloctres, ncpus, reqcpus"),
        ("JobID|Submit|NCPUS|Start\n", "has no field of the run time"),
        ("JobID|Elapsed|NCPUS\n", "has no field of the submission"),
        ("JobID|Submit|NCPUS|Elapsed|elapsed\n", "has the field 'elapsed' twice"),
        (f"{HEAD}\n", "holds no job"),
        (f"{HEAD}\n7|x|y\n", "holds no job"),
        (f"{HEAD}\n7|x|y|z|00:00|1\n", "no job that ran"),
    ],
)
def test_bad_dumps(tmp_path: Path, text: str, said: str):
    with pytest.raises(InputError) as caught:
        jobs_in(written(tmp_path, text))
    assert said in str(caught.value) and str(tmp_path / "dump.sacct") in str(caught.value)


def test_options_of_logs_are_for_logs(tmp_path: Path):
    path = written(tmp_path, "arrival_time,length,cpus\n0,1,1\n", "jobs.csv")
    with pytest.raises(InputError, match="width and fields are for sacct"):
        read_trace(path, log=LogOptions(width="nodes"))


@pytest.mark.parametrize(
    "text,seconds",
    [
        ("1-02:03:04", 93784), ("26:03:04", 93784), ("02:03", 123), ("02:03.5", 123.5), ("90", 5400), ("2-12", 216000),
        ("0-01:30", 5400), ("UNLIMITED", None), ("Partition_Limit", None), ("", None), ("1:2:3:4", None), ("-5", None),
        ("nan", None), ("-1-00:00:00", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None):
    found = duration_s(text)
    assert found == seconds if seconds is not None else found != found


@given(st.integers(0, 10**9))
def test_durations_as_slurm_writes_them(seconds: int):
    days, rest = divmod(seconds, 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    assert duration_s(f"{days}-{text}" if days else text) == seconds


@pytest.mark.parametrize(
    "text,memory_gb",
    [
        # 4 CPUs on 2 nodes; bytes / 2^30
        ("4194304K", 4), ("4096M", 4), ("4G", 4), ("0.5T", 512), ("1.5g", 1.5), ("4096", 4),
        ("512Mc", 2), ("512c", 2), ("512Kc", 4 * 512 / 2**20), ("1Gn", 2), ("1.5Tn", 3072), ("2048n", 4),
        (str(2**31 + 512), 2), (str(2**63 + 512), 2), (f"{2**63 + 512}M", 2), (str(2**27 - 1), 2**17 - 2**-10),
        ("0", None), ("0n", None), ("", None), ("?", None), ("-4G", None), ("²M", None), ("1_0G", None),
        ("1e308T", None),
    ],
)  # fmt: skip
def test_units_of_memory(tmp_path: Path, text: str, memory_gb: float | None):
    # as convert_num_unit2 of Slurm writes them: steps of 1024 from MB, a number alone with its flag "raw"
    head, line = f"{HEAD}|NNodes|ReqMem", "7|2024-07-01T12:00:00|2024-07-01T12:10:00|Unknown|01:00:00|4|2"
    [job] = jobs_in(written(tmp_path, f"{head}\n{line}|{text}\n"))
    expected = None if memory_gb is None else round(memory_gb, 6)
    assert job.extra.get("memory") == expected


@pytest.mark.parametrize("field", ["ReqMem", "AllocTRES"])
@pytest.mark.parametrize("text", [str(2**27), str(2**30), str(4 * 2**30), f"{2**35}n", str(2**31 + 2**27), "9" * 19])
def test_memory_in_bytes_is_refused(tmp_path: Path, text: str, field: str):
    cell = text if field == "ReqMem" else f"cpu=2,mem={text},node=1"
    path = written(tmp_path, f"{HEAD}|{field}\n{LINE}|{cell}\n")
    with pytest.raises(InputError, match=rf"memory {text} without a unit is in MB for Slurm.*bytes / 1024 and K"):
        jobs_in(path)


@pytest.mark.parametrize(
    "cells,said",
    [
        ("²²²²²²²²²|01:00:00", "1 without a submission"),
        ("-001-01-01T00:00:00|01:00:00", "1 without a submission"),
        ("0001-01-01T00:00:00+05:00|01:00:00", "1 without a submission"),
        ("2024-07-01T12:00:00|" + "1" * 400 + "-00:00:00", "1 without a run time"),
        ("2024-07-01T12:00:00|" + "1" * 5000, "1 without a run time"),
        ("2024-07-01T12:00:00|1_0", "1 without a run time"),
        ("1709287200000|01:00:00", "divide all its times by 1000 if they are milliseconds since 1970"),
    ],
)
def test_odd_digits_and_sizes(tmp_path: Path, caplog, cells: str, said: str):
    path = written(tmp_path, f"JobID|Submit|Elapsed|NCPUS\n7|{cells}|2\n")
    with caplog.at_level(logging.WARNING), pytest.raises(InputError) as caught:
        jobs_in(path)
    assert said in f"{caplog.text} {caught.value}"


def test_parts_make_no_difference(monkeypatch):
    whole = list(jobs_in(ODDITIES))
    for rows in (1, 2, 3):
        monkeypatch.setattr("batwatt.inputs.traces.sacct.ROWS", rows)
        assert list(jobs_in(ODDITIES)) == whole


def test_read_by_the_api():
    with pytest.raises(InputError, match="no option 'zone'; known: width, fields, tz, begin"):
        bw.Workload.read(ODDITIES, zone="UTC")
    early = bw.Workload.read(ODDITIES, begin="2024-03-01", width="nodes")
    assert (early.jobs[0].submit_time_s, early.nb_res) == (35990, 2)
    workload = bw.Workload.read(ODDITIES)
    assert (len(workload.jobs), workload.nb_res) == (8, 8)
    power_w = workload.frame().groupby("user")["power_w"].mean().to_dict()
    assert power_w == {"ann": 6, "bob": 1, "eve": 10}


@needs_sites
def test_a_real_dump_without_a_header(caplog):
    fields = (SITES / "xdmod-header.txt").read_text().strip()
    log = LogOptions(fields=tuple(fields.split("|")))
    jobs = read_trace(SITES / "xdmod-pozidriv-700.txt", log=log)
    assert "645 jobs; 55 of 700 lines of jobs are left out: 55 never ran" in caplog.text
    assert len(set(jobs.ids)) == 645 and jobs.submit_s.min() == 0.0
    # by the shell: cut -d'|' -f 4,22 ... | sort | uniq -c
    lines = [line.split("|") for line in (SITES / "xdmod-pozidriv-700.txt").read_text().splitlines()]
    ran = [line for line in lines if line[24] != "None assigned"]
    assert Counter(jobs.labels["queue"].tolist()) == Counter(line[3] for line in ran)
    assert jobs.cpus.sum() == sum(int(line[18]) for line in ran)


@needs_sites
def test_a_real_dump_joined_with_its_header(tmp_path: Path):
    text = (SITES / "xdmod-header.txt").read_text() + (SITES / "xdmod-pozidriv-700.txt").read_text()
    assert len(read_trace(written(tmp_path, text, "xdmod.txt"))) == 645


@needs_sites
def test_a_real_dump_without_starts():
    first, second = read_trace(SITES / "greenalgorithms-example.txt")
    assert (first.run_s, first.cpus, first.extra["memory"]) == (14425, 1, 6.601562)
    assert (second.submit_s, second.run_s, second.cpus, "start_s" in second.extra) == (67452, 10830, 32, False)
