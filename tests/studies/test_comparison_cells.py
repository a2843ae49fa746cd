"""Cells of a comparison: what ends is kept, what is missing runs, and each figure is that of an undisturbed one."""

from __future__ import annotations

import fcntl
import importlib.util
import signal
import sys
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
from cli_house import JOBS, SMALL, alive, children
from waiting import wait_for

import batwatt as bw
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.errors import BatwattError, InputError
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.platform_files import HostChoice
from batwatt.model.platform import MachineSpec
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.run.spec import RunSpec
from batwatt.schedulers.varcap import Varcap
from batwatt.studies.cells import NOT_FIGURES, OF_BATSIM, Contents

# each run adds a line to `begun`; files beside it let runs wait, or kill their process
COUNTED = """
import os, signal, time
from pathlib import Path
from batwatt.schedulers.varcap import Varcap

HERE = Path({folder!r})

class Counted(Varcap):
    def onSimulationBegins(self):
        with (HERE / "begun").open("a") as out:
            out.write("x\\n")
        begun = len((HERE / "begun").read_text().split())
        for number in (HERE / "deadly").read_text().split() if (HERE / "deadly").exists() else ():
            if int(number) == begun:
                os.kill(os.getpid(), signal.SIGKILL)
        while (HERE / "hold").exists() and len(list(HERE.glob("out/cmp_cells/cells/*.json"))) >= 2:
            time.sleep(0.02)
        super().onSimulationBegins()
"""
TRACE = "arrival_time,length,cpus,user\n" + "".join(
    f"{97 * i},{300 + 90 * (i % 5)},{1 + i % 3},{'ab'[i % 2]}\n" for i in range(25)
)


class Counting:
    """A comparison of five cases whose runs are counted."""

    def __init__(self, house) -> None:
        self.house = house
        self.folder = house.folder
        house.write("jobs.csv", TRACE)
        house.write("cap.csv", "time_s,power_w\n0,120\n900,40\n1800,90\n")
        self.scheduler = house.write("counted.py", COUNTED.format(folder=str(house.folder)))
        self.begun()

    def words(self, *more: object, to: str = "cmp", seeds: int = 5) -> tuple[object, ...]:
        cases = [("-c", f'case {seed}={self.scheduler} {{"seed": {seed}}}') for seed in range(seeds)]
        inputs = ("-w", self.folder / "jobs.csv", "--machines", 12, "--cores", 1, "--envelope", self.folder / "cap.csv")
        return ("compare", *inputs, *(word for case in cases for word in case), "-e", self.house.out / to, *more)

    def run(self, *more: object, **how: object):
        """Run the comparison in this process, but with other words."""
        processes = () if {"--dask", "-j"} & set(more) else ("-j", 1)
        return self.house.batwatt(*self.words(*processes, *more, **how))

    def begun(self) -> int:
        """The number of runs that have begun since the last call."""
        file = self.folder / "begun"
        count = len(file.read_text().split()) if file.exists() else 0
        file.write_text("")
        return count

    def cells(self, suffix: str = "json", of: str = "cmp") -> list[Path]:
        return sorted((self.house.out / f"{of}_cells" / "cells").glob(f"*.{suffix}"))

    def tables(self, of: str = "cmp") -> list[bytes]:
        return [self.house.file(f"{of}_{stem}.csv") for stem in ("comparison", "jobs")]

    def assert_undisturbed(self) -> None:
        """All cells are there, and the tables are those of an undisturbed comparison."""
        assert len(self.cells()) == len(self.cells("npz")) == 5
        assert self.run(to="calm").code == 0
        assert self.tables() == self.tables("calm")


@pytest.fixture
def counting(house) -> Counting:
    return Counting(house)


@pytest.mark.parametrize("ended", [0, 2, 4])
def test_kill_9_after_some_of_five_runs(counting, ended):
    counting.house.write("deadly", str(ended + 1))
    process = counting.house.start(*counting.words("-j", 1))
    assert counting.house.end(process).code == -signal.SIGKILL
    assert (counting.begun(), len(counting.cells())) == (ended + 1, ended)
    (counting.folder / "deadly").unlink()
    done = counting.run()
    assert done.code == 0 and counting.begun() == 5 - ended
    assert counting.run().code == 0 and counting.begun() == 0
    counting.assert_undisturbed()


