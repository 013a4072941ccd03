"""The screen as text: what it says of thousands of OSTs, in any size, whatever the names hold."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.cli.top.choice import FOLDS, SORTS, TopChoice
from tarazu.cli.top.screen import KEYS, STYLE, screen, text_of
from tarazu.ost_state import LETTER, WEIGHT
from tarazu.wire.overview import Overview, overview

OST: dict[str, Any] = {
    "total_bytes": 100 << 30,
    "free_bytes": 40 << 30,
    "avail_bytes": 38 << 30,
    "usable": True,
}
OSS: dict[str, Any] = {
    "age_s": 12.0,
    "stale": False,
    "interval_s": 60.0,
    "cpu_load": 0.1,
    "memory_load": 0.1,
    "lnet_bytes_per_s": 0.0,
    "queue_wait_s": 0.0,
}


ALL = TopChoice()


def system(*osts: dict[str, Any], **more: Any) -> Overview:
    """OSTs 0, 1, ... of `fs`, two on each OSS."""
    rows = [{**OST, "index": n, "oss": f"oss{n // 2}", **of} for n, of in enumerate(osts)]
    names = {row["oss"] for row in rows}
    status = {"osses": dict.fromkeys(names, OSS), "file_systems": {"fs": {"osts": rows}}, **more}
    return overview(status, 0.0)


def lines(
    of: Overview, choice: TopChoice = ALL, columns: int = 100, rows: int | None = 24, **more: Any
) -> list[str]:
    return [text_of(line) for line in screen(of, choice, columns, rows, **more).lines]


def table(of: Overview, choice: TopChoice = ALL, columns: int = 160) -> list[list[str]]:
    """Words of the table's lines, below its heading."""
    text = lines(of, choice, columns, None)
    return [line.split() for line in text[text.index("") + 2 :]]


@pytest.fixture(scope="module")
def large(pictured: ModuleType) -> Overview:
    return pictured.example()


def test_one_screen_tells_of_3600_osts(large: Overview) -> None:
    text = lines(large, columns=80, every_s=2)
    assert len(text) == 24 and all(len(line) <= 80 for line in text)
    assert text[0].startswith("tarazu top  scratch: 180 OSSs, 3600 OSTs") and text[0].endswith("2 s")
    assert "37 allocations" in text[1] and "MDS 1602 operations/s" in text[2]
    assert text[3].startswith("max/mean used 1.5") and "oldest report 340 s" in text[3]
    assert text[4].startswith("OSTs     dead 1 silent 20 full 1 excluded 1 sick 1 degraded 1 slow 1 busy")
    # Each that is amiss has its place in the strip, and its line: an OSS that is silent has one.
    assert {letter for letter in text[7][9:] if letter.isalpha() or letter == "?"} == set("SDFgl?xb")
    assert len(text[7]) == 80
    words = [line.split() for line in text[11:18]]
    assert [w[2] for w in words if w[0] != "scratch:"] == [
        "dead",
        "full",
        "excluded",
        "sick",
        "degraded",
        "slow",
    ]
    assert text[12].startswith("scratch: 20 OSTs oss060 silent")
    assert "1-12 of 3581" in text[-1]


def test_a_line_of_the_table() -> None:
    found = system(
        {
            "relative_speed": 0.25,
            "promised_bytes": 3 << 30,
            "writing_bytes_per_s": 1.5e6,
            "reading_bytes_per_s": 250e6,
            "latency_s": 0.0125,
            "health": "sick: 0.25 of its peers' speed",
        }
    )
    (words,) = table(found)
    assert words[:10] == ["fs-OST0000", "oss0", "sick", "60.0", "3.0G", "1.5", "250", "12.5", "1/4.0", "12.0"]
    assert words[10:] == ["0.25", "of", "its", "peers'", "speed"]
    assert table(system({}))[0][2:] == ["ok", "60.0", "0", "-", "-", "-", "-", "12.0"]


