"""Campaigns of capacities that texts describe, and of varcap traces."""

from __future__ import annotations

from typing import Any

import pytest
from cli_house import ROOT

from batwatt.inputs.series.capacity_spec import parse_capacity
from batwatt.inputs.workloads.varcap_like import VarcapLike
from batwatt.inputs.workloads.varcap_synthetic import varcap_table
from batwatt.study.campaign import CampaignFolder, campaign_in
from batwatt.study.execute import task_of
from batwatt.study.generated import traits
from batwatt.study.sources import Sources
from batwatt.study.spec import Campaign
from batwatt.study.yaml_model import parse_declared

# two jobs as wide as a machine: hours 0 to 1, and 0 to 2
JOBS = "arrival_time,length,cpus\n0,1,2\n0,2,2\n"
# half the carbon in the second hour: the budget of 0.5 buys 0.375 and 0.75 of the machines
CARBON = "time_s,carbon_intensity\n0,200\n3600,100\n"
TNG = {"like": "tng", "jobs": 300, "machines": 5, "days": 0.1}


def study(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "platforms": [{"machines": 2, "cores": 2}],
        "workloads": [{"trace": "jobs.csv", "length_unit": "hours", "window": [0, 7200]}],
        "scheduler": "varcap",
        "label": "{mapping}",
        "options": {"mapping": "base"},
        "capacities": [{"spec": "constant:mean=1"}],
    }
    return {key: value for key, value in (given | changes).items() if value is not None}


@pytest.fixture
def varied(small):
    small.house.write("jobs.csv", JOBS)
    small.house.write("DE.csv", CARBON)
    return small


def declare(varied, **changes) -> CampaignFolder:
    return campaign_in(varied.declare_all({"only": study(**changes)}), varied.results)


def key(varied, **changes) -> str:
    [cell] = declare(varied, **changes).cells
    return cell.key


def names(varied, *entries: dict[str, Any], **changes) -> list[str]:
    return [cell.capacity.name for cell in declare(varied, capacities=list(entries), **changes).cells]


def test_a_row_worked_out_by_hand(varied):
    """In s both jobs would end within half a minute; in h they take 1 and 2 h of two machines."""
    declare(varied)
    assert varied.run().code == 0, varied.rows()
    [row] = varied.rows()
    # 2 cores for 1 h and 2 cores for 2 h, of 4 cores for 2 h
    assert row["goodput"] == pytest.approx(6 / 8) and row["jobs_finished"] == 2
    assert row["capacity"] == "constant-1" and row["scheduler"] == "varcap"
    told = {name: row[name] for name in row if name.startswith("cap_") and row[name] is not None}
    assert told == {"cap_structure": "constant", "cap_range": 0.0, "cap_mean": 1.0}


def test_a_capacity_by_carbon_worked_out_by_hand(varied):
    """0.5 x 150 / 200 and 0.5 x 150 / 100 of 8 machines are 3 and 6."""
    spec = "carbon:DE.csv,budget=0.5,headroom=0.9"
    declare(varied, platforms=[{"machines": 8, "cores": 2}], capacities=[{"spec": spec}])
    assert varied.run().code == 0, varied.rows()
    [row] = varied.rows()
    assert row["capacity_core_s"] == 2 * (3 + 6) * 3600
    assert row["capacity"] == "carbon-DE-0.5-0.9"
    assert (row["cap_structure"], row["cap_mean"], row["cap_headroom"]) == ("carbon", 0.5, 0.9)
    # 0.375 x 200 + 0.75 x 100 is as much as 0.5 x 300, for a mean of 0.5625
    assert row["cap_saved"] == pytest.approx(0.0) and row["cap_gained"] == pytest.approx(0.125)


def test_combinations_and_their_names(varied):
    entry = {"spec": "{kind}:range={range},mean=0.7", "grid": {"kind": ["walk", "uniform"], "range": [0.2, 0.6]}}
    assert names(varied, entry | {"seeds": [1, 2]}) == [
        *("walk-0.2-0.05-3600-s1", "walk-0.2-0.05-3600-s2", "walk-0.6-0.15-3600-s1", "walk-0.6-0.15-3600-s2"),
        *("uniform-0.2-3600-s1", "uniform-0.2-3600-s2", "uniform-0.6-3600-s1", "uniform-0.6-3600-s2"),
    ]
    assert names(varied, entry | {"name": "{kind}{range}"}) == ["walk0.2", "walk0.6", "uniform0.2", "uniform0.6"]
    # what is not in the usual name is told
    assert names(varied, {"spec": "walk:mean=0.5,move=fixed,seed=3"}) == ["walk-0.6-0.15-3600-mean0.5-movefixed"]
    assert names(varied, {"spec": "walk:", "seeds": [4]}) == ["walk-0.6-0.15-3600-s4"]


