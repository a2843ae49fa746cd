"""The page of a campaign with goodput in a headless browser: boxes and legends follow the chooser, all fits."""

from __future__ import annotations

import pytest
from tables_of_goodput import NAMES, evaluation
from tables_of_tests import save
from test_browser import VISIBLE, Seen, browser, pytestmark  # noqa: F401 (a fixture, and when to skip)

from batwatt.report.page import write_report

LEGEND = "return [...document.querySelectorAll('#figure1 .legend li')].filter(l => !l.hidden).map(l => l.dataset.label)"


@pytest.fixture(scope="module")
def goodput(tmp_path_factory):
    return write_report(save(tmp_path_factory.mktemp("seen") / "pmbs23", evaluation()))[0]


@pytest.fixture
def page(browser, goodput):  # noqa: F811
    return Seen(browser, goodput)


def test_draws_boxes_without_errors(page):
    assert page.driver.get_log("browser") == []
    drawn = page.script(
        "return [...document.querySelectorAll('.plot')].map(p => [p.querySelectorAll('.boxlayer path.box').length,"
        " p.querySelectorAll('.scatterlayer path.point').length])"
    )
    # a box and a star for each strategy at both values
    assert drawn == [[2 * len(NAMES)] * 2] * 13


def test_the_chooser_acts_on_boxes_legends_and_tables_but_not_on_claims(page):
    claims = page.script("return document.querySelectorAll('#claims tbody tr:not([hidden])').length")
    assert claims >= 10
    assert page.script(LEGEND) == list(NAMES)
    page.script("document.querySelector('input[value=\"TargetStretch\"]').click()")
    page.wait("document.getElementById('count').textContent === '4'")
    left = [name for name in NAMES if name != "TargetStretch"]
    assert page.script(LEGEND) == left
    assert list(dict.fromkeys(page.traces("plot-figure4-2"))) == left
    assert page.script(VISIBLE.replace("tr[", "#means-range tr[")) == left
    assert page.script("return document.querySelectorAll('#claims tbody tr:not([hidden])').length") == claims
    assert page.driver.get_log("browser") == []


@pytest.mark.parametrize(("width", "height", "columns"), [(1300, 900, 2), (390, 844, 1)])
def test_panels_stand_side_by_side_where_there_is_room(page, width, height, columns):
    page.size(width, height, width < 500)
    assert page.script("return [innerWidth, document.documentElement.scrollWidth]") == [width, width]
    places = page.script(
        "return [...document.querySelectorAll('#figure4 .plot svg.main-svg:first-child')]"
        ".map(s => s.getBoundingClientRect()).map(r => [Math.round(r.left), Math.round(r.right), Math.round(r.top)])"
    )
    assert len({left for left, _, _ in places}) == columns and len({top for _, _, top in places}) == 4 // columns
    assert all(0 <= left < right <= width for left, right, _ in places)
