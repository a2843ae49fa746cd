"""Columns of all output files of a run: name, unit, meaning. Writers, metrics and docs read these declarations."""

from __future__ import annotations

from dataclasses import dataclass

from batwatt.model.record import SUCCESSFUL as SUCCESSFUL


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `form` is the format of its values."""

    name: str
    unit: str
    form: str
    meaning: str


JOBS = (
    Column("job_id", "", "text", "id within its workload"),
    Column("workload_name", "", "text", "workload the job belongs to"),
    Column("profile", "", "text", "name of its profile"),
    Column("submission_time", "s", "fixed", "time of submission"),
    Column("requested_number_of_resources", "hosts", "int", "hosts asked for"),
    Column("requested_time", "s", "fixed", "walltime, -1 without"),
    Column("success", "", "int", "1 if it completed successfully"),
    Column("final_state", "", "text", "how it ended"),
    Column("starting_time", "s", "fixed", "time of start"),
    Column("execution_time", "s", "fixed", "how long it ran"),
    Column("finish_time", "s", "fixed", "time of end"),
    Column("waiting_time", "s", "fixed", "start - submission"),
    Column("turnaround_time", "s", "fixed", "end - submission"),
    Column("stretch", "", "fixed", "turnaround / execution"),
    Column("allocated_resources", "hosts", "text", "hosts it ran on"),
    Column("consumed_energy", "J", "fixed", "energy of its hosts while it ran, -1 without energy"),
    Column("metadata", "", "quoted", "what the scheduler attached"),
)

KILLED = "COMPLETED_KILLED"
"""Final state of a run that the scheduler killed."""
WALLTIME = "COMPLETED_WALLTIME_REACHED"
"""Final state of a run that reached its walltime."""
FAILED = "COMPLETED_FAILED"
"""Final state of a run that ended with an error code."""
REJECTED = "REJECTED"
"""Final state of a job that never ran: its times are empty."""

MACHINE_STATES = (
    Column("time", "s", "short", "time"),
    Column("nb_sleeping", "hosts", "int", "asleep"),
    Column("nb_switching_on", "hosts", "int", "waking"),
    Column("nb_switching_off", "hosts", "int", "going to sleep"),
    Column("nb_idle", "hosts", "int", "on and idle"),
    Column("nb_computing", "hosts", "int", "running a job"),
)

PSTATE_CHANGES = (
    Column("time", "s", "short", "time"),
    Column("machine_id", "hosts", "text", "hosts concerned"),
    Column("new_pstate", "", "int", "p-state; -1, -2, -42: request to wake or DVFS, to sleep, for a virtual p-state"),
)

CONSUMED_ENERGY = (
    Column("time", "s", "fixed", "time"),
    Column("energy", "J", "fixed", "energy of all hosts since 0"),
    Column("event_type", "", "text", "s job start, e job end, p p-state request or completion"),
    Column("wattmin", "W", "fixed", "sum of the hosts' epsilon watts"),
    Column("epower", "W", "na", "mean power since the previous row, NA at the same time"),
)

SCHEDULE = (
    Column("batsim_version", "", "text", "engine and version"),
    Column("consumed_joules", "J", "fixed", "energy from the first submission to the last job end"),
    Column("makespan", "s", "fixed", "last end of a job"),
    Column("max_slowdown", "", "fixed", "largest stretch"),
    Column("max_turnaround_time", "s", "fixed", ""),
    Column("max_waiting_time", "s", "fixed", ""),
    Column("mean_slowdown", "", "fixed", "mean stretch (rejected jobs count as 0, as in Batsim)"),
    Column("mean_turnaround_time", "s", "fixed", ""),
    Column("mean_waiting_time", "s", "fixed", ""),
    Column("nb_computing_machines", "hosts", "int", "hosts of the platform"),
    Column("nb_grouped_switches", "", "int", "requests to change p-states"),
    Column("nb_jobs", "jobs", "int", ""),
    Column("nb_jobs_finished", "jobs", "int", "ran to an end of any kind"),
    Column("nb_jobs_killed", "jobs", "int", "finished without success"),
    Column("nb_jobs_rejected", "jobs", "int", ""),
    Column("nb_jobs_success", "jobs", "int", ""),
    Column("nb_machine_switches", "hosts", "int", "hosts of all requests"),
    Column("scheduling_time", "s", "fixed", "0 here: wall-clock times are in the metadata"),
    Column("simulation_time", "s", "fixed", "0 here: wall-clock times are in the metadata"),
    Column("success_rate", "", "fixed", "successful / all jobs"),
    Column("time_computing", "host s", "fixed", "host-seconds per state, each host up to its last change"),
    Column("time_idle", "host s", "fixed", ""),
    Column("time_sleeping", "host s", "fixed", ""),
    Column("time_switching_off", "host s", "fixed", ""),
    Column("time_switching_on", "host s", "fixed", ""),
    Column("time_unavailable", "host s", "fixed", ""),
)

POWER = (
    Column("time_s", "s", "fixed", "the values hold from here to the next row"),
    Column("power_w", "W", "fixed", "power drawn by all hosts"),
    Column("cap_w", "W", "fixed", "the envelope"),
)

CLASSES = (
    Column("from_h", "h", "short", "the class is of jobs longer than this"),
    Column("to_h", "h", "short", "and no longer than this"),
    Column("jobs", "jobs", "int", "jobs of the workload, submitted by the end of the window"),
    Column("core_h", "core h", "fixed", "cores x length of these"),
    Column("runs", "runs", "int", "runs that ended in the window or were still going; one that came in parts is one"),
    Column("completed", "runs", "int", "those that completed in the window"),
    Column("terminations", "runs", "int", "runs that the scheduler killed in the window"),
    Column("wasted_core_h", "core h", "fixed", "core hours of the runs that the scheduler killed"),
    Column("useful_core_h", "core h", "fixed", "core hours of the runs that completed or were still going"),
    Column("mean_wait_s", "s", "fixed", "mean from the first submission to the start of the run that completed"),
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