def test_the_columns_of_a_walk(varied):
    walk = {"spec": "walk:range=0.4,step=0.3,period=900,mean=0.6", "seeds": [7]}
    found = traits(declare(varied, capacities=[walk]).cells[0].capacity)
    assert found == {"cap_structure": "walk", "cap_range": 0.4, "cap_step": 0.3, "cap_period_s": 900.0,
                      "cap_mean": 0.6, "cap_seed": 7}  # fmt: skip


def test_a_point_that_two_sweeps_share_is_taken_once(varied):
    """A quarter of 0.2 is 0.05, said or not."""
    quarter, said = ({"spec": f"walk:range=0.2{more}", "seeds": [1]} for more in ("", ",step=0.05"))
    assert names(varied, quarter, said) == ["walk-0.2-0.05-3600-s1"]
    assert key(varied, capacities=[quarter]) == key(varied, capacities=[said])


def test_levelled_over_what_is_measured(varied):
    walk = {"spec": "walk:range=0.6", "seeds": [1]}
    spec = declare(varied, capacities=[walk]).cells[0].inputs.capacity
    assert spec.series(100, 1e6).values == parse_capacity("walk:range=0.6,seed=1,window=7200").series(100, 1e6).values
    for said in (",window=3600", ",end=86400"):
        given = declare(varied, capacities=[walk | {"spec": walk["spec"] + said}]).cells[0].inputs.capacity
        assert given.series(100, 1e6).values == parse_capacity(f"{walk['spec']}{said},seed=1").series(100, 1e6).values


def test_the_seed_of_a_walk_is_that_of_random_terminations(varied):
    entry = {"spec": "walk:", "seeds": [5]}
    assert declare(varied, capacities=[entry]).cells[0].run_options["seed"] == 5
    assert declare(varied, capacities=[entry], seeds=[9]).cells[0].run_options["seed"] == 9
    assert "seed" not in declare(varied, capacities=[{"spec": "walk:seed=5"}]).cells[0].run_options


def test_what_a_capacity_says_counts(varied):
    carbon = {"spec": "carbon:DE.csv"}
    usual = key(varied, capacities=[carbon])
    assert key(varied, capacities=[carbon | {"name": "other"}]) == usual
    assert key(varied, capacities=[{"spec": "carbon:DE.csv,headroom=0.9"}]) != usual
    (varied.folder / "elsewhere").mkdir()
    varied.house.write("elsewhere/copy.csv", CARBON)
    assert key(varied, capacities=[{"spec": "carbon:elsewhere/copy.csv"}]) == usual
    varied.house.write("DE.csv", CARBON.replace("100", "101"))
    assert key(varied, capacities=[carbon]) != usual


def test_the_unit_of_a_trace_counts(varied):
    trace = study()["workloads"][0]
    assert key(varied, workloads=[trace]) != key(varied, workloads=[trace | {"length_unit": "s"}])
    assert key(varied, workloads=[trace]) == key(varied, workloads=[trace | {"length_unit": "h"}])


def test_traces_are_generated(varied):
    entry = {"varcap": TNG, "grid": {"long_fraction": [0.1, 0.8]}, "seeds": [3, 4], "window": [0, 3600]}
    cells = declare(varied, workloads=[entry]).cells
    assert [cell.workload.name for cell in cells] == [
        "tng-300-0.1-3",
        "tng-300-0.1-4",
        "tng-300-0.8-3",
        "tng-300-0.8-4",
    ]
    expected = varcap_table(VarcapLike(**TNG, long_fraction=0.1), 3)
    assert cells[0].workload.files[0].text == expected.to_csv(index=False, lineterminator="\n")
    named = declare(varied, workloads=[entry | {"name": "long-{long_fraction}"}]).cells
    assert [cell.workload.name for cell in named][1:3] == ["long-0.1-4", "long-0.8-3"]
    # the name is no part of the key
    assert [cell.key for cell in named] == [cell.key for cell in cells]


def test_labels_grids_cases_and_rules_mean_the_options(varied):
    changes = {
        "grid": {"mapping": ["base", "twomode"]},
        "cases": [{"label": "sized", "options": {"mapping": "longshort"}}],
        "exclude": [{"mapping": "twomode"}],
        "capacities": [{"spec": "walk:range=0.6,seed=1"}],
    }
    cells = declare(varied, **changes).cells
    assert [(cell.label, cell.scheduler, cell.options["mapping"]) for cell in cells] == [
        ("base", "varcap", "base"),
        ("sized", "varcap", "longshort"),
    ]
    assert task_of(cells[1], False, None).spec.scheduler == "varcap"


