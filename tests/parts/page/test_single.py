"""Each OST and each server has a page of its own: how it is, since when, its history, who loads it, what is set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import msgspec
import pytest

from tarazu.daemons.changes.here import Listed
from tarazu.parts.page.markup import Markup, plain
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
        sample.past_of(SYSTEM) as kept,
        sample.served(SYSTEM, sample.history(), results, kept=kept) as (found, _),
    ):
        yield found


def text(url: str, path: str) -> str:
    with urlopen(f"{url}{path}") as answer:
        page = answer.read().decode()
    return plain(Markup(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)))


def test_an_ost_says_what_it_is_since_when_and_what_mends_it(url: str) -> None:
    page = text(url, "/osts/scratch-OST000a")
    assert "scratch-OST000a on oss3 is dead since 2025-11-22 08:03:20 UTC: osp state is DISCONN." in page
    assert "What mends it: lctl get_param osp.scratch-OST000a-osc-MDT*.import on the MDS" in page
    assert "scratch-OST0001 on oss1 is well." in text(url, "/osts/scratch-OST0001")


def test_its_history_is_drawn_and_told(url: str) -> None:
    page = text(url, "/osts/scratch-OST0000")
    for what in ("Space used", "Load", "Latency"):
        for period in ("the last day", "the last 30 days"):
            assert f"{what} over {period}: " in page
    assert re.search(r"was ?became", page) and "slow" in page.partition("What happened to it")[2][:400]


def test_who_loads_it_is_said_as_far_as_it_is_known(url: str) -> None:
    page = text(url, "/osts/scratch-OST0001").partition("Who loads it")[2]
    assert re.match(r"It moves [0-9.]+ MiB/s now, [0-9.]+% of all that scratch moves; ", page)
    assert "No job is named by its server" in page
    assert "lctl get_param obdfilter.scratch-OST0001.job_stats" in page
    page = text(url, "/servers/oss3").partition("Who loads it")[2]
    assert re.search(r"wrf\.4711 ?[0-9.]+ MiB/s ?12", page) and "lctl get_param" not in page


def test_what_is_set_or_proposed_for_it_is_shown(url: str) -> None:
    assert "1 (was 0)" in (page := text(url, "/osts/scratch-OST0006")) and "oss2" in page
    assert "proposed" in text(url, "/osts/scratch-OST0011").partition("What is set or proposed")[2]
    page = text(url, "/osts/scratch-OST0000").partition("What is set or proposed")[2]
    assert (
        "Nothing that this page may read names it." in page
        and "The list of oss1 is not among the results" in page
    )
    assert "scratch-OST0006" in text(url, "/servers/oss2").partition("What is set or proposed")[2]


def test_a_server_says_what_is_wrong_with_it_and_its_osts(url: str) -> None:
    page = text(url, "/servers/oss2")
    assert "oss2 has 2 problems: scratch-OST0006 is sick; scratch-OST0005 is slow." in page
    assert "Load (sum) over the last day" in page and "obdfilter.*.job_stats" in page
    assert "oss7 is well, and so are its 5 OSTs." in text(url, "/servers/oss7")
    # Of an OST that its server cannot mend the server is told, too.
    assert "oss3 has 1 problem: scratch-OST000a is dead." in text(url, "/servers/oss3")


def test_a_server_that_is_silent_says_since_when() -> None:
    of = sample.status(1, 2)
    of["osses"]["oss1"].update(stale=True, age_s=600.0)
    with sample.served(sample.seen(of), {}) as (url, _):
        page = text(url, "/servers/oss1")
        assert (
            "oss1 is silent since 2025-11-22 08:16:40 UTC." in page
            and "This page keeps no history now." in page
        )
        assert "silent" in text(url, "/servers")


def test_an_empty_chart_says_from_when_on_it_will_show_something(tmp_path: Path) -> None:
    new = sample.seen(sample.status(1, 50))
    with sample.past_of(new) as kept, sample.served(new, {}, kept=kept) as (url, _):
        page = text(url, "/osts/scratch-OST0031")
        assert page.count("nothing yet. The first point comes at 2025-11-22 08:30:00 UTC.") == 6
        assert "Nothing has been noted yet. The first point comes by 2025-11-22 08:28:00 UTC." in text(
            url, "/"
        )
