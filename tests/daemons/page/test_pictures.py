"""The pictures in the documentation are of the page as it is now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemons.page.pictures import DOCS, KEY, PICTURES, chunks, marked


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_of_the_present_page(name: str, tmp_path: Path, utc: None) -> None:
    png = (DOCS / f"{name}.png").read_bytes()
    assert chunks(png)[KEY].decode() == PICTURES[name].mark(tmp_path), "run `make docs`"
    assert f"({name}.png)" in (DOCS / "page.md").read_text()


def test_what_a_picture_is_of_is_read_back() -> None:
    png = (DOCS / "page-desk.png").read_bytes()
    assert chunks(marked(png, "another"))[KEY] in (b"another", chunks(png)[KEY])
    assert len(marked(png, "another")) == len(png) + 12 + len(KEY) + 1 + len("another")
