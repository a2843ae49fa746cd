"""Dumps of sacct and records of PBS as jobs."""

from __future__ import annotations

import math
import time
from functools import partial
from pathlib import Path

import pytest
from files_of_tests import refusal, written
from tables_of_jobs import core_of, more_of

from batwatt.inputs.batch_logs import USUAL, LogOptions, duration_s
from batwatt.inputs.convert import format_of, read_trace

ROOT = Path(__file__).resolve().parents[2]
ODDITIES = ROOT / "tests" / "data" / "oddities.sacct"
dump = partial(written, name="dump.sacct")


def jobs_in(path: Path, options: LogOptions = USUAL):
    return read_trace(path, log=options)


def test_oddities(caplog):
    jobs = jobs_in(ODDITIES)
    assert caplog.messages == [
        f"{ODDITIES}: 8 jobs; 7 of 15 lines of jobs are left out: 1 malformed, 1 pending, 1 running, "
        "1 without a run time, 1 never ran, 1 without a width, 1 listed twice",
        # the submission of 103
        f"{ODDITIES}: 0 s is 2024-03-01T09:59:50Z, the first submission",
    ]
    assert [core_of(job) for job in jobs] == [
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
    assert [more_of(job) for job in jobs] == [
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
        # with commas, as some are published
        ("JobID,NCPUS,AllocTRES,Submit,Start,ElapsedRaw", '7,36,"a=8,cpu=40",1703688808,1703688818,9', (0, 10, 9, 40)),
        # offsets from UTC
        ("JobID|Submit|Start|ElapsedRaw|NCPUS", "7|2024-07-01T12:00:00Z|2024-07-01T14:00:05+0200|9|1", (0, 5, 9, 1)),
        # a start before the submission is by another clock
        ("JobID|Submit|Start|ElapsedRaw|NCPUS", "7|2024-07-01T12:00:00|2024-07-01T11:59:59|9|1", (0, 0, 9, 1)),
    ],
)
def test_which_field_counts(tmp_path: Path, head: str, line: str, submit_start_run_cpus):
    [job] = jobs_in(dump(tmp_path, f"{head}\n{line}\n"))
    assert (job["submission_time_s"], job.get("start_s"), job["length_s"], job["hosts"]) == submit_start_run_cpus


@pytest.mark.parametrize("tz,jobs", [("Europe/Berlin", 1), ("UTC", 0)])
def test_the_hour_that_comes_twice_is_logged(tmp_path: Path, caplog, tz: str, jobs: int):
    rows = [f"{n}|2024-10-27T0{n}:30:00|2024-10-27T05:00:00|x|00:10|1\n" for n in (1, 2, 3)]
    jobs_in(dump(tmp_path, f"{HEAD}\n{''.join(rows)}"), LogOptions(tz=tz))
    assert caplog.text.count(f"1 jobs are submitted in an hour that {tz} has twice") == jobs
    assert caplog.text.count("in an hour that") == jobs


@pytest.mark.parametrize(
    "line,tz,run_s",
    [
        # 00:40Z to 01:10Z: the end is in the second of two equal hours
        ("2024-10-27T02:40:00|2024-10-27T02:10:00", "Europe/Berlin", 1800),
        ("2024-10-27T01:30:00|2024-10-27T03:30:00", "Europe/Berlin", 3 * 3600),
        ("2024-03-31T01:30:00|2024-03-31T03:30:00", "Europe/Berlin", 3600),
        # 05:50Z to 06:10Z; half an hour comes twice: 14:50Z to 15:05Z
        ("2024-11-03T01:50:00|2024-11-03T01:10:00", "America/New_York", 1200),
        ("2024-04-07T01:50:00|2024-04-07T01:35:00", "Australia/Lord_Howe", 900),
        # the end has its offset; another hour; a zone without a change
        ("2024-10-27T02:40:00|2024-10-27T00:10:00Z", "Europe/Berlin", None),
        ("2024-10-27T12:40:00|2024-10-27T12:10:00", "Europe/Berlin", None),
        ("2024-10-27T02:40:00|2024-10-27T02:10:00", "UTC", None),
    ],
)
def test_run_times_over_changes_of_clocks(tmp_path: Path, line: str, tz: str, run_s: float | None):
    head = "JobID|Submit|Start|End|NCPUS"
    path = dump(tmp_path, f"{head}\n7|2024-03-01T12:00:00|{line}|4\n")
    table = "job_id,submit_time,start_time,end_time,num_cores_alloc\n7,2024-03-01T12:00:00," + line.replace("|", ",")
    for log in (path, written(tmp_path, f"{table},4\n", "pm100.csv")):
        if run_s is None:
            assert "no job that ran" in refusal(jobs_in, log, LogOptions(tz=tz))
        else:
            assert [job["length_s"] for job in jobs_in(log, LogOptions(tz=tz))] == [run_s]


