"""Keys: what each changes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.cli.top.choice import HELP, SORT_KEYS, SORTS, TopChoice, press

ALL = TopChoice()
NAMED = ("up", "down", "page-down", "end", "enter", "escape", "backspace", "F99", "")


def pressed(*keys: str, choice: TopChoice = ALL, rows: int = 100, page: int = 10) -> TopChoice | None:
    found: TopChoice | None = choice
    for key in keys:
        assert found is not None
        found = press(found, key, rows, page, ("home", "scratch"))
    return found


def test_each_sort_has_its_key_and_the_help_names_it() -> None:
    assert set(SORT_KEYS.values()) == set(SORTS)
    for key, sort in SORT_KEYS.items():
        assert pressed("down", key) == TopChoice(sort=sort)
        assert f" {key} " in HELP
    assert pressed("R", "R") == TopChoice() and pressed("w", "R") == TopChoice(sort="write", backwards=True)


def test_scrolling_stays_within_the_rows() -> None:
    def first(*keys: str) -> int:
        found = pressed(*keys)
        assert found is not None
        return found.first

    assert [first("down"), first("j", "j", "k"), first("up"), first("page-down", "\x04")] == [1, 1, 0, 20]
    assert [first("end"), first("end", "down"), first("end", "page-up"), first("end", "home")] == [
        90,
        90,
        80,
        0,
    ]
    assert pressed("page-down", rows=3) == TopChoice()


def test_folds_file_systems_and_pause_go_round() -> None:
    assert [pressed(*"c" * n).fold for n in range(5)] == ["ost", "oss", "fs", "pool", "ost"]  # type: ignore[union-attr]
    names = [pressed(*"f" * n).fs_name for n in range(4)]  # type: ignore[union-attr]
    assert names == ["", "home", "scratch", ""]
    assert pressed("p") == TopChoice(paused=True) and pressed("p", "p") == TopChoice()
    assert pressed("a") == TopChoice(amiss=True)
    # One that is gone meanwhile: all again.
    assert pressed("f", choice=TopChoice(fs_name="gone")) == TopChoice(fs_name="home")


def test_a_filter_is_typed_taken_and_left() -> None:
    assert pressed("/", *"oss3 q", "backspace", "enter") == TopChoice(filter="oss3")
    assert pressed("/", *"oss", "escape") == TopChoice()
    assert pressed("/", *"oss", "\x15", *"ok", "enter") == TopChoice(filter="ok")
    kept = TopChoice(filter="oss")
    assert pressed("/", "x", "escape", choice=kept) == kept
    assert pressed("escape", choice=kept) == TopChoice()
    assert pressed("/", "3", "enter", choice=kept) == TopChoice(filter="oss3")


def test_help_comes_and_goes_and_q_ends() -> None:
    assert pressed("?") == TopChoice(help=True) and pressed("?", "x") == TopChoice()
    assert pressed("q") is None and pressed("?", "q") is None and pressed("\x03") is None


@settings(max_examples=30)
@given(st.lists(st.sampled_from([*"/qapRcfvx \x15", *NAMED])), st.integers(0, 50), st.integers(0, 50))
def test_no_key_breaks_it(keys: list[str], rows: int, page: int) -> None:
    choice: TopChoice | None = replace(TopChoice(), filter="x")
    for key in keys:
        choice = press(choice, key, rows, page)
        if choice is None:
            return
        assert choice.first >= 0
