"""What an installation compiles, where there is a C compiler: kernels, as Cython, and the engine's modules, by mypyc.

And what a build collects: the files of `batwatt init`, and the README as the page of a package index.

`BATWATT_PURE=1` compiles nothing, nor does an editable installation: then numba compiles kernels at their first call,
and the modules are Python. All is compiled from its one source and does the same.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SRC = Path("src")
sys.path.insert(0, str(SRC))

from batwatt.cli.start import PACKED, copy_start  # noqa: E402
from batwatt.compiling import SOURCES, sources_digest  # noqa: E402

TYPES = {
    "None": "void",
    "int": "int64_t",
    "float": "double",
    "bool": "bint",
    "tuple[float, int]": "(double, int64_t)",
    "Reals": "double[::1]",
    "RealTable": "double[:, ::1]",
    "Integers": "int64_t[::1]",
    "IntegerTable": "int64_t[:, ::1]",
}
"""Annotations of kernels -> types of Cython. A NamedTuple of arrays is a struct of pointers, lengths and widths."""
HEAD = """# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, infer_types=True, \
initializedcheck=False, binding=False
from libc.math cimport INFINITY, floor
from libc.stdint cimport int64_t

cdef inline int64_t whole(double x) noexcept nogil:
    return <int64_t>x

cdef inline double real(double x) noexcept nogil:
    return x
