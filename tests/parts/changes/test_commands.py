"""Mistyped words below `tarazu change`."""

from __future__ import annotations

import pytest

from tests.cli.test_parser import test_a_mistyped_word_is_one_line_that_says_what_was_meant as mistyped


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("list", "found 'list'; did you mean `tarazu history list` or `tarazu change list`?"),
        ("change udno", "found 'udno'; did you mean `tarazu change undo`?"),
        ("change undo", "tarazu change undo: expected IDs, or --lever NAME, or --all"),
    ],
)
def test_of_a_mistyped_word_a_line_says_what_was_meant(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mistyped(words, said, capsys)
