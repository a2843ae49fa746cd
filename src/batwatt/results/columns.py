"""Every column of every file that a run leaves: name, unit, meaning. Writers, metrics and docs read it here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `form` is how its values are printed."""

    name: str
    unit: str
    meaning: str
    form: str = "text"


def _c(name: str, unit: str, form: str, meaning: str) -> Column:
    return Column(name, unit, meaning, form)


JOBS = (
    _c("job_id", "", "text", "id within its workload"),
    _c("workload_name", "", "text", "workload the job belongs to"),
    _c("profile", "", "text", "name of its profile"),
    _c("submission_time", "s", "fixed", "time of submission"),
    _c("requested_number_of_resources", "hosts", "int", "hosts asked for"),
    _c("requested_time", "s", "fixed", "walltime, -1 without"),
    _c("success", "", "int", "1 if it completed successfully"),
    _c("final_state", "", "text", "how it ended"),
    _c("starting_time", "s", "fixed", "time of start"),
    _c("execution_time", "s", "fixed", "how long it ran"),
    _c("finish_time", "s", "fixed", "time of end"),
    _c("waiting_time", "s", "fixed", "start - submission"),
    _c("turnaround_time", "s", "fixed", "end - submission"),
    _c("stretch", "", "fixed", "turnaround / execution"),
    _c("allocated_resources", "hosts", "text", "hosts it ran on"),
    _c("consumed_energy", "J", "fixed", "energy of its hosts while it ran, -1 without energy"),
    _c("metadata", "", "quoted", "what the scheduler attached"),
)

SUCCESSFUL = "COMPLETED_SUCCESSFULLY"
KILLED = "COMPLETED_KILLED"
"""Final state of a run that the scheduler killed."""

MACHINE_STATES = (
    _c("time", "s", "short", "time"),
    _c("nb_sleeping", "hosts", "int", "asleep"),
    _c("nb_switching_on", "hosts", "int", "waking"),
    _c("nb_switching_off", "hosts", "int", "going to sleep"),
    _c("nb_idle", "hosts", "int", "on and idle"),
    _c("nb_computing", "hosts", "int", "running a job"),
)

PSTATE_CHANGES = (
    _c("time", "s", "short", "time"),
    _c("machine_id", "hosts", "text", "hosts concerned"),
    _c("new_pstate", "", "int", "p-state; -1, -2, -42: request to wake or DVFS, to sleep, for a virtual p-state"),
)

CONSUMED_ENERGY = (
    _c("time", "s", "fixed", "time"),
    _c("energy", "J", "fixed", "energy of all hosts since 0"),
    _c("event_type", "", "text", "s job start, e job end, p p-state request or completion"),
    _c("wattmin", "W", "fixed", "sum of the hosts' epsilon watts"),
    _c("epower", "W", "na", "mean power since the previous row, NA at the same time"),
)

SCHEDULE = (
    _c("batsim_version", "", "text", "engine and version"),
    _c("consumed_joules", "J", "fixed", "energy from the first submission to the last job end"),
    _c("makespan", "s", "fixed", "last end of a job"),
    _c("max_slowdown", "", "fixed", "largest stretch"),
    _c("max_turnaround_time", "s", "fixed", ""),
    _c("max_waiting_time", "s", "fixed", ""),
    _c("mean_slowdown", "", "fixed", "mean stretch (rejected jobs count as 0, as in Batsim)"),
    _c("mean_turnaround_time", "s", "fixed", ""),
    _c("mean_waiting_time", "s", "fixed", ""),
    _c("nb_computing_machines", "hosts", "int", "hosts of the platform"),
    _c("nb_grouped_switches", "", "int", "requests to change p-states"),
    _c("nb_jobs", "jobs", "int", ""),
    _c("nb_jobs_finished", "jobs", "int", "ran to an end of any kind"),
    _c("nb_jobs_killed", "jobs", "int", "finished without success"),
    _c("nb_jobs_rejected", "jobs", "int", ""),
    _c("nb_jobs_success", "jobs", "int", ""),
    _c("nb_machine_switches", "hosts", "int", "hosts of all requests"),
    _c("scheduling_time", "s", "fixed", "0 here: wall-clock times are in the metadata"),
    _c("simulation_time", "s", "fixed", "0 here: wall-clock times are in the metadata"),
    _c("success_rate", "", "fixed", "successful / all jobs"),
    _c("time_computing", "host s", "fixed", "host-seconds per state, each host up to its last change"),
    _c("time_idle", "host s", "fixed", ""),
    _c("time_sleeping", "host s", "fixed", ""),
    _c("time_switching_off", "host s", "fixed", ""),
    _c("time_switching_on", "host s", "fixed", ""),
    _c("time_unavailable", "host s", "fixed", ""),
)

POWER = (
    _c("time_s", "s", "fixed", "the values hold from here to the next row"),
    _c("power_w", "W", "fixed", "power drawn by all hosts"),
    _c("cap_w", "W", "fixed", "the envelope"),
)

CLASSES = (
    _c("from_h", "h", "short", "the class is of jobs longer than this"),
    _c("to_h", "h", "short", "and no longer than this"),
    _c("jobs", "jobs", "int", "jobs of the workload, submitted by the end of the window"),
    _c("core_h", "core h", "fixed", "cores x length of these"),
    _c("runs", "runs", "int", "runs that ended in the window or were still going; one that came in parts is one"),
    _c("completed", "runs", "int", "those that completed in the window"),
    _c("terminations", "runs", "int", "those that the scheduler killed in the window"),
    _c("wasted_core_h", "core h", "fixed", "core hours of the runs that the scheduler killed"),
    _c("useful_core_h", "core h", "fixed", "core hours of the runs that completed or were still going"),
    _c("mean_wait_s", "s", "fixed", "mean from the first submission to the start of the run that completed"),
)

FILES: dict[str, tuple[Column, ...]] = {
    "jobs": JOBS,
    "schedule": SCHEDULE,
    "machine_states": MACHINE_STATES,
    "pstate_changes": PSTATE_CHANGES,
    "consumed_energy": CONSUMED_ENERGY,
    "power": POWER,
    "classes": CLASSES,
}
"""File stem (written as PREFIX_stem.csv) -> its columns."""
