"""Loading of schedulers as by pybatsim's launcher; each rule with files of its own, as strangers have them."""

import importlib.metadata
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest
from batsim.batsim import BatsimScheduler
from batsim.tools.launcher import instanciate_scheduler

from batwatt.errors import InputError
from batwatt.run import loader
from batwatt.run.find_scheduler import load_plugins, make_scheduler, scheduler_class, scheduler_names
from batwatt.run.loader import files_beside, load
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.studies.grid import Sources

ROOT = Path(__file__).parents[2]
HEAD = "from batsim.batsim import BatsimScheduler\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of files of a user, in a folder of its own."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / "above" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "above"

    return write


def scheduler(name, value="None", base="BatsimScheduler", before=""):
    return f"{before}\nclass {name}({base}):\n    value = {value}\n"


def foo(before, value="X"):
    return {"mine/foo.py": HEAD + scheduler("Foo", value, before=before)}


def value_of(path, options=None):
    return make_scheduler(str(path), options or {}).value


# files beside the file -----------------------------------------------------------------------------------------------

SIBLINGS = {
    "sibling": ({"common.py": "X = 7\n"}, "from common import X"),
    "module": ({"common.py": "X = 7\n"}, "import common; X = common.X"),
    "inside a function": ({"common.py": "X = 7\n"}, "def read():\n    from common import X\n    return X\nX = read()"),
    "relative": ({"base.py": "X = 7\n"}, "from .base import X"),
    "relative module": ({"base.py": "X = 7\n"}, "from . import base; X = base.X"),
    "package": ({"base.py": "X = 7\n"}, "from mine.base import X"),
    "package as": ({"base.py": "X = 7\n"}, "import mine.base as b; X = b.X"),
    "own package": ({"base.py": "X = 7\n"}, "import mine.base; X = mine.base.X"),
    "above": ({"../tools/lists.py": "X = 7\n"}, "from tools.lists import X"),
    "above, a file": ({"../lists.py": "X = 7\n"}, "import lists; X = lists.X"),
    "of a sibling": ({"a.py": "from b import Y\nX = Y + 1\n", "b.py": "Y = 6\n"}, "from a import X"),
    "relative of a sibling": ({"a.py": "from .b import Y as X\n", "b.py": "Y = 7\n"}, "from a import X"),
    "all names": ({"common.py": "X = 7\n"}, "from common import *"),
    "package of a sibling": ({"parts/__init__.py": "", "parts/p.py": "X = 7\n"}, "from parts.p import X"),
    "init": ({"__init__.py": "X = 7\n"}, "from mine import X"),
    "init in vain": ({"__init__.py": "import nowhere\n", "common.py": "X = 7\n"}, "from common import X"),
    "import_module": ({"common.py": "X = 7\n"}, "import importlib; X = importlib.import_module('common').X"),
    "import_module by name": (
        {"parts/__init__.py": "", "parts/p.py": "X = 7\n"},
        "from importlib import import_module as get; X = get('parts.p').X",
    ),
    "import_module, relative": (
        {"base.py": "X = 7\n"},
        "import importlib.util as u, importlib as i; u.find_spec; X = i.import_module('.base', __package__).X",
    ),
    "__import__": ({"common.py": "X = 7\n"}, "X = __import__('common').X"),
    "pybatsim's folder": ({"schedulers/own.py": "X = 7\n"}, "from schedulers.own import X"),
}


@pytest.mark.parametrize("case", SIBLINGS)
def test_files_beside_a_scheduler(case, folder):
    beside, line = SIBLINGS[case]
    files = {f"mine/{name}": text for name, text in beside.items()}
    above = folder(files | foo(line))
    assert value_of(above / "mine" / "foo.py") == 7


def test_a_scheduler_derived_from_one_in_another_file(folder):
    base = {"mine/easyFill.py": HEAD + scheduler("EasyFill", "[1]")}
    better = scheduler("Better", "[*EasyFill.value, 2]", "EasyFill", "from easyFill import EasyFill")
    assert value_of(folder({**base, "mine/better.py": better}) / "mine" / "better.py") == [1, 2]


def test_equal_names_in_two_folders(folder):
    above = folder(
        {f"{name}/common.py": f"X = {name!r}\n" for name in "ab"}
        | {f"{name}/foo.py": f"{HEAD}from common import X\n{scheduler('Foo', 'X')}" for name in "ab"}
    )
    first, second = (scheduler_class(str(above / name / "foo.py")) for name in "ab")
    assert (first.value, second.value) == ("a", "b")
    assert "common" not in sys.modules and "foo" not in sys.modules


