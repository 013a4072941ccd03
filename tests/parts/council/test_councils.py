"""A council for each client: what one does is no vote for another, and the group's servers are not asked."""

from __future__ import annotations

import random

import msgspec
import pytest

from tarazu.errors import BadInput
from tarazu.parts.council import councils as module
from tarazu.parts.council.council import Council, Decision
from tarazu.parts.council.councils import Councils
from tarazu.parts.council.pattern import Direction, Observation

LEVERS = {"osc_rpcs": ("1024x8", "16x128", "8x32"), "nrs": ("fifo", "crrn 8")}


def reads(mb_s: float, in_flight: float = 0.0) -> Observation:
    """Of 1 MiB."""
    calls = Direction(int(mb_s * 1e6), max(1, int(mb_s)))
    return Observation(1.0, read=calls, demand=in_flight)


def random_reads(pair: str) -> Observation:
    """Gain by small RPCs: seen on a real client."""
    rates = {"1024x8": 174, "16x128": 305, "8x32": 322}
    return reads(rates[pair])


def streaming(pair: str) -> Observation:
    """Loses by them."""
    rates = {"1024x8": 463, "16x128": 300, "8x32": 250}
    return reads(rates[pair])


class Site:
    def __init__(self) -> None:
        self.councils = Councils(LEVERS)
        self.now = 0.0

    def seconds(self, count: int, **hosts: object) -> dict[str, float]:
        """Host → what it does; the mean of what each moved, bytes a second."""
        moved = dict.fromkeys(hosts, 0.0)
        for _ in range(count):
            self.now += 1.0
            for host, does in hosts.items():
                pair = self.pair(host)
                seen = does(pair)  # type: ignore[operator]
                moved[host] += seen.bytes_per_s / count
                why, _ = self.councils.receive(host, "client", seen, {"osc_rpcs": pair}, self.now)
                assert why == ""
        return moved

    def pair(self, host: str) -> str:
        return self.councils.of(host).values.get("osc_rpcs", "1024x8")


def test_each_client_has_what_serves_it() -> None:
    site = Site()
    site.seconds(400, one=random_reads, other=streaming)
    assert site.pair("one") == "8x32" and site.pair("other") == "1024x8"
    assert not site.councils.group._hosts, "the group's council has not heard of them"
    assert {row["node"] for row in site.councils.explain()} == {"one", "other"}
    assert site.councils.in_force() == {"osc_rpcs": {"8x32": 1, "1024x8": 1}}


def test_where_the_default_is_best_next_to_nothing_is_lost() -> None:
    """But for the seconds until what was tried is taken back."""
    site = Site()
    moved = site.seconds(300, one=streaming)
    assert moved["one"] > 0.99 * 463e6
    assert site.councils.sum("taken_back") > 0


def test_servers_decide_together_as_before() -> None:
    site = Site()
    for second in range(100):
        for host in ("oss1", "oss2"):
            value = site.councils.of(host).values.get("nrs", "fifo")
            seen = reads(100 if value == "fifo" else 200, 8)
            site.councils.receive(host, "oss", seen, {"nrs": value}, float(second))
            site.councils.group.decide(float(second))
    assert site.councils.of("oss1").values == site.councils.of("oss2").values == {"nrs": "crrn 8"}
    assert not site.councils.clients


def test_a_server_that_mounts_is_told_nothing_of_clients_parameters() -> None:
    """Its I/O is that of its targets."""
    site = Site()
    for second in range(200):
        in_force = {"osc_rpcs": "1024x8", "nrs": site.councils.of("oss1").values.get("nrs", "fifo")}
        site.councils.receive("oss1", "oss", reads(100, 8), in_force, float(second))
        site.councils.group.decide(float(second))
        assert "osc_rpcs" not in site.councils.of("oss1").values
    assert site.councils.group.choices


def test_a_host_that_was_a_client_and_serves_now_is_told_what_servers_are() -> None:
    """The file system was mounted before its targets were."""
    site = Site()
    site.seconds(100, oss1=random_reads)
    assert "osc_rpcs" in site.councils.of("oss1").values
    site.councils.receive("oss1", "oss", None, {}, site.now)
    assert site.councils.of("oss1") is site.councils.group.decision
    assert b"oss1" not in site.councils.knowledge(whole=True)


def test_knowledge_of_before_each_client_had_a_council_sets_nothing_of_clients() -> None:
    """A group's council of an older version had decided clients' parameters for all."""
    old = Council(dict(LEVERS))
    old.decision = Decision({"osc_rpcs": "8x32", "nrs": "crrn 8"}, 7)
    site = Site()
    assert site.councils.restore(old.knowledge()) == ()
    assert site.councils.of("oss1").values == {"nrs": "crrn 8"}


def test_observe_takes_back_all_and_tells_each_a_later_generation() -> None:
    site = Site()
    site.seconds(100, one=random_reads)
    before = site.councils.of("one")
    assert before.values
    site.councils.set_mode("observe", site.now, "--undo")
    after = site.councils.of("one")
    assert after.values == {} and after.generation > before.generation


