"""What a page shows behind a prompt is looked for in what was printed."""

from __future__ import annotations

from tests.docs.printed import lacking
from tests.docs.typing_in import prompts

PRINTED = "first line\nsecond line, 7 s\nthird line\n"


def test_lines_may_be_left_out_but_not_turned_round_or_changed() -> None:
    assert lacking(PRINTED, ["first line", "third line"]) == []
    assert lacking(PRINTED, ["second line, … s"]) == []
    assert lacking(PRINTED, ["third line", "first line"]) == ["first line"]
    assert lacking(PRINTED, ["second line, 8 s"]) == ["second line, 8 s"]


def test_each_prompt_has_the_lines_below_it() -> None:
    assert list(prompts("$ a\nx\ny\n$ b\n")) == [("a", ["x", "y"]), ("b", [])]