def test_an_import_while_it_runs(folder):
    late = HEAD + scheduler(
        "Foo", "property(lambda self: read())", before="def read():\n    import common\n    return common.X"
    )
    above = folder(
        {f"{name}/foo.py": late for name in "ab"} | {f"{name}/common.py": f"X = {name!r}\n" for name in "ab"}
    )
    made = [make_scheduler(str(above / name / "foo.py"), {}) for name in "ab"]
    assert [one.value for one in made] == ["a", "b"]


@pytest.mark.parametrize("line", ["import helper", "import helper.deep as helper"])
def test_equal_names_in_folders_on_the_path(line, folder, monkeypatch):
    monkeypatch.setattr(sys, "path", before := list(sys.path))
    text = f"import sys\nsys.path.insert(0, __file__[:-6] + 'lib')\n{line}\n"
    above = folder(
        {f"{name}/foo.py": HEAD + scheduler("Foo", "helper.X", before=text) for name in "ab"}
        | {f"{name}/lib/helper/__init__.py": f"X = {name!r}\n" for name in "ab"}
        | {f"{name}/lib/helper/deep.py": f"X = {name!r}\n" for name in "ab"}
        | {"c/foo.py": HEAD + scheduler("Foo", 7)}
    )
    before = list(before)
    assert [value_of(above / name / "foo.py") for name in "abac"] == ["a", "b", "a", 7]
    assert sys.path == before and "helper" not in sys.modules and "helper.deep" not in sys.modules


def test_import_module_while_it_runs(folder):
    late = HEAD + "import importlib\n" + scheduler("Foo", "property(lambda self: importlib.import_module('common').X)")
    above = folder(
        {f"{name}/foo.py": late for name in "ab"} | {f"{name}/common.py": f"X = {name!r}\n" for name in "ab"}
    )
    made = [make_scheduler(str(above / name / "foo.py"), {}) for name in "ab"]
    assert [one.value for one in made] == ["a", "b"]
    assert "common" not in sys.modules
    assert importlib.import_module.__module__ == "importlib"


@pytest.mark.parametrize("init", [{}, {"v1.2/__init__.py": ""}], ids=["no init", "init"])
def test_an_import_while_it_runs_in_a_folder_with_a_dot(init, folder):
    late = HEAD + scheduler("Foo", "property(lambda self: read())", before="def read():\n    import common as c")
    late = late.replace("as c", "as c\n    return c.X")
    above = folder(
        {f"{name}/foo.py": late for name in ("v1.2", "b")}
        | {f"{name}/common.py": f"X = {name!r}\n" for name in ("v1.2", "b")}
        | init
    )
    made = [make_scheduler(str(above / name / "foo.py"), {}) for name in ("v1.2", "b")]
    assert [one.value for one in made] == ["v1.2", "b"]


def test_an_import_while_it_runs_is_searched_once(folder, monkeypatch):
    late = "property(lambda self: [__import__(name).__name__ for name in ('common', 'procset')])"
    above = folder({"mine/common.py": ""} | foo("", late))
    made = make_scheduler(str(above / "mine" / "foo.py"), {})
    first = made.value
    monkeypatch.setattr(loader.PathFinder, "find_spec", None)
    assert made.value == first and first[1] == "procset"


def test_each_load_runs_the_code_again(folder):
    lines = "from common import jobs\njobs.append(1)"
    above = folder({"mine/common.py": "jobs = []\n"} | foo(lines, "len(jobs)"))
    path = above / "mine" / "foo.py"
    assert [value_of(path), value_of(path)] == [1, 1]
    (above / "mine" / "common.py").write_text("jobs=[5]\n")
    assert value_of(path) == 2
    assert not list(above.rglob("__pycache__"))


def test_a_file_is_one_module_by_all_of_its_names(folder):
    lines = "import common, mine.common\nfrom . import common as third"
    above = folder({"mine/common.py": ""} | foo(lines, "common is mine.common is third"))
    assert value_of(above / "mine" / "foo.py") is True


@pytest.mark.parametrize("name", ["random", "json", "queue", "asyncio"])
def test_modules_of_python_that_pybatsims_launcher_has_loaded_come_first(name, folder):
    above = folder({f"mine/{name}.py": ""} | foo(f"import {name} as m", "m.__name__"))
    assert value_of(above / "mine" / "foo.py") == name


