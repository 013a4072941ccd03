"""The page's HTTP: read only, bounded, and nothing that others chose is more than text in it."""

from __future__ import annotations

import gzip
import http.client
import json
import math
import re
import socket
import urllib.request
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tarazu.parts.page import server as http_page
from tarazu.parts.page.pages import Pages
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.server import POLICY
from tests.daemons.conftest import PATIENCE_S
from tests.parts.page import sample

Served = tuple[str, Pages]


@pytest.fixture
def served() -> Iterator[Served]:
    with sample.served(sample.system(4, 3)) as found:
        yield found


def ask(url: str, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_it_is_read_only_and_says_so(served: Served) -> None:
    url, _ = served
    status, headers, body = ask(url)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Content-Security-Policy"] == POLICY and "unsafe" not in POLICY and "*" not in POLICY
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    head = ask(url, method="HEAD")
    assert (head[0], head[2], head[1]["Content-Length"]) == (200, b"", str(len(body)))
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, headers, _ = ask(url, method=method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD") and "Content-Security-Policy" in headers
    for path in (
        "/nothing", "/results/", "/results/../etc/passwd", "/results/%2e%2e", "/osts/", "/osts/none", "/osts/%",
        "/osts/scratch-OST0000/", "/servers/", "/servers/none", "/servers/%2e%2e%2f", "/osts/%ff%00", "/pages.py",
        "/templates/page.css", "/uplot/LICENSE",
    ):  # fmt: skip
        assert ask(url, path)[0] == 404, path
    assert b"http://" not in body and b"https://" not in body
    own = [name.decode() for name in re.findall(rb'(?:src|href)="((?:page|uplot)\.\w+)"', body)]
    assert sorted(own) == ["page.css", "page.js", "uplot.css", "uplot.js"]
    for name in own:
        status, headers, _ = ask(url, f"/{name}")
        kind = "text/css" if name.endswith("css") else "text/javascript"
        assert status == 200 and headers["Content-Type"] == f"{kind}; charset=utf-8"


def test_it_is_packed_for_who_can_unpack(served: Served) -> None:
    url, _ = served
    plain = ask(url)[2]
    status, headers, packed = ask(url, **{"Accept-Encoding": "br, GZIP;q=0.5"})
    assert (status, headers["Content-Encoding"], gzip.decompress(packed)) == (200, "gzip", plain)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:5780", 200),
        ("127.0.0.1", 200),
        ("[::1]:5780", 200),
        ("evil.example:5780", 421),
        ("localhost.evil.example", 421),
    ],
)
def test_on_loopback_only_the_names_of_this_node_are_answered(served: Served, host: str, status: int) -> None:
    assert ask(served[0], Host=host)[0] == status


def test_the_json_holds_all_that_is_shown(served: Served) -> None:
    url, _ = served
    with urllib.request.urlopen(f"{url}/status.json") as answer:
        found = json.load(answer)
    assert len(found["overview"]["targets"]) == 12 and found["allocations"]["requests"]["promises"] == 41
    assert {t["verdict"] for t in found["overview"]["targets"]} >= {"ok", "sick", "dead"}


def test_names_of_servers_and_reasons_are_text(served: Served) -> None:
    url, pages = served
    of = sample.status(2, 3, fs_name=sample.HOSTILE, oss=sample.HOSTILE)
    of["osses"][f"{sample.HOSTILE}1"]["unreadable"] = [sample.HOSTILE]
    of["osses"][f"{sample.HOSTILE}2"]["stale"] = True
    for ost in of["file_systems"][sample.HOSTILE]["osts"]:
        ost["health"] = f"sick: {sample.HOSTILE}"
    found = sample.seen(of)
    pages.charts = {
        sample.HOSTILE: [{"title": sample.HOSTILE, "unit": "", "times": [1], "curves": {sample.HOSTILE: [1]}}]
    }
    work = {**found.work, "policy": sample.HOSTILE}
    pages.show(SystemState(found.overview, work, sample.HOSTILE, 1.0))
    paths = ("/", "/all", f"/servers/{quote(sample.HOSTILE + '1', safe='')}")
    for path in (*paths, f"/osts/{quote(sample.HOSTILE + '-OST0000', safe='')}"):
        status, _, body = ask(url, path)
        page = body.decode()
        assert status == 200, path
        assert "&lt;script&gt;alert(1)" in page
        assert len(re.findall("<script", page)) == 2 and "\x1b" not in page
        assert not re.search(r"=[^\"> ]*[\"'][^>]*alert\(1\)[^>]*onerror", page)
    assert json.loads(ask(url, "/status.json")[2])["overview"]["targets"][0]["fs_name"] == sample.HOSTILE