"""


MODULES = """
units model/hostset model/record engine/events engine/kernel engine/source engine/machines engine/tasks
engine/execution engine/recorder engine/sharing engine/requests engine/switching engine/catalogue engine/core
engine/bs_core scheduling/queue scheduling/passes scheduling/lifecycle scheduling/foresight scheduling/fleet
scheduling/hosts scheduling/job_lengths systems/powercap/cluster systems/varcap/buckets systems/varcap/dependencies
systems/varcap/flow systems/varcap/queues inputs/workloads/batsim_numbers inputs/workloads/usual_json
"""
"""What mypyc compiles: all that is done for each job and each message of a simulation."""


class Kernel(ast.NodeTransformer):
    """The Cython of a module of kernels."""

    def __init__(self, path: Path, others: dict[str, Kernel]) -> None:
        self.stem = path.stem
        self.names: dict[str, Any] = {}
        """Constants, and functions and structs by the names that they have in Cython."""
        self.modules: dict[str, Kernel] = {}
        self.rows: dict[str, ast.Attribute] = {}
        """The variables of a function that are arrays of a struct."""
        self.parts: list[str] = []
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
        self.names |= {node.name: ast.Name(f"c_{self.stem}_{node.name}") for node in functions}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                module = str(node.module).rpartition(".")[2]
                if module in others:
                    self.names |= {alias.name: others[module].names[alias.name] for alias in node.names}
                found = {str(alias.asname): others[alias.name] for alias in node.names if alias.name in others}
                self.modules |= found
            if isinstance(node, ast.Assign) or (isinstance(node, ast.ImportFrom) and node.module == "batwatt.units"):
                exec(ast.unparse(node), self.names)
                self.names.pop("__builtins__", None)
            elif isinstance(node, ast.ClassDef):
                self.names[node.name] = ast.Name(f"{self.stem}_{node.name}")
                self.parts.append("\n".join(self.struct(node)))
        self.parts += ["\n".join(self.function(node)) for node in functions]

    def type_of(self, annotation: ast.expr | None) -> str:
        """The Cython type of an annotation."""
        text = ast.unparse(annotation) if annotation else "None"
        return TYPES.get(text) or f"{self.names[text].id}*"

    def struct(self, node: ast.ClassDef) -> Iterator[str]:
        """A struct, and what fills it from the arrays of a tuple, which is remembered: they come again and again."""
        name = f"{self.stem}_{node.name}"
        fields = {one.target.id: self.type_of(one.annotation) for one in node.body if isinstance(one, ast.AnnAssign)}  # type: ignore[union-attr]
        yield f"cdef struct {name}:"
        for field, kind in fields.items():
            yield f"    {kind.partition('[')[0]}* {field}\n    int64_t {field}_length, {field}_width"
        yield f"cdef {name} the_{name}\ncdef object of_{name} = None"
        yield f"cdef {name}* as_{name}(object given) except NULL:\n    global of_{name}"
        yield f"    if given is of_{name}:\n        return &the_{name}\n    of_{name} = None"
        for field, kind in fields.items():
            yield f"    cdef {kind} {field} = given.{field}"
            first, width = ("0, 0", f"{field}.shape[1]") if "," in kind else ("0", "1")
            yield f"    the_{name}.{field}, the_{name}.{field}_length = &{field}[{first}], len({field})"
            yield f"    the_{name}.{field}_width = {width}"
        yield f"    of_{name} = given\n    return &the_{name}"

    def function(self, node: ast.FunctionDef) -> Iterator[str]:
        """A function of C and, of an entry point, one that Python can call."""
        name, returned = f"{self.stem}_{node.name}", self.type_of(node.returns)
        types = {one.arg: self.type_of(one.annotation) for one in node.args.args}
        self.rows = {name: value for name, value in assigned(node) if isinstance(value, ast.Attribute)}
        body = [ast.unparse(self.visit(one)) for one in node.body[ast.get_docstring(node) is not None :]]
        yield f"cdef inline {returned} c_{name}({', '.join(f'{t} {a}' for a, t in types.items())}) noexcept nogil:"
        yield from (f"    cdef bint {variable}" for variable in sorted(set(truths(node)) - set(types)))
        yield from ("    " + line for text in body for line in text.splitlines())
        if ast.unparse(node.decorator_list[0]) != "inlined":
            # a struct comes as the tuple that it is made of
            given = {a: f"as_{t[:-1]}({a})" if t.endswith("*") else a for a, t in types.items()}
            yield f"def {name}({', '.join(a if t.endswith('*') else f'{t} {a}' for a, t in types.items())}):"
            yield f"    {'return ' if returned != 'void' else ''}c_{name}({', '.join(given.values())})"

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Constants, functions and structs of the module."""
        found = self.names.get(node.id, node)
        if isinstance(found, int) and found >= 2**31:
            return ast.Name(f"{found}LL")
        return found if isinstance(found, ast.expr) else ast.Constant(found)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """What is used of numpy, and constants of other modules."""
        if isinstance(node.value, ast.Name) and node.value.id in self.modules:
            return self.modules[node.value.id].visit_Name(ast.Name(node.attr))
        known = {"np.inf": "INFINITY", "np.floor": "floor"}.get(ast.unparse(node))
        return ast.Name(known) if known else self.generic_visit(node)  # type: ignore[return-value]

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Cells of the tables of a struct, and their widths."""
        array = self.rows.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
        if isinstance(array, ast.Attribute) and array.attr == "shape" and isinstance(array.value, ast.Attribute):
            return ast.Attribute(array.value.value, f"{array.value.attr}_width")
        if isinstance(array, ast.Attribute) and isinstance(node.slice, ast.Tuple):
            row, column = node.slice.elts
            before = ast.BinOp(row, ast.Mult(), ast.Attribute(array.value, f"{array.attr}_width"))
            node.slice = ast.BinOp(before, ast.Add(), column)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Division as in Python: of whole numbers, too."""
        if isinstance(node.op, ast.Div):
            node.left = ast.Call(ast.Name("real"), [node.left], [])
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Conversions to whole numbers, and lengths of the arrays of a struct."""
        called = ast.unparse(node.func)
        if called == "int":
            node.func = ast.Name("whole")
        elif called == "len" and isinstance(node.args[0], ast.Attribute):
            return ast.Attribute(node.args[0].value, f"{node.args[0].attr}_length")
        return self.generic_visit(node)  # type: ignore[return-value]


def assigned(node: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """The variables and what they become."""
    for one in ast.walk(node):
        if isinstance(one, ast.Assign):
            targets, values = (
                side.elts if isinstance(one.value, ast.Tuple) and isinstance(side, ast.Tuple) else [side]
                for side in (one.targets[0], one.value)
            )
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, ast.Name):
                    yield target.id, value


def truths(node: ast.FunctionDef) -> Iterator[str]:
    """The variables that are true or false, which Cython takes for objects."""
    for name, value in assigned(node):
        truth = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        if truth or isinstance(value, ast.Compare | ast.BoolOp):
            yield name


def kernels() -> str:
    """The Cython of all kernels."""
    paths = sorted(path for pattern in SOURCES for path in SRC.rglob(pattern))
    done: dict[str, Kernel] = {}
    while left := [path for path in paths if path.stem not in done]:
        # those that others import come first
        texts = {path: path.read_text(encoding="utf-8") for path in left}
        free = [path for path in left if not any(f"{one.stem} import" in texts[path] for one in left)]
        done |= {path.stem: Kernel(path, done) for path in free}
    digests = {".".join(p.parent.relative_to(SRC).parts): sources_digest(p.parent) for p in paths}
    return "\n\n".join([HEAD, f"DIGESTS = {digests}", *(part for one in done.values() for part in one.parts)]) + "\n"


def modules() -> list[Extension]:
    """The C of the modules, by mypyc; none, with one line, where it cannot be made."""
    os.environ["MYPYPATH"] = str(SRC)
    flags = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--explicit-package-bases"]
    try:
        from mypyc.build import mypycify

        paths = [f"{SRC}/batwatt/{name}.py" for name in MODULES.split()]
        made = mypycify([*flags, *paths], opt_level="3", debug_level="0", group_name="batwatt")
    except (ImportError, SystemExit) as error:
        print(f"warning: the engine is not compiled ({error}); it works as Python, and slower", file=sys.stderr)
        return []
    for one in made:
        one.optional = True
    return made


class Compiler(build_ext):
    """The same numbers on all machines, and as in Python: no product is fused with a sum. Nothing traps."""

    def build_extensions(self) -> None:
        """Compile with these options."""
        if self.compiler.compiler_type != "msvc":
            options = ["-O3", "-g0", "-ffp-contract=off", "-fno-trapping-math"]
            for extension in self.extensions:
                extension.extra_compile_args = [*(extension.extra_compile_args or ()), *options]
        super().build_extensions()


class Build(Compiler):
    """Compile what can be compiled; an editable installation waits for no compiler."""

    def run(self) -> None:
        """Write the C that kernels and modules are, and compile it."""
        if self.editable_mode or not self.extensions:
            return
        # what an earlier build has left may be of modules that are no longer compiled
        for path in Path(self.build_lib).rglob("*.so"):
            path.unlink()
        source = Path(self.build_temp) / "_kernels.pyx"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(kernels(), encoding="utf-8")
        from Cython.Build import cythonize

        self.extensions[0].sources = cythonize(str(source), quiet=True)[0].sources
        super().run()
        # which modules there are is known only now, when it is too late for this command
        found, self.distribution.ext_modules = self.distribution.ext_modules, modules()
        engine = Compiler(self.distribution)
        engine.inplace = self.inplace
        engine.ensure_finalized()
        engine.run()
        built = {Path(engine.get_ext_fullpath(one.name)) for one in engine.extensions}
        if not all(path.exists() for path in built):
            # they need each other
            for path in built:
                path.unlink(missing_ok=True)
        self.distribution.ext_modules = found


class Package(build_py):
    """The modules, and the files of `batwatt init`; an editable installation finds them in the repository."""

    def run(self) -> None:
        """Copy all."""
        super().run()
        if not self.editable_mode:
            copy_start(Path(), Path(self.build_lib) / "batwatt" / PACKED)


def index_page(text: str) -> str:
    """The README without what leads nowhere on a package index: relative links become their text, pictures go."""
    text = re.sub(r"^!\[[^\]]*\]\((?!https?://)[^)]*\)\n+", "", text, flags=re.MULTILINE)
    return re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?://|#)[^)]*\)", r"\1", text)


pure = os.environ.get("BATWATT_PURE", "0") not in ("", "0")
extensions = [] if pure else [Extension("batwatt._kernels", ["kernels"], optional=True)]
setup(
    long_description=index_page(Path("README.md").read_text(encoding="utf-8")),
    ext_modules=extensions,
    cmdclass={"build_ext": Build, "build_py": Package},
)
