"""What is read each second: the same as in full, in a fraction of the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.stats import counters, reading

NAMES = ("read_bytes", "write_bytes", "req_active", "statfs")


def test_some_rows_are_those_of_all(data: Path) -> None:
    texts = [
        path.read_text()
        for path in sorted(data.rglob("stats"))
        if "/lnet/" not in str(path) and "samples [" in path.read_text()
    ]
    assert len(texts) > 20
    for text in texts:
        all_, some = counters.parse(text), counters.some(text, NAMES)
        assert some.start_s == all_.start_s
        assert {n: some.row(n)[:2] for n in NAMES} == {n: all_.row(n)[:2] for n in NAMES}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "snapshot_time"),
        ("rubbish", "snapshot_time"),
        ("read_bytes", "snapshot_time"),
        ("snapshot_time 1.0 s\nread_bytes nine samples [bytes] 1 2 3\n", "nine"),
        ("snapshot_time 1.0 s\nstart_time soon\n", "expected seconds"),
    ],
)
def test_what_is_no_stats_file_has_no_zeros(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        counters.some(text, NAMES)


def test_a_file_that_is_read_again_ends(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    path.write_bytes(b"a" * 1000)
    assert reading.again(str(path)) == reading.text(path) == "a" * 1000
    assert reading.again(str(path), 1000) == "a" * 1000
    with pytest.raises(ValueError, match="at most 999 bytes"):
        reading.again(str(path), 999)
    with pytest.raises(ValueError, match="bytes"):
        reading.again("/dev/zero")
