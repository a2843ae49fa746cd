"""The tables of a page, on numbers that are worked out by hand: five rows, all cases, groups, swatches, axes."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tables_of_systems import FREE as FOLLOWS_NOTHING
from tables_of_systems import SLOW, compared, jobs_of, row

from batwatt.report.chart import figure_of
from batwatt.report.figures import front_figure, power_figure
from batwatt.report.html import SHAPES
from batwatt.report.page import comparison_page
from batwatt.report.tables import cases_table, groups_tables, verdict_table
from batwatt.report.texts import in_suitable_unit, own_unit, percent
from batwatt.report.verdict import verdict_of
from batwatt.results.compared import CaseFacts
from batwatt.results.drawing import MARKERS, Look
from batwatt.results.figures import FIGURES

# 1.25 of 5 MJ are above the envelope
FREE = row("free", mean_wait_s=360.0, energy_j=5e6, energy_above_cap_j=1.25e6, finished_work_fraction=1.0)
A = row("a", mean_wait_s=3600.0, finished_work_fraction=0.8, jobs_finished=97, killed_power=4, killed_walltime=1)
B = row("b", mean_wait_s=7200.0, energy_j=2.88e6, finished_work_fraction=0.8, jobs_finished=97, makespan_s=9e4)


def five_rows(data, goal="wait"):
    """Row -> texts of its cells, each with its smaller lines; and the headings."""
    table = verdict_table(data, verdict_of(data, goal))
    cells = {label: [" ".join((cell.text, *cell.more)) for cell in row] for label, row in table.rows}
    return cells, [(head.text, head.below) for head in table.headings], table


def test_five_rows():
    cells, headings, table = five_rows(compared([FREE, A, B]))
    assert headings == [("a", "winner"), ("b", "rival"), ("free", "reference")]
    assert cells == {
        "power kept": ["yes 0 kWh", "yes 0 kWh", "no 0.35 kWh, 25 %"],
        "mean wait": ["1.00 h", "2.00 h (2.00 times)", "6.00 min (0.10 times)"],
        "energy": ["1.00 kWh", "0.80 kWh (0.80 times)", "1.39 kWh (1.39 times)"],
        "finished work": ["80.0 % by 2.00 h", "80.0 % (the same) by 25.0 h", "100 % (1.25 times) by 2.00 h"],
        "lost jobs": ["3 jobs 5 kills", "3 jobs 0 kills", "0 jobs 0 kills"],
    }
    assert [cell.alert for cell in dict(table.rows)["power kept"]] == [False, False, True]


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("slowdown", ["power kept", "bounded slowdown", "energy", "finished work", "lost jobs"]),
        ("energy", ["power kept", "mean wait", "energy", "finished work", "lost jobs"]),
        ("carbon", ["power kept", "mean wait", "carbon", "finished work", "lost jobs"]),
        ("cost", ["power kept", "mean wait", "cost", "finished work", "lost jobs"]),
    ],
)
def test_rows_by_goal(goal, rows):
    both = {"carbon_g": 2000.0, "cost": 3.0}
    cells, headings, _ = five_rows(compared([A | both, B | both | {"carbon_g": 1000.0, "cost": 1.0}]), goal)
    assert list(cells) == rows and headings[0] == ("b", "winner")
    assert goal != "carbon" or cells["carbon"] == ["1.00 kg", "2.00 kg (2.00 times)"]


def test_what_may_be_chance_is_marked():
    assert five_rows(compared([A, B | {"mean_wait_s": 4500.0}]))[0]["mean wait"][1] == "1.25 h (~1.25 times)"


def test_without_an_envelope_power_is_not_kept():
    rows = [{name: value for name, value in one.items() if "cap" not in name} for one in (A, B)]
    assert list(five_rows(compared(rows))[0]) == ["mean wait", "energy", "finished work", "lost jobs"]


def test_without_a_winner_the_nearest():
    cells, headings, _ = five_rows(compared([FREE, A | {"energy_above_cap_j": 1e6}]))
    assert headings == [("free", "nearest")] and cells["mean wait"] == ["6.00 min"]
    nothing = {"mean_wait_s": None, "jobs_finished": 0}
    data = compared([row("x", **nothing), row("y", **nothing)])
    assert verdict_table(data, verdict_of(data)) is None


def test_a_case_that_replays_the_log_is_as_recorded():
    cases = {"free": FOLLOWS_NOTHING, "a": SLOW, "b": SLOW, "log": CaseFacts("replay", {}, "none")}
    log = row("log", mean_wait_s=1800.0, energy_above_cap_j=1e6)
    cells, headings, _ = five_rows(compared([FREE, A, B, log], cases=cases))
    assert headings[-1] == ("log", "as recorded") and cells["mean wait"][-1] == "30.0 min (0.50 times)"
    # as the reference it has no column of its own
    cases = {"log": cases["log"], "a": SLOW}
    assert five_rows(compared([log, A], cases=cases))[1] == [("a", "winner"), ("log", "reference")]


def test_assumed_watts_are_next_to_the_energy():
    data = compared([FREE, A, row("b", mean_wait_s=9000.0)], assumed_w=10.0)
    verdict = verdict_of(data)
    assert verdict.caveat.startswith("Wait is of finished jobs only")
    assert verdict_of(replace(data, table=data.table.assign(jobs_finished=100))).caveat == "Energy assumes 10 W a core."
    assert verdict_table(data, verdict).below["energy"] == "assumes 10 W a core"
    assert "Energy assumes 10 W a core." in cases_table("all", "All", data).notes
    assert front_figure(data).caption.endswith("Energy assumes 10 W a core.")
    assert "assumes" not in comparison_page(replace(data, assumed_w=None), verdict_of(replace(data, assumed_w=None)))


def columns(data, **more):
    table = cases_table("all", "All", data, **more)
    return table, {head.text: head.hide for head in table.headings}


def test_main_columns_and_more():
    """Figures that differ in two cases: four on a phone, those of the design, and the rest on a click."""
    figures = {name: value for name, value in A.items() if name not in ("case", "scheduler", "window", "seed")}
    energies = {"energy_j": 5e6, "energy_above_cap_j": 1e6, "unused_j": 2e6}
    rows = [
        row(case, **{name: value + 1 + n * k for k, (name, value) in enumerate(figures.items())})
        | {name: value * (n + 1) for name, value in energies.items()}
        | {"jobs_finished": 90 - 3 * n}
        for n, case in enumerate("ab")
    ]
    _, hide = columns(compared(rows), goal=FIGURES["mean_wait_s"])
    assert [text for text, where in hide.items() if not where] == [
        "mean wait (h)", "energy (kWh)", "finished work (%)", "lost jobs",
    ]  # fmt: skip
    assert [text for text, where in hide.items() if where == "narrow"] == [
        "95th percentile of the wait (min)", "bounded slowdown", "energy above the cap (kWh)", "kills", "makespan (h)",
    ]  # fmt: skip
    assert {"slowdown", "slowdown at full speed", "violations (steps)", "unused energy (kWh)", "work per fed host"} <= {
        text for text, where in hide.items() if where == "always"
    }
    # the goal is on a phone, too
    assert columns(compared(rows), goal=FIGURES["makespan_s"])[1]["makespan (h)"] == ""


def test_a_column_that_says_nothing_goes():
    data = compared([row("x", mean_wait_s=60.0), row("y", mean_wait_s=100.0, mean_bounded_slowdown=3.0,
                                                      mean_full_speed_slowdown=3.0)])  # fmt: skip
    table, hide = columns(data)
    # both slowdowns are equal
    assert list(hide) == ["mean wait (s)", "bounded slowdown"]
    assert "energy 1.00 kWh" in table.notes[0] and "slowdown 1.50" in table.notes[0]
    # one that differs in a small number only stays
    assert "energy (kWh)" in columns(compared([row("x"), row("y", energy_j=3.8e6)]))[1]
    # of one case, and of equal ones
    assert len(columns(compared([row("x")]))[1]) > 10 and len(columns(compared([row("x"), row("y")]))[1]) == 1


def test_rows_are_in_the_order_of_the_goal():
    rows = [FREE, row("poor", mean_wait_s=1.0, jobs_finished=9), B | {"jobs_finished": 100}, A | {"jobs_finished": 100},
            row("none", mean_wait_s=None, jobs_finished=0)]  # fmt: skip
    data = compared(rows)
    orders = {"wait": ["a", "b", "poor", "free", "none"], "energy": ["b", "a", "poor", "none", "free"]}
    for goal, expected in orders.items():
        verdict = verdict_of(data, goal)
        table, _ = columns(data, goal=verdict.first, begin=verdict.rated)
        assert [label for label, _ in table.rows] == expected
        assert verdict_table(data, verdict).headings[0].text == expected[0]


def test_one_unit_a_column():
    """Of 10 s, 3 h, 4 h and 5 days the median is 4 h; 10 s are below 0.1 h."""
    waits = {"a": 10.0, "b": 10800.0, "c": 14400.0, "d": 5 * 86400.0}
    table, hide = columns(compared([row(case, mean_wait_s=wait_s) for case, wait_s in waits.items()]))
    assert "mean wait (h)" in hide
    cells = {label: cells[0] for label, cells in table.rows}
    assert {label: cell.text for label, cell in cells.items()} == {"a": "10.0 s", "b": "3.00", "c": "4.00", "d": "120"}
    assert cells["a"].key == "10.0" and cells["b"].more == ("+3.00",)
    table, _ = columns(compared([row("a", mean_wait_s=7200.0), row("b", mean_wait_s=7230.0)]))
    assert dict(table.rows)["b"][0].more == ("+30.0 s",)
    wait = in_suitable_unit(FIGURES["mean_wait_s"], [3600.0])
    assert own_unit(wait, 361.0) == wait != own_unit(wait, 359.0) and own_unit(wait, 0.0) == wait
    assert percent(0.997, 2) == "100 %" and percent(0.151, 2) == "15 %"


def tables_by(**waits):
    """Added waits of two cases, each of three jobs of users x, y and y."""
    jobs = jobs_of({"free": [0.0, 0.0, 0.0], **waits}, user=["x", "y", "y"], hosts=[1, 1, 1])
    data = compared([row("free"), *(row(case) for case in waits)], jobs)
    return [table.name for table in groups_tables(data)]


@pytest.mark.parametrize(
    ("waits", "names"),
    [
        # one size and one length
        ({"a": [100.0, 200.0, 200.0]}, ["by-user"]),
        ({"a": [100.0, 102.0, 102.0]}, []),
        ({"a": [100.0, 103.0, 103.0]}, ["by-user"]),
        # one case tells the groups apart
        ({"a": [100.0, 100.0, 100.0], "b": [100.0, 50.0, 50.0]}, ["by-user"]),
        ({"a": [0.0, 0.0, 0.0]}, []),
        ({}, []),
    ],
)
def test_groupings_that_say_nothing_go(waits, names):
    assert tables_by(**waits) == names


def test_groups_are_open_by_size_and_user():
    labels = {"user": ["x", "y"], "queue": ["p", "q"], "hosts": [1, 9], "length_s": [60.0, 9999.0]}
    data = compared([row("free"), row("a")], jobs_of({"free": [0.0, 0.0], "a": [1.0, 9.0]}, **labels))
    tables = groups_tables(data, ["a", "free"])
    assert {table.name: table.folded for table in tables} == {
        "by-size": False, "by-length": True, "by-user": False, "by-queue": True,
    }  # fmt: skip
    assert [label for label, _ in tables[0].rows] == ["a", "free"]
    page = comparison_page(data, verdict_of(data))
    assert page.index("<details><summary>Queue</summary>") > page.index(">Jobs that wait longer<")


def test_twelve_cases_differ_in_shape_and_colour():
    rows = [row(f"case {n}", mean_wait_s=60.0 * n) for n in range(12)]
    data = compared(rows)
    page = comparison_page(data, verdict_of(data))
    body = re.search(r'id="all-cases".*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    swatches = dict(re.findall(r'data-key="(case \d+)">(<svg class="swatch".*?</svg>)', body))
    assert len(set(swatches.values())) == len(swatches) == 12
    for n in range(12):
        path = ElementTree.fromstring(swatches[f"case {n}"]).find("path")
        look = Look(n)
        assert (path.get("fill"), path.get("d")) == (look.colour, SHAPES[look.marker])
    assert set(SHAPES) == set(MARKERS) and len(set(SHAPES.values())) == len(MARKERS)


def test_axes_of_fronts_begin_where_the_data_are():
    """Waits of 10 to 30 min and 8 to 9 kWh: 5 % of the range on either side."""
    figures = {"a": (600.0, 9.0), "b": (1800.0, 8.0), "c": (1200.0, 8.5)}
    data = compared([row(case, mean_wait_s=wait_s, energy_j=kwh * 3.6e6, finished_work_fraction=1.0)
                     for case, (wait_s, kwh) in figures.items()])  # fmt: skip
    [chart] = front_figure(data).charts
    axes = figure_of(chart).axes[0]
    assert axes.get_xlim() == pytest.approx((9.0, 31.0)) and axes.get_ylim() == pytest.approx((7.95, 9.05))
    # names stand at their points
    assert {text.get_text() for text in axes.texts} == set("abc") and not figure_of(chart).legends
    # where all finish, there is no chart of their work
    assert chart.title == "Energy against mean wait"
    data = replace(data, table=data.table.assign(finished_work_fraction=[1.0, 0.99, 1.0]))
    assert [chart.title for chart in front_figure(data).charts][1:] == ["Finished work against bounded slowdown"]


def test_names_without_room_are_in_the_legend():
    data = compared([row(f"one of many cases {n}", mean_wait_s=600.0 + n) for n in range(12)])
    figure = figure_of(front_figure(data).charts[0])
    written = [text.get_text() for text in figure.axes[0].texts]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted([*written, *legend]) == sorted(data.labels) and legend
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_power_of_winner_and_reference_on_the_same_axes():
    rows = [FREE, A, B]
    data = compared(rows)
    figure = power_figure(data, "b", "free")
    assert [chart.title for chart in figure.charts] == ["b", "free", "a"] and figure.unfolded == 2
    # the envelope has 1 kW
    assert all(figure_of(chart).axes[0].get_ylim() == pytest.approx((0.0, 1.05)) for chart in figure.charts)
    page = comparison_page(data, verdict_of(data))
    assert len(re.findall(r"<details><summary>(?!<h2>)[^<]*</summary>\s*<div class=\"plot\"", page)) == 1
