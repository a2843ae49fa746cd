"""The page of a campaign with goodput in a headless browser: boxes and legends follow the chooser, all fits."""

from __future__ import annotations

import pytest
from tables_of_goodput import NAMES, evaluation
from tables_of_tests import save
from test_browser import OUTSIDE, VISIBLE, Seen, browser, pytestmark  # noqa: F401 (a fixture, and when to skip)

from batwatt.report.page import write_report

LEGEND = "return [...document.querySelectorAll('#figure1 .legend button')].map(l => l.dataset.name)"


@pytest.fixture(scope="module")
def goodput(tmp_path_factory):
    return write_report(save(tmp_path_factory.mktemp("seen") / "pmbs23", evaluation()))[0]


@pytest.fixture
def page(browser, goodput):  # noqa: F811
    return Seen(browser, goodput)


def test_draws_boxes_without_errors(page):
    assert page.driver.get_log("browser") == []
    drawn = page.script(
        "return [...document.querySelectorAll('main .plot')].map(p => [p.querySelectorAll('.box').length,"
        " p.querySelectorAll('.mean').length])"
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
    assert page.traces("plot-figure4-2") == left
    assert page.script(VISIBLE.replace("tr[", "#means-range tr[")) == left
    assert page.script("return document.querySelectorAll('#claims tbody tr:not([hidden])').length") == claims
    assert page.driver.get_log("browser") == []


@pytest.mark.parametrize(("width", "columns"), [(900, 2), (390, 1)])
def test_panels_stand_side_by_side_where_there_is_room(page, width, columns):
    page.size(width)
    sizes = page.script("return [innerWidth, document.scrollingElement.scrollWidth]")
    assert sizes == [width, width] and page.script(OUTSIDE) == []
    places = page.script(
        "return [...document.querySelectorAll('#figure4 .plot svg')]"
        ".map(s => s.getBoundingClientRect()).map(r => [Math.round(r.left), Math.round(r.right), Math.round(r.top)])"
    )
    assert len({left for left, _, _ in places}) == columns and len({top for _, _, top in places}) == 4 // columns
    assert all(0 <= left < right <= width for left, right, _ in places)
