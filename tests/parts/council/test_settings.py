"""What `tarazu config check` names of the part's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.cli import main


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("levers = ['foo']", "[part.council] levers: expected one of nrs"),
        (
            "mode = 'apply'\naddress = 'tcp://m:1'",
            "part.council.levers: what may be set, where this is apply",
        ),
        ("address = 'tcp://127.0.0.1:5771'", "another address than that of mdsd.requests"),
    ],
)
def test_what_cannot_be_is_named(
    text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tarazu.toml"
    file.write_text(f"[mdsd]\nrequests = 'tcp://127.0.0.1:5771'\n[part.council]\n{text}\n")
    assert main(["config", "check", str(file)]) == 1
    line, *_, count = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{file}:") and expected in line and count == "1 mistake"
