"""The embedded engine: Batsim's simulation in this process.

`Engine.message()` returns the next message of Batsim, `Engine.reply(answer)` applies the answer. All events of one time
that are known when the scheduler is ready share a message; events that its answer causes at that time come in the next
one. What is due at the present time happens between two decisions of an answer, so a killed job frees its hosts for the
next decision. Times closer than 1e-9 s are equal; they are sent rounded to 1e-6 s. DVFS takes no time; sleeping and
waking are transitions of one flop at the speed and the one-core power of a virtual p-state. A decision that makes
Batsim abort raises `IllegalDecisionError`; `DeadlockError` is raised if jobs are left and nothing can happen.

Recorded dialogues of Batsim 4.2.1 are the reference. Its quirks are reproduced:

- a delay as long as its walltime times out; a parallel task that ends exactly then succeeds;
- a request for a virtual p-state, or for a host in transition, gets no answer, yet is counted and written, and replaces
  the next request to the same p-state; a request is acknowledged when its last host has arrived;
- a host that begins in another p-state than 0 is charged the idle power of p-state 0 until energy is first read; one
  that begins asleep is idle for Batsim;
- a parallel task after a delay in a composed profile is charged for the time since energy was last read;
- a host that becomes unavailable while it switches is available again when the switch ends;
- the profile of an ended job is dropped, even if other jobs have it, unless profiles are to be reused;
- a job is forgotten once its end has been sent: killing it afterwards is an error;
- a composed profile cannot be registered during the simulation: Batsim crashes at its execution, the engine refuses it;
- JSON numbers are read as by RapidJSON, sometimes one bit from the nearest double (`protocol/numbers.py`);
- of profiles that only an unused composed profile names, those that come first in Batsim's hash table stay
  (`protocol/workload4.py`);
- an unknown p-state requested of a switching host is ignored, of a sleeping host it aborts at the end of the boot;
- `schedule.csv` divides its means by all jobs, counts each job without success as killed, and counts host times only up
  to the last change of state; `machine_states.csv` and `pstate_changes.csv` have times of 6 digits.
"""
