"""The PFL file: first match wins, and every mistake is named with its line."""

import os
from pathlib import Path

import pytest

from tarazu.errors import LayoutError
from tarazu.layout import pfl
from tarazu.lustre import EOF

GOOD = """\
# site rules
[ior-c1]
match = /ior/*
components = 0-128M:1, 128M-512M:3, 512M-2G:8, 2G-EOF:16

[rest]
match = /a/* /b/*.h5
components = 0-EOF:4   # one component
pool = flash
"""


def test_rules_in_order() -> None:
    first, rest = pfl.parse(GOOD)
    assert [e.stripe_count for e in first.extents] == [1, 3, 8, 16]
    assert first.extents[-1].end_bytes == EOF
    assert first.matches("/ior/run1/x.0") and not first.matches("/iorx")
    assert rest.matches("/b/c/x.h5") and rest.pool == "flash"


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("match = /x\n", 1, "[section]"),
        ("[a]\nmatch = /x\ncomponents = 0-1G:4\n", 3, "EOF"),
        ("[a]\nmatch = /x\ncomponents = 0-1G:4, 2G-EOF:8\n", 3, "without a gap"),
        ("[a]\nmatch = /x\ncomponents = 0-1000:4, 1000-EOF:8\n", 3, "64K"),
        ("[a]\nmatch = /x\ncomponents = 0-1G:0, 1G-EOF:8\n", 3, "stripe count"),
        ("[a]\nmatch = /x\ncomponents = 0-1Q:1, 1Q-EOF:8\n", 3, "sizes"),
        ("[a]\nmatch = /x\n", 1, "components"),
        ("[a]\nmatch = x\ncomponents = 0-EOF:1\n", 2, "glob"),
        ("[a]\nmatch = /x\nstripes = 4\ncomponents = 0-EOF:1\n", 3, "match, components or pool"),
        ("[a]\nmatch = /x\ncomponents = 0-EOF:1\n[a]\n", 4, "once"),
    ],
)
def test_mistakes_name_their_line(text: str, line: int, expected: str) -> None:
    with pytest.raises(LayoutError) as error:
        pfl.parse(text, "site.ini")
    assert str(error.value).startswith(f"site.ini:{line}") and expected in str(error.value)
    assert "\n" not in str(error.value)


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="readable PFL file"):
        pfl.read(tmp_path / "none.ini")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LayoutError, match="UTF-8"):
        pfl.read(tmp_path / "binary")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LayoutError, match="found 'a pipe'"):
        pfl.read(tmp_path / "pipe")
