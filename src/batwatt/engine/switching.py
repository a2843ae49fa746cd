"""Changes of p-states as in Batsim: DVFS at once, sleep and wake-up by timed transitions."""

from __future__ import annotations

import math

from mypy_extensions import mypyc_attr

from batwatt.engine.events import ResourceStateChanged
from batwatt.engine.execution import Executor, Report
from batwatt.engine.kernel import ACKNOWLEDGE, END, Kernel
from batwatt.engine.machines import IDLE, SLEEPING, SWITCHING_OFF, SWITCHING_ON, Machines
from batwatt.engine.recorder import Recorder
from batwatt.engine.requests import Requests
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset

TO_COMPUTE, TO_SLEEP, IGNORED = -1, -2, -42
"""Values of pstate_changes.csv for a request, before its completion."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Switching:
    """The current switches of hosts."""

    def __init__(
        self, kernel: Kernel, machines: Machines, recorder: Recorder, execution: Executor, report: Report
    ) -> None:
        self._kernel = kernel
        self._machines = machines
        self._recorder = recorder
        self._execution = execution
        self._report = report
        self._requests = Requests()
        self._arrival_rank = END
        self._acknowledgement_rank = ACKNOWLEDGE

    def request(self, hosts: object, state: object) -> None:
        """Apply a SET_RESOURCE_STATE. Raises IllegalDecisionError where Batsim aborts."""
        what = f"SET_RESOURCE_STATE {hosts} -> {state}"
        machines = self._machines
        if not self._recorder.energy:
            raise IllegalDecisionError(what, "changing p-states needs energy accounting (-E)")
        try:
            mask = hostset.HostSet.of(hosts).mask  # type: ignore[arg-type]
            target = int(state)  # type: ignore[call-overload]
        except (TypeError, ValueError) as error:
            raise IllegalDecisionError(what, str(error)) from None
        if not mask or mask & ~machines.everyone:
            raise IllegalDecisionError(what, f"hosts are 0-{len(machines.hosts) - 1}")
        first = machines.hosts[(mask & -mask).bit_length() - 1]
        kinds = {**dict.fromkeys(first.virtual, IGNORED), **dict.fromkeys(first.sleep_of, TO_SLEEP)}
        instant = self._begin(mask, target, kinds.get(target, TO_COMPUTE), what)
        if instant:
            self._acknowledge(instant, target, switched=False)

    def _begin(self, mask: int, target: int, value: int, what: str) -> int:
        """Begin a request, recorded as `value`; return the hosts that change at once."""
        now, recorder = self._kernel.clock, self._recorder
        recorder.pstate_rows(now, hostset.to_text(mask), value)
        recorder.switch_request(mask.bit_count())
        self._requests.add(mask, target)
        instant = self._change(mask, target, what)
        recorder.states_row(now)
        return instant

    def _change(self, mask: int, target: int, what: str) -> int:
        """Begin the change on each host; return the hosts that change at once."""
        machines, now = self._machines, self._kernel.clock
        instant = busy = 0
        if any(target in host.sleep_of for host in machines.kind_host):
            for run in self._execution.runs.values():
                busy |= run.mask
        groups: dict[tuple[int, bool], int] = {}
        # hosts that behave alike and are in one p-state change together
        for mode, members in machines.members_of(mask):
            host, current = machines.kind_host[mode.kind], mode.index
            first = machines.hosts[(members & -members).bit_length() - 1].name
            if current in host.virtual:
                continue  # Batsim logs an error and ignores the request, for any target
            exists = 0 <= target < len(host.pstates)
            if current in host.sleep_of:
                if target in host.sleep_of or target in host.virtual:
                    raise IllegalDecisionError(what, f"{first} sleeps; it can only be woken to a computation p-state")
                key = (host.sleep_of[current].switch_on, True)
                groups[key] = groups.get(key, 0) | members
                if not exists:
                    # Batsim detects the invalid p-state when the first host has booted
                    for boot_s, part in self._by_duration(members, host.sleep_of[current].switch_on):
                        self._kernel.at(now + boot_s, END, self._unknown, (what, part))
            elif not exists:
                self._unknown((what, members))
            elif target in host.virtual:
                continue  # ignored like requests to hosts in transition
            elif target in host.sleep_of:
                if busy & members:
                    bit = busy & members & -(busy & members)
                    name = machines.hosts[bit.bit_length() - 1].name
                    jobs = ", ".join(run.job.id for run in self._execution.runs.values() if run.mask & bit)
                    raise IllegalDecisionError(what, f"{name} runs {jobs}; kill or wait before it sleeps")
                key = (host.sleep_of[target].switch_off, False)
                groups[key] = groups.get(key, 0) | members
            else:
                instant |= members
        for (virtual, waking), members in groups.items():
            middle = SWITCHING_ON if waking else SWITCHING_OFF
            machines.move(members, middle, now)
            machines.set_pstate(members, virtual)
            self._execution.refresh(members, now)
            for duration, part in self._by_duration(members, virtual):
                self._kernel.at(now + duration, self._arrival_rank, self._arrived, (part, target, middle))
        if instant:
            machines.set_pstate(instant, target)
            self._execution.refresh(instant, now)
        return instant

    def _unknown(self, decision: tuple[str, int]) -> None:
        what, members = decision
        host = self._machines.hosts[(members & -members).bit_length() - 1]
        raise IllegalDecisionError(what, f"{host.name} has p-states 0..{len(host.pstates) - 1}")

    def _by_duration(self, mask: int, virtual: int) -> list[tuple[float, int]]:
        """Return the durations in s of a transition with their hosts, without those that never end."""
        parts: dict[float, int] = {}
        for kind, members in enumerate(self._machines.kind_mask):
            if members & mask:
                duration = self._machines.kind_host[kind].pstates[virtual].duration_s
                parts[duration] = parts.get(duration, 0) | (members & mask)
        parts.pop(math.inf, None)
        return list(parts.items())

    def _arrived(self, arrival: tuple[int, int, int]) -> None:
        members, target, middle = arrival
        machines, now = self._machines, self._kernel.clock
        self._recorder.look(members, now)
        machines.set_pstate(members, target)
        self._execution.refresh(members, now)
        machines.move(members, IDLE if middle == SWITCHING_ON else SLEEPING, now)
        self._kernel.at(now, self._acknowledgement_rank, self._switched, (members, target))

    def _switched(self, arrival: tuple[int, int]) -> None:
        members, target = arrival
        self._acknowledge(members, target, switched=True)

    def _acknowledge(self, mask: int, target: int, switched: bool) -> None:
        """Acknowledge the requests that are complete with these hosts in their p-state."""
        now, recorder = self._kernel.clock, self._recorder
        for hosts in self._requests.arrived(mask, target):
            recorder.pstate_rows(now, hosts, target)
            if switched:
                recorder.states_row(now)
            self._report(ResourceStateChanged(self._kernel.date, hosts, str(target)))