def test_knowledge_of_each_client_comes_back() -> None:
    site = Site()
    site.seconds(100, one=random_reads, other=streaming)
    data = site.councils.knowledge(whole=True)
    again = Site()
    assert again.councils.restore(data) == ()
    assert again.pair("one") == site.pair("one") != "1024x8"
    rows = {(row["node"], row["value"]): row["seen"] for row in again.councils.explain()}
    assert rows["one", site.pair("one")] > 5
    # A version that knows of no clients reads its own part of it.
    assert msgspec.json.decode(data)["format"] == 2 and again.councils.group.restore(data) == ()


@pytest.mark.parametrize("clients", [b'{"one": 3}', b"[]", b'{"one": {"format": 9}}'])
def test_what_is_no_knowledge_of_clients_is_refused(clients: bytes) -> None:
    site = Site()
    data = site.councils.knowledge().replace(b'"clients":{}', b'"clients":' + clients)
    with pytest.raises(BadInput):
        site.councils.restore(data)


def test_what_is_shown_fits_into_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many clients with many patterns it did not, and `tarazu change tune show` had no answer."""
    site = Site()
    site.seconds(20, one=streaming, two=streaming, three=streaming)
    assert [row["node"] for row in site.councils.explain()] == ["three"] * 3 + ["two"] * 3 + ["one"] * 3
    monkeypatch.setattr(module, "MOST_ROWS", 6)
    assert {row["node"] for row in site.councils.explain()} == {"two", "three"}


def test_there_are_as_many_clients_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_HOSTS", 2)
    site = Site()
    site.seconds(100, one=random_reads)
    site.seconds(1, two=streaming, three=streaming)
    assert list(site.councils.clients) == ["two", "three"]


def test_a_silent_client_is_no_longer_active_and_what_it_learned_stays() -> None:
    site = Site()
    site.seconds(100, one=random_reads)
    site.councils.silent("one")
    assert site.councils.sum("active") == 0 and site.councils.explain()


RPCS = {"max_rpcs_in_flight": ("4", "8", "32"), "max_pages_per_rpc": ("16", "64", "256", "1024")}
SPEEDS = {"16": 60.0, "64": 80.0, "256": 100.0, "512": 130.0, "1024": 120.0}
"""By pages; of RPCs in flight all are alike."""


class OneClient:
    """With two levers, and noise."""

    def __init__(self, speeds: dict[str, float] = SPEEDS, **own: str) -> None:
        self.speeds = speeds
        self.councils = Councils(RPCS, seed=3)
        self.own = own
        self.now = 0.0
        self.chance = random.Random(7)
        self.used: list[dict[str, str]] = []

    def seconds(self, count: int, patterns: tuple[int, ...] = (1,)) -> None:
        """Pattern 0 gains by few pages, all others lose by them."""
        for _ in range(count):
            self.now += 1.0
            in_force = {**self.own, **self.councils.of("one").values}
            self.used.append(in_force)
            number = patterns[int(self.now) % len(patterns)]
            speed = self.speeds[in_force["max_pages_per_rpc"]]
            moved = int((speed if number else 185.0 - speed) * 1e6 * self.chance.gauss(1.0, 0.05))
            calls = Direction(moved, max(4, moved >> (20 - number)))
            assert (
                self.councils.receive("one", "client", Observation(1.0, read=calls), in_force, self.now)[0]
                == ""
            )

    def had(self, lever: str) -> list[str]:
        return [each[lever] for each in self.used]


def test_the_first_decision_was_the_first_listed_value_whatever_the_client_had() -> None:
    """It was the measure of all others then, too."""
    speeds = {"16": 85.0, "64": 95.0, "256": 98.0, "1024": 100.0}
    client = OneClient(speeds, max_rpcs_in_flight="8", max_pages_per_rpc="1024")
    client.seconds(40)
    assert set(client.had("max_pages_per_rpc")[:20]) == {"1024"}
    assert set(client.had("max_rpcs_in_flight")[:20]) == {"8"}
    client.seconds(360)
    assert client.had("max_pages_per_rpc").count("1024") > 330


def test_a_value_that_is_not_listed_was_lost_though_it_was_the_best() -> None:
    client = OneClient(max_rpcs_in_flight="8", max_pages_per_rpc="512")
    client.seconds(500)
    assert client.had("max_pages_per_rpc").count("512") > 440
    assert "max_pages_per_rpc" not in client.councils.of("one").values, "it is there while nothing is set"
    again = Councils(RPCS)
    assert again.restore(client.councils.knowledge()) == ()
    rows = [row for row in again.explain() if row["lever"] == "max_pages_per_rpc" and row["value"] == "512"]
    assert rows and rows[0]["best"] and rows[0]["seen"] > 100


def test_a_value_stayed_that_was_worse_in_four_of_five_patterns() -> None:
    speeds = {"16": 85.0, "64": 90.0, "256": 95.0, "1024": 100.0}
    client = OneClient(speeds, max_rpcs_in_flight="8", max_pages_per_rpc="1024")
    client.seconds(900, (0, 1, 2, 0, 3, 4, 0, 1, 2, 3))
    assert client.had("max_pages_per_rpc")[300:].count("1024") > 500
