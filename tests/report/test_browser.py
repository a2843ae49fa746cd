"""The page in a headless browser: it draws, follows the chooser, fits a phone, and asks the network for nothing."""

from __future__ import annotations

import json
import shutil

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: the page is not looked at")
DRIVER = shutil.which("chromedriver")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(not (DRIVER and BROWSER), reason="no chromium with chromedriver: the page is not seen")

QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars")  # fmt: skip
VISIBLE = "return [...document.querySelectorAll('tr[data-label]')].filter(r => !r.hidden).map(r => r.dataset.label)"


class Seen:
    """The page as it is open in a browser."""

    def __init__(self, driver, page) -> None:
        self.driver = driver
        driver.get(page.as_uri())
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def script(self, text, *args):
        return self.driver.execute_script(text, *args)

    def wait(self, condition) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 30).until(lambda _: self.script(f"return {condition}"))

    def size(self, width: int, height: int, mobile: bool) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.refresh()
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def traces(self, plot: str) -> list[str]:
        """Labels of the traces that a figure shows."""
        return self.script(
            "return (document.getElementById(arguments[0]).data || []).filter(t => t.meta).map(t => t.meta.label)",
            plot,
        )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, results):
    return Seen(browser, results[1][0])


def test_draws_without_errors_or_network(page):
    assert page.driver.get_log("browser") == []
    empty = "return [...document.querySelectorAll('.plot')].filter(p => p.querySelectorAll('svg path').length < 3)"
    assert page.script(f"{empty}.map(p => p.id)") == []
    messages = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    # not what the browser's own pages ask for
    asked = [request["request"]["url"] for request in sent if request.get("documentURL", "").endswith("/index.html")]
    assert asked and {url.split(":", 1)[0] for url in asked} <= {"file", "data", "blob"}


def test_begins_with_the_highlighted(page, results):
    chosen = ["Optimum", "EBF Slow no config.", "EBF Slow HFLD", "FF Asc IDFS", "FF Slow HFLD", "EBF Slow IDSB",
              "EBF Slow OWN"]  # fmt: skip
    assert page.traces("plot40") == chosen
    assert page.script(VISIBLE)[:7] == chosen
    assert page.script("return document.getElementById('count').textContent") == "7"


def test_the_chooser_acts_on_tables_and_figures(page):
    page.script("document.getElementById('chooser').open = true")
    page.script("document.querySelector('input[value=\"EBF Slow HFLD\"]').click()")
    page.wait("document.getElementById('count').textContent === '6'")
    for plot in ("plot2", "plot3", "plot40", "plot41", "plot50", "plot6"):
        assert "EBF Slow HFLD" not in page.traces(plot), plot
    assert "EBF Slow HFLD" not in page.script(VISIBLE)
    assert "EBF Slow HFLD" not in page.script("return document.getElementById('plot2table').data[0].y")
    page.script("document.querySelector('[data-choose=all]').click()")
    page.wait("document.getElementById('count').textContent === '8'")
    assert "EBF Slow HFLD" in page.traces("plot40")
    page.script("document.querySelector('[data-choose=none]').click()")
    page.wait("document.getElementById('count').textContent === '0'")
    assert page.traces("plot40") == page.script(VISIBLE) == []
    assert "No algorithm" in page.script("return document.getElementById('plot40').textContent")
    page.script("document.querySelector('[data-choose=first]').click()")
    page.wait("document.getElementById('count').textContent === '7'")
    assert len(page.traces("plot40")) == 7
    assert "No algorithm" not in page.script("return document.getElementById('plot40').textContent")
    assert page.driver.get_log("browser") == []


def test_a_further_study_is_shown_and_follows_the_chooser(page):
    rows = VISIBLE.replace("tr[", "#study-own tr[")
    assert page.script(rows) == ["EBF Slow HFLD", "EBF Slow OWN"]
    page.script("document.querySelector('input[value=\"EBF Slow HFLD\"]').click()")
    page.wait("document.getElementById('count').textContent === '6'")
    assert page.script(rows) == ["EBF Slow OWN"]
    assert page.script("return document.querySelector('nav a[href=\"#study-own\"]').textContent").startswith("Study")


def test_search_limits_what_is_chosen(page):
    page.script(
        "const find = document.getElementById('find'); find.value = 'hfld slow';"
        "find.dispatchEvent(new Event('input'));"
        "document.querySelector('[data-choose=none]').click()"
    )
    page.wait("document.getElementById('count').textContent === '5'")
    assert page.traces("plot50") == ["Optimum", "EBF Slow no config.", "FF Asc IDFS", "EBF Slow IDSB", "EBF Slow OWN"]


def test_headings_sort(page):
    button = "document.querySelectorAll('#table2 thead tr:last-child button')[2]"
    page.script(f"{button}.click()")
    ascending = page.script(VISIBLE.replace("tr[", "#table2 tr["))
    # the slowdowns are 1.4 for the optimum, then 2, 3, ... in the order of the paper's table
    assert ascending[:3] == ["Optimum", "EBF Slow no config.", "EBF Slow HFLD"] and ascending[-1] == "EBF Slow OWN"
    page.script(f"{button}.click()")
    assert page.script(VISIBLE.replace("tr[", "#table2 tr[")) == ascending[::-1]
    assert page.script(f"return {button}.closest('th').getAttribute('aria-sort')") == "descending"


@pytest.mark.parametrize(("width", "height", "mobile"), [(1280, 900, False), (390, 844, True)])
def test_fits_the_screen(page, width, height, mobile):
    page.size(width, height, mobile)
    page.script("document.querySelector('[data-choose=all]').click()")
    page.wait("document.getElementById('count').textContent === '8'")
    assert page.script("return [innerWidth, document.documentElement.scrollWidth]") == [width, width]
    outside = page.script(
        "return [...document.querySelectorAll('.plot')].filter(p => p.getBoundingClientRect().right > innerWidth)"
        ".map(p => p.id)"
    )
    assert outside == []
