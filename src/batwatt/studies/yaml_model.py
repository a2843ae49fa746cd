"""Reader of a YAML file as a pydantic model: every error is one line with file, line, place, value and a hint."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from batwatt.checks import model_error, shown_json, validated
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import read_text

HINT = "see docs/reference/study.md"
MAX_VALUES = 100_000
"""Most values of a file: a few aliases of aliases would fill the memory."""


class Declared(BaseModel):
    """Base of all declarations in YAML: types are exact, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, content: Any) -> Any:
        if isinstance(content, dict):
            for name in content:
                if name not in cls.model_fields:
                    names = ",".join(cls.model_fields)
                    raise PydanticCustomError("unknown_key", "no key", {"name": str(name), "known": names})
        return content


Model = TypeVar("Model", bound=Declared)


def wrong(problem: str) -> PydanticCustomError:
    """Return the error for a validator to raise; its text becomes the problem of the error's line."""
    return PydanticCustomError("wrong", "{problem}", {"problem": problem})


class _Loader(yaml.SafeLoader):
    """YAML as most people expect it (the core schema of YAML 1.2).

    `no` and `on` are texts, `12:00:00` is not a number of seconds, `1e5` is a number, and dates stay texts. A key that
    appears twice is an error.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (the name is PyYAML's)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                problem = "a key must be a text, not a list or a mapping"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} appears twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)", "-+.0123456789"),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), [*_first, ""])


def read_declared(path: Path, model: type[Model]) -> Model:
    """Return the content of a file as a model. Raises InputError."""
    return parse_declared(read_text(path), path, model)


def parse_declared(text: str, where: object, model: type[Model]) -> Model:
    """Return the text of the file `where` as a model. Raises InputError."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        _bounded(node, {})
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}: line {mark.line + 1}" if mark else where
        raise InputError(place, error.problem or error.context or "is not YAML", "correct the YAML") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(where, f"is not YAML ({error})", "correct the YAML") from None
    if not isinstance(data, dict):
        raise InputError(where, f"must be a mapping of keys, got {shown_json(data)}", HINT)
    return validated(model, data, lambda error: _error_of(where, node, error))


def _bounded(node: yaml.Node | None, sizes: dict[yaml.Node, int]) -> int:
    """Return the number of values in a node once all aliases are written out.

    `sizes` are those of the nodes counted so far, 0 while one is being counted. Raises ConstructorError for too many
    values, for a node that contains itself, and for a text that no file can hold.
    """
    if not isinstance(node, yaml.CollectionNode):
        if node is not None and any("\ud800" <= character <= "\udfff" for character in node.value):
            problem = "holds half of a surrogate pair (\\ud...)"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return 1
    if node not in sizes:
        sizes[node] = 0
        pairs = isinstance(node, yaml.MappingNode)
        parts = [part for pair in node.value for part in pair] if pairs else node.value
        sizes[node] = 1 + sum(_bounded(part, sizes) for part in parts)
    if not 0 < sizes[node] <= MAX_VALUES:
        problem = f"has more than {MAX_VALUES} values, aliases written out" if sizes[node] else "contains itself"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return sizes[node]


def _error_of(where: object, node: Any, error: Mapping[str, Any]) -> InputError:
    """Return a pydantic error as an InputError with its line and path in the document."""
    line, path = node.start_mark.line + 1, ""
    for part in error["loc"]:
        child = _child(node, part)
        if child is None:
            continue
        mark, node = child
        line = mark.line + 1
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    context = error.get("ctx", {})
    if error["type"] == "unknown_key" and (child := _child(node, context["name"])) is not None:
        line = child[0].line + 1
    place = f"{where}: line {line}" + (f": {path.removeprefix('.')}" if path else "")
    if error["type"] == "unknown_key":
        return UnknownNameError(place, "key", context["name"], context["known"].split(","), f"See {HINT[4:]}.")
    if error["type"] == "wrong":
        return InputError(place, context["problem"], HINT)
    # the place names all other keys
    return model_error(place, error, HINT, str(error["loc"][-1]) if error["type"] == "missing" else "")


def _child(node: Any, part: str | int) -> tuple[yaml.Mark, Any] | None:
    """Return the mark and the node of a child; None if the document has no such part."""
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark, node.value[part]
    return None
