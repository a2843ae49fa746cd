"""The description of a run: texts are parsed there, and needs of a scheduler change what is read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from batwatt.cli.options import input_option
from batwatt.errors import InputError
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, SpeedMachineSpec
from batwatt.model.timeline import Timeline
from batwatt.run.find_scheduler import scheduler_class
from batwatt.run.prepared import PreparedRun
from batwatt.run.spec import RunSpec

MACHINES = MachineSpec(4, 1)


def test_texts_describe_series():
    texts = {"envelope": "constant:40", "capacity": "walk:range=0.6,seed=1", "carbon": "nl.csv", "price": "p.csv"}
    inputs = RunSpec(platform=MACHINES, workloads=(Path("w.json"),), **texts)
    kinds = {"envelope": "power", "capacity": "machines", "carbon": "carbon", "price": "price"}
    assert {name: getattr(inputs, name).quantity for name in texts} == kinds
    named = RunSpec(platform=MACHINES, workloads=(Path("w.json"),), envelope="caps.csv", capacity=Path("walk:x"))
    assert named.envelope == SeriesSpec.of_file("power", Path("caps.csv"))
    assert named.capacity == SeriesSpec.of_file("machines", Path("walk:x"))
    for name in texts:
        with pytest.raises(InputError, match=f"^{name}.* ' '|^{name} ' '"):
            RunSpec(platform=MACHINES, workloads=(Path("w.json"),), **{name: " "})


def test_an_option_has_the_help_of_its_field():
    described = [field for field in fields(RunSpec) if "help" in field.metadata]
    assert len(described) >= 14
    for field in described:
        assert input_option(field.name).help == field.metadata["help"] != ""


@pytest.mark.parametrize(
    ("scheduler", "options", "machines", "delays"),
    [
        ("powercap", {}, MachineSpec, None),
        ("riskaware", {}, MachineSpec, False),
        ("oversubscribed", {}, SpeedMachineSpec, "nominal"),
        ("varcap", {"capacity": "constant:mean=0.5", "long_s": 60.0}, MachineSpec, False),
    ],
)
def test_a_scheduler_says_what_it_needs_of_the_reading(tmp_path, scheduler, options, machines, delays):
    (tmp_path / "jobs.csv").write_text("arrival_time,length,cpus\n0,10,1\n")
    spec = RunSpec(platform=MACHINES, workloads=(tmp_path / "jobs.csv",), scheduler=scheduler, options=options)
    run = PreparedRun.read(spec, scheduler_class(scheduler))
    assert (type(run.spec.platform), run.spec.delays_to_flops) == (machines, delays)
    assert bool(run.simulated) == (delays == "nominal") == (run.work_flops is not None)
    assert run.spec.long_s == options.get("long_s", spec.long_s)
    assert (run.capacity is not None) == ("capacity" in options)
    assert PreparedRun.read(spec).spec == spec


def test_an_envelope_of_the_options_is_one_of_the_inputs(tmp_path):
    (tmp_path / "jobs.csv").write_text("arrival_time,length,cpus\n0,10,1\n")
    envelope = Timeline((0.0,), (40.0,), "power_w")
    spec = RunSpec(platform=MACHINES, workloads=(tmp_path / "jobs.csv",), options={"envelope": envelope})
    assert PreparedRun.read(spec, scheduler_class("powercap")).envelope == envelope
    # one that is declared counts for the figures, the option for the scheduler
    both = RunSpec(platform=MACHINES, workloads=(tmp_path / "jobs.csv",), envelope="constant:30", options=spec.options)
    run = PreparedRun.of(both)
    assert (run.envelope.values, run.scheduler.settings.envelope.values) == ((30.0,), (40.0,))
