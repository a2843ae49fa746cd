"""The page of a comparison: whole, without network, and no name breaks out of its place."""

from __future__ import annotations

import math
import re
from functools import cache
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
from tables_of_systems import compared, jobs_of, row
from tables_of_tests import HOSTILE, check_plots, plots_of, visible, words

from batwatt.model.timeline import Timeline
from batwatt.report.chart import figure_of
from batwatt.report.figures import MOST_BINS, front_chart, front_figure, power_figure
from batwatt.report.page import comparison_page
from batwatt.report.tables import cases_table, groups_tables
from batwatt.report.verdict import verdict_of
from batwatt.results.power import PowerTrace

ROWS = [
    row("free", mean_bounded_slowdown=1.5, energy_above_cap_j=0.9e6, finished_work_fraction=0.6),
    row("a", mean_bounded_slowdown=3.0),
    row("b", mean_bounded_slowdown=4.0, finished_work_fraction=0.52),
    row("c", mean_bounded_slowdown=5.0, finished_work_fraction=0.4, jobs_finished=50),
]


VOID = {"meta", "link", "input", "br", "img"}


class Tags(HTMLParser):
    """Raises if an element is closed that is not the innermost open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def well_formed(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == [] and len(tags.ids) == len(set(tags.ids))
    # what the contents lead to is there
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(tags.ids)


def hostile():
    rows = [
        one | {"case": case}
        for one, case in zip(ROWS, ("free", HOSTILE, "<script>alert(1)</script>", "c"), strict=True)
    ]
    jobs = jobs_of(
        {one["case"]: [0.0, 60.0 * n, 5.0] for n, one in enumerate(rows)},
        user=[HOSTILE, "<script>alert(2)</script>", "x"],
    )
    return compared(rows, jobs, left_out={"</main><b>d": "it's <b>broken</b>"})


def none_finished():
    names = ("mean_full_speed_slowdown", "mean_bounded_slowdown", "mean_wait_s", "p95_wait_s")
    nothing = dict.fromkeys(names) | {"jobs_finished": 0, "finished_work_fraction": 0.0}
    return compared([row(name, **nothing) for name in "xy"], jobs_of({name: [None] * 5 for name in "xy"}))


def without_power():
    power = ("energy_j", "energy_above_cap_j", "unused_j")
    return compared([{name: one[name] for name in one if name not in power} for one in ROWS], traces={})


COMPARISONS = {
    "usual": lambda: compared(ROWS),
    "hostile": hostile,
    "one case": lambda: compared([row("only")]),
    "nothing finished": none_finished,
    "no power": without_power,
    "seeds": lambda: compared([one | {"seed": seed, "mean_bounded_slowdown": 2.0 + n * seed} for seed in range(3)
                               for n, one in enumerate(ROWS)]),
}  # fmt: skip


@cache
def page_of(name):
    """The page of a comparison."""
    data = COMPARISONS[name]()
    return comparison_page(data, verdict_of(data))


@pytest.mark.parametrize("name", list(COMPARISONS))
def test_every_page_is_whole_and_needs_no_network(name):
    page = page_of(name)
    well_formed(page)
    assert "default-src 'none'" in page and len(page) < 1.5e6
    html = visible(page)
    assert not re.search(r"""(src|href|action)=["']?(https?:)?//""", html) and not re.search(r"url\((?!#)", html)
    if plots_of(page):
        check_plots(plots_of(page))
    text = words(page)
    assert "nan" not in text.lower() and "None " not in text.replace("None\n", "")


def test_names_stay_names():
    facts = [("command", "batwatt compare -c '<i>=varcap'"), ("jobs", "<u>")]
    page = comparison_page(hostile(), verdict_of(hostile()), facts, ["<s>.csv: 1 line left out"])
    html = visible(page)
    for wrong in ("<script>alert", "<img src=x", "<b>d", "<b>broken", "<u>", "<i>=", "<s>"):
        assert wrong not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "&lt;script&gt;alert(2)&lt;/script&gt;" in html
    assert page.count("<script") == 1
    # with the quotes of HTML
    svg = plots_of(page)["plot-front-0"].replace("&#10;", "\n").replace("&apos;", "&#x27;")
    assert f"<title>{escape(HOSTILE)}\n" in svg


def test_the_table_marks_the_best_of_the_rated():
    table = cases_table("all", "All", compared([ROWS[0] | {"energy_j": 7.2e6}, *ROWS[1:]]))
    heads = [head.text for head in table.headings]
    slowdown = heads.index("bounded slowdown")
    column = {label: cells[slowdown] for label, cells in table.rows}
    # free is above the envelope
    assert [label for label, cell in column.items() if cell.best] == ["a"]
    assert column["a"].text == "3.00" and column["a"].more == ("+1.50",) and column["free"].more == ()
    above = heads.index("energy above the cap (kWh)")
    assert [label for label, cells in table.rows if cells[above].alert] == ["free"]
    # of two that are alike neither is
    energy = heads.index("energy (kWh)")
    assert not any(cells[energy].best for _, cells in table.rows)