@pytest.mark.parametrize("name", ["statistics", "decimal", "sched"])
def test_other_modules_of_python_come_last_whether_they_are_loaded_or_not(name, folder):
    # what is loaded differs by command and by notebook
    __import__(name)
    above = folder({f"mine/{name}.py": "X = 7\n"} | foo(f"from {name} import X"))
    assert value_of(above / "mine" / "foo.py") == 7


def test_a_file_beside_wins_over_an_installed_package(folder):
    above = folder({"mine/yaml.py": "X = 7\n"} | foo("from yaml import X"))
    assert value_of(above / "mine" / "foo.py") == 7
    # a folder without __init__.py does not
    above = folder(
        {"yaml/notes.txt": "", "other/bar.py": f"{HEAD}from yaml import dump\n" + scheduler("Bar", "[dump]")}
    )
    import yaml

    assert value_of(above / "other" / "bar.py") == [yaml.dump]


def test_a_folder_beside_does_not_win_over_a_package_with_a_finder_of_its_own(folder, monkeypatch):
    # packages that are installed editable have one
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            file = above / "elsewhere" / "tool.py"
            return spec_from_file_location(name, file) if name == "editable_tool" else None

    above = folder({"editable_tool/setup.cfg": "", "elsewhere/tool.py": "X = 7\n"} | foo("from editable_tool import X"))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert value_of(above / "mine" / "foo.py") == 7
    monkeypatch.delitem(sys.modules, "editable_tool")


def test_names_with_dots(folder):
    text = HEAD + scheduler("Foo", "X", before="from .common import X")
    above = folder({"v1.2/common.py": "X = 7\n", "v1.2/foo.v3.py": text})
    assert value_of(above / "v1.2" / "foo.v3.py") == 7


def test_a_missing_library_is_named(folder):
    above = folder({"mine/foo.py": "import nowhere.at_all\n", "mine/bar.py": "from .nowhere import X\n"})
    with pytest.raises(InputError, match=r"No module named 'nowhere'.*install 'nowhere' beside batwatt"):
        scheduler_class(str(above / "mine" / "foo.py"))
    with pytest.raises(InputError, match=r"No module named 'mine.nowhere' .*correct the file"):
        scheduler_class(str(above / "mine" / "bar.py"))


def test_an_error_in_a_file_beside_has_its_place(folder):
    above = folder({"mine/common.py": "\n1 / 0\n", "mine/foo.py": "import common\n"})
    with pytest.raises(InputError, match=r"foo.py: cannot be loaded: ZeroDivisionError: .*common.py:2"):
        scheduler_class(str(above / "mine" / "foo.py"))


# names of pybatsim ---------------------------------------------------------------------------------------------------


def test_the_names_of_pybatsim_4(folder):
    text = "from pybatsim.batsim.batsim import BatsimScheduler\nimport pybatsim.batsim.batsim as b\n"
    above = folder({"mine/foo.py": text + scheduler("Foo", "b.BatsimScheduler")})
    assert value_of(above / "mine" / "foo.py") is BatsimScheduler
    import batsim.batsim

    assert sys.modules["batsim.batsim"] is batsim.batsim and batsim.batsim.__spec__.name == "batsim.batsim"


def test_schedulers_of_pybatsim_as_modules(folder, monkeypatch):
    # here Python finds another folder of that name
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    text = (
        "from schedulers.easyBackfill import EasyBackfill\n"
        "from pybatsim.schedulers.easyBackfill import EasyBackfill as Same\n"
        "from schedulers.common_pyss_adaptator import CpuSnapshot\nimport schedulers.intervalContainer\n"
    )
    value = "EasyBackfill is Same, schedulers.intervalContainer.__file__"
    above = folder({"mine/foo.py": text + scheduler("Foo", value, "EasyBackfill")})
    same, file = value_of(above / "mine" / "foo.py")
    installed = Path(str(importlib.metadata.distribution("pybatsim").locate_file("schedulers")))
    assert same and Path(file) == installed / "intervalContainer.py"


@pytest.mark.parametrize("line", ["from schedulers import easyBackfill", "from schedulers import *"])
def test_a_folder_with_the_name_of_pybatsims(line, folder):
    text = f"{line}\nimport schedulers.easyBackfill as easyBackfill\n"
    text += scheduler("Foo", "easyBackfill.__file__", "easyBackfill.EasyBackfill")
    above = folder({"schedulers/foo.py": text, "other/schedulers/bar.py": "from schedulers import mine\n"})
    installed = Path(str(importlib.metadata.distribution("pybatsim").locate_file("schedulers")))
    assert Path(value_of(above / "schedulers" / "foo.py")) == installed / "easyBackfill.py"
    own = HEAD + "from schedulers import mine\n" + scheduler("Foo", "mine.X")
    above = folder({"schedulers/foo.py": own, "schedulers/mine.py": "X = 7\n"})
    assert value_of(above / "schedulers" / "foo.py") == 7