def first_column(of: Overview, choice: TopChoice) -> list[str]:
    return [words[0] for words in table(of, choice)]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("verdict", "2301"),
        ("target", "0123"),
        ("oss", "0123"),
        ("used", "1023"),
        ("promised", "3012"),
        ("write", "0312"),
        ("read", "2301"),
        ("latency", "1023"),
        ("speed", "3102"),
    ],
)
def test_what_it_is_sorted_by(sort: Any, order: str) -> None:
    found = system(
        {"writing_bytes_per_s": 5e6, "reading_bytes_per_s": 0.0, "latency_s": 0.1, "free_bytes": 30 << 30},
        {"free_bytes": 10 << 30, "latency_s": 0.2, "relative_speed": 1.0},
        {"degraded": True, "reading_bytes_per_s": 9e6},
        {"promised_bytes": 7, "reading_bytes_per_s": 1e6, "writing_bytes_per_s": 4e6, "relative_speed": 0.9},
    )
    expected = [f"fs-OST000{n}" for n in order]
    assert first_column(found, TopChoice(sort=sort)) == expected
    if sort in ("target", "oss", "verdict"):
        assert first_column(found, TopChoice(sort=sort, backwards=True)) == expected[::-1]


def test_folded_by_oss_sums_are_shown_and_the_worst_of_what_cannot_be_summed() -> None:
    found = system(
        {"writing_bytes_per_s": 5e6, "reading_bytes_per_s": 1e6, "latency_s": 0.1, "promised_bytes": 1 << 30},
        {"writing_bytes_per_s": 3e6, "reading_bytes_per_s": 0.0, "latency_s": 0.3, "degraded": True},
        {"free_bytes": 100 << 30},
    )
    first, second = table(found, TopChoice(fold="oss"))
    assert first[:10] == ["oss0", "2", "OSTs", "degraded", "60.0", "1.0G", "8.0", "1.0", "300", "-"]
    assert " ".join(first[11:]) == "CPU 10% mem 10% queue 0.0 ms max/mean: used 1.00, moving 1.33 1 degraded"
    assert second[:5] == ["oss1", "1", "OST", "ok", "0.0"]


def test_an_ost_lies_in_each_of_its_pools() -> None:
    found = system({"pools": ["a", "b"]}, {"pools": ["b"]}, {})
    rows = table(found, TopChoice(fold="pool", sort="target"))
    assert [(row[0], row[2 if row[1] == "(no" else 1]) for row in rows] == [
        ("fs", "pool)"),
        ("fs.a", "1"),
        ("fs.b", "2"),
    ]
    assert len(table(found, TopChoice(fold="fs"))) == 1


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("OST0001", "1"),
        ("ost0001 oss0", "1"),
        ("oss1", "23"),
        ("full", "3"),
        ("used>90", "3"),
        ("used<90 oss1", "2"),
        ("write>1", ""),
        ("pool=flash", "0"),
        ("pool=fl", ""),
        ("nobody", ""),
    ],
)
def test_a_filter(words: str, left: str) -> None:
    found = system({"pools": ["flash"]}, {}, {}, {"avail_bytes": 0, "free_bytes": 0})
    assert sorted(first_column(found, TopChoice(filter=words))) == [f"fs-OST000{n}" for n in left]


@pytest.mark.parametrize("words", ["size>3", "used>much", "used>"])
def test_a_filter_that_is_none_is_said_on_the_screen(words: str) -> None:
    text = lines(system({}), TopChoice(filter=words))
    assert any(line.startswith("filter: expected used promised") and words in line for line in text)


def test_only_what_is_amiss() -> None:
    busy = {"writing_bytes_per_s": 90e6, "reading_bytes_per_s": 0.0}
    idle = {"writing_bytes_per_s": 0.0, "reading_bytes_per_s": 0.0}
    found = system(busy, idle, {**idle, "degraded": True})
    assert [words[2] for words in table(found)] == ["degraded", "busy", "ok"]
    assert [words[2] for words in table(found, TopChoice(amiss=True))] == ["degraded"]


def test_many_osts_with_the_same_amiss_are_one_line_only_where_it_is_sorted_by_verdict() -> None:
    found = system(*[{"oss": "oss1", "stale": True}] * 5, {"oss": "oss1", "degraded": True})
    assert [words[:2] for words in table(found)] == [["fs:", "5"], ["fs-OST0005", "oss1"]]
    assert len(table(found, TopChoice(sort="target"))) == 6


def test_stops_are_said() -> None:
    stopped = system(
        {}, stopped="stopped by /etc/tarazu/stop: maintenance", gate={"why_closed": "stopped by x"}
    )
    assert [line for line in lines(stopped) if "stop" in line] == ["stopped by /etc/tarazu/stop: maintenance"]
    assert "mdsd allocates nothing: CPU" in lines(system({}, gate={"why_closed": "CPU"}))


def test_while_nothing_is_known_it_says_so() -> None:
    text = lines(Overview(0.0, (), ()), notice="asking mdsd ...")
    assert "no file system: 0 OSSs, 0 OSTs" in text[0] and "asking mdsd ..." in text and "0 of 0" in text[-1]


