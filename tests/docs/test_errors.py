"""docs/errors.md: made of the sources, short enough to be read, and no kind of error is left out."""

from __future__ import annotations

from pathlib import Path

import error_table
import pytest

PAGE = Path(error_table.__file__).with_name("errors.md")


def test_every_error_that_the_sources_raise_is_of_a_family() -> None:
    places = error_table.raised()
    assert len(places) > 800
    for place in places:
        error_table.family_of(place)
    with pytest.raises(ValueError, match=r"docs/error_families\.py"):
        error_table.family_of(error_table.Raised("NewKindOfError", "wire/local.py"))


def test_the_page_can_be_read() -> None:
    assert len(PAGE.read_text().split()) <= 4000
