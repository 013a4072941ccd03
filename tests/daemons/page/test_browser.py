"""The page in a real browser: nothing else is loaded, nothing complains, on a phone, in the dark, without a script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import browser
from tests.browser import Browser
from tests.daemons.page import sample

if not browser.program():
    pytest.skip("no Chromium is installed", allow_module_level=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.browser() as found:
        yield found


WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
PAPER = "getComputedStyle(document.body).backgroundColor"
RATIO = """
(() => {
  const light = (c) => { const v = c.match(/[0-9.]+/g).slice(0, 3).map((x) => x / 255)
      .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const behind = (e) => { while (e) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c) && c !== "transparent") return c; e = e.parentElement; } return "rgb(255,255,255)"; };
  let least = [99, ""];
  for (const e of document.querySelectorAll("p, td, th, dt, dd, small, a, i, b, h1, h2, span, caption, label")) {
    if (!e.innerText || !e.offsetParent) continue;
    const a = light(getComputedStyle(e).color), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 90)];
  }
  return least;
})()
"""
"""The least contrast of any text, as WCAG 2 reckons it."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_read_on_a_phone_and_on_a_desk(chromium: Browser, dark: bool) -> None:
    with sample.served(sample.system(7, 5), sample.history()) as (url, _):
        del chromium.requests[:], chromium.complaints[:]
        chromium.view(1280, 900, dark=dark)
        chromium.open(url)
        assert chromium.requests == [f"{url}/"] and chromium.complaints == []
        paper = chromium.ask(PAPER)
        assert (paper == "rgb(255, 255, 255)") != dark
        chromium.view(360, 740, phone=True, dark=dark)
        assert not chromium.ask(WIDER)
        ratio, where = chromium.ask(RATIO)
        assert ratio >= 4.5, where
        # Another measure colours the same cells, without a script.
        cell = "getComputedStyle(document.querySelector('.map i:nth-child(2)')).backgroundColor"
        fill = chromium.ask(cell)
        assert chromium.ask(f"document.querySelector('.m-load').click(), {cell}") != fill


def test_3600_osts_fit_and_each_colour_has_words(chromium: Browser) -> None:
    with sample.served(sample.system(450, 8), sample.history()) as (url, _):
        chromium.view(360, 740, phone=True)
        chromium.open(url)
        assert not chromium.ask(WIDER) and chromium.ask("document.querySelectorAll('.map i').length") == 3600
        rows = chromium.ask(
            "[...document.querySelectorAll('.cells')].map((e) => e.getAttribute('aria-label'))"
        )
        assert len(rows) == 450 and all("%" in row for row in rows) and "OST 9 sick" in rows[1]
        letters = chromium.ask("[...document.querySelectorAll('.map i')].map((e) => e.innerText).join('')")
        assert sorted(letters) == ["D", "F", "S", "l"]
        assert chromium.ask("document.documentElement.scrollHeight") < 12_000


def test_the_script_renews_the_page_and_says_when_it_cannot(chromium: Browser) -> None:
    with sample.served(sample.system(2, 2), {}, every_s=0.1) as (url, pages):
        del chromium.requests[:], chromium.complaints[:]
        chromium.open(url)
        chromium.ask("document.querySelector('.m-speed').click()")
        pages.show(sample.seen(sample.status(2, 4, fs_name=sample.HOSTILE)), {})
        renewed = "document.querySelectorAll('.map i').length"
        wait = "new Promise((done) => setTimeout(done, 50))"
        for _ in range(100):
            if chromium.ask(renewed) == 8:
                break
            chromium.ask(wait)
        assert chromium.ask("document.querySelectorAll('.map i').length") == 8
        assert chromium.ask("document.querySelector('.m-speed').checked")
        assert chromium.ask("document.querySelectorAll('script').length") == 1
        assert set(chromium.requests) == {f"{url}/"} and chromium.complaints == []
    for _ in range(100):
        if not chromium.ask("document.getElementById('stale').hidden"):
            break
        chromium.ask(wait)
    assert chromium.ask("document.getElementById('stale').checkVisibility()")
    assert chromium.ask(renewed) == 8
    chromium.open("about:blank")


def test_without_a_script_all_of_it_is_there(chromium: Browser) -> None:
    with sample.served(sample.system(2, 2), {}, every_s=10) as (url, _):
        chromium.scripts(False)
        chromium.open(url)
        chromium.scripts(True)
        text = chromium.ask("document.body.innerText")
        assert "OSTs by server" in text and "Allocations" in text and "cannot be had" not in text


def test_the_browser_runs_nothing_but_the_page_s_own_script(chromium: Browser) -> None:
    with sample.served(sample.system(1, 1), {}) as (url, _):
        chromium.open(url)
        del chromium.complaints[:], chromium.requests[:]
        chromium.ask(
            "(() => { const s = document.createElement('script'); s.textContent = 'window.evil = 1';"
            "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x'; })()"
        )
        chromium.ask("fetch('http://127.0.0.1:9/y').catch(() => 0)")
        assert chromium.ask("window.evil") is None
        assert len([line for line in chromium.complaints if "Content Security Policy" in line]) >= 3