def test_kill_9_of_a_comparison_with_two_processes(counting):
    counting.house.write("hold", "")
    process = counting.house.start(*counting.words("-j", 2))
    wait_for(lambda: len(counting.cells()) >= 2)
    workers = children(process.pid)
    process.kill()
    process.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers))
    saved = len(counting.cells())
    assert 2 <= saved < 5
    (counting.folder / "hold").unlink()
    counting.begun()
    assert counting.run("-j", 2).code == 0 and counting.begun() == 5 - saved
    counting.assert_undisturbed()


def test_kill_9_of_a_worker(counting):
    counting.house.write("deadly", "3")
    process = counting.house.start(*counting.words("-j", 2))
    done = counting.house.end(process)
    assert done.code == 0 and "a worker process died: case 'case " in done.err
    assert counting.begun() == 6
    (counting.folder / "deadly").unlink()
    counting.assert_undisturbed()


DAMAGES = [
    ("json", "gone"),
    ("json", "cut"),
    ("json", "changed"),
    ("npz", "gone"),
    ("npz", "changed"),
    ("npz", "empty"),
]


@pytest.mark.parametrize(("suffix", "damage"), DAMAGES)
def test_a_damaged_file_runs_again(counting, suffix, damage):
    assert counting.run().code == 0 and counting.begun() == 5
    tables = counting.tables()
    file = counting.cells(suffix)[2]
    content = file.read_bytes()
    half = len(content) // 2
    if damage == "gone":
        file.unlink()
    else:
        changed = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        file.write_bytes({"cut": content[:half], "changed": changed, "empty": b""}[damage])
    done = counting.run()
    assert done.code == 0 and counting.begun() == 1 and counting.tables() == tables
    assert ("is changed or of another version: run again" in done.err) == ((suffix, damage) != ("json", "gone"))
    assert len(counting.cells()) == len(counting.cells("npz")) == 5


def test_only_cells_of_the_last_comparison_stay(counting):
    """Those of others stay while a case fails, whose cell has its error; files that are not of the store stay."""
    assert counting.run(seeds=5).code == 0
    mine = counting.house.out / "cmp_cells" / "cells" / "notes.json"
    mine.write_text("mine")
    counting.begun()
    failed = counting.run("-c", 'bad=powercap {"envelope": "nowhere.csv"}', seeds=2)
    assert failed.code == 2 and counting.begun() == 0 and len(counting.cells()) == 5 + 1 + 1
    assert counting.run(seeds=3).code == 0 and counting.begun() == 0
    assert len(counting.cells()) == 3 + 1 and len(counting.cells("npz")) == 3 and mine.read_text() == "mine"


def test_an_edited_scheduler_runs_again(counting):
    own = ("-c", "own=varcap")
    assert counting.run(*own).code == 0 and counting.begun() == 5
    before = {file.name for file in counting.cells()}
    counting.scheduler.write_text(counting.scheduler.read_text() + "\n# edited\n")
    assert counting.run(*own).code == 0 and counting.begun() == 5
    # the case of a scheduler of ours has not run again
    assert len({file.name for file in counting.cells()} & before) == 1 and len(counting.cells()) == 6
    beside = counting.house.write("beside.py", "X = 1\n")
    counting.scheduler.write_text("from beside import X\n" + counting.scheduler.read_text())
    assert counting.run().code == 0 and counting.begun() == 5
    beside.write_text("X = 2\n")
    assert counting.run().code == 0 and counting.begun() == 5


def test_files_of_runs_that_are_kept(counting):
    """They are those of the cells, or the run runs again."""
    assert counting.run().code == 0 and counting.begun() == 5
    assert counting.run("--keep").code == 0 and counting.begun() == 5
    assert counting.run("--keep").code == 0 and counting.begun() == 0
    names = {path.name for path in counting.house.out.glob("cmp-*")}
    for name in ("cmp-case-1_metadata.json", "cmp-case-3_metadata.json"):
        (counting.house.out / name).unlink()
    assert counting.run("--keep").code == 0 and counting.begun() == 2
    assert {path.name for path in counting.house.out.glob("cmp-*")} == names and "cmp-case-1_jobs.csv" in names
    assert not list(counting.house.out.rglob(".batwatt-*"))