@pytest.mark.parametrize(
    "submit,start,end,wait_run_s",
    [
        # 00:50Z, 01:10Z, 01:40Z: in the first and in the second of two equal hours
        ("02:50:00", "02:10:00", "02:40:00", (1200, 1800)),
        ("02:50:00", "02:55:00", "02:05:00", (300, 600)),
        ("01:50:00", "02:10:00", "03:10:00", (1200, 7200)),
        # a start before the submission by another clock
        ("12:50:00", "12:49:59", "13:00:00", (0, 601)),
    ],
)
def test_waits_over_a_change_of_clocks(tmp_path: Path, submit: str, start: str, end: str, wait_run_s):
    dates = [f"2024-10-27T{time}" for time in (submit, start, end)]
    sacct = dump(tmp_path, f"JobID|Submit|Start|End|NCPUS\n7|{'|'.join(dates)}|4\n")
    head = "job_id,submit_time,start_time,end_time,num_cores_alloc"
    for log in (sacct, written(tmp_path, f"{head}\n7,{','.join(dates)},4\n", "pm100.csv")):
        [job] = jobs_in(log, LogOptions(tz="Europe/Berlin"))
        assert (job["start_s"], job["length_s"]) == wait_run_s


def test_starts_stand_for_submissions_with_a_remark(tmp_path: Path, caplog):
    late = "8||2024-07-01T12:30:00|9|1"
    path = dump(tmp_path, f"JobID|Submit|Start|ElapsedRaw|NCPUS\n7|2024-07-01T12:00:00|Unknown|9|1\n{late}\n")
    assert [(job["id"], job["submission_time_s"]) for job in jobs_in(path)] == [("7", 0), ("8", 1800)]
    assert f"{path}: 1 of 2 jobs state no submission: submitted at their start" in caplog.messages


def test_a_first_line_with_an_endless_quotation_is_no_header(tmp_path: Path):
    path = written(tmp_path, 'JobID,Submit,"' + "x" * 200_000 + "\n", "log.txt")
    assert "\n" not in refusal(read_trace, path)


def test_a_line_with_an_endless_quotation_is_malformed(tmp_path: Path, caplog):
    line = "7,1703688808,9,36"
    path = dump(tmp_path, f'JobID,Submit,ElapsedRaw,NCPUS\n{line}\n8,"{"x" * 200_000}\n{line.replace("7", "9", 1)}\n')
    assert [job["id"] for job in jobs_in(path)] == ["7", "9"]
    assert "1 of 3 lines of jobs are left out: 1 malformed" in caplog.text


@pytest.mark.parametrize(
    ("field", "cell"),
    [("AllocTRES", "a=" * 200_000 + " b"), ("Submit", "2024-01-01T" + "1" * 400_000 + " b")],
)
def test_long_cells_take_no_quadratic_time(tmp_path: Path, field: str, cell: str):
    names = ["JobID", "JobName", *dict.fromkeys(["Submit", "AllocTRES", field]), "ElapsedRaw", "NCPUS"]
    cells = {"JobID": "7", "JobName": "a", "Submit": "2024-03-01T10:00:00", "AllocTRES": "cpu=2", "ElapsedRaw": "9"}
    rows = ({name: name for name in names}, cells, cells | {field: cell, "JobName": "a|b"})
    path = dump(tmp_path, "\n".join("|".join(row.get(name, "2") for name in names) for row in rows))
    begin_s = time.process_time()
    assert [job["hosts"] for job in jobs_in(path)] == [2]
    assert time.process_time() - begin_s < 5.0


