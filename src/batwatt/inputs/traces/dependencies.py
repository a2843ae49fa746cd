"""Jobs that must wait for others (section 5.3.2 of the varcap dissertation): their ids as text, and circles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from batwatt.errors import InputError


def ids_of(text: str) -> list[str]:
    """The ids in a text, with blanks or semicolons between them: `17 18` or `17;18`."""
    return text.replace(";", " ").split()


def within(
    depends: Mapping[str, Sequence[str]], known: Collection[str], source: object = "<memory>"
) -> dict[str, list[str]]:
    """Of the jobs that each of `known` depends on, those in `known`, each once; jobs without any are left out.

    A job that is not there has ended before, or nothing is known of it: nobody can wait for it. Raises InputError if
    jobs wait for each other in a circle, as none of them could ever start.
    """
    inside = {
        job: [name for name in dict.fromkeys(names) if name in known] for job, names in depends.items() if job in known
    }
    inside = {job: names for job, names in inside.items() if names}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        # each is waited for by the next one
        circle = error.args[1][::-1]
        problem = f"waits for itself: {' after '.join(circle[:5])}{' ...' if len(circle) > 5 else ''}"
        raise InputError(f"{source}: job {circle[0]!r}", problem, "take the circle out of depends_on") from None
    return inside
