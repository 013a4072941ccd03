"""Mistyped commands, options and values: one line, which says what was likely meant."""

from __future__ import annotations

import pytest

from tarazu.cli import main


@pytest.mark.parametrize(("words", "said"), [
    ("stutas", "found 'stutas'; did you mean `tarazu status`?"),
    ("list", "found 'list'; did you mean `tarazu history list` or `tarazu change list`?"),
    ("history lst", "found 'lst'; did you mean `tarazu history list`?"),
    ("history whatif LOG", "found 'whatif'; did you mean `tarazu whatif`?"),
    ("change drian", "found 'drian'; did you mean `tarazu change drain`?"),
    ("run --mode plce -- true", "invalid choice: 'plce' (choose from 'observe', 'advise', 'place'); "
     "did you mean 'place'?"),
    ("top --sort Verdict", "did you mean 'verdict'?"),
    ("top --jsn", "unrecognized arguments: --jsn; did you mean '--json'?"),
    ("history list --jsn", "unrecognized arguments: --jsn; did you mean '--json'?"),
    ("job", "expected one of show, explain, map, check-app (see `tarazu job --help`)"),
    ("history export --formt csv", "did you mean '--format'?"),
    ("zzzz", "found 'zzzz'"),
])  # fmt: skip
def test_a_mistyped_word_is_one_line_that_says_what_was_meant(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(words.split())
    except SystemExit as ended:
        status = int(ended.code or 0)
    out, err = capsys.readouterr()
    assert status == 2 and not out
    assert err.count("\n") == 1 and err.startswith("tarazu")
    assert err.rstrip().endswith(said)
