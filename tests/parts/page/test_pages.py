"""Each OST and each server has a page of its own: how it is, since when, its history, who loads it, what is set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from urllib.request import urlopen

import msgspec
import pytest

from tarazu.ost_state import Verdict
from tarazu.parts.changes.here import Listed
from tests.parts.page import sample
from tests.parts.page.test_results import put

SYSTEM = sample.system(7, 5)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    results = tmp_path_factory.mktemp("results")
    drained = Listed(
        agent="parameters", id="ab12", lever="drain", target="scratch-OST0006", state="set",
        wanted={"degraded": "1"}, before={"degraded": "0"}, why="0.31 of its peers' speed", since_s=sample.NOW_S - 900,
    )  # fmt: skip
    other = Listed(
        agent="pools",
        id="cd34",
        lever="pool",
        target="good",
        state="proposed",
        wanted={"scratch-OST0011": ""},
    )
    put(results, "oss2.json", msgspec.to_builtins({"agents": [], "changes": [drained]}))
    put(results, "mgs.json", msgspec.to_builtins({"agents": [], "changes": [other]}))
    with (
        sample.history_of(SYSTEM) as kept,
        sample.served(SYSTEM, results, kept=kept) as (found, _),
    ):
        yield found


def text(url: str, path: str) -> str:
    """Its words, with a space for each row of spaces and marks."""
    with urlopen(f"{url}{path}") as answer:
        page = answer.read().decode()
    return " ".join(unescape(re.sub(r"<[^>]*>", "", page.partition("<main")[2])).split())


def test_an_ost_says_what_it_is_since_when_and_what_mends_it(url: str) -> None:
    page = text(url, "/osts/scratch-OST000a")
    assert "scratch-OST000a on oss3 is dead since 2025-11-22 08:03:20 UTC: osp state is DISCONN." in page
    assert "What mends it: lctl get_param osp.scratch-OST000a-osc-MDT*.import on the MDS" in page
    assert "scratch-OST0001 on oss1 is well." in text(url, "/osts/scratch-OST0001")


def test_its_history_is_data_for_curves_with_gaps(url: str) -> None:
    with urlopen(f"{url}/osts/scratch-OST0000") as answer:
        page = answer.read().decode()
    drawn = {
        (of := json.loads(unescape(data)))["title"]: of for data in re.findall(r'data-chart="([^"]*)"', page)
    }
    kinds = ("Load", "Space", "Latency", "State")
    assert set(drawn) == {f"{kind} over the last {days}" for kind in kinds for days in ("day", "30 days")}
    moved = drawn["Load over the last day"]["curves"]["moved"]
    assert len(moved) == len(drawn["Load over the last day"]["times"]) > 120 and moved.count(None) == 1
    with urlopen(f"{url}/osts/scratch-OST000a") as answer:
        page = unescape(answer.read().decode())
    assert f'"gravest": [{Verdict.DEAD.weight}, ' in page
    with urlopen(f"{url}/") as answer:
        page = unescape(answer.read().decode())
    assert '"Imbalance over the last 30 days"' in page and '"of load": [' in page


def test_who_loads_it_is_said_as_far_as_it_is_known(url: str) -> None:
    page = text(url, "/osts/scratch-OST0001").partition("Who loads it")[2]
    assert page.startswith(" No job is named by its server now (jobid_var). On oss1, as root, ")
    assert "lctl get_param obdfilter.scratch-OST0001.job_stats" in page
    page = text(url, "/servers/oss3").partition("Who loads it")[2]
    assert "wrf.4711" in page and "lctl get_param obd" not in page


def test_what_is_set_or_proposed_for_it_is_shown(url: str) -> None:
    assert "1 (was 0)" in (page := text(url, "/osts/scratch-OST0006")) and "oss2" in page
    assert "proposed" in text(url, "/osts/scratch-OST0011").partition("What is set or proposed")[2]
    page = text(url, "/osts/scratch-OST0000").partition("What is set or proposed")[2]
    assert "Nothing that this page may read names it." in page
    assert "scratch-OST0006" in text(url, "/servers/oss2").partition("What is set or proposed")[2]


def test_a_server_says_what_is_wrong_with_it_and_its_osts(url: str) -> None:
    page = text(url, "/servers/oss2")
    assert "oss2 has 2 problems." in page and "scratch-OST0006 is sick: " in page
    assert "Load over the last day" in page and "obdfilter.*.job_stats" in page
    assert "oss7 is well." in text(url, "/servers/oss7")
    # Of an OST that its server cannot mend the server is told, too.
    page = text(url, "/servers/oss3")
    assert "oss3 has 1 problem." in page and "scratch-OST000a is dead: osp state is DISCONN" in page


def test_a_server_that_is_silent_says_since_when() -> None:
    of = sample.status(1, 2)
    of["osses"]["oss1"].update(stale=True, age_s=600.0)
    with sample.served(sample.seen(of)) as (url, _):
        page = text(url, "/servers/oss1")
        assert "oss1 is silent since 2025-11-22 08:16:40 UTC." in page
        assert "This page keeps no history now." in page and "silent" in text(url, "/all")


def test_a_chart_of_which_nothing_is_known_says_so() -> None:
    new = sample.seen(sample.status(1, 50))
    with sample.history_of(new) as kept, sample.served(new, kept=kept) as (url, _):
        assert text(url, "/osts/scratch-OST0031").count("nothing yet") == 8


def test_the_first_page_says_what_is(url: str) -> None:
    page = text(url, "/")
    assert "4 problems: scratch-OST000a is dead; scratch-OST0011 is full; scratch-OST0006 is" in page
    for said in (
        "35on 7 servers",
        "OST 10 dead",
        "9120 allocated, ",
        "41 stand with promises",
        "oss2 of 2001",
    ):
        assert said in page, said