def test_names_that_are_no_schedulers_are_not_listed():
    names = scheduler_names()
    assert {"easyBackfill", "schedFcfs", "powercap"} <= set(names)
    assert not {"common_pyss_adaptator", "intervalContainer", "__init__"} & set(names)
    with pytest.raises(InputError, match="no scheduler 'intervalContainer'"):
        scheduler_class("intervalContainer")


# the class -----------------------------------------------------------------------------------------------------------


def test_the_class_has_the_name_of_the_file(folder):
    above = folder({"mine/fooBar.py": HEAD + scheduler("Other", 1) + scheduler("FooBar", 2)})
    assert value_of(above / "mine" / "fooBar.py") == 2
    assert instanciate_scheduler(str(above / "mine" / "fooBar.py"), {}).value == 2
    # as pybatsim, without its suffix; and a class of another name
    assert value_of(above / "mine" / "fooBar") == 2
    above = folder({"mine/round_robin.py": HEAD + scheduler("RoundRobin", 3) + "Round_robin = RoundRobin\n"})
    assert value_of(above / "mine" / "round_robin.py") == 3


def test_else_the_only_scheduler(folder):
    above = folder({"mine/foo.py": HEAD + "class Queue: pass\n" + scheduler("Other", 1)})
    assert value_of(above / "mine" / "foo.py") == 1
    above = folder({"mine/bar.py": HEAD + scheduler("Base", 1) + scheduler("Leaf", 2, "Base")})
    assert value_of(above / "mine" / "bar.py") == 2


def test_a_class_with_two_names(folder):
    above = folder({"mine/foo.py": HEAD + scheduler("RoundRobin", 1) + "RR = RoundRobin\n"})
    assert value_of(above / "mine" / "foo.py") == 1


def test_a_folder_of_data_beside_a_file_of_its_name(folder):
    above = folder({"mine/foo.py": HEAD + scheduler("Foo", 1), "mine/foo/data.txt": ""})
    assert value_of(above / "mine" / "foo") == value_of(above / "mine" / "foo.py") == 1
    (above / "mine" / "foo" / "__init__.py").write_text(HEAD + scheduler("Foo", 2))
    assert (value_of(above / "mine" / "foo"), value_of(above / "mine" / "foo.py")) == (2, 1)
    with pytest.raises(InputError, match="is a folder without"):
        scheduler_class("/")


