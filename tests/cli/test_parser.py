"""Mistyped commands, options and values: one line, which says what was likely meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.cli import main


@pytest.mark.parametrize(("words", "said"), [
    ("stutas", "found 'stutas'; did you mean `tarazu status`?"),
    ("predict", "found 'predict'; did you mean `tarazu history predict`?"),
    ("history lst", "found 'lst'; did you mean `tarazu history list`?"),
    ("history status", "found 'status'; did you mean `tarazu status`?"),
    ("run --mode plce -- true", "invalid choice: 'plce' (choose from 'observe', 'advise', 'place'); "
     "did you mean 'place'?"),
    ("top --sort Verdict", "did you mean 'verdict'?"),
    ("top --jsn", "unrecognized arguments: --jsn; did you mean '--json'?"),
    ("history list --jsn", "unrecognized arguments: --jsn; did you mean '--json'?"),
    ("job", "expected one of show, explain, map, check-app (see `tarazu job --help`)"),
    ("history export --formt csv", "did you mean '--format'?"),
    ("job map", "expected one of show (see `tarazu job map --help`)"),
    ("job map /nope", "expected one of show; found '/nope'"),
    ("zzzz", "found 'zzzz'"),
    ("run", "tarazu run: command line: expected a program to run, found none"),
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


@pytest.mark.parametrize(
    ("words", "same"),
    [("help", "--help"), ("help history list", "history list --help"), ("-V", "--version")],
)
def test_help_and_version_are_found_where_people_look(
    words: str, same: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for each in (words, same):
        try:
            assert main(each.split()) == 0
        except SystemExit as ended:
            assert not ended.code
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and said[0]


def test_a_command_line_behind_two_dashes_may_follow_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`history predict ior --explain -- srun ./ior -b 4g`: unrecognized arguments: -- srun …"""
    monkeypatch.setenv("TARAZU_RUN_STATE_DIR", str(tmp_path))
    for words in ("ior --explain -- srun --fs x", "--explain ior -- srun --fs x", "ior -- srun --fs x"):
        assert main(["history", "predict", *words.split()]) == 1
        assert "ior: expected runs in" in capsys.readouterr().err