MISTAKES = [
    ({"capacities": [{"spec": "walk:rnage=0.2"}]}, "capacities[0]: capacity 'walk:rnage=0.2': no key 'rnage'"),
    ({"capacities": [{"spec": "DE.csv"}]}, "capacities[0]: 'DE.csv' describes no capacity"),
    ({"capacities": [{"spec": "carbon:no.csv"}]}, "capacities[0]: the file 'no.csv' is not there"),
    ({"capacities": [{"spec": "carbon:DE.csv", "seeds": [1]}]}, "no key 'seed'"),
    ({"capacities": [{"spec": "walk:range={range}"}]}, "the spec 'walk:range={range}' names 'range', which is not in"),
    ({"capacities": [{"spec": "walk:", "grid": {"range": [0.2]}}]}, "the grid has 'range', which is not in the spec"),
    ({"capacities": [{"spec": "walk:range={range}", "grid": {"range": [0.2, 0.2]}}]}, "a list of different values"),
    ({"capacities": [{"spec": "walk:range={range}", "grid": {"range": []}}]}, "list should have at least 1 item"),
    ({"capacities": [{"spec": "walk:range={range}", "grid": {"range": [0.2, 0.4]}, "name": "x"}]}, "called 'x'"),
    ({"capacities": [{"spec": "walk:", "name": "a b"}]}, "the name 'a b' must be of letters"),
    ({"capacities": [{"spec": "walk:", "files": "DE.csv"}]}, "with `seeds`, or `spec`"),
    ({"capacities": [{"files": "DE.csv", "grid": {"a": [1]}}]}, "`grid` goes with `spec` only"),
    ({"capacities": [{"spec": "constant:mean=1.6"}]}, "asks for 3 machines of 2"),
    ({"workloads": [{"varcap": TNG}]}, "workloads[0]: `varcap` needs `seeds`"),
    ({"workloads": [{"varcap": {"like": "tgn"}, "seeds": [1]}]}, "did you mean 'tng'?"),
    ({"workloads": [{"varcap": TNG, "grid": {"jobs": [1]}, "seeds": [1]}]}, "'jobs' is both a parameter"),
    ({"workloads": [{"trace": "jobs.csv", "length_unit": "days"}]}, "length_unit: input should be 's', 'h'"),
    ({"workloads": [{"varcap": TNG, "seeds": [1], "length_unit": "h"}]}, "`length_unit` does not go with `varcap`"),
    ({"scheduler": "optimum", "options": {}, "label": "x", "capacities": None, "platforms": ["p.xml"],
      "workloads": [{"varcap": TNG, "seeds": [1]}]}, "'x': the optimum knows neither capacities nor machines"),
]  # fmt: skip


@pytest.mark.parametrize("change, told", MISTAKES)
def test_mistakes(varied, change, told):
    varied.declare_all({"only": study(**change)})
    ended = varied.run()
    assert ended.code == 2 and told in ended.line, ended.err
    assert not varied.cells()


def test_a_signal_that_is_not_there_is_needed_by_its_study_only(varied):
    varied.declare_all({"german": study(capacities=[{"spec": "carbon:../no/DE.csv,days=1"}]), "other": study()})
    ended = varied.run()
    assert ended.code == 2 and "studies.german.capacities[0]: the file '../no/DE.csv' is not there" in ended.line
    assert "--only other does without" in ended.line
    assert varied.run("--only", "other").code == 0 and [row["study"] for row in varied.rows()] == ["other"]


def test_the_example_of_the_docs(varied):
    text = (ROOT / "docs" / "reference" / "campaigns.md").read_text()
    [block] = [block.partition("```")[0] for block in text.split("```yaml\n") if block.startswith("name: varied")]
    found = parse_declared(block, "docs", Campaign).effective()["ranges"]
    sources = Sources(varied.folder, varied.out)
    assert [file.name for file in sources.workloads(found.workloads, "docs")] == ["long-0.1-0", "long-0.8-0"]
    capacities = [made.name for made in sources.capacities(found.capacities, "docs")]
    assert (capacities[0], capacities[1], capacities[-1]) == (
        *("constant-0.7", "walk-0.2-0.05-3600-s1", "uniform-0.6-3600-s3"),
    )
