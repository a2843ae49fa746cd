"""The inputs of a run, described once: texts are parsed there, and needs of a scheduler change what is read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from batwatt.cli.options import input_option
from batwatt.errors import InputError
from batwatt.inputs.description import Inputs
from batwatt.inputs.load import Needs, load
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, SpeedMachineSpec
from batwatt.model.timeline import Timeline
from batwatt.run.find_scheduler import scheduler_class
from batwatt.run.resolve import needs_of
from batwatt.run.spec import RunSpec

MACHINES = MachineSpec(4, 1)


def test_texts_describe_series():
    texts = {"envelope": "constant:40", "capacity": "walk:range=0.6,seed=1", "carbon": "nl.csv", "price": "p.csv"}
    inputs = Inputs(MACHINES, (Path("w.json"),), **texts)
    kinds = {"envelope": "power", "capacity": "machines", "carbon": "carbon", "price": "price"}
    assert {name: getattr(inputs, name).quantity for name in texts} == kinds
    named = Inputs(MACHINES, (Path("w.json"),), envelope="caps.csv", capacity=Path("walk:x"))
    assert named.envelope == SeriesSpec.of_file("power", Path("caps.csv"))
    assert named.capacity == SeriesSpec.of_file("machines", Path("walk:x"))
    for name in texts:
        with pytest.raises(InputError, match=f"^{name}.* ' '|^{name} ' '"):
            Inputs(MACHINES, (Path("w.json"),), **{name: " "})


def test_an_option_has_the_help_of_its_field():
    for field in fields(Inputs):
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
    inputs = Inputs(MACHINES, (tmp_path / "jobs.csv",))
    read = load(inputs, needs_of(RunSpec(inputs, scheduler, options), scheduler_class(scheduler)))
    described = read.described
    assert (type(described.platform), described.delays_to_flops) == (machines, delays)
    assert bool(read.simulated) == (delays == "nominal") == (read.work_flops is not None)
    assert described.long_s == options.get("long_s", inputs.long_s)
    assert (read.capacity is not None) == ("capacity" in options)
    assert load(inputs, Needs()).described == inputs


def test_an_envelope_of_the_options_is_one_of_the_inputs(tmp_path):
    (tmp_path / "jobs.csv").write_text("arrival_time,length,cpus\n0,10,1\n")
    inputs, envelope = Inputs(MACHINES, (tmp_path / "jobs.csv",)), Timeline((0.0,), (40.0,), "power_w")
    needs = needs_of(RunSpec(inputs, "powercap", {"envelope": envelope}), scheduler_class("powercap"))
    assert load(inputs, needs).described.envelope == envelope