NAMED = "JobID|JobName|NNodes|AllocCPUS|Submit|Start|ElapsedRaw|State|ConsumedEnergyRaw"
DATES = "2024-03-01T10:00:00|2024-03-01T11:00:00"


@pytest.mark.parametrize("end", ["", "|"])
def test_separators_in_a_name(tmp_path: Path, caplog, end: str):
    lines = [
        NAMED,
        f"21|alpha|2|64|{DATES}|3600|COMPLETED|",
        f"22|beta|grep hot|2|64|{DATES}|3600|CANCELLED by 5|",
        f"23|a|2||3|2|64|{DATES}|1800|TIMEOUT|7200",
        f"23.batch|ba|tch|2|64|{DATES}|1800|COMPLETED|9000",
        # too short, and no name with which the cells are of their types
        f"24|a|64|{DATES}|1800|TIMEOUT",
        f"25|a|2|64|{DATES}|1800|TIMEOUT||b",
        "",
    ]
    path = dump(tmp_path, "".join(f"{line}{end if line else ''}\n" for line in lines))
    jobs = [(job["id"], job["hosts"], job["length_s"], job.get("power_w")) for job in jobs_in(path)]
    assert jobs == [("21", 64, 3600, None), ("22", 64, 3600, None), ("23", 64, 1800, 4)]
    assert f"{path}: 3 jobs; 2 of 5 lines of jobs are left out: 2 malformed" in caplog.messages


def test_line_1_decides_on_a_last_separator(tmp_path: Path):
    head, line = "JobID|JobName|State|Submit|Start|Elapsed|AllocCPUS", f"|COMPLETED|{DATES}|00:10:00|4"
    # names of two texts; as the line ends, its last cell is whole
    path = dump(tmp_path, f"{head}|\n1|a|b{line}|\n2|ab{line}|\n3|ab{line[:-1]}\n")
    for log in (USUAL, LogOptions(fields=head.replace("|", ","))):
        assert [(job["id"], job["length_s"], job["hosts"]) for job in jobs_in(path, log)] == [
            ("1", 600, 4),
            ("2", 600, 4),
        ]
    message = "holds no job: 1 lines have not the fields of line 1"
    assert message in refusal(jobs_in, dump(tmp_path, f"{head}|\n2|ab{line}\n"))
    assert message in refusal(jobs_in, dump(tmp_path, f"{head}\n2|ab{line}|\n"))


@pytest.mark.parametrize("end", ["", "|"])
@pytest.mark.parametrize("text", [("a|b", "c", "d"), ("a", "b|c", "d"), ("a|b", "c|d", "e|f"), ("a|b",)])
def test_fields_without_a_header(tmp_path: Path, text: tuple[str, ...], end: str):
    """The last field is empty: a line of sacct -P with a separator in a name looks like one of sacct -p."""
    fields = "JobID,JobName,State,Submit,Start,Elapsed,AllocCPUS,Timelimit"
    lines = [f"{id}|{name}|COMPLETED|{DATES}|00:10:00|4|{end}\n" for id, name in enumerate(text)]
    jobs = jobs_in(dump(tmp_path, "".join(lines)), LogOptions(fields=fields))
    assert [(job["id"], job["length_s"], job["hosts"]) for job in jobs] == [
        (str(id), 600, 4) for id in range(len(text))
    ]


def test_fields_of_lines_with_commas(tmp_path: Path):
    lines = f"1,{DATES},00:10:00,4\n2,{DATES},00:20:00,8\n".replace("|", ",")
    jobs = jobs_in(dump(tmp_path, lines), LogOptions(fields="JobID,Submit,Start,Elapsed,AllocCPUS"))
    assert [(job["id"], job["length_s"], job["hosts"]) for job in jobs] == [("1", 600, 4), ("2", 1200, 8)]


