"""Dependencies between jobs (section 5.3.2 of the varcap dissertation): ids as text, and circles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from batwatt.errors import InputError


def parse_ids(text: str) -> list[str]:
    """Return the ids in a text, separated by blanks or semicolons: `17 18` or `17;18`."""
    return text.replace(";", " ").split()


def within(
    depends: Mapping[str, Sequence[str]], jobs: Collection[str], source: object = "<memory>"
) -> dict[str, list[str]]:
    """Return the dependencies of each of `jobs` on others of `jobs`, each once; jobs without any are left out.

    A job outside of `jobs` has ended earlier or is unknown, and is no dependency. Raises InputError if jobs wait for
    each other in a circle, as none of them could ever start.
    """
    inside = {
        job: [name for name in dict.fromkeys(names) if name in jobs] for job, names in depends.items() if job in jobs
    }
    # in order of ids, so that any reader of a trace reports the same circle
    inside = {job: names for job, names in sorted(inside.items()) if names}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        # each job waits for the one before
        circle = error.args[1][::-1]
        problem = f"waits for itself: {' after '.join(circle[:5])}{' ...' if len(circle) > 5 else ''}"
        raise InputError(f"{source}: job {circle[0]!r}", problem, "take the circle out of depends_on") from None
    return inside