def test_the_foot_names_all_keys_or_the_filter_that_is_typed() -> None:
    assert KEYS in lines(system({}), columns=160)[-1]
    assert lines(system({}), TopChoice(typing="oss"))[-1].startswith("filter: oss_")
    text = lines(system({}), TopChoice(help=True), columns=80)
    assert "q quit" in text[-1] and all(len(line) <= 80 for line in text) and len(text) <= 24


def test_every_verdict_has_a_letter_of_its_own_and_a_style() -> None:
    assert set(LETTER) == set(STYLE) == set(WEIGHT)
    assert len(set(LETTER.values())) == len(WEIGHT)


def test_scrolling_shows_what_follows_and_never_less_than_a_page(large: Overview) -> None:
    page = screen(large, TopChoice(sort="target"), 100, 24).page
    second = lines(large, TopChoice(sort="target", first=page))
    assert second[-1].startswith(f"{page + 1}-{2 * page} of 3600")
    assert second[11].split()[0] == f"scratch-OST{page:04x}"
    assert lines(large, TopChoice(sort="target", first=10**6))[-1].startswith(f"{3601 - page}-3600 of 3600")


NAMES = st.text(st.characters(codec=None, categories=("L", "N", "P", "S", "Z", "C")), max_size=40)


@settings(max_examples=30)
@given(
    st.integers(1, 200),
    st.integers(1, 60),
    st.sampled_from(SORTS),
    st.sampled_from(FOLDS),
    st.lists(st.tuples(NAMES, st.sampled_from((None, 0.0, 1e-9, 1.0, 1e18))), max_size=30),
    st.booleans(),
)
def test_whatever_is_told_no_line_is_too_wide_and_none_holds_a_control_character(
    columns: int, rows: int, sort: Any, fold: Any, osts: list[tuple[str, float | None]], plain: bool
) -> None:
    of = [
        {
            "oss": name,
            "health": f"sick: {name}",
            "writing_bytes_per_s": n,
            "reading_bytes_per_s": n,
            "latency_s": n,
        }
        for name, n in osts
    ]
    found = screen(system(*of), TopChoice(sort=sort, fold=fold), columns, rows, plain=plain)
    assert len(found.lines) <= max(rows, 8)
    for line in found.lines:
        text = "".join(span.text for span in line)
        assert len(text) <= max(columns, 40)
        assert all(c.isprintable() or "\udc80" <= c <= "\udcff" for c in text)
        assert not plain or text.isascii()


MDT = {"kind": "MDT", "fs_name": "fs", "server": "mds1"}


def test_what_parts_have_beside_osts_is_a_line() -> None:
    did = {"operations_per_s": 120.0, "short": "120/s 2.1 ms"}
    mdts = [{"index": 0, **did}, {"index": 1, "verdict": "sick"}, {"index": 2}]
    plain = system({})
    assert not any(line.startswith("MDTs") for line in lines(plain))
    row = {**OST, "index": 0, "oss": "oss0"}
    targets = [{**MDT, "name": f"fs-MDT{n}", **of} for n, of in enumerate(mdts)]
    parts = {"mdt": {"targets": targets}, "other": {"failed": "oops"}}
    of = overview({"osses": {"oss0": OSS}, "file_systems": {"fs": {"osts": [row]}}, "parts": parts}, 0.0)
    (line,) = (line for line in lines(of) if line.startswith("MDTs"))
    assert line == "MDTs     1 sick  0 120/s 2.1 ms  2"
    assert any("MDS 120 operations/s" in line for line in lines(of))


def test_a_table_without_a_line_says_why_it_has_none() -> None:
    of, bad = system({}, {}), {"health": "dead: DISCONN"}
    problems = TopChoice(amiss=True)
    for rows in (24, None):
        assert "no problems" in lines(of, problems, rows=rows)
        assert "no line has what the filter asks for" in lines(of, TopChoice(filter="used>99"), rows=rows)
        assert "no OSS has reported an OST" in lines(system(), rows=rows)
    assert not any("verdict" in line and "OSS" in line for line in lines(of, problems, rows=None))
    assert "no problems" not in lines(system(bad), problems)


def test_a_problem_of_a_part_s_is_one_where_no_ost_has_any() -> None:
    sick = {**MDT, "index": 0, "name": "fs-MDT0000", "verdict": "sick"}
    of = system({}, parts={"mdt": {"targets": [sick]}})
    assert "no problems of OSTs" in lines(of, TopChoice(amiss=True))
