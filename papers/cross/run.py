"""Run the studies of study.yaml and estimates.yaml: every case on every log x signal x load, with equal measures.

    python -m papers.cross.run FOLDER [--part tune] [--only hpc2n/solar/0.5] [-o out/cross] [-j 2]
    python -m papers.cross.run FOLDER --estimates [--part held] [--only kth/doubling] [-o out/estimates]

FOLDER has the files of data/sources.csv, whose digests are checked. A cell, or with `--estimates` a log x way x load,
writes a file of rows, one for each case and sample; a file as declared is not run again. `papers.cross.tables` reads
these files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

import batwatt as bw
from batwatt.model.work import run_times_s
from batwatt.units import DAY_S

HERE = Path(__file__).parent
STUDY, ESTIMATES, SOURCES = HERE / "study.yaml", HERE / "estimates.yaml", HERE / "data" / "sources.csv"
EXACT = "exact"
"""Way with exact run times."""
WITHOUT_RUN_TIMES = ("checkpoint",)
"""Cases without run times, with equal rows in each way: they run in `EXACT` only."""
Declared = Mapping[str, Any]


@cache
def whole_log(file: Path, fields: str, **form: Any) -> tuple[bw.Workload, dict[str, float]]:
    """Return the jobs of a log, and the run time of each in s; `fields` is the heading that the file lacks."""
    with TemporaryDirectory() as folder:
        path = file
        if fields:
            path = Path(folder) / "jobs.sacct"
            path.write_text(f"{fields}\n{file.read_text()}")
        whole = bw.Workload.read(path, **form)
    return whole, dict(zip((job.name for job in whole.jobs), run_times_s(whole, 1e9).tolist(), strict=True))


def jobs_of(log: Declared, sample: Any, data: Path, requests: bool = False) -> bw.Workload:
    """Return the jobs of a log submitted within the days of a sample, with times from the first day on.

    With `requests` the jobs that have a requested time, with it and with their queue.
    """
    begin_s, end_s = (DAY_S * day for day in log["days"][sample])
    form = {name: log[name] for name in ("unit", "begin") if name in log}
    whole, lengths = whole_log(data / log["file"], log.get("fields", ""), **form)
    jobs = [job for job in whole.jobs if begin_s <= job.submit_time_s < end_s]
    labels = ["user", "queue", "estimate_s"] if requests else ["user"]
    rows = [
        {
            "id": job.name, "submission_time_s": job.submit_time_s - begin_s, "length_s": lengths[job.name],
            "hosts": min(-(-job.hosts // log.get("block", 1)), log["machines"] * log["cores"]),
        }
        | {name: job.raw.get(name) for name in labels}
        for job in jobs[:: log.get("sample", 1)]
        if not requests or job.raw.get("estimate_s", 0) > 0
    ]  # fmt: skip
    return bw.Workload.from_frame(pd.DataFrame(rows).astype({"id": str}), source=str(log["file"]))


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


def cases_of(declared: Declared, way: str | None = None) -> dict[str, bw.Case]:
    """Return the cases of a study, or of a way of estimates.

    In a way, cases that shift jobs run twice, with exact and with declared forecasts.
    """
    if way is None:
        return {label: bw.Case(*case) for label, case in declared["cases"].items()}
    cases = {}
    for label, (scheduler, options) in declared["cases"].items():
        if label in WITHOUT_RUN_TIMES and way != EXACT:
            continue
        options = options | {"run_times": declared["ways"][way]}
        cases[label] = bw.Case(scheduler, options)
        if "shift" in options:
            shift = options["shift"] | declared["forecasts"]
            cases[f"{label}, forecasts"] = bw.Case(scheduler, options | {"shift": shift})
    return cases


def run_sample(
    declared: Declared, part: Declared, log: Declared, cell: tuple[Any, int, str, float], way: str | None, data: Path,
    workers: int,
) -> pd.DataFrame:  # fmt: skip
    """Return the table of cases on a sample; `cell` is (days, number of the signal's weeks, signal, share).

    Prints the cases that cannot run.
    """
    days, weeks, signal, share = cell
    host_w, emissions = declared["host_w"], part["emissions"]
    machines = bw.Platform.machines(log["machines"], log["cores"], watts=host_w * log["cores"])
    envelope = envelope_of(part["signals"][signal], weeks, share, float(len(machines) * host_w), data)
    jobs, cases = jobs_of(log, days, data, way is not None), cases_of(declared, way)
    more = {"carbon": f"{data / emissions},repeat=yes", "workers": workers}
    if way is None:
        more |= {"price": f"{data / part['cost']},repeat=yes", "seeds": part["seeds"]}
    result = bw.compare(machines, jobs, envelope, cases, lenient=tuple(cases), **more)
    for label, why in result.errors.items():
        print(f"not run: {label}: {why}", file=sys.stderr)
    return result.table.assign(jobs_total=len(result.jobs) // result.jobs["case"].nunique())


def samples_of(declared: Declared, part: Declared, ways: bool) -> Iterator[tuple[str, str, str | None, list[Any]]]:
    """Yield name, log, way and samples of each file, of each way if there are `ways`; samples as in `run_sample`."""
    if not ways:
        for log, signal, share in product(part["logs"], part["signals"], declared["shares"]):
            samples = range(len(part["logs"][log]["days"]))
            yield f"{log}/{signal}/{share:g}", log, None, [(sample, sample, signal, share) for sample in samples]
        return
    for log, way, share in product(part["logs"], declared["ways"], declared["shares"]):
        signals = part["logs"][log]["days"]
        weeks = [list(part["signals"]).index(signal) for signal in signals]
        yield f"{log}/{way}/{share:g}", log, way, [(s, week, s, share) for s, week in zip(signals, weeks, strict=True)]


def check_data(folder: Path, declared: Declared) -> None:
    """Exit with a line for the first file of the study that is missing in the folder or has another content."""
    sources = pd.read_csv(SOURCES).set_index("file")
    text = json.dumps(declared, default=str)
    for name, digest in sources["sha256"].items():
        path = folder / str(name)
        if str(name) in text and not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest):
            sys.exit(f"{path}: missing or another file; source: {sources.loc[name, 'source']}, sha256 {digest}")


def main(words: list[str] | None = None) -> None:
    """Write the files that are missing or not as declared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="FOLDER", help="folder with the files of data/sources.csv")
    parser.add_argument("--estimates", action="store_true", help="the study of estimates.yaml")
    parser.add_argument("--part", default="tune", choices=("tune", "held"))
    parser.add_argument("--only", nargs="*", default=[""], help="LOG/SIGNAL/SHARE or LOG/WAY/SHARE, or a beginning")
    parser.add_argument("-o", "--output", type=Path, help="folder (out/cross, out/estimates)")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    arguments = parser.parse_args(words)
    logging.getLogger("batwatt").setLevel(logging.ERROR)
    declared = yaml.safe_load((ESTIMATES if arguments.estimates else STUDY).read_text())
    part, folder = declared["parts"][arguments.part], "estimates" if arguments.estimates else "cross"
    check_data(arguments.data, part)
    for name, log, way, samples in samples_of(declared, part, arguments.estimates):
        if not name.startswith(tuple(arguments.only)):
            continue
        content = part["logs"][log]
        about = declared | {"parts": part | {"logs": content}, "way": way, "samples": samples}
        path = (arguments.output or Path("out") / folder) / f"{arguments.part}-{name.replace('/', '-')}.csv"
        key, text = path.with_suffix(".json"), json.dumps(about, default=str)
        if key.exists() and path.exists() and key.read_text() == text:
            continue
        began, rows = time.perf_counter(), []
        for sample, weeks, signal, share in samples:
            cell = sample, weeks, signal, share
            table = run_sample(declared, part, content, cell, way, arguments.data, arguments.jobs)
            rows.append(table.assign(part=arguments.part, log=log, signal=signal, share=share, way=way, sample=sample))
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.concat(rows).to_csv(path, index=False, lineterminator="\n")
        key.write_text(text)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