def test_who_suffers():
    jobs = jobs_of({"free": [0.0, 0.0, 60.0], "a": [3600.0, None, 60.0]}, hosts=[1, 2, 2])
    table = groups_tables(compared([row("free"), row("a")], jobs))[0]
    assert [(head.text, head.below) for head in table.headings] == [("1 host", "1 job"), ("2 to 4 hosts", "2 jobs")]
    narrow, wide = dict(table.rows)["a"]
    assert narrow.text == "+1.00 h" and narrow.more == () and narrow.shade == 1.0
    assert "added, of the 1 job that finish in “free”, too: +1.00 h, slowdown at full speed +1.00" in narrow.tip
    assert wide.text == "±0 s" and wide.more == ("50 % unfinished",) and wide.shade == 0.0
    assert "added, of the 1 job that finish in “free”, too: ±0 s" in wide.tip
    # the reference's own
    assert dict(table.rows)["free"][1].text == "30.0 s"


def test_the_front_law():
    """On the front is exactly what nothing dominates, among those that keep to the envelope."""

    def dominates(first, second):
        return first[0] <= second[0] and first[1] <= second[1] and first != second

    draw = np.random.default_rng(4)
    for _ in range(8):
        rows = [row(f"c{n}", mean_bounded_slowdown=float(draw.integers(1, 6)),
                    finished_work_fraction=float(draw.integers(1, 6)) / 10,
                    energy_above_cap_j=float(draw.integers(0, 2)) * 1e6) for n in range(7)]  # fmt: skip
        data = compared(rows)
        costs = {
            one["case"]: (one["mean_bounded_slowdown"], -one["finished_work_fraction"])
            for one in rows
            if not one["energy_above_cap_j"]
        }
        front = {label for label, mine in costs.items() if not any(dominates(other, mine) for other in costs.values())}
        assert front == {label for label, others in data.dominating(*data.fronts[0]).items() if not others}
        lines = [one for one in front_chart(data, 0).series if one.name == "Pareto front"]
        drawn = {(x, round(y / 100.0, 9)) for one in lines for x, y in zip(one.x, one.y, strict=True)}
        assert drawn == (
            {(x, -y) for x, y in (costs[label] for label in front)} if len({costs[n] for n in front}) > 1 else set()
        )


def test_energy_against_wait():
    """Less waiting costs energy: by hand, b waits less than a with more energy, c is worse in both."""
    figures = {"a": (600.0, 3.6e6), "b": (60.0, 7.2e6), "c": (700.0, 9e6)}
    rows = [row(name, mean_wait_s=wait_s, energy_j=energy_j) for name, (wait_s, energy_j) in figures.items()]
    chart = front_figure(compared(rows)).charts[0]
    line = next(one for one in chart.series if one.name == "Pareto front")
    assert list(line.x) == pytest.approx([1.0, 10.0]) and list(line.y) == pytest.approx([2.0, 1.0])
    assert chart.x.title == "mean wait (min)" and chart.y.title == "energy (kWh)"


def test_marks_of_the_front():
    chart = front_figure(compared(ROWS)).charts[1]
    dots = {one.name: one for one in chart.series if one.kind == "dots"}
    # a fourth of its energy is above the envelope
    assert dots["free"].ring == 6.5 and not any(dots[name].ring for name in "abc")
    assert dots["c"].alpha < 1.0 and all(dots[name].alpha == 1.0 for name in ("free", "a", "b"))
    assert "0.25 kWh above the envelope (25 % of its energy)" in dots["free"].tips[0]
    assert "50 of 100 jobs finished" in dots["c"].tips[0]


def test_a_long_power_is_thinned():
    times = np.arange(0.0, 30 * 86400.0, 60.0)
    trace = PowerTrace(times, np.where(np.arange(len(times)) % 2, 900.0, 100.0), float(times[-1] + 60.0))
    hourly = Timeline(tuple(3600.0 * n for n in range(720)), tuple(float(n % 7) for n in range(720)), "power_w")
    figure = power_figure(compared([row("free")], traces={"free": trace}, envelope=hourly), "free")
    axes = figure_of(figure.charts[0]).axes[0]
    drawn = {patch.get_label(): patch.get_data() for patch in axes.patches}
    assert len(drawn["power"].values) == MOST_BINS and math.isclose(drawn["envelope"].edges[-1], 30.0)
    band = drawn["least to largest"]
    assert (band.baseline.min(), band.values.max()) == (pytest.approx(0.1), pytest.approx(0.9))
    assert "Means over 144 min" in figure.caption and "days" in figure.charts[0].x.title


def test_no_wait_on_a_logarithmic_axis():
    rows = [row(name, mean_wait_s=wait) for name, wait in (("a", 0.0), ("b", 60.0), ("c", 6000.0))]
    chart = front_figure(compared(rows)).charts[0]
    places = [one.x[0] for one in chart.series if one.kind == "dots"]
    assert chart.x.log and next(iter(chart.x.ticks.items())) == (pytest.approx(places[0], rel=1e-5), "0")
    assert 0.0 < places[0] < places[1] < places[2]
