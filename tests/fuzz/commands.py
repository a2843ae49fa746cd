"""Commands with other words: values of options, options of other commands, odd numbers, texts and paths."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

from .files import ROOT, command
from .hostile import DIGITS, TEXTS, octets

INPUTS = {
    "p.xml": "platforms/small.xml",
    "w.json": "workloads/small.json",
    "e.csv": "power_profiles/small.csv",
    "s.csv": "power_profiles/carbon/carbon-hourly.csv",
    "j.csv": "workloads/carbon/jobs.csv",
    "m.json": "workloads/carbon/job.json",
    "d.json": "workloads/periods/period.json",
    "l.sacct": "workloads/site/jobs.sacct",
    "sun.csv": "power_profiles/site/solar.csv",
}
"""Name in the folder of an input -> the file that is copied: changed words may name it as an output."""
COMMANDS = [
    line.split()
    for line in """
run -p p.xml -w w.json --envelope e.csv -s powercap -o {"response":"hfld","order":"slowdown"} -e x
run -p p.xml -w w.json --envelope constant:500 -s adaptive -o {"objective":"goodput"} -e x
run -w w.json --machines 4 --cores 1 --capacity walk:range=0.6,mean=0.7,period=600,seed=1 -s varcap -e x
run -w l.sacct,tz=Europe/Berlin,width=cpus --machines 8 --cores 8 --window 0:90000 -s replay --begin 2024-07-01 -e x
run -p p.xml -w w.json --carbon s.csv -s powercap -o {"response":"none","shift":"oracle"} -e x
compare -p p.xml -w w.json --envelope e.csv -c a=powercap -c b=varcap --seeds 1 -e x
convert l.sacct,width=cpus,tz=UTC -o x.json
convert w.json --to batsim5 -o x.json
events e.csv -o x.txt
characterise carbon:s.csv,budget=0.7
generate series walk:range=0.6 --end 3600 -o x.csv
generate series power:sun.csv,peak_w=1000 -o x.csv
generate jobs google jobs_per_hour=10 hours=2 seed=3 -o x.json
policies varcap
plan checkpoint d.json --method dp
plan carbon m.json --carbon s.csv --start 0 --deadline 86400 --cpus 1
convert j.csv --watts 60 --machines 8 -o w.json -p p.xml
run -w j.csv --machines 8 --carbon s.csv -s carbon -o {"policy":"oracle","deadline_h":48,"step_s":600} -e x
init x
""".strip().splitlines()
]
PATHS = (
    "/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem", "/", ".", "..", "no/such", "x" * 300, "pipe", "folder",
)  # fmt: skip


def attempt(rng: Random, folder: Path) -> None:
    """Run a command with a few words changed, in a folder of its own."""
    place = folder / "a" / "b"
    (place / "folder").mkdir(parents=True)
    for name, source in INPUTS.items():
        shutil.copyfile(ROOT / source, place / name)
    os.chdir(place)
    os.mkfifo("pipe")
    words = list(rng.choice(COMMANDS))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        number, kind = rng.randrange(1, len(words) + 1), rng.randrange(8)
        if kind == 0:
            words.insert(number, rng.choice(rng.choice(COMMANDS)))
        elif kind == 1 and number < len(words):
            del words[number]
        elif number < len(words):
            odd = rng.choice((DIGITS, TEXTS, PATHS, rng.choice(COMMANDS)))
            other = octets(rng, words[number].encode("utf-8", "replace")).decode("utf-8", "surrogateescape")
            words[number] = rng.choice((rng.choice(odd), other))[:100_000].replace("\0", "")
    command(*words)(place / "unused")
