"""Plans of a period by either method, and errors that name the input if there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from batwatt.errors import InputError
from batwatt.systems.checkpoint.fairness import plan_with_yield
from batwatt.systems.checkpoint.files import InstanceData
from batwatt.systems.checkpoint.instance import PeriodPlan
from batwatt.systems.checkpoint.period_plan import NoPeriodPlanError, TooLargeError, subset_sum
from batwatt.systems.checkpoint.sequence import METHODS, Method


def plan_instance(source: InstanceData, where: object, method: Method, min_yield: float = 0.0) -> PeriodPlan:
    """Return the plan of one period; `min_yield` is for the dynamic programme. Raises InputError."""
    check_method(method, min_yield)
    with blaming(where, method):
        if method == "subset-sum":
            return subset_sum(source.instance)
        return plan_with_yield(source.instance, source.past, min_yield)


def check_method(method: str, min_yield: float) -> None:
    """Raise InputError if a method is unknown, or does not know the least yield that is set."""
    if method not in METHODS:
        raise InputError("method", f"{method!r} is not known", f"use {' or '.join(METHODS)}")
    if not 0.0 <= min_yield <= 1.0:
        raise InputError("min_yield", f"{min_yield:g} is not from 0 to 1", "0 is pure goodput")
    if min_yield > 0.0 and method == "subset-sum":
        raise InputError("min_yield", "is for the dynamic programme", "use the method dp")


@contextmanager
def blaming(where: object, method: Method = "dp") -> Iterator[None]:
    """Raise InputError, in place of errors of planning within, which names the input `where`."""
    try:
        yield
    except NoPeriodPlanError as error:
        hint = "--method dp may have one" if method == "subset-sum" else "ask for a smaller yield"
        raise InputError(where, str(error), hint) from None
    except TooLargeError as error:
        raise InputError(where, str(error), "see docs/reference/formats.md") from None
    except ValueError as error:
        raise InputError(where, str(error), "correct the file") from None
