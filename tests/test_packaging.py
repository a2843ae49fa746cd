"""Files that other tools read: containers, robin, CI, citation. Checked as far as it goes without those tools."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from false_batsim import false_batsim
from test_readme import ROOT, check_command, options_of

from batwatt import __version__
from batwatt.cli.batsim import DEFAULT_ENDPOINT
from batwatt.errors import to_install
from batwatt.schedulers import powercap  # noqa: F401  # registers its parts
from batwatt.scheduling.base import EnvelopeOptions, parse_options
from batwatt.scheduling.registry import make

yaml = pytest.importorskip("yaml")

ROBIN = sorted((ROOT / "docs" / "howto" / "robin").glob("*.yaml"))
COMPOSE = ROOT / "docker" / "compose.yaml"
DOCKERFILE = ROOT / "docker" / "Dockerfile"


def load(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def check_options(text: str) -> EnvelopeOptions:
    """Assert that the parts an options object names exist."""
    settings = parse_options(EnvelopeOptions, json.loads(text))
    for kind in ("order", "backfilling", "response"):
        make(kind, getattr(settings, kind))
    return settings


# robin, containers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ROBIN, ids=lambda path: path.stem)
def test_robin_file(path):
    assert [each.stem for each in ROBIN] == ["batsim5-hfld", "powercap-hfld", "powercap-idfs", "powercap-none"]
    data = load(path)
    assert set(data) == {
        "batcmd", "schedcmd", "output-dir",
        "simulation-timeout", "ready-timeout", "success-timeout", "failure-timeout",
    }  # fmt: skip
    assert all(data[key] > 0 for key in data if key.endswith("-timeout"))
    check_command(data["schedcmd"])
    scheduler, batsim = options_of(data["schedcmd"]), options_of(data["batcmd"])
    five = path.stem.startswith("batsim5")
    assert five or shlex.split(data["batcmd"])[0] == "batsim"
    assert check_options(scheduler["-o"]).response == path.stem.partition("-")[2]
    assert scheduler["-p"] == batsim["-p"]
    assert scheduler["--socket"] == batsim["-s"] == DEFAULT_ENDPOINT
    workload = f"workloads/{Path(batsim['-w']).name.replace('-batsim5', '')}" if five else batsim["-w"]
    for name in (scheduler["-p"], scheduler["--envelope"], workload):
        assert (ROOT / name).is_file(), name
    assert batsim["-e"].startswith(f"{data['output-dir']}/")


def test_robin_gets_the_execution_context_of_batsim_5(tmp_path):
    """It appends an option to the command and wants `external_scheduler`, which v5.0.0-rc2 does not print."""
    command = load(ROOT / "docs" / "howto" / "robin" / "batsim5-hfld.yaml")["batcmd"]
    false_batsim(tmp_path / "batsim", "script", """echo '{"socket_endpoint":"tcp://x","export_prefix":"out/"}'""")
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    for more, added in ((" --dump-execution-context", {"external_scheduler": True}), ("", {})):
        out = subprocess.run(["bash", "-eu", "-c", command + more], env=path, capture_output=True, check=True).stdout
        assert json.loads(out) == {"socket_endpoint": "tcp://x", "export_prefix": "out/"} | added


def test_compose_runs_known_commands_on_files_that_exist():
    services = load(COMPOSE)["services"]
    assert services["batsim"]["depends_on"] == {"scheduler": {"condition": "service_healthy"}}
    host, port = DEFAULT_ENDPOINT.removeprefix("tcp://").split(":")
    assert f"create_connection(('{host}', {port}))" in services["scheduler"]["healthcheck"]["test"][-1]
    check_command(shlex.join(["batwatt", "serve", *services["scheduler"]["command"]]))
    scheduler = options_of(shlex.join(services["scheduler"]["command"]))
    batsim = options_of(shlex.join(services["batsim"]["command"]))
    check_options(scheduler["--option"])
    # both in one network, so the scheduler's default, loopback, is where Batsim connects
    assert services["batsim"]["network_mode"] == "service:scheduler"
    assert "--socket" not in scheduler
    assert batsim["-s"] == DEFAULT_ENDPOINT
    assert scheduler["--platform"] == batsim["-p"]
    for name in (scheduler["--platform"], scheduler["--envelope"], batsim["-w"]):
        assert (ROOT / Path(name).relative_to("/data")).is_file(), name


def test_compose_confines_all_services():
    """Inputs are mounted read-only, and only what Batsim writes is not."""
    for name, service in load(COMPOSE)["services"].items():
        assert service["user"] == "${BATWATT_UID:-1000}:${BATWATT_GID:-1000}"
        assert (service["init"], service["read_only"], service["tmpfs"]) == (True, True, ["/tmp"])
        assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
        # none, or that of the scheduler
        assert service["network_mode"] in ("none", "service:scheduler")
        for volume in service["volumes"]:
            if isinstance(volume, dict):
                # Docker would create it as root
                assert (volume["target"], volume["bind"]) == ("/out", {"create_host_path": False})
                assert name != "scheduler"
                continue
            host, inside, mode = volume.split(":")
            assert mode == "ro" and (COMPOSE.parent / host).is_dir(), volume
            assert (COMPOSE.parent / host).resolve() == ROOT / Path(inside).relative_to("/data")


def test_compose_has_a_batsim_without_batsim():
    services = load(COMPOSE)["services"]
    service, batsim = services["engine"], services["batsim"]
    assert (service["profiles"], service["image"]) == (["engine"], services["scheduler"]["image"])
    assert (service["network_mode"], service["depends_on"]) == (batsim["network_mode"], batsim["depends_on"])
    # the entry point is the image's
    check_command(shlex.join(["batwatt", *service["command"]]))
    played, real = options_of(shlex.join(service["command"])), options_of(shlex.join(batsim["command"]))
    assert [played[name] for name in ("-p", "-w", "-s")] == [real[name] for name in ("-p", "-w", "-s")]


def test_dockerfile():
    services = load(COMPOSE)["services"]
    build = services["scheduler"]["build"]
    assert (COMPOSE.parent / build["context"]).resolve() == ROOT and ROOT / build["dockerfile"] == DOCKERFILE
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    steps = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    words = [word for word, _ in steps]
    final = steps[len(words) - words[::-1].index("FROM") :]
    # all that comes from the build stage is installed wheels
    assert "COPY" not in dict(final) and "ADD" not in dict(final)
    assert dict(final)["USER"] == "1000:1000" and [word for word, _ in final].index("USER") > 2
    assert json.loads(dict(final)["ENTRYPOINT"]) == ["batwatt"]
    check_command(shlex.join(["batwatt", *json.loads(dict(final)["CMD"])]))
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', dict(final)["LABEL"]))
    metadata = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert labels["version"] == __version__ and f"license = {labels['licenses']}\n" in metadata
    allowed = (ROOT / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8").split("\n")
    sources = [source for word, rest in steps if word == "COPY" for source in rest.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists() or f"!{source}" not in allowed] == []


def test_the_image_pins_what_the_project_needs():
    requirements = pytest.importorskip("packaging.requirements")
    options = configparser.ConfigParser()
    options.read(ROOT / "setup.cfg")
    image = options["options"]["install_requires"] + options["options.extras_require"]["study"]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    for name, lines in (("requirements.txt", image.split("\n")), ("requirements-build.txt", build)):
        text = (ROOT / "docker" / name).read_text(encoding="utf-8")
        pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE))
        assert len(pins) == len(re.findall(r"^[a-z]", text, re.MULTILINE))
        for one in (requirements.Requirement(line) for line in lines if line):
            version = pins.get(one.name.lower().replace("_", "-"))
            assert version and version in one.specifier, f"{name} has {version}, not {one}: run docker/lock"


# CI, citation, licence -----------------------------------------------------------------------------------------------


def test_the_version_is_one():
    assert load(ROOT / "CITATION.cff")["version"] == __version__
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone: nothing says which files there are")
def test_the_sdist_is_complete(tmp_path):
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    # a link to a folder is packed as that folder
    paths = {name: ROOT / name for name in done.stdout.split() if not name.startswith(".git")}
    tracked = {name for name, path in paths.items() if path.exists() and not path.is_symlink()}
    packed = set((tmp_path / "batwatt.egg-info" / "SOURCES.txt").read_text().splitlines())
    assert len(tracked) > 500 and tracked <= packed, tracked - packed
    assert not [name for name in packed if name.endswith((".so", ".pyc", ".nbi"))]


def test_what_is_said_to_install_can_be_installed():
    """No index has batwatt: a command names an extra of the clone, and one that setup.cfg has."""
    extras = re.findall(r"^(\w+) =$", (ROOT / "setup.cfg").read_text().partition("extras_require")[2], re.M)
    folders = [ROOT / name for name in ("src", "schedulers", "docs", "papers", "start", "tests", "docker")]
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    paths += [path for folder in folders for path in folder.rglob("*.*")]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.suffix in (".py", ".md", ".yaml")]
    commands = [command for text in texts for command in re.findall(r"pip install ([^`\n]*)", text)]
    assert [command for command in commands if re.match("['\"]?batwatt", command)] == []
    named = {name for command in commands for name in re.findall(r"\.\[(\w+)\]", command)}
    assert {"all", "docs"} <= named <= set(extras)
    assert to_install("study") == "pip install -e '.[study]' in the clone of batwatt"


# type hints of an editable installation -------------------------------------------------------------------------------


def test_type_checkers_see_the_api_and_the_schedulers(tmp_path):
    pytest.importorskip("mypy")
    # one folder holds all packages: an editable installation is a path, which type checkers follow
    options = configparser.ConfigParser()
    options.read(ROOT / "setup.cfg")
    assert (options["options"]["package_dir"].split(), options["options"]["packages"]) == (["=", "src"], "find:")
    assert all((path.parent / "__init__.py").is_file() for path in (ROOT / "src" / "batwatt").rglob("*.py"))
    assert (ROOT / "src" / "batwatt" / "schedulers").resolve() == ROOT / "schedulers"
    user = tmp_path / "user.py"
    user.write_text(
        "import batwatt as bw\nfrom batwatt.schedulers.powercap import Powercap\n"
        "reveal_type(Powercap)\nbw.simulate('p.xml', 'w.json', long_s='9')\nbw.Workload.read('w.json', hosts='4')\n"
    )
    # without other libraries, whose types take a minute to read
    options = ("--config-file=", "--follow-imports=silent", "--no-site-packages", "--ignore-missing-imports")
    command = [sys.executable, "-m", "mypy", *options, str(user)]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    name = "batwatt.schedulers.powercap.scheduler.Powercap"
    assert lines[0].startswith("note: Revealed type is") and name in lines[0]
    wrong = [line for line in lines if line.startswith("error")]
    assert [line.partition("has incompatible")[0] for line in wrong] == [
        'error: Argument "long_s" to "simulate" ',
        'error: Argument "hosts" to "read" of "Workload" ',
    ]