def test_a_separator_in_one_of_two_texts(tmp_path: Path, caplog):
    head = "JobID|JobName|User|Comment|Submit|Start|ElapsedRaw|NCPUS"
    # ann with the comment "x|y", or user x with the name "a|ann"
    unclear, clear = f"1|a|ann|x|y|{DATES}|60|1", f"2|a|ann|x|{DATES}|60|1"
    [job] = jobs_in(dump(tmp_path, f"{head}\n{unclear}\n{clear}\n"))
    assert (job["id"], job["user"]) == ("2", "ann")
    assert "1 of 2 lines of jobs are left out: 1 with a separator in one of several texts" in caplog.text
    # as Cluster is not read, both are the same job
    [job] = jobs_in(dump(tmp_path, f"{head.replace('User', 'Cluster')}\n{unclear}\n"))
    assert (job["id"], job["length_s"]) == ("1", 60)


def test_steps_apart_from_their_jobs(tmp_path: Path):
    head = "JobID|Submit|ElapsedRaw|NCPUS|ConsumedEnergy"
    lines = ["8.0||5|1|2K", "8.1||5|1|1.5K", "7|2024-07-01T12:00:00|10|1|", "8|2024-07-01T12:00:00|10|1|", "7.0|||1|30"]
    jobs = jobs_in(dump(tmp_path, "\n".join([head, *lines]) + "\n"))
    assert [(job["id"], job["power_w"]) for job in jobs] == [("7", 3), ("8", 200)]


def test_joined_dumps(tmp_path: Path):
    other = LINE.replace("7|", "8|", 1)
    again = LINE.replace("12:10:00", "12:30:00")
    # the name that a later run would have is taken
    taken = LINE.replace("7|", "7-2|", 1)
    path = dump(tmp_path, "\n".join([HEAD, LINE, HEAD, other, LINE, again, taken, ""]))
    for log in (USUAL, LogOptions(fields=HEAD.replace("|", ","))):
        assert [job["id"] for job in jobs_in(path, log)] == ["7", "8", "7-3", "7-2"]


def test_found_by_its_header(tmp_path: Path):
    text = f"{HEAD}\n{LINE}\n"
    assert format_of(written(tmp_path, text, "dump.txt")) == format_of(written(tmp_path, text, "a.csv")) == "sacct"
    assert format_of(written(tmp_path, "1 0 5 2\n", "b.txt")) == "txt"
    for header in ("arrival_time|length|cpus", "arrival_time,length,cpus,JobID"):
        assert format_of(written(tmp_path, f"{header}\n", "b.csv")) == "csv"


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "line 1 names no fields such as JobID"),
        (f"{LINE}\n", "line 1 names no fields such as JobID"),
        ("JobID|Submit|Elapsed\n", "has no field of the width; sacct has alloccpus, alloctres, ncpus, reqcpus"),
        ("JobID|Submit|NCPUS|Start\n", "has no field of the run time"),
        ("JobID|Submit|NCPUS|Elapsed|elapsed\n", "has the field 'elapsed' twice"),
        (f"{HEAD}\n", "holds no job"),
        (f"{HEAD}\n7|x|y|z|00:00|1\n", "no job that ran"),
    ],
)
def test_bad_dumps(tmp_path: Path, text: str, message: str):
    line = refusal(jobs_in, dump(tmp_path, text))
    assert message in line and str(tmp_path / "dump.sacct") in line


@pytest.mark.parametrize(
    "options,message",
    [
        ({"tz": "Europe/Atlantis"}, "tz 'Europe/Atlantis' is not a time zone"),
        ({"fields": 5}, "fields must be names, got 5"),
        ({"width": "gpus"}, "no value of width 'gpus'"),
    ],
)
def test_bad_options(options, message):
    assert message in refusal(LogOptions, **options)


