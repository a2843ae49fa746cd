"""Make the pictures of README and documentation: `python docs/images/make.py`, and `--check` that they are of today.

main.png has in its metadata a digest of the powers and the envelope that it draws, which `--check` computes again. The
screenshot your-site.png is the page of the tutorial in Chromium, which takes minutes: `make.py --site PAGE.html`.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image, PngImagePlugin

import batwatt as bw

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "images"
CASES = {
    "HFLD: hosts slowed down and switched off": "powercap backfilling=easy order=slowdown response=hfld",
    "no configuration: all hosts on": "powercap backfilling=easy order=slowdown response=none",
}
"""Cases of `make run`, by the title of their panel."""


def main_run() -> bw.Comparison:
    """Run the main job."""
    return bw.compare(
        ROOT / "platforms/grid5000.xml",
        ROOT / "workloads/google-288-00.json",
        envelope=ROOT / "power_profiles/profile3.csv",
        cases=CASES,
    )


def digest(result: bw.Comparison) -> str:
    """Return the digest of what main.png draws: times in s and powers in W, to 0.1."""
    envelope = result.envelope
    assert envelope is not None
    parts = [np.array(envelope.times_s), np.array(envelope.values)]
    parts += [part for trace in result.traces.values() for part in (trace.times_s, trace.power_w)]
    return hashlib.sha256(b"".join(np.round(part, 1).tobytes() for part in parts)).hexdigest()[:16]


def write_main(path: Path) -> None:
    """Write main.png."""
    from matplotlib import pyplot

    mpl.use("agg")
    mpl.rcParams.update({"font.size": 9, "axes.titlesize": 10})
    result = main_run()
    figure, panels = pyplot.subplots(2, figsize=(7.2, 4.0), sharex=True, sharey=True, layout="constrained")
    for axes, case in zip(panels, CASES, strict=True):
        result.plot("power", axes, case=case)
        axes.get_legend().remove()
    panels[0].set_xlabel("")
    handles = {handle.get_label(): handle for axes in panels for handle in axes.get_legend_handles_labels()[0]}
    handles = {name: handles[name] for name in ("power", "envelope", "above the envelope", "unused")}
    figure.legend(handles.values(), handles, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=200, metadata={"Software": None, "digest": digest(result)})


def write_site(page: Path, path: Path) -> None:
    """Write the first screen of a page as a screenshot of 1280 pixels."""
    browser = shutil.which("chromium") or sys.exit("make.py: chromium is missing: apt install chromium")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,1520"]
    subprocess.run([browser, *words, f"--screenshot={path}", page.resolve().as_uri()], check=True, capture_output=True)


def digest_in(path: Path) -> str:
    """Return the digest in the metadata of a picture."""
    with Image.open(path) as image:
        assert isinstance(image, PngImagePlugin.PngImageFile)
        return str(image.text.get("digest", "none"))


def main() -> int:
    """Make or check the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--site", type=Path, metavar="PAGE.html")
    arguments = parser.parse_args()
    if arguments.site:
        write_site(arguments.site, FOLDER / "your-site.png")
    elif arguments.check:
        before, now = digest_in(FOLDER / "main.png"), digest(main_run())
        print("main.png: same" if before == now else f"main.png draws {before}, runs of today are {now}: make images")
        return int(before != now)
    else:
        write_main(FOLDER / "main.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