def test_one_comparison_at_a_time(counting):
    assert counting.run().code == 0
    with (counting.house.out / "cmp_cells" / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = counting.run()
    assert ended.code == 1 and "another process works on this comparison" in ended.err
    (counting.house.out / "cmp_cells" / "cells").rename(counting.folder / "moved")
    (counting.house.out / "cmp_cells" / "cells").symlink_to(counting.folder / "moved")
    ended = counting.run()
    assert ended.code == 2 and "cells: is a link; remove it: a comparison writes into its own folder" in ended.err


# in Python -----------------------------------------------------------------------------------------------------------

FEW = bw.Workload.from_frame(
    pd.DataFrame({"id": list("abc"), "submission_time_s": [0, 0, 50], "length_s": [150, 80, 60], "hosts": [1, 2, 1]})
)
MACHINES = bw.Platform.machines(3, 1, watts=100)
FALLS = bw.Series((0.0, 100.0), (300.0, 200.0), "power_w")
CASES = {
    "free": bw.Case("varcap", {}, "none"),
    "random": bw.Case("varcap", {"termination": "random"}),
    "again": bw.Case("varcap", {}, "none"),
    "too wide": bw.Case("riskaware"),
}


def compared(folder: Path | None = None, **more: object):
    many = {"samples": 2, "seeds": (0, 1)} | more
    return bw.compare(MACHINES, FEW, FALLS, CASES, folder=folder, **many)


def assert_equal(one, two) -> None:
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)
    pd.testing.assert_frame_equal(one.jobs, two.jobs, check_exact=True)
    assert (one.remarks, one.rejections, one.errors) == (two.remarks, two.rejections, two.errors)
    assert one.traces.keys() == two.traces.keys()
    for label, trace in one.traces.items():
        for part in fields(trace):
            pd.testing.assert_series_equal(
                pd.Series(getattr(trace, part.name)), pd.Series(getattr(two.traces[label], part.name))
            )


def test_tables_powers_and_warnings_are_those_of_a_comparison_in_memory(tmp_path, monkeypatch):
    """A case that is another one by its label alone does not run; the second call runs nothing."""
    alone = compared()
    first = compared(tmp_path / "cells")
    files = sorted((tmp_path / "cells" / "cells").iterdir())
    # two seeds in two windows; free and again are one case, and a cell has two files
    assert len(files) == 2 * 2 * 3 * 2
    monkeypatch.setattr("batwatt.studies.executors.execute", None)
    second = compared(tmp_path / "cells")
    assert sorted((tmp_path / "cells" / "cells").iterdir()) == files
    assert_equal(alone, first)
    assert_equal(alone, second)


