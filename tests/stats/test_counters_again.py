"""What is read each second: the same as in full, in a fraction of the time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tarazu.stats import counters, reading
from tests.hostile.statistics import mutate

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


def found(text: str) -> tuple[int | float, ...] | str:
    """The same as `read_and_written`, the longer way."""
    try:
        stats = counters.some(text, ("read_bytes", "write_bytes"))
    except ValueError as error:
        return str(error)
    read, write = stats.row("read_bytes"), stats.row("write_bytes")
    return read.sum, read.samples, write.sum, write.samples, stats.start_s


def test_what_was_read_and_written_is_the_same_whatever_is_there(data: Path) -> None:
    """Of all captured servers and clients, as they are and changed at random: numbers, lines, an early end."""
    rng, texts = random.Random(1), []
    for path in sorted(data.rglob("stats")):
        if path.parts[-3] in ("obdfilter", "llite"):
            original = path.read_bytes()
            texts += [original, *(mutate(original, rng) for _ in range(40))]
    assert len(texts) > 400
    others = 0
    for raw in texts:
        text = raw.decode("utf-8", "replace")
        try:
            seen: tuple[int | float, ...] | str = counters.read_and_written(text)
        except ValueError as error:
            seen = str(error)
        assert seen == found(text), text[:1000]
        others += seen != found(texts[0].decode())
    assert others > 200


@pytest.mark.parametrize(
    "text",
    [
        "snapshot_time 2.0 s\nwrite_bytes 3 samples [bytes] 1 2 4\n",
        "snapshot_time 2.0 s\nwrite_bytes 3 samples [bytes] 1 2 4\nread_bytes 5 samples [bytes] 1 2 6 36\n",
        "snapshot_time 2.0 s\nsetattr 1 samples [reqs]\nread_bytes 5 samples [bytes] 1 2 6\nstart_time 1.5 s\n",
        "snapshot_time 2.0 s\nread_bytes 5 samples [bytes] 1 2 -6\n",
        "snapshot_time 2.0 s\nread_bytes 5 samples [bytes] 1 2 6",
    ],
    ids=["no reads", "other order", "elsewhere", "overflowed", "cut"],
)
def test_rows_are_found_where_they_are(text: str) -> None:
    assert counters.read_and_written(text) == found(text) != (0, 0, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "snapshot_time"),
        ("rubbish", "snapshot_time"),
        ("read_bytes", "snapshot_time"),
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
    for size in (0, 2047, 2048, 70_000, 200_000):
        path.write_bytes(b"b" * size)
        assert len(reading.again(str(path))) == size


def test_what_the_kernel_gives_page_by_page_is_read_to_its_end() -> None:
    """A seq_file of many rows, as `stats` of debugfs: the kernel's own."""
    path = "/proc/crypto"
    pages = -(-len(reading.text(path)) // 4096)
    if pages < 2:
        pytest.skip("this kernel shows less than a page there")
    assert reading.again(path) == reading.text(path)
