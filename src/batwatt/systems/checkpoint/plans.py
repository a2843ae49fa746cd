"""Plans of a period by either method, and errors that name the input if there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from batwatt.errors import InputError
from batwatt.systems.checkpoint.files import InstanceData
from batwatt.systems.checkpoint.instance import PeriodPlan
from batwatt.systems.checkpoint.period_plan import NoPeriodPlanError, TooLargeError, plan, subset_sum
from batwatt.systems.checkpoint.sequence import METHODS, Method


def plan_instance(source: InstanceData, where: object, method: Method) -> PeriodPlan:
    """Return the plan of one period. Raises InputError."""
    if method not in METHODS:
        raise InputError("method", f"{method!r} is not known", f"use {' or '.join(METHODS)}")
    with blaming(where):
        return subset_sum(source.instance) if method == "subset-sum" else plan(source.instance)


@contextmanager
def blaming(where: object) -> Iterator[None]:
    """Raise InputError, in place of errors of planning within, which names the input `where`."""
    try:
        yield
    except NoPeriodPlanError as error:
        # of subset sum alone: every job that runs may go on
        raise InputError(where, str(error), "--method dp may have one") from None
    except TooLargeError as error:
        raise InputError(where, str(error), "see docs/reference/formats.md") from None
    except ValueError as error:
        raise InputError(where, str(error), "correct the file") from None
