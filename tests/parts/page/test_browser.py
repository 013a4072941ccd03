"""The page in a real browser: nothing else is loaded, nothing complains, on a phone, in the dark, without a script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import browser
from tests.browser import Browser
from tests.parts.page import sample

if not browser.program():
    pytest.skip("no Chromium is installed", allow_module_level=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.browser() as found:
        yield found


WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
PAPER = "getComputedStyle(document.body).backgroundColor"


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
        # Another measure colours the same cells, without a script.
        cell = "getComputedStyle(document.querySelector('.map i:nth-child(2)')).backgroundColor"
        fill = chromium.ask(cell)
        assert chromium.ask(f"document.querySelector('.m-load').click(), {cell}") != fill


def test_3600_osts_fit_and_each_colour_has_words(chromium: Browser) -> None:
    with sample.served(sample.system(450, 8), sample.history()) as (url, _):
        chromium.view(360, 740, phone=True)
        chromium.open(url)
        assert not chromium.ask(WIDER)
        drawn = "[...document.querySelectorAll('.by-fill path')].map((p) => p.getAttribute('d')).join('')"
        assert chromium.ask(f"({drawn}).split('M').length - 1") == 3600
        rows = chromium.ask("[...document.querySelectorAll('.block a')].map((e) => e.ariaLabel)")
        assert len(rows) == 450 and all("%" in row for row in rows) and "OST 9 sick" in rows[1]
        letters = chromium.ask(
            "[...document.querySelectorAll('.mark text')].map((e) => e.textContent).join('')"
        )
        assert sorted(letters) == ["D", "F", "S", "l"]
        shown = """[...document.querySelectorAll(".block g[class^=by]")].filter((e) =>
            getComputedStyle(e).display !== "none").map((e) => e.getAttribute("class"))"""
        assert chromium.ask(shown) == 18 * ["by-fill"]
        assert chromium.ask(f"document.querySelector('.m-load').click(), {shown}") == 18 * ["by-load"]
        # A name stands beside its own line, and a place in it is its OST.
        box = "document.querySelectorAll('.block svg')[1].getBoundingClientRect()"
        name = "document.querySelectorAll('.block a')[26]"
        assert chromium.ask(f"{name}.textContent") == "oss027"
        assert 15 <= chromium.ask(f"{name}.getBoundingClientRect().top - {box}.top") < 18
        chromium.ask(f"{name}.scrollIntoView()")
        x, y = chromium.ask(f"((box) => [box.left + 14 * 3 + 5, box.top + 20])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            chromium.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        for _ in range(200):
            if chromium.ask("location.pathname") != "/":
                break
            chromium.ask("new Promise((done) => setTimeout(done, 50))")
        assert chromium.ask("location.pathname") == f"/osts/scratch-OST{26 * 8 + 3:04x}"
        chromium.open(url)
        assert chromium.ask("document.documentElement.scrollHeight") < 12_000
    # Servers of many OSTs each: none of the cells is cut off.
    with sample.served(sample.system(9, 60), {}) as (url, _):
        chromium.open(url)
        assert not chromium.ask(WIDER)
        cut = "[...document.querySelectorAll('.map i')].filter((e) => e.getBoundingClientRect().bottom > "
        assert chromium.ask(f"{cut} e.closest('.row').getBoundingClientRect().bottom + 1).length") == 0


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