@pytest.mark.parametrize(
    "text,seconds",
    [
        ("1-26:03:04", 180184), ("02:03", 123), ("02:03.5", 123.5), ("90", 5400), ("0-01:30", 5400),
        ("UNLIMITED", None), ("", None), ("1:2:3:4", None), ("-5", None), ("-1-00:00:00", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None):
    assert duration_s(text) == pytest.approx(math.nan if seconds is None else seconds, nan_ok=True, rel=1e-15)


@pytest.mark.parametrize(
    "text,memory_gb",
    [
        # 4 CPUs on 2 nodes; bytes / 2^30
        ("4194304K", 4), ("4096M", 4), ("0.5T", 512), ("4096", 4),
        ("512Mc", 2), ("512c", 2), ("1Gn", 2), ("1.5Tn", 3072), ("2048n", 4),
        (str(2**31 + 512), 2), (str(2**63 + 512), 2), (f"{2**63 + 512}M", 2), (str(2**27 - 1), 2**17 - 2**-10),
        ("0", None), ("", None), ("?", None), ("-4G", None), ("²M", None),
        ("1e308T", None),
    ],
)  # fmt: skip
def test_units_of_memory(tmp_path: Path, text: str, memory_gb: float | None):
    # as convert_num_unit2 of Slurm writes them: steps of 1024 from MB, a number alone with its flag "raw"
    head, line = f"{HEAD}|NNodes|ReqMem", "7|2024-07-01T12:00:00|2024-07-01T12:10:00|Unknown|01:00:00|4|2"
    [job] = jobs_in(dump(tmp_path, f"{head}\n{line}|{text}\n"))
    expected = None if memory_gb is None else round(memory_gb, 6)
    assert job.get("memory") == expected


def test_memory_in_bytes_is_refused(tmp_path: Path):
    for text in (str(2**27), f"{2**35}n", str(2**31 + 2**27), "9" * 19):
        for field, cell in (("ReqMem", text), ("AllocTRES", f"cpu=2,mem={text},node=1")):
            line = refusal(jobs_in, dump(tmp_path, f"{HEAD}|{field}\n{LINE}|{cell}\n"))
            assert f"memory {text} without a unit is in MB for Slurm" in line and "bytes / 1024 and K" in line


@pytest.mark.parametrize(
    "cells,message",
    [
        ("²²²²²²²²²|01:00:00", "1 without a submission"),
        ("2024-07-01T12:00:00|" + "1" * 400 + "-00:00:00", "1 without a run time"),
        ("1709287200000|01:00:00", "divide all its times by 1000 if they are milliseconds since 1970"),
    ],
)
def test_odd_digits_and_sizes(tmp_path: Path, caplog, cells: str, message: str):
    path = dump(tmp_path, f"JobID|Submit|Elapsed|NCPUS\n7|{cells}|2\n")
    line = refusal(jobs_in, path)
    assert message in f"{caplog.text} {line}"


def test_parts_make_no_difference(monkeypatch):
    whole = list(jobs_in(ODDITIES))
    for rows in (1, 2, 3):
        monkeypatch.setattr("batwatt.inputs.batch_logs.ROWS", rows)
        assert list(jobs_in(ODDITIES)) == whole
    # 109 has one node, but no CPU
    assert [job["hosts"] for job in jobs_in(ODDITIES, LogOptions(width="nodes"))] == [1, 2, 1, 1, 1, 1, 1, 1, 1]


TIMES = "ctime=1506830400 qtime=1506830400 etime=1506830400 start=1506830460"
PBS = f"""\
10/01/2017 00:00:00;Q;1.m1;queue=batch
10/01/2017 00:01:00;S;1.m1;user=ann group=bio queue=batch {TIMES}
10/01/2017 01:01:00;E;1.m1;user=ann group=bio jobname=a b queue=batch {TIMES} exec_host=c3/0-3,7+c4/2 \
Resource_List.nodes=2:ppn=3 Resource_List.walltime=30:00:00 unique_node_count=2 end=1506834060 \
resources_used.walltime=01:00:05
10/01/2017 01:01:01;E;2.m1;user=bob queue=long {TIMES} exec_host=n1/0*16 Resource_List.ncpus=24 \
Resource_List.nodect=1 end=1506830463 resources_used.walltime=00:00:00
not a record
10/01/2017 01:01:02;E;3.m1;user=bob queue=long {TIMES} exec_host=n1/0 end=1506830460 resources_used.walltime=00:00:00
"""


@pytest.mark.parametrize("name", ["mason.pbs", "accounting.txt"])
def test_pbs(tmp_path: Path, name: str, caplog):
    path = written(tmp_path, PBS, name)
    assert format_of(path) == "pbs"
    table = read_trace(path)
    first, second = table
    # slots 0, 1, 2, 3, 7 of c3 and 2 of c4
    assert core_of(first) == ("1.m1", 0, 3605, 6, 108_000)
    assert more_of(first) == {"start_s": 60, "user": "ann", "group": "bio", "queue": "batch"}
    # a sampled walltime of 0: from start to end
    assert (second["id"], second["length_s"], second["hosts"], second.get("estimate_s")) == ("2.m1", 3, 24, None)
    assert more_of(second) == {"start_s": 60, "user": "bob", "queue": "long"}
    assert table.origin_s == 1_506_830_400
    assert f"{path}: 2 jobs; 2 of 4 lines of jobs are left out: 1 malformed, 1 never ran" in caplog.text
    assert [job["hosts"] for job in read_trace(path, log=LogOptions(width="nodes"))] == [2, 1]


@pytest.mark.parametrize(
    "words,cpus",
    [
        ("exec_host=n1/0*4+n2/0*4", 8), ("exec_host=n1/0-3+n2/0-3,8", 9), ("exec_host=n1/0+n1/1+n2/0", 3),
        # slot 16 of a host is one slot
        ("exec_host=n1/16+n2/16", 2), ("exec_host=n1/16", 1), ("exec_host=n1/16 Resource_List.nodes=1:ppn=16", 16),
        # ncpus of Torque is a default of the queue beside nodes; the slots are those of a public log
        ("exec_host=n4/2+n4/3+n4/4+n4/5 Resource_List.ncpus=1 Resource_List.nodes=1:ppn=4:avx", 4),
        ("Resource_List.nodes=n7:ppn=4+2:avx:ppn=8", 20), ("Resource_List.nodes=3", 3), ("Resource_List.nodes=n7", 1),
        ("exec_vnode=(n1:ncpus=8:mem=2gb)+(12:ncpus=8+n3:ncpus=1)", 17), ("exec_vnode=(n1:ncpus=8) exec_host=n1/0", 8),
        ("Resource_List.select=2:ncpus=8:mem=4gb+ncpus=4+gpu:ngpus=1", 21), ("Resource_List.select=3", 3),
        ("Resource_List.nodes=4#shared", 4), ("Resource_List.nodes=4:ppn=2#shared", 8),
        ("Resource_List.procs=64 Resource_List.nodes=1:ppn=4", 64),
        # a range that goes backwards has no slots
        ("exec_host=n1/7-3+n2/0", 1), ("exec_host=n1/7-3+n2/0-3", 4),
        ("exec_host=n1/0 Resource_List.ncpus=8", 8), ("exec_host=n1/0*4 total_execution_slots=2", 2),
    ],
)  # fmt: skip
def test_widths_of_pbs(tmp_path: Path, caplog, words: str, cpus: int):
    record = f"10/01/2017 01:01:00;E;1.m1;user=ann {TIMES} {words} end=1506834060\n"
    [job] = read_trace(written(tmp_path, record, "day.pbs"))
    assert job["hosts"] == cpus
    assert ("1 jobs have no width but exec_host=HOST/N" in caplog.text) == (words == "exec_host=n1/16")


def test_parents_of_arrays_are_no_jobs(tmp_path: Path, caplog):
    # jobs of 1 h on 4 CPUs; the parent lasts from the first start to the last end
    line = "03/01/2024 10:00:10;E;{}.head;user=ann ctime=0 start={} end={} exec_host=n1/0*4 Resource_List.ncpus=4\n"
    records = [("7[1]", 1709280000, 1709283600), ("7[2]", 1709283600, 1709287200), ("7[]", 1709280000, 1709287201)]
    path = written(tmp_path, "".join(line.format(*record) for record in records), "day.pbs")
    assert [(job["id"], job["length_s"], job["hosts"]) for job in read_trace(path)] == [
        ("7[1].head", 3600, 4),
        ("7[2].head", 3600, 4),
    ]
    assert f"{path}: 2 jobs; 1 of 3 lines of jobs are left out: 1 parents of arrays" in caplog.messages


def test_records_without_a_job(tmp_path: Path):
    path = written(tmp_path, PBS.splitlines()[0], "day.pbs")
    assert f"{path}: holds no job; give the whole file" in refusal(read_trace, path)