REFUSED = {
    "two": (HEAD + scheduler("A") + scheduler("B"), "defines no class Foo and several schedulers .its classes: A, B"),
    "none": ("class Queue: pass\n", "defines no class Foo and no scheduler .its classes: Queue"),
    "no class": ("x = 1\n", "its classes: none"),
    "imported": (HEAD, "its classes: none"),
    "no scheduler": ("class Foo: pass\n", "Foo is not a scheduler"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_else_the_classes_are_named(case, folder):
    text, problem = REFUSED[case]
    with pytest.raises(InputError, match=problem):
        scheduler_class(str(folder({"mine/foo.py": text}) / "mine" / "foo.py"))


def test_a_folder_is_a_scheduler(folder):
    files = {
        "foo/__init__.py": "from .flow import Foo\n",
        "foo/flow.py": HEAD + "from rules import X\n" + scheduler("Foo", "X"),
    }
    above = folder({**files, "foo/rules.py": "X = 7\n", "bar/flow.py": ""})
    assert value_of(above / "foo") == value_of(above / "foo/") == value_of(above / "foo" / "__init__.py") == 7
    with pytest.raises(InputError, match=r"is a folder without an __init__\.py"):
        scheduler_class(str(above / "bar"))
    (above / "bar" / "__init__.py").touch()
    with pytest.raises(InputError, match=r"__init__\.py defines no class Bar .* bind it there, such as: from \.sched"):
        scheduler_class(str(above / "bar"))
    with pytest.raises(InputError, match=r"no such file or folder"):
        scheduler_class(str(above / "baz/"))


def test_a_plugin_registers_a_part(folder):
    above = folder({"mine/empty.py": "import math\n"})
    with pytest.raises(InputError, match="registers no part"):
        load_plugins([above / "mine" / "empty.py"])


# options -------------------------------------------------------------------------------------------------------------

OWN = """
class Foo(BatsimScheduler):
    def __init__(self, own):
        super().__init__(own)
        self.value = own

    def onJobSubmission(self, job):
        open({file!r}, "w").write(repr(sorted(self.value)))
        self.bs.reject_jobs([job])
"""
KEYS = ("capacity", "envelope", "long_s", "platform", "shift", "switch", "until_s")


@pytest.mark.parametrize("options", [{}, dict.fromkeys(KEYS, "no file")], ids=["none", "names of ours"])
@pytest.mark.parametrize("engine", ["embedded", "wire"])
def test_options_are_exactly_those_of_the_user(engine, options, folder, tmp_path):
    path = folder({"mine/foo.py": HEAD + OWN.format(file=str(tmp_path / "seen"))}) / "mine" / "foo.py"
    (tmp_path / "cap.csv").write_text("time_s,power_w\n0,100000\n")
    inputs = {"platform": ROOT / "platforms/small.xml", "workloads": (ROOT / "workloads/small.json",)}
    inputs |= {"envelope": tmp_path / "cap.csv", "prefix": tmp_path / "x"}
    run(RunSpec(scheduler=str(path), options=options, engine=engine, **inputs))
    assert (tmp_path / "seen").read_text() == repr(sorted(options))


def test_shift_is_of_the_run_for_schedulers_of_pybatsim():
    made = make_scheduler("easyBackfill", {"shift": "waiting", "envelope": 1})
    assert made.options == {"envelope": 1}


# keys and plugins ----------------------------------------------------------------------------------------------------


def test_the_file_of_a_study_is_that_of_a_run(folder, tmp_path):
    above = folder(
        {"real/impl.py": HEAD + "from common import X\n" + scheduler("Foo", "X"), "real/common.py": "X = 'real'\n"}
        | {"link/common.py": "X = 'link'\n", "both/foo.py": "", "both/foo/data.txt": "", "bare/__init__.py": ""}
    )
    (above / "link" / "foo.py").symlink_to(above / "real" / "impl.py")
    sources = Sources(above, tmp_path)
    # a link counts where it lies, as in pybatsim: also its name
    names = [str(file.path.relative_to(above)) for file in sources.scheduler("link/foo.py", "here")]
    assert names == ["link/foo.py", "link/common.py"] and value_of(above / names[0]) == "link"
    for name in ("both/foo", "both/foo/", "both/foo.py", "link/foo"):
        file = sources.scheduler(name, "here")[0]
        assert file.path == above / f"{name.removesuffix('.py').rstrip('/')}.py"
    assert sources.scheduler("bare", "here")[0].declared == "bare/__init__.py"


def test_the_files_beside_are_those_that_it_imports(folder):
    above = folder(
        {
            "mine/foo.py": "import common, numpy\nfrom .base import X\ndef late():\n    from tools import lists\n",
            "mine/common.py": "import foo, json\n",
            "mine/base/__init__.py": "from .deep import X\n",
            "mine/base/deep.py": "X = 1\n",
            "mine/other.py": "",
            "tools/lists.py": "from mine import other_one\n",
            "mine/other_one.py": "this is no Python\n",
        }
    )
    names = [str(path.relative_to(above)) for path in files_beside(above / "mine" / "foo.py")]
    assert names == [
        "mine/base/__init__.py",
        "mine/base/deep.py",
        "mine/common.py",
        "mine/other_one.py",
        "tools/lists.py",
    ]


def test_a_plugin_is_the_module_that_a_scheduler_imports(folder):
    part = (
        'from batwatt.scheduling.registry import register\n@register("order", "mine")\nclass Order:\n    """Mine."""\n'
    )
    part += "    def key(self, jobs, now_s):\n        return jobs.hosts\n"
    above = folder({"mine/parts.py": part, "mine/foo.py": HEAD + "import parts\n" + scheduler("Foo", "parts")})
    load_plugins([above / "mine" / "parts.py"])
    plugin = value_of(above / "mine" / "foo.py")
    assert plugin is value_of(above / "mine" / "foo.py") and plugin.Order.name == "mine"


def test_a_failed_load_leaves_no_module(folder):
    before = set(sys.modules)
    above = folder({"mine/common.py": "", "mine/foo.py": "import common\n1 / 0\n"})
    with pytest.raises(ZeroDivisionError):
        load(above / "mine" / "foo.py")
    assert not {name for name in set(sys.modules) - before if name.startswith("batwatt_user_")}
