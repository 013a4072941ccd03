"""The page in a real browser: nothing else is loaded, nothing complains, on a phone, in the dark, without a script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import resources

import pytest

from tests import browser
from tests.browser import Browser
from tests.parts.page import sample
from tests.parts.page.test_results import REPORT, changes, put

if not browser.program():
    pytest.skip("no Chromium is installed", allow_module_level=True)

AXE = resources.files("axe_core_python") / "axe.min.js"
"""Deque's rules for pages, in the browser of the tests alone."""
SYSTEM = sample.system(7, 5)
PAGES = ("/", "/osts/scratch-OST000a", "/servers/oss2", "/all", "/results/week")
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
VIOLATIONS = "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 120)]))"
OWN = ("", "uplot.css", "page.css", "uplot.js", "page.js")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.browser() as found:
        yield found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    results = tmp_path_factory.mktemp("results")
    put(results, "oss2.json", changes())
    put(results, "week.json", REPORT)
    with sample.history_of(SYSTEM) as kept, sample.served(SYSTEM, results, kept=kept) as (found, _):
        yield found


def settled(chromium: Browser, what: str) -> None:
    deadline = time.monotonic() + browser.PATIENCE_S
    while not chromium.ask(what):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.parametrize(("path", "dark"), [(path, n % 2 == 1) for n, path in enumerate(PAGES)])
def test_it_is_read_on_a_phone_and_axe_has_nothing_against_it(
    chromium: Browser, url: str, path: str, dark: bool
) -> None:
    del chromium.complaints[:]
    chromium.view(360, 740, phone=True, dark=dark)
    chromium.open(f"{url}{path}")
    assert not chromium.ask(WIDER) and chromium.complaints == []
    chromium.ask(f"{AXE.read_text()}; 0")
    assert chromium.ask(VIOLATIONS) == []


def test_it_loads_its_own_files_alone_and_draws_its_curves(chromium: Browser, url: str) -> None:
    del chromium.requests[:], chromium.complaints[:]
    chromium.view(1280, 900)
    chromium.open(f"{url}/osts/scratch-OST0000")
    loaded = sorted(each.removeprefix(f"{url}/") for each in chromium.requests)
    assert loaded == sorted(("osts/scratch-OST0000", *OWN[1:])) and chromium.complaints == []
    assert chromium.ask("document.querySelectorAll('.chart canvas').length") == 8
    legend = chromium.ask("document.querySelector('.u-legend').textContent")
    assert "moved" in legend
    chromium.open(f"{url}/")
    cell = "getComputedStyle(document.querySelector('.cells a:nth-child(2)')).backgroundColor"
    fill = chromium.ask(cell)
    assert chromium.ask(f"document.querySelector('.by-load').click(), {cell}") != fill


def test_3600_osts_fit(chromium: Browser) -> None:
    with sample.served(sample.system(450, 8)) as (url, _):
        chromium.view(360, 740, phone=True)
        chromium.open(url)
        assert not chromium.ask(WIDER)
        settled(chromium, "document.querySelectorAll('.cells a').length === 3600")
        letters = chromium.ask(
            "[...document.querySelectorAll('.cells .bad')].map((e) => e.textContent).join('')"
        )
        assert sorted(letters) == ["D", "F", "S", "l"]


def test_the_script_renews_the_page_and_says_when_it_cannot(chromium: Browser) -> None:
    with sample.served(sample.system(2, 2), every_s=0.1) as (url, pages):
        del chromium.requests[:], chromium.complaints[:]
        chromium.open(url)
        chromium.ask("document.querySelector('.by-speed').click()")
        pages.show(sample.seen(sample.status(2, 4, fs_name=sample.HOSTILE)))
        settled(chromium, "document.querySelectorAll('.cells a').length === 8")
        assert chromium.ask("document.querySelector('.by-speed').checked")
        assert chromium.ask("document.querySelectorAll('script').length") == 2
        assert set(chromium.requests) == {f"{url}/{name}" for name in OWN} and chromium.complaints == []
        settled(chromium, "document.getElementById('spoken').textContent.includes('problem')")
    settled(chromium, "!document.getElementById('stale').hidden")
    assert "tarazu-page has not answered since 20" in chromium.ask(
        "document.getElementById('stale').textContent"
    )
    assert chromium.ask("document.querySelectorAll('.cells a').length") == 8
    chromium.open("about:blank")


def test_times_are_in_the_browser_s_zone_and_utc_is_their_title(chromium: Browser, url: str) -> None:
    chromium.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
    try:
        chromium.open(f"{url}/osts/scratch-OST000a")
        said = "((e) => [e.textContent, e.title, e.dateTime])(document.querySelector('main time'))"
        shown, utc, iso = chromium.ask(said)
        assert (shown, utc, iso) == ("2025-11-22 13:33:20", "2025-11-22 08:03:20 UTC", "2025-11-22T08:03:20Z")
        assert "Asia/" in chromium.ask("document.getElementById('zone').textContent")
    finally:
        chromium.call("Emulation.setTimezoneOverride", timezoneId="")


def test_without_a_script_all_but_the_curves_is_there(chromium: Browser, url: str) -> None:
    chromium.scripts(False)
    chromium.open(url)
    chromium.scripts(True)
    text = chromium.ask("document.body.innerText")
    assert "OSTs by server" in text and "Allocations" in text and "scratch-OST000a is dead" in text


def test_the_browser_runs_nothing_but_the_page_s_own_script(chromium: Browser, url: str) -> None:
    chromium.open(url)
    del chromium.complaints[:], chromium.requests[:]
    chromium.ask(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.evil = 1';"
        "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x'; })()"
    )
    chromium.ask("fetch('http://127.0.0.1:9/y').catch(() => 0)")
    assert chromium.ask("window.evil") is None
    assert len([line for line in chromium.complaints if "Content Security Policy" in line]) >= 3
