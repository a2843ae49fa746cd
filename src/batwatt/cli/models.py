"""Options from models: a command takes dataclasses, and each option is declared once, as a field of one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_origin, get_type_hints


def options_of(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command for typer in which a parameter that is a dataclass stands for the options of its fields.

    Fields of the type Annotated[..., typer.Option(...)] (or Argument) are options; fields that are dataclasses stand
    for the options of their own fields; others keep their defaults. The command receives instances of the dataclasses,
    whose errors come before the command begins.
    """
    signature = inspect.signature(command, eval_str=True)
    own = signature.parameters.values()
    options = [option for parameter in own for option in _options(parameter)]

    @wraps(command)
    def called(**values: Any) -> Any:
        return command(**{parameter.name: _value(parameter, values) for parameter in own})

    # typer reads both
    called.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called


def _options(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield the parameter itself, or the options of its dataclass."""
    if is_dataclass(parameter.annotation):
        for field in _fields(parameter.annotation):
            yield from _options(field)
    else:
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _fields(model: Any) -> Iterator[inspect.Parameter]:
    """Yield the fields that are options, or dataclasses with options."""
    types = get_type_hints(model, include_extras=True)
    for field in fields(model):
        kind = types[field.name]
        if is_dataclass(kind) or get_origin(kind) is Annotated:
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _value(parameter: inspect.Parameter, values: Mapping[str, Any]) -> Any:
    """Return the value of a parameter, or the dataclass of the values of its fields."""
    model: type = parameter.annotation
    if not is_dataclass(model):
        return values[parameter.name]
    return model(**{field.name: _value(field, values) for field in _fields(model)})
