"""All of the page by keyboard, by screen reader, in light and dark, on a desk and on a phone, in any zone of time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise
from typing import Any

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
PAGES = (
    "/",
    "/osts/scratch-OST000a",
    "/osts/scratch-OST0001",
    "/servers/oss2",
    "/osts",
    "/servers",
    "/results/oss2",
)
RATIO = """
(() => {
  const light = (c) => { const v = c.match(/[0-9.]+/g).slice(0, 3).map((x) => x / 255)
      .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const behind = (e) => { while (e) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c) && c !== "transparent") return c; e = e.parentElement; } return "rgb(255,255,255)"; };
  let least = [99, ""];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility()) continue;
    const style = getComputedStyle(e), a = light(e.closest("svg") ? style.fill : style.color), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 90)];
  }
  return least;
})()
"""
"""The least contrast of any text, as WCAG 2 reckons it."""
UNIQUE = (
    "((all) => new Set(all).size === all.length)([...document.querySelectorAll('[id]')].map((e) => e.id))"
)
WITH_TABLE = (
    "[...document.querySelectorAll('figure svg')].every((s) => s.parentElement.querySelector('table'))"
)
FOCUSED = """((e) => [e.tagName, e.textContent.trim().slice(0, 30), getComputedStyle(e).outlineStyle,
  e.getAttribute("href") || e.id])(document.activeElement)"""
TICKS = "[...document.querySelector('svg').querySelectorAll('.tick')].map((e) => e.textContent)"
MOVING = """[...document.querySelectorAll("*")].map((e) => getComputedStyle(e)).filter((s) =>
  s.transitionDuration !== "0s" || s.animationName !== "none" || s.scrollBehavior === "smooth").length"""
FIRST = "document.body.innerText.replace('Skip to the content', '').trim()"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.browser() as found:
        yield found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    results = tmp_path_factory.mktemp("results")
    put(results, "oss2.json", changes())
    put(results, "week.json", REPORT)
    with (
        sample.past_of(SYSTEM) as kept,
        sample.served(SYSTEM, sample.history(), results, kept=kept) as (found, _),
    ):
        yield found


def tree(chromium: Browser) -> list[tuple[str, str, dict[str, Any]]]:
    """(role, name, properties) of all that a screen reader is told of."""
    chromium.call("Accessibility.enable")
    nodes = chromium.call("Accessibility.getFullAXTree")["nodes"]
    return [
        (
            node["role"]["value"],
            node.get("name", {}).get("value", ""),
            {of["name"]: of["value"].get("value") for of in node.get("properties", [])},
        )
        for node in nodes
        if not node.get("ignored")
    ]


@pytest.mark.parametrize(("path", "dark"), [(path, n % 2 == 1) for n, path in enumerate(PAGES)])
def test_a_screen_reader_finds_its_way_and_every_text_can_be_read(
    chromium: Browser, url: str, path: str, dark: bool
) -> None:
    del chromium.complaints[:]
    chromium.view(360, 740, phone=True, dark=dark)
    chromium.open(f"{url}{path}")
    chromium.ask("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert not chromium.ask("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    ratio, where = chromium.ask(RATIO)
    assert ratio >= 4.5, where
    found = tree(chromium)
    roles = [role for role, _, _ in found]
    assert [roles.count(role) for role in ("main", "banner", "contentinfo")] == [1, 1, 1]
    needed = ("link", "radio", "image", "table", "region", "navigation", "DisclosureTriangle")
    nameless = [role for role, name, _ in found if role in needed and not name.strip()]
    assert nameless == []
    levels = [int(of["level"]) for role, _, of in found if role == "heading"]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    # Beside each chart all that it shows is a table.
    assert chromium.ask(WITH_TABLE)
    assert chromium.ask(UNIQUE)
    assert chromium.complaints == []


def test_what_colour_says_the_words_beside_it_say(chromium: Browser, url: str) -> None:
    chromium.open(f"{url}/")
    rows = [name for role, name, _ in tree(chromium) if role == "StaticText" and "OST 10 dead" in name]
    assert rows == ["53–72 %, 1003.4 MiB/s, OST 10 dead"]


def test_all_is_reached_by_tab_and_one_sees_where_one_is(chromium: Browser, url: str) -> None:
    chromium.view(1200, 900)
    chromium.open(f"{url}/")
    chromium.press("Tab", 9)
    first = chromium.ask(FOCUSED)
    assert first[1] == "Skip to the content" and first[2] == "solid"
    visited = [first]
    while (now := chromium.ask(FOCUSED))[0] != "BODY" and len(visited) < 200:
        visited.append(now)
        chromium.press("Tab", 9)
        if chromium.ask("document.activeElement === document.body"):
            break
    assert all(outline == "solid" for _, _, outline, _ in visited), visited
    wanted = set(chromium.ask("[...document.querySelectorAll('a[href]')].map((e) => e.getAttribute('href'))"))
    assert wanted <= {to for _, _, _, to in visited}
    assert {f"servers/oss{number}" for number in range(1, 8)} <= wanted
    chromium.open(f"{url}/")
    chromium.press("Tab", 9)
    chromium.press("Enter", 13)
    assert chromium.ask("document.activeElement.id") == "content"
    chromium.press("Tab", 9)
    assert chromium.ask("document.activeElement.closest('.headline') !== null"), (
        "the first problem comes next"
    )


def test_one_goes_to_an_ost_and_back(chromium: Browser, url: str) -> None:
    chromium.view(1200, 900)
    chromium.open(f"{url}/")
    chromium.ask("document.querySelector('.headline a').focus()")
    chromium.press("Enter", 13)
    settled(chromium, "location.pathname === '/osts/scratch-OST000a' && !!document.querySelector('main')")
    assert chromium.ask("document.querySelector('h1').textContent") == "scratch-OST000a"
    chromium.ask("document.querySelector('.headline a').click()")
    settled(chromium, "location.pathname === '/servers/oss3'")
    chromium.ask("history.go(-2)")
    settled(chromium, "location.pathname === '/' && document.title === 'tarazu'")
    # By mouse a cell of the map leads there too.
    chromium.ask("document.querySelectorAll('.map i')[17].click()")
    settled(chromium, "location.pathname === '/osts/scratch-OST0011'")


def settled(chromium: Browser, what: str) -> None:
    deadline = time.monotonic() + browser.PATIENCE_S
    while True:
        try:
            if chromium.ask(what):
                return
        except AssertionError:  # it is on its way
            pass
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("zone", "shown", "offset", "tick"),
    [
        ("Asia/Kolkata", "2025-11-22 13:56:40", "UTC+05:30", "00:00"),
        ("America/St_Johns", "2025-11-22 04:56:40", "UTC−03:30", "00:00"),
        ("UTC", "2025-11-22 08:26:40", "UTC+00:00", "00:00"),
    ],
)
def test_times_are_in_the_browser_s_zone_and_utc_is_their_title(
    chromium: Browser, url: str, zone: str, shown: str, offset: str, tick: str
) -> None:
    chromium.call("Emulation.setTimezoneOverride", timezoneId=zone)
    try:
        chromium.open(f"{url}/osts/scratch-OST0001")
        said = "((e) => [e.textContent, e.title, e.dateTime])(document.querySelector('.note time'))"
        assert chromium.ask(said) == [shown, "2025-11-22 08:26:40 UTC", "2025-11-22T08:26:40Z"]
        line = chromium.ask("document.querySelector('.zone').textContent")
        assert offset in line and "point at one for UTC" in line
        ticks = chromium.ask(TICKS)
        assert tick in ticks and all(each.endswith(":00") for each in ticks) and len(ticks) >= 5
    finally:
        chromium.call("Emulation.setTimezoneOverride", timezoneId="")


def test_nothing_moves(chromium: Browser, url: str) -> None:
    """So who wants reduced motion has it."""
    chromium.open(f"{url}/")
    assert chromium.ask("document.getAnimations().length") == 0
    assert chromium.ask(MOVING) == 0


def test_a_page_that_renews_itself_keeps_the_place_and_says_what_is_new(chromium: Browser) -> None:
    with sample.served(SYSTEM, sample.history(), every_s=0.1) as (url, pages):
        chromium.open(f"{url}/")
        chromium.ask("document.querySelector('.map a[href=\"servers/oss4\"]').focus()")
        chromium.ask("(document.querySelectorAll('details')[1].open = true)")
        chromium.ask("(window.before = document.querySelector('main'), 0)")
        settled(chromium, "document.querySelector('main') !== window.before")
        assert chromium.ask("document.activeElement.getAttribute('href')") == "servers/oss4"
        assert chromium.ask("[...document.querySelectorAll('details')].map((e) => e.open).indexOf(true)") == 1
        assert chromium.ask("document.getElementById('spoken').textContent") == ""
        pages.show(sample.system(2, 2), {})
        settled(chromium, "document.getElementById('spoken').textContent.includes('problem')")
    settled(chromium, "!document.getElementById('stale').hidden")
    said = chromium.ask("document.getElementById('stale').textContent")
    assert said.startswith("tarazu-page has not answered since 20") and "older than that" in said
    assert chromium.ask(FIRST).startswith("tarazu-page has not answered since"), "before all else"
    chromium.open("about:blank")


@pytest.mark.parametrize(("path", "dark"), [(path, n % 2 == 1) for n, path in enumerate(PAGES)])
def test_axe_has_nothing_against_it(chromium: Browser, url: str, path: str, dark: bool) -> None:
    chromium.view(1200, 900, dark=dark)
    chromium.open(f"{url}{path}")
    chromium.ask("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    chromium.ask(f"{AXE.read_text()}; 0")
    found = chromium.ask(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 120)]))"
    )
    assert found == []