@pytest.mark.parametrize("path", ["/", "/all", "/status.json"])
def test_before_mdsd_has_answered_the_page_says_so(served: Served, path: str) -> None:
    url, pages = served
    pages.show(SystemState(problem="no answer <b>", since_s=sample.NOW_S - 600))
    status, _, body = ask(url, path)
    assert status == 200 and (b"no answer &lt;b&gt;" in body or b'"no answer <b>"' in body)
    if path == "/":
        assert b"mdsd has not answered for 10 min" in body and b"Nothing is known yet" in body


def test_the_site_s_stop_and_old_figures_are_said_first(served: Served) -> None:
    url, pages = served
    of = sample.seen({**sample.status(1, 2), "stopped": "stopped by root: maintenance"}, sample.NOW_S - 900)
    pages.show(SystemState(of.overview, of.work, "timeout", sample.NOW_S - 890))
    page = ask(url)[2].decode()
    assert "switched off on the whole site</b>: stopped by root: maintenance" in page
    assert 'class="note old"' in page and "What follows is of 15 min ago" in page


def test_absurd_figures_are_shown_and_cost_no_page(served: Served) -> None:
    _, pages = served
    of = sample.status(1, 3)
    osts = of["file_systems"]["scratch"]["osts"]
    osts[0].update(total_bytes=2**63 - 1, free_bytes=0, writing_bytes_per_s=1e300, relative_speed=-1.0)
    osts[1].update(relative_speed=1e308, writing_bytes_per_s=1e308, reading_bytes_per_s=1e308)
    osts[1].update(total_bytes=0, free_bytes=2**63 - 1, promised_bytes=-(2**62), index=2**62)
    osts[2].update(health="sick: slow", relative_speed=math.nan, latency_s=math.inf)
    of["file_systems"]["scratch"]["health"] = {"2": {"health": "sick", "why": "", "since_s": 1e300}}
    pages.show(sample.seen(of))
    for path in ("/", "/all", "/status.json", "/osts/scratch-OST0000", "/servers/oss1"):
        assert ask(served[0], path)[0] == 200, path
    assert b"1e+300" in ask(served[0])[2]


def test_a_page_that_cannot_be_made_is_an_error_and_a_line(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tarazu.parts.page.pages.problems", lambda *_: 1 / 0)
    status, headers, body = ask(served[0])
    assert status == 500 and headers["Content-Security-Policy"] == POLICY and b"journalctl" in body
    assert "/' cannot be shown" in caplog.text and "ZeroDivisionError" in caplog.text


def test_those_who_say_nothing_do_not_keep_others_out(served: Served) -> None:
    url, _ = served
    host, _, port = url.removeprefix("http://").partition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(http_page.CONVERSATIONS - 1)]
    assert ask(url)[0] == 200
    more = [socket.create_connection((host, int(port))) for _ in range(4)]
    more[-1].settimeout(PATIENCE_S)
    assert more[-1].recv(1) == b""  # no room: closed at once
    for one in (*silent, *more):
        one.close()


def test_it_is_made_once_for_all_who_ask(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    url, pages = served
    made = []
    monkeypatch.setattr("tarazu.parts.page.pages.problems", lambda *_: made.append(1) or [])
    pages.show(sample.system(1, 1))
    assert len({ask(url)[2] for _ in range(3)}) == 1 and len(made) == 1


def test_thousands_of_osts_are_a_page_of_bounded_size() -> None:
    with sample.served(sample.system(450, 8)) as (_, pages):
        for path, most in (("/", 150_000), ("/all", 200_000)):
            body = pages.get(path)
            assert body and body.packed and len(body.packed) < most, path


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"\0\xff" * 50 + b"\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"404"),
        (b"GET http://evil.example/ HTTP/1.1\r\n\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: \xff,,;;\r\n\r\n", b"421"),
        (b"POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\nx", b"405"),
        (b"EVIL<script> / HTTP/1.1\r\n\r\n", b"501"),
    ],
    ids=["noise", "version", "long", "headers", "bytes", "absolute", "encodings", "body", "method"],
)
def test_nonsense_is_answered_with_its_status(served: Served, said: bytes, status: bytes) -> None:
    url, _ = served
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(said)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    line, _, rest = answer.partition(b"\r\n")
    assert status in line or status in rest[:400], answer[:300]
    assert b"<script>" not in answer.partition(b"\r\n\r\n")[2]
    assert ask(url)[0] == 200
