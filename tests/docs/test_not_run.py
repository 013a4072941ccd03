"""What is not typed is named on a page, has a reason, and does not become more unseen."""

from __future__ import annotations

from tests.docs import not_run
from tests.docs.reading import PAGES, Typed, typed

AT_MOST = 28
"""Commands of the pages that are not typed; those of `make` and of benchmarks are most of them."""


def passed_over() -> list[Typed]:
    return [
        each for page in PAGES for each in typed(page) if not_run.begins(each.words) and not each.in_prose
    ]


def test_entries_are_of_commands_that_a_page_names() -> None:
    named = {" ".join(each.words) for page in PAGES for each in typed(page)}
    for begins in [entry.begins for entry in (*not_run.entries(), *not_run.ends())]:
        assert any(f"{line} ".startswith(f"{begins} ") for line in named), begins


def test_what_is_not_typed_is_counted() -> None:
    found = passed_over()
    assert len(found) <= AT_MOST, "\n".join(map(str, found))


def test_an_entry_is_of_whole_words() -> None:
    assert not_run.begins(("make", "demo")) is not None
    assert not_run.begins(("maker",)) is None
    assert not_run.as_it_should("tarazu doctor --json", 1)
    assert not not_run.as_it_should("tarazu doctor --json", 2)
