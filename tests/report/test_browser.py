"""The page in a headless browser: drawn, follows the reader, fits a phone, readable in the dark, needs no network."""

from __future__ import annotations

import json
import shutil

import pytest

from batwatt import compare
from batwatt.results.figures import FIGURES

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: the page is not looked at")
DRIVER = shutil.which("chromedriver")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(not (DRIVER and BROWSER), reason="no chromium with chromedriver: the page is not seen")

QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars")  # fmt: skip
LABELS = "return [...document.querySelectorAll('#means-workloads tr[data-label]')].map(r => r.dataset.label)"


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

    def size(self, width: int, scheme: str = "light") -> None:
        phone = width < 500
        metrics = {"width": width, "height": 844 if phone else 900, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        self.driver.refresh()
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def middle(self, selector: str) -> dict[str, float]:
        """Where the middle of an element is after it was scrolled to."""
        # two frames later what scrolling does is done
        return self.driver.execute_async_script(
            "const node = document.querySelector(arguments[0]); node.scrollIntoView({block: 'center'});"
            "requestAnimationFrame(() => requestAnimationFrame(() => { const box = node.getClientRects()[0];"
            "arguments[1]({x: box.left + box.width / 2, y: box.top + box.height / 2}); }));",
            selector,
        )

    def tip(self) -> str:
        """The text of the tooltip, empty if it is hidden."""
        return self.script("const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent")

    def point(self, selector: str) -> None:
        """Move the mouse to the middle of an element."""
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **self.middle(selector)})


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
    empty = "return [...document.querySelectorAll('.plot')].filter(p => !p.querySelector('svg path'))"
    assert page.script(f"{empty}.map(p => p.id)") == []
    messages = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    # not what the browser's own pages ask for
    urls = [request["request"]["url"] for request in sent if request.get("documentURL", "").endswith("/index.html")]
    assert urls and {url.split(":", 1)[0] for url in urls} <= {"file", "data", "blob"}


def test_headings_sort(page):
    button = "document.querySelectorAll('#means-workloads thead tr:last-child button')[1]"
    page.script(f"{button}.click()")
    ascending = page.script(LABELS)
    # the slowdowns are 1.4 for the optimum, then 2, 3, ... in the order of the paper's table
    assert ascending[:3] == ["Optimum", "EBF Slow no config.", "EBF Slow HFLD"] and ascending[-1] == "EBF Slow OWN"
    page.script(f"{button}.click()")
    assert page.script(LABELS) == ascending[::-1]
    assert page.script(f"return {button}.closest('th').getAttribute('aria-sort')") == "descending"


def test_mouse_and_keyboard_show_meanings_and_values(page):
    page.size(1280)
    page.point("#conclusion .lead .term")
    assert page.tip() == FIGURES["finished_work_fraction"].meaning
    page.point("h1")
    assert page.tip() == ""
    # the keyboard, too; first the link to the runs that failed
    for kind in ("keyDown", "keyUp") * 2:
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": "Tab", "windowsVirtualKeyCode": 9})
    assert page.script("return document.activeElement.getAttribute('aria-describedby')") == "tip"
    assert page.tip() == FIGURES["finished_work_fraction"].meaning
    # the browser itself shows the <title> of a mark
    title = page.script("return document.querySelector('#plot-front-0 .mark > title').textContent")
    assert title == (
        "EBF Slow no config.\nslowdown 2.10\nfinished work 90.0 %\n10 of 10 jobs finished\n"
        "0.11 kWh above the envelope (40 % of its energy)"
    )


COLUMNS = """
const [bar] = [...document.querySelectorAll(".columns")].filter((bar) => !bar.querySelector("button").hidden);
const heads = [...bar.parentElement.querySelectorAll("thead tr:last-child th")];
const seen = () => heads.filter((head) => head.getBoundingClientRect().width > 0).length;
const before = seen();
const text = bar.querySelector("button").textContent;
bar.querySelector("button").click();
return [before, seen(), heads.length, text, bar.querySelector("button").textContent]
"""
"""Columns that are seen before and after a click on the first button, all of them, and both texts of the button."""


@pytest.mark.parametrize("width", [1280, 390])
def test_more_columns_on_a_click(browser, tmp_path, width):
    cases = ["as today", "powercap response=hfld", "powercap response=frugal"]
    envelope = "power_profiles/profile3.csv"
    result = compare("platforms/grid5000.xml", "workloads/google-288-00.json", envelope=envelope, cases=cases)
    result.save(tmp_path / "all")
    page = Seen(browser, tmp_path / "all.html")
    page.size(width)
    few, more, every, text, again = page.script(COLUMNS)
    assert few < more == every and text == f"{every - few} more columns" and again == "fewer columns"
    page.driver.refresh()
    hint = page.script("return [...document.querySelectorAll('.columns span')].map((hint) => hint.textContent)")
    assert all(text.endswith(" →") for text in hint if text)


OUTSIDE = """
return [...document.querySelectorAll("body *")].filter((node) => {
  const box = node.getBoundingClientRect();
  const out = box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5);
  return out && !node.closest(".wide, [clip-path], clipPath");
}).map((node) => `${node.tagName} ${node.className.baseVal ?? node.className} ${node.textContent.slice(0, 40)}`)
"""
"""What reaches out of the window, but in a box that scrolls by itself."""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_fits_the_screen(page, width, scheme):
    page.size(width, scheme)
    sizes = page.script("return [innerWidth, document.scrollingElement.scrollWidth]")
    assert sizes == [width, width] and page.script(OUTSIDE) == []
    assert page.driver.get_log("browser") == []
