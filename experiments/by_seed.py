"""Run a campaign a few seeds at a time, so that what is done of it at any time is balanced.

python experiments/by_seed.py experiments/pmbs23.yaml 1x3 2x10 6x30 -- -j 1
    runs it with its first trace and 3 walks, then with 2 traces and 10 walks, and so on, all into the results of the
    whole campaign, whose declaration is the last that is run; what comes after -- goes to `batwatt campaign run`
A campaign goes through a study by algorithm, then by trace, then by walk: what is done of half a study compares nobody.
Lists of seeds are those of the anchors `&traces` and `&walks`; others are taken whole at each stage.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from batwatt.errors import InputError
from batwatt.inputs.workloads.batsim_json import read_text

ANCHOR = r"(seeds: &{} )\[([\d,\s]*)\]"
STAGE = re.compile(r"([1-9]\d*)x([1-9]\d*)")


def cut(text: str, traces: int, walks: int) -> str:
    """A declaration with the first seeds of traces and of walks only. Raises InputError if it has no such lists."""
    for name, count in (("traces", traces), ("walks", walks)):
        found = re.search(ANCHOR.format(name), text)
        if found is None:
            raise InputError("the declaration", f"has no list seeds: &{name}", "name its seeds so")
        kept = ", ".join(seed.strip() for seed in found[2].split(",")[:count])
        text = f"{text[: found.start()]}{found[1]}[{kept}]{text[found.end() :]}"
    return text


def main(words: Sequence[str]) -> int:
    """Run every stage and then the whole; the exit code is that of the first that fails, 2 for bad words."""
    own, more = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    stages = [STAGE.fullmatch(word) for word in own[1:]]
    if not own or None in stages:
        print("by_seed: give a YAML file and stages such as 2x10", file=sys.stderr)
        return 2
    path = Path(own[0])
    try:
        text = read_text(path)
        texts = [cut(text, int(stage[1]), int(stage[2])) for stage in stages if stage]
    except InputError as error:
        print(f"by_seed: {error}", file=sys.stderr)
        return error.exit_code
    for declared in texts:
        # next to the whole, as paths in it are relative to it
        with tempfile.NamedTemporaryFile("w", prefix=f".{path.stem}-", suffix=".yaml", dir=path.parent) as stage:
            stage.write(declared)
            stage.flush()
            if code := _run(stage.name, more):
                return code
    return _run(str(path), more)


def _run(path: str, more: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "batwatt", "campaign", "run", path, *more], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
