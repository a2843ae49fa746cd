"""What a plain installation does without: a command that needs more asks for it in one line before it does anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIONAL = ("pyarrow", "ortools", "pulp", "highspy", "distributed")
SMALL = ("-p", "platforms/small.xml", "-w", "workloads/small.json")
ENVELOPE = ("--envelope", "power_profiles/profile3.csv")


def batwatt(*words: str, without: tuple[str, ...] = OPTIONAL) -> subprocess.CompletedProcess[str]:
    """The command where some libraries are not installed."""
    code = f"import sys\nfor name in {without!r}: sys.modules[name] = None\nfrom batwatt.cli.main import main\nmain()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)


@pytest.mark.parametrize(
    "words, extra",
    [
        (("campaign", "run", "papers/igsc22/study.yaml"), "campaign"),
        (("report", "results/igsc22"), "campaign"),
        (("optimum", *SMALL, *ENVELOPE), "optimum"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_an_extra_is_asked_for(words, extra, tmp_path):
    prefix = ("-e", str(tmp_path / "run")) if words[0] == "optimum" else ()
    ended = batwatt(*words, *prefix)
    assert ended.returncode == 2 and not list(tmp_path.iterdir())
    [line] = ended.stderr.splitlines()
    assert (
        line.startswith(f"batwatt: batwatt[{extra}]: the library ")
        and f"pip install -e '.[{extra}]' in the clone" in line
    )


def test_a_page_needs_no_extra(tmp_path):
    words = ("compare", *SMALL, *ENVELOPE, "-c", 'none={"response": "none"}', "-e", str(tmp_path / "run"))
    ended = batwatt(*words)
    assert ended.returncode == 0 and not ended.stderr
    assert (tmp_path / "run.html").is_file()
