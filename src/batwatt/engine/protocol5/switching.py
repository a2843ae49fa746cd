"""Switches of hosts and changes of p-states in Batsim 5: two decisions, each with its own checks."""

from __future__ import annotations

import re

from batwatt.engine.execution import Executor, Report
from batwatt.engine.kernel import ARRIVAL, FIRST, Kernel
from batwatt.engine.machines import Machines
from batwatt.engine.protocol5.events import HostsPStateChanged
from batwatt.engine.recorder import Recorder
from batwatt.engine.switching import TO_COMPUTE, TO_SLEEP, Switching
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset

_PIECE = re.compile(r"(\d+)(?:-(\d+))?")


def hosts_of(text: str, machines: Machines, what: str) -> int:
    """Return the hosts in a text as a mask; Batsim reads up to the first invalid character (`0,1` is host 0)."""
    mask = 0
    for piece in text.split():
        match = _PIECE.match(piece)
        if match is None:
            raise IllegalDecisionError(what, f"{piece!r} is not a host id or an interval such as '0-3'")
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            raise IllegalDecisionError(what, f"{piece!r} is not an interval of host ids")
        if high >= len(machines.hosts):
            raise IllegalDecisionError(what, f"there is no host {high} (hosts are 0-{len(machines.hosts) - 1})")
        mask |= hostset.span(low, high)
    if not mask:
        raise IllegalDecisionError(what, "it names no host")
    return mask


class Switching5(Switching):
    """The current switches of hosts. Raises IllegalDecisionError where Batsim 5 aborts."""

    def __init__(
        self, kernel: Kernel, machines: Machines, recorder: Recorder, execution: Executor, report: Report
    ) -> None:
        super().__init__(kernel, machines, recorder, execution, report)
        # reports of ends of switches precede probes and ends of jobs of that time
        self._arrival_rank, self._acknowledgement_rank = ARRIVAL, FIRST

    def turn(self, hosts: str, target: int) -> None:
        """Apply a TurnOnOffHosts: switch all hosts to a sleep p-state, or all to a computation p-state."""
        what = f"TurnOnOffHosts {hosts} -> {target}"
        machines = self._machines
        mask = hosts_of(hosts, machines, what)
        busy = 0
        for run in self._execution.runs.values():
            busy |= run.mask
        for index in hostset.ids(mask):
            host, current = machines.hosts[index], machines.pstate[index]
            name = f"host {index} ({host.name})"
            if current in host.virtual:
                raise IllegalDecisionError(what, f"{name} is switching: it is in p-state {current}")
            asleep, off = current in host.sleep_of, target in host.sleep_of
            if asleep and off:
                raise IllegalDecisionError(what, f"{name} is already in a sleep p-state ({current})")
            if not asleep and target in host.virtual:
                raise IllegalDecisionError(what, f"{name} cannot go from p-state {current} to a virtual one")
            if not asleep and not off:
                raise IllegalDecisionError(what, f"{name} is already in a computing p-state ({current})")
            if asleep and target not in host.compute:
                raise IllegalDecisionError(what, f"{name} can be woken to p-states {sorted(host.compute)} only")
            if off and busy >> index & 1:
                raise IllegalDecisionError(what, f"jobs are running on {name}")
        first = machines.hosts[hostset.ids(mask)[0]]
        self._begin(mask, target, TO_SLEEP if target in first.sleep_of else TO_COMPUTE, what)

    def change(self, hosts: str, target: int) -> None:
        """Apply a ChangeHostsPState at once, for any state of the hosts and any kind of p-state."""
        what = f"ChangeHostsPState {hosts} -> {target}"
        machines, now = self._machines, self._kernel.clock
        mask = hosts_of(hosts, machines, what)
        for index in hostset.ids(mask):
            count = len(machines.hosts[index].pstates)
            if target >= count:
                raise IllegalDecisionError(what, f"host {index} has p-states 0..{count - 1}")
        text = hostset.to_text(mask)
        self._recorder.pstate_rows(now, text, target)
        machines.set_pstate(mask, target)
        self._execution.refresh(mask, now)
        self._report(HostsPStateChanged(self._kernel.date, text, target))