def test_workers_of_dask(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        there = compared(tmp_path / "cells", dask=cluster.scheduler_address)
        kept = compared(keep=tmp_path / "x", dask=cluster.scheduler_address)
    assert_equal(compared(), there)
    assert_equal(compared(), kept)
    assert len(list(tmp_path.glob("x-*_jobs.csv"))) == 2 * 2 * 4


def test_a_cluster_that_is_refused(counting):
    ended = counting.run("--dask", "tcp://x:y")
    assert ended.code == 2 and "--dask: 'tcp://x:y' is not an address of a Dask scheduler" in ended.err
    ended = counting.run("--dask", "tcp://127.0.0.1:9", "-j", 2)
    assert ended.code == 2 and "--jobs: is for runs on this machine" in ended.line
    with pytest.raises(InputError, match="folder"):
        bw.compare(MACHINES, FEW, FALLS, CASES, folder=3)
    (counting.folder / "file").write_text("")
    with pytest.raises(BatwattError, match="cannot be written"):
        bw.compare(MACHINES, FEW, FALLS, CASES, folder=counting.folder / "file")


CLASS = """
from batwatt.schedulers.varcap import Varcap

class Own(Varcap):
    n = 1

    def onSimulationBegins(self):
        super().onSimulationBegins()

def made():
    class Local(Varcap):
        pass
    return Local
"""


def imported(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def digest_or_none(spec):
    try:
        return Contents().digest(spec)
    except InputError:
        return None


def test_a_class_has_the_content_of_its_file(tmp_path, monkeypatch):
    """None if its code is not that of the file, or depends on more; else also that of attributes that were set."""
    path = tmp_path / "own_class.py"
    path.write_text(CLASS)
    module = imported(path)
    spec = RunSpec(platform=SMALL, workloads=(JOBS,), scheduler=module.Own)
    first = Contents().digest(spec)
    assert Contents().digest(spec) == first
    assert digest_or_none(replace(spec, scheduler=module.made())) is None
    assert digest_or_none(replace(spec, scheduler=type("Own", (module.Own,), {"m": 1}))) is None
    assert digest_or_none(replace(spec, options={"order": object()})) is None
    monkeypatch.setattr(module.Own, "n", 2)
    assert Contents().digest(spec) != first
    monkeypatch.undo()
    path.write_text(CLASS.replace("super()", "print(1); super()"))
    assert digest_or_none(spec) is None
    assert Contents().digest(replace(spec, scheduler=imported(path).Own)) != first
    monkeypatch.setattr(module.Own, "onSimulationBegins", lambda self: None)
    assert digest_or_none(replace(spec, scheduler=module.Own)) is None


def test_a_class_without_source_runs_again(tmp_path):
    """Beside a case that does not."""
    runs = []

    class Local(Varcap):
        def onSimulationBegins(self):
            runs.append(self)
            super().onSimulationBegins()

    cases = {"local": bw.Case(Local), "ours": bw.Case("varcap")}
    for _ in range(2):
        bw.compare(MACHINES, FEW, FALLS, cases, folder=tmp_path / "cells")
    assert len(runs) == 2 and len(list((tmp_path / "cells" / "cells").glob("*.json"))) == 1


def test_each_part_of_a_run_is_in_its_digest(tmp_path):
    """A new field of a run needs a row here."""
    hours = tmp_path / "jobs.csv"
    hours.write_text(TRACE)
    other = tmp_path / "other.csv"
    other.write_text(TRACE.replace("300", "301", 1))
    series = Timeline((0.0, 9.0), (1.0, 2.0))
    changes = {
        "platform": MachineSpec(3, 4),
        "workloads": (other,),
        "options": {"seed": 1},
        "envelope": series,
        "follow": "mean",
        "capacity": "constant:3",
        "carbon": replace(series, unit="g/kWh"),
        "price": replace(series, loop=None, period_s=99.0),
        "events": other,
        "hosts": HostChoice(mmax=2),
        "window": Window(0.0, 9.0),
        "length_unit": "h",
        "log": LogOptions(begin="2024-07-01"),
        "long_s": 9.0,
        "delays_to_flops": True,
        "ignore_communication": True,
        "engine": "wire",
        "config": EngineConfig(energy=False),
    }
    assert changes.keys() == {entry.name for entry in fields(RunSpec)} - {*NOT_FIGURES, *OF_BATSIM}
    spec = RunSpec(platform=SMALL, workloads=(hours,), scheduler="varcap")
    digests = [Contents().digest(one) for one in (spec, *(replace(spec, **{k: v}) for k, v in changes.items()))]
    assert None not in digests and len(set(digests)) == len(changes) + 1
    assert Contents().digest(replace(spec, scheduler="powercap")) not in digests
    others = {"prefix": tmp_path / "x", "patience_s": 1.0, "batsim": "other", "batsim_args": ("-q",)}
    assert Contents().digest(replace(spec, **others)) == digests[0]
    # by content: of a file with another name, and of options that name files
    hours.rename(tmp_path / "moved.csv")
    assert Contents().digest(replace(spec, workloads=(tmp_path / "moved.csv",))) == digests[0]
    for options in ({"reference": str(other)}, {"price": f"{other},column=length"}, {"x": {"y": [str(other)]}}):
        before = Contents().digest(replace(spec, workloads=(SMALL,), options=options))
        other.write_text(other.read_text() + "0,1,1,a\n")
        assert Contents().digest(replace(spec, workloads=(SMALL,), options=options)) != before


def test_objects_are_known_by_their_content():
    """The same jobs, hosts and power, made twice, are one run; a job more is another one."""

    def digest(lengths=(150, 80), watts=100.0, power=300.0):
        frame = pd.DataFrame({"id": ["a", "b"], "submission_time_s": [0, 0], "length_s": lengths, "hosts": [1, 2]})
        hosts = bw.Platform.machines(3, 1, watts=watts)
        series = bw.Series((0.0,), (power,), "power_w")
        return Contents().digest(
            RunSpec(platform=hosts, workloads=(bw.Workload.from_frame(frame),), scheduler="varcap", envelope=series)
        )

    assert digest() == digest()
    assert len({digest(), digest((150, 81)), digest(watts=101.0), digest(power=301.0)}) == 4


def test_a_file_that_changes_meanwhile_stops_the_comparison(counting):
    edit = f"Path({str(counting.scheduler)!r}).open('a').write('# x')\n        super()"
    counting.scheduler.write_text(counting.scheduler.read_text().replace("super()", edit))
    ended = counting.run()
    assert ended.code == 1 and "counted.py changed while the comparison ran" in ended.err
    assert not counting.cells()
