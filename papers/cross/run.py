"""Run the study of study.yaml: every case on every log x signal x load, with equal measures.

    python -m papers.cross.run FOLDER [--part tune] [--only hpc2n/solar/0.5] [-o out/cross] [-j 2]

FOLDER has the files of data/sources.csv, whose digests are checked. A cell writes OUT/PART-LOG-SIGNAL-SHARE.csv, a row
for each case, sample and seed; a file as declared is not run again. `papers.cross.tables` reads these files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

import batwatt as bw
from batwatt.model.work import run_times_s
from batwatt.units import DAY_S

HERE = Path(__file__).parent
STUDY, SOURCES = HERE / "study.yaml", HERE / "data" / "sources.csv"
Declared = Mapping[str, Any]


def cells(part: str, declared: Declared) -> Iterator[tuple[str, str, float]]:
    """Yield (log, signal, share) of each cell of a part."""
    content = declared["parts"][part]
    for log in content["logs"]:
        for signal in content["signals"]:
            for share in declared["shares"]:
                yield log, signal, share


def jobs_of(log: Declared, sample: int, data: Path) -> bw.Workload:
    """Return the jobs of a log submitted within the days of a sample, with times from the first day on."""
    begin_s, end_s = (DAY_S * day for day in log["days"][sample])
    with TemporaryDirectory() as folder:
        file = data / log["file"]
        if "fields" in log:
            file = Path(folder) / "jobs.sacct"
            file.write_text(f"{log['fields']}\n{(data / log['file']).read_text()}")
        whole = bw.Workload.read(
            file, unit=log.get("unit", "s"), **{name: log[name] for name in ("begin",) if name in log}
        )
    selected = [job for job in whole.jobs if begin_s <= job.submit_time_s < end_s][:: log.get("sample", 1)]
    lengths = lengths_of(whole)
    width = log["machines"] * log["cores"]
    rows = [
        {
            "id": job.name, "submission_time_s": job.submit_time_s - begin_s, "length_s": lengths[job.name],
            "hosts": min(job.hosts, width), "user": job.raw.get("user"),
        }
        for job in selected
    ]  # fmt: skip
    return bw.Workload.from_frame(pd.DataFrame(rows).astype({"id": str}), source=str(log["file"]))


def lengths_of(workload: bw.Workload) -> dict[str, float]:
    """Return the run time in s of each job, by name."""
    return dict(zip((job.name for job in workload.jobs), run_times_s(workload, 1e9).tolist(), strict=True))


def envelope_of(signal: Declared, sample: int, share: float, full_w: float, data: Path) -> str:
    """Return a power as a text: a budget of carbon or money, or sun with a grid connection, with a mean of `share`."""
    begin = str(signal["from"][sample])
    file = f"{data / signal['file']},from={begin},days=14,repeat=yes"
    if "budget" in signal:
        kind = ",kind=lifecycle" if signal["budget"] == "carbon" else ""
        return f"{signal['budget']}:{file}{kind},budget={share}"
    peak_w = signal["peak"] * full_w
    sun = f"power:{file},peak_w={peak_w:g}"
    # the mean of two weeks of sun, as the grid gives the rest
    mean_w = bw.read_signal(f"{data / signal['file']},unit=W,from={begin},days=14", quantity="power")
    top = max(bw.read_signal(f"{data / signal['file']},unit=W", quantity="power").values)
    mean = float(mean_w.integral(mean_w.end_s)) / mean_w.end_s / top * peak_w
    return f"{sun} + constant:{max(0.0, share * full_w - mean):g}"


def run_cell(
    part: str, cell: tuple[str, str, float], sample: int, declared: Declared, data: Path, workers: int
) -> pd.DataFrame:
    """Return the table of a sample of a cell."""
    log, signal, share = cell
    content, cases = declared["parts"][part], declared["cases"]
    about, host_w = content["logs"][log], declared["host_w"]
    full_w = float(about["machines"] * about["cores"] * host_w)
    table = run_cases(
        about,
        jobs_of(about, sample, data),
        envelope_of(content["signals"][signal], sample, share, full_w, data),
        {label: bw.Case(*case) for label, case in cases.items()},
        host_w,
        carbon=f"{data / content['emissions']},repeat=yes",
        price=f"{data / content['cost']},repeat=yes",
        seeds=content["seeds"],
        workers=workers,
    )
    for name, value in zip(("part", "log", "signal", "share", "sample"), (part, *cell, sample), strict=True):
        table.insert(0, name, value)
    return table


def run_cases(
    log: Declared, jobs: bw.Workload, envelope: str, cases: Mapping[str, bw.Case], host_w: float, **more: Any
) -> pd.DataFrame:
    """Return the table of cases on the machines of a log, and print those that cannot run."""
    machines = bw.Platform.machines(log["machines"], log["cores"], watts=host_w * log["cores"])
    result = bw.compare(machines, jobs, envelope, cases, lenient=tuple(cases), **more)
    for label, why in result.errors.items():
        print(f"not run: {label}: {why}", file=sys.stderr)
    return result.table.assign(jobs_total=len(result.jobs) // result.jobs["case"].nunique())


def run_once(
    path: Path, about: Declared, name: str, run: Callable[[Any], pd.DataFrame], samples: Iterable[Any], **columns: Any
) -> None:
    """Write the tables of samples, with further columns, to a file, unless it exists as declared by `about`."""
    declaration = json.loads(json.dumps(about, default=str))
    key = path.with_suffix(".json")
    if key.exists() and path.exists() and json.loads(key.read_text()) == declaration:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    table = pd.concat([run(sample) for sample in samples]).assign(**columns)
    table.to_csv(path, index=False, lineterminator="\n")
    key.write_text(json.dumps(declaration))
    print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)


def check_data(folder: Path, declared: Declared) -> None:
    """Exit with a line for the first file of the study that is missing in the folder or has another content."""
    sources = pd.read_csv(SOURCES).set_index("file")
    text = json.dumps(declared, default=str)
    for name, digest in sources["sha256"].items():
        path = folder / str(name)
        if str(name) in text and not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest):
            sys.exit(f"{path}: missing or another file; source: {sources.loc[name, 'source']}, sha256 {digest}")


def main(words: list[str] | None = None) -> None:
    """Run the cells without an up-to-date file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="FOLDER", help="folder with the files of data/sources.csv")
    parser.add_argument("--part", default="tune", choices=("tune", "held"))
    parser.add_argument("--only", nargs="*", default=[], help="LOG/SIGNAL/SHARE, or a beginning of it")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/cross"))
    parser.add_argument("-j", "--jobs", type=int, default=2)
    arguments = parser.parse_args(words)
    logging.getLogger("batwatt").setLevel(logging.ERROR)
    declared = yaml.safe_load(STUDY.read_text())
    check_data(arguments.data, declared["parts"][arguments.part])
    part = declared["parts"][arguments.part]
    about = {name: declared[name] for name in ("host_w", "shares", "cases")} | {"part": part}
    for cell in cells(arguments.part, declared):
        name = "/".join(map(str, cell))
        if arguments.only and not any(name.startswith(one) for one in arguments.only):
            continue
        path = arguments.output / f"{arguments.part}-{name.replace('/', '-')}.csv"
        run = partial(run_cell, arguments.part, cell, declared=declared, data=arguments.data, workers=arguments.jobs)
        run_once(path, about, f"{name}, {len(declared['cases'])} cases", run, range(len(part["logs"][cell[0]]["days"])))


if __name__ == "__main__":
    main()
