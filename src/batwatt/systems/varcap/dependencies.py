"""Jobs that depend on other jobs (varcap dissertation, section 5.3.2): a job waits until they have all completed."""

from __future__ import annotations

from batwatt.errors import InputError
from batwatt.scheduling.jobs import ManagedJob


class Dependencies:
    """Jobs that wait for others. Names are full ids of the workload, such as `w0!17`."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._done: set[str] = set()
        self._lost: set[str] = set()
        self._held: dict[str, list[ManagedJob]] = {}
        self._more = True

    def submitted(self, task: ManagedJob, depends: object) -> bool:
        """Add a job that names the ids `depends`; return False if one of them was lost.

        `task.missing` counts the jobs that it waits for. Raises InputError if `depends` is no list of ids.
        """
        self._open.add(task.name)
        if not depends:
            return True
        if not isinstance(depends, list | tuple) or not all(isinstance(name, str | int) for name in depends):
            problem = f"job {task.name}: depends_on must be a list of ids, got {depends!r}"
            raise InputError("workload", problem, 'write it as in ["3", "17"]')
        workload = task.name.partition("!")[0]
        for name in dict.fromkeys(f"{workload}!{name}" for name in depends):
            if name in self._lost:
                return False
            if name not in self._done:
                task.missing += 1
                self._held.setdefault(name, []).append(task)
        return True

    def ended(self, task: ManagedJob, success: bool) -> list[ManagedJob]:
        """End a job; return those that waited for it, to go on (if they miss nothing more), or to be refused."""
        if self._more:
            self._open.discard(task.name)
            (self._done if success else self._lost).add(task.name)
        held = self._held.pop(task.name, None) if self._held else None
        if held is None:
            return []
        waited = [other for other in held if not other.refused]
        for other in waited:
            other.missing -= 1
        return [other for other in waited if not (success and other.missing)]

    def no_more(self) -> tuple[list[str], list[ManagedJob]]:
        """Note that no job comes any more; return the names that never came, and the jobs that miss only those."""
        unknown = [name for name in self._held if name not in self._open]
        ready = []
        for name in unknown:
            for task in self._held.pop(name):
                task.missing -= 1
                if not (task.missing or task.refused):
                    ready.append(task)
        # no job names another any more
        self._more = False
        self._open, self._done, self._lost = set(), set(), set()
        return unknown, ready

    def leave(self) -> list[ManagedJob]:
        """Remove and return all jobs that wait for others, in the order of their arrival."""
        held = self.held()
        self._held.clear()
        return held

    def held(self) -> list[ManagedJob]:
        """Return all jobs that wait for others, in the order of their arrival."""
        held = {task.number: task for tasks in self._held.values() for task in tasks if not task.refused}
        return [held[number] for number in sorted(held)]
