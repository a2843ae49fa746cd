"""SHA-256 of what a broad set of commands prints and writes, to show that a change of the code changes no output.

    python bench/same_bytes.py --record hashes.json      keep the hashes
    python bench/same_bytes.py --check hashes.json       compare with those kept, exit code 1 if one differs

`--only TEXT` runs the commands whose name has the text; `--keep FOLDER` keeps the outputs there. What tells of the
machine, the code or the time spent is taken out before: metadata, keys of cells, elapsed seconds. Columns and options
that were renamed on purpose since the hashes were kept stand in RENAMED.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RENAMED: dict[str, str] = {
    "Savings relative to the fixed capacity, and the work done, by": "What is saved beside the fixed capacity, "
    "and the work done, by",
    "relative to fixed": "beside fixed",
    "relative to the fixed": "beside the fixed",
    "Frugal forecast": "Frugal foretold",
    "frugal-forecast": "frugal-foretold",
}
"""New text -> the text that it replaced, applied to outputs before they are hashed."""
_VARIES = [
    re.compile(rb'"(elapsed_s|wall_s|seconds|batwatt|python)": [^,}\n]+'),
    re.compile(rb"[0-9a-f]{32,64}"),
    re.compile(rb"\b[0-9.]+ (s|min) elapsed|in [0-9.]+ s\b"),
    re.compile(rb"[0-9]+ of [0-9]+ runs, .*\n"),
]
_SKIPPED = ("_metadata.json", "campaign.log", ".lock", "origin.json", ".parquet")

Command = tuple[str, list[str]]


def commands() -> Iterator[Command]:
    """Name and arguments of each command; `{out}` is a folder of its own."""
    yield from _powercap()
    yield from _machines()
    yield from _carbon()
    yield from _inputs()
    yield from _looking_up()
    yield from _campaigns()


def _run(name: str, *words: str, options: dict[str, object] | None = None) -> Command:
    chosen = ["-o", json.dumps(options)] if options else []
    return name, ["run", *words, *chosen, "-e", "{out}/x"]


def _powercap() -> Iterator[Command]:
    grid = ["-p", "platforms/grid5000.xml", "-w", "workloads/google-288-03.json"]
    power = [*grid, "--envelope", "power_profiles/profile2.csv"]
    responses = ("frugal", "hfld", "iafs", "iasb", "idfs", "idsb", "none")
    for response, backfilling in itertools.product(responses, ("easy", "first-fit")):
        yield _run(
            f"powercap {response} {backfilling}", *power, options={"response": response, "backfilling": backfilling}
        )
    for order in ("asc", "asc_size", "asc_walltime", "desc", "desc_size", "desc_walltime", "fcfs", "lcfs"):
        yield _run(f"powercap {order}", *power, options={"order": order})
    for more in (
        {"victim": "resubmit"},
        {"response": "frugal", "forecast_steps": 4, "forecast_error": 0.2, "victim": "resubmit"},
        {"work_estimate": "learned"},
        {"work_estimate": "exact"},
    ):
        yield _run(f"powercap {more}", *power, options=more)
    yield _run("powercap wire", *power, "--engine", "wire")
    yield _run("powercap profile1", *grid, "--envelope", "power_profiles/profile1.csv")
    yield _run("powercap small", "-p", "platforms/small.xml", "-w", "workloads/small.json")
    for scheduler in ("easyBackfill",):
        yield _run(f"pybatsim {scheduler}", *grid, "-s", scheduler)
    yield (
        "compare",
        ["compare", *power, "-c", 'a={"response": "hfld"}', "-c", 'b={"response": "none"}', "-e", "{out}/c"],
    )
    small = ["-p", "platforms/small.xml", "-w", "workloads/small.json", "--envelope", "power_profiles/profile3.csv"]
    yield "optimum", ["optimum", *small, "--effort", "5", "-e", "{out}/opt"]


def _machines() -> Iterator[Command]:
    risk = ["-w", "workloads/risk-small.txt", "--window", "86400:259200", "--machines", "152", "--cores", "8"]
    walk = [*risk, "--capacity", "power_profiles/walk-small.csv"]
    strategies = ("first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap")
    for strategy, published in itertools.product(strategies, (True, False)):
        chosen = {"strategy": strategy, "as_published": published}
        yield _run(f"riskaware {strategy} {published}", *walk, "-s", "riskaware", options=chosen)
    chosen = {"strategy": "target-asap", "reference": "workloads/risk-small.txt", "quantiles": 100}
    yield _run("riskaware reference", *walk, "-s", "riskaware", options=chosen)
    tng = ["-w", "{shared}/tng.csv", "--machines", "10", "--cores", "32", "--window", "21600:86400"]
    varying = [*tng, "--capacity", "walk:range=0.6,seed=1,window=86400", "-s", "varcap"]
    for scheduler in ("base", "longshort", "jobsize-order", "twomode", "migration"):
        yield _run(f"varcap {scheduler}", *varying, options={"mapping": scheduler})
    for termination in ("random", "lfd", "lww", "order"):
        yield _run(f"varcap {termination}", *varying, options={"termination": termination})
    for more in (
        {"order": "wfp"},
        {"order": "fcfs", "backfilling": "easy"},
        {"backfilling": "none"},
        {"nodes": "dedicated", "backfilling": "easy", "requeue": "end"},
        {"mapping": "longshort", "foresight_h": 3, "foresight_noise": 0.1, "foresight_missed": 0.2},
        {"mapping": "twomode", "foresight_h": 6, "foresight_bias": 0.1, "foresight_false_alarms": 0.2},
        {"mapping": "base", "foresight_h": 6, "knowledge": "class"},
    ):
        yield _run(f"varcap {more}", *varying, options=more)
    yield _run("oversubscribed", *varying[:-1], "oversubscribed", options={"oversubscription": 1.5, "use": 0.7})
    figure = ["-w", "experiments/periods/figure1-jobs.csv", "--machines", "22", "--cores", "1", "--window", "0:5400"]
    figure += ["--capacity", "experiments/periods/figure1-capacity.csv", "-s", "checkpoint"]
    for more in (
        {"k": 6, "min_yield": 0.2},
        {"k": 3},
        {"k": 6, "method": "subset-sum"},
        {"cover": "needed"},
        {"prepare": "all"},
        {"prepare": "worst"},
        {"prepare": "expected"},
    ):
        yield _run(f"checkpoint {more}", *figure, options=more)
    for verb, names in {
        "plan": ("period", "change", "due"),
        "prepare": ("change",),
        "follow": ("figure1", "figure1-new", "starving"),
        "front": ("period", "due", "figure1", "starving"),
    }.items():
        for name in names:
            words = [f"experiments/periods/{name}.json", *([] if verb == "prepare" else ["--picture", "{out}/x.svg"])]
            yield f"checkpoint {verb} {name}", ["checkpoint", verb, *words]


def _carbon() -> Iterator[Command]:
    signal = ["--signal", "power_profiles/carbon/carbon-hourly.csv"]
    jobs = ["--jobs", "workloads/carbon/jobs.csv"]
    ours = "immediate latest lowest oracle waiting cst-oracle cst-average suspend-resume suspend-resume-threshold"
    for policy in [*ours.split(), "wait-awhile", "wait-awhile-interrupting", "phase-aware", "phase-aware-checkpoints"]:
        yield f"carbon run {policy}", ["carbon", "run", *jobs, *signal, "--policy", policy, "-e", "{out}/x"]
    for policy in ("cost", "carbon-cost", "oracle-spot", "carbon"):
        words = [*jobs, *signal, "--policy", policy, "--reserved", "4", "-e", "{out}/x"]
        yield f"carbon run reserved {policy}", ["carbon", "run", *words]
    gaia = ["--jobs", "workloads/cloud/jobs.csv", "--signal", "workloads/cloud/carbon.csv"]
    for policy in ("carbon", "carbon-cost", "cost", "oracle", "lowest", "waiting", "suspend-resume", "cst-oracle"):
        yield f"carbon gaia {policy}", ["carbon", "gaia", *gaia, "--policy", policy, "-e", "{out}/x"]
    for policy in ("immediate", "wait-awhile", "wait-awhile-interrupting"):
        for more in (["--constraint", "next-workday"], ["--constraint", "semi-weekly"]):
            words = ["--jobs", "{shared}/lwa.csv", "--signal", "{shared}/year.csv", "--policy", policy, *more]
            yield f"carbon lwa {policy} {more[1]}", ["carbon", "lwa", *words, "-e", "{out}/x"]
    price = ["--price", "power_profiles/carbon/price-hourly.csv", "--price-weight", "100"]
    few = ["--policies", "immediate,phase-aware,suspend-resume", "-o", "{out}/c.csv"]
    yield "carbon compare", ["carbon", "compare", *jobs, *signal, *price, *few]
    errors = ["--forecast-error", "0.1", "--repetitions", "3"]
    yield "carbon compare errors", ["carbon", "compare", *jobs, *signal, *errors, *few]
    yield "carbon jobs", ["carbon", "jobs", "-n", "200", "--seed", "3"]
    ends = ["--start", "2024-07-02T13:00", "--deadline", "2024-07-03T15:00", "--picture", "{out}/plan.svg"]
    yield "carbon plan", ["carbon", "plan", "workloads/carbon/job.json", *signal, *ends]
    yield "carbon policies", ["carbon", "policies"]
    made = ["-o", "{out}/w.json", "-p", "{out}/p.xml"]
    yield (
        "carbon workload",
        ["carbon", "workload", "workloads/carbon/jobs.csv", "--watts", "60", "--machines", "20", *made],
    )
    for policy in ("phase-aware", "immediate", "suspend-resume"):
        chosen = {"policy": policy, "signal": "power_profiles/carbon/carbon-hourly.csv"}
        words = ["-p", "{shared}/carbon.xml", "-w", "{shared}/carbon.json", "-s", "carbon"]
        yield _run(f"carbon engine {policy}", *words, options=chosen)
    yield "carbon account", ["carbon", "account", "{shared}/carbon", "-w", "{shared}/carbon.json", *signal]


def _inputs() -> Iterator[Command]:
    signal = "power_profiles/carbon/carbon-hourly.csv"
    for text in (
        *("walk:range=0.6,seed=1,window=86400", "uniform:range=0.6,seed=1,window=86400", "constant:mean=0.7"),
        *(f"carbon:{signal},budget=0.7", f"trace:{signal},full=600", f"stranded:{signal},threshold=300"),
    ):
        yield f"generate capacity {text}", ["generate", "capacity", text, "--machines", "20"]
    yield "generate walk", ["generate", "walk", "--seed", "2"]
    yield "generate machines", ["generate", "machines", "--machines", "4", "--cores", "2"]
    for seed in ("1", "2"):
        yield f"generate workload {seed}", ["generate", "workload", "--seed", seed]
    for kind in ("uniform", "log-scale", "log-scale-u", "3types"):
        yield f"generate trace {kind}", ["generate", "trace", "--kind", kind, "--jobs", "500", "--seed", "1"]
    for like in ("tng", "azure", "mira"):
        yield f"generate trace {like}", ["generate", "trace", "--like", like, "--jobs", "500", "--seed", "1"]
    yield "convert txt", ["convert", "workloads/risk-small.txt"]
    yield "convert flops", ["convert", "workloads/risk-small.txt", "--profile", "flops", "--reference-flops", "1e9"]
    yield "events", ["events", "power_profiles/profile1.csv"]
    yield "characterise walk", ["characterise", "power_profiles/walk-small.csv"]
    yield "characterise signal", ["characterise", "power_profiles/carbon/carbon-hourly.csv"]


def _looking_up() -> Iterator[Command]:
    yield (
        "metrics",
        [
            *("metrics", "{shared}/run", "-p", "platforms/grid5000.xml", "-w", "workloads/google-288-00.json"),
            *("--envelope", "power_profiles/profile3.csv"),
        ],
    )
    for suffix in ("png", "svg"):
        words = ["-p", "platforms/grid5000.xml", "--envelope", "power_profiles/profile3.csv"]
        yield f"gantt {suffix}", ["gantt", "{shared}/run", *words, "-o", f"{{out}}/x.{suffix}"]


def _campaigns() -> Iterator[Command]:
    for name, path in {
        "igsc22-small": "papers/igsc22/small.yaml",
        "pmbs23-small": "experiments/pmbs23-small.yaml",
        "varcap-small": "experiments/varcap-small.yaml",
        "checkpoint-small": "experiments/checkpoint-small.yaml",
    }.items():
        yield f"campaign {name}", ["campaign", "run", path, "--results", "{out}", "-j", "1"]
    yield "carbon study", ["carbon", "study", "experiments/carbon-small.yaml", "--results", "{out}", "-j", "1"]


SHARED: list[list[str]] = [
    [
        "generate",
        "trace",
        "--like",
        "tng",
        "--jobs",
        "3000",
        "--machines",
        "10",
        "--seed",
        "1",
        "-o",
        "{shared}/tng.csv",
    ],
    ["carbon", "jobs", "-n", "60", "--seed", "1", "-o", "{shared}/lwa.csv"],
    [
        *("carbon", "workload", "workloads/carbon/jobs.csv", "--watts", "60", "--machines", "20"),
        *("-o", "{shared}/carbon.json", "-p", "{shared}/carbon.xml"),
    ],
    [
        *("run", "-p", "{shared}/carbon.xml", "-w", "{shared}/carbon.json", "-s", "carbon", "-e", "{shared}/carbon"),
        *("-o", '{"signal": "power_profiles/carbon/carbon-hourly.csv"}'),
    ],
    [
        *("run", "-p", "platforms/grid5000.xml", "-w", "workloads/google-288-00.json"),
        *("--envelope", "power_profiles/profile3.csv", "-e", "{shared}/run"),
    ],
]
"""Made first, for several commands."""


def call(words: list[str], log: Path) -> int:
    """Run a command in this process, its output into a file; its exit code."""
    from batwatt.__main__ import main

    with log.open("wb") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    sys.argv = ["batwatt", *words]
    os.environ.update(COLUMNS="120", TERM="dumb")
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    # the command's handler would write into the file when the pool ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return int(code or 0)


def _carry_out(job: tuple[str, list[str], str]) -> tuple[str, dict[str, str]]:
    name, words, base = job
    os.chdir(ROOT)
    folder = Path(base) / re.sub(r"\W+", "-", name).strip("-")
    folder.mkdir(parents=True)
    places = {"{out}": str(folder), "{shared}": f"{base}/shared"}
    filled = [_filled(word, places) for word in words]
    code = call(filled, folder / "printed.txt")
    if name.startswith("campaign") and code == 0:
        made = next(path for path in folder.iterdir() if path.is_dir())
        code = call(["report", str(made)], folder / "report.txt")
    hashes: dict[str, list[str]] = {"exit code": [str(code)]}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(_SKIPPED):
            data = _neutral(path.read_bytes(), str(base).encode())
            # cells have their keys for names: such files are hashed as a set
            hashes.setdefault(_neutral_name(path.relative_to(folder)), []).append(hashlib.sha256(data).hexdigest()[:16])
    return name, {file: " ".join(sorted(found)) for file, found in hashes.items()}


def _filled(word: str, places: dict[str, str]) -> str:
    for mark, place in places.items():
        word = word.replace(mark, place)
    return word


def _neutral(data: bytes, base: bytes) -> bytes:
    data = data.replace(base, b"BASE")
    if data[:4] == b"\x89PNG":
        return data
    for new, old in RENAMED.items():
        data = data.replace(new.encode(), old.encode())
    for pattern in _VARIES:
        data = pattern.sub(b"", data)
    return data


def _neutral_name(path: Path) -> str:
    return re.sub(r"[0-9a-f]{16,}", "KEY", str(path))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    base = Path(tempfile.mkdtemp())
    try:
        found = _all_hashes(base, given.only, given.jobs)
    finally:
        if given.keep:
            shutil.copytree(base, given.keep, dirs_exist_ok=True)
        shutil.rmtree(base)
    if given.record:
        given.record.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if given.check:
        return _compared(json.loads(given.check.read_text(encoding="utf-8")), found, given.only)
    failed = [name for name, hashes in found.items() if hashes["exit code"] != "0"]
    print(f"{len(found)} commands, {sum(map(len, found.values()))} hashes; not 0: {failed}")
    return 0


def _all_hashes(base: Path, only: str, jobs: int) -> dict[str, dict[str, str]]:
    # what takes long to import, once for all forks
    from batwatt.run.find_scheduler import our_schedulers

    list(our_schedulers())
    context = get_context("fork")
    (base / "shared").mkdir()
    (base / "shared" / "year.csv").write_text(_year(), encoding="utf-8")
    with context.Pool(1, maxtasksperchild=1) as pool:
        for number, words in enumerate(SHARED):
            pool.apply(_prepare, (words, str(base), number))
    chosen = [(name, words, str(base)) for name, words in commands() if only in name]
    # long ones first
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        return dict(pool.imap_unordered(_carry_out, chosen[::-1], chunksize=1))


def _year() -> str:
    """A carbon intensity of 2020 and two weeks more in half hours."""
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    rows = [
        f"{begin + timedelta(hours=h / 2):%Y-%m-%dT%H:%M:%SZ},{200 + 7 * h % 131 + h % 48}" for h in range(380 * 48)
    ]
    return "\n".join(["datetime,carbon_intensity_g_kwh", *rows]) + "\n"


def _prepare(words: list[str], base: str, number: int) -> None:
    os.chdir(ROOT)
    filled = [_filled(word, {"{shared}": f"{base}/shared"}) for word in words]
    log = Path(base) / f"prepared-{number}.txt"
    if call(filled, log):
        raise RuntimeError(log.read_text(encoding="utf-8"))


def _compared(kept: dict[str, dict[str, str]], found: dict[str, dict[str, str]], only: str) -> int:
    kept = {name: hashes for name, hashes in kept.items() if only in name}
    differ = 0
    for name in sorted(kept.keys() | found.keys()):
        before, now = kept.get(name, {}), found.get(name, {})
        for file in sorted(before.keys() | now.keys()):
            if before.get(file) != now.get(file):
                differ += 1
                print(f"{name}: {file}: {before.get(file, 'not there')} -> {now.get(file, 'gone')}")
    print(f"{len(found)} commands, {sum(map(len, found.values()))} hashes, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
