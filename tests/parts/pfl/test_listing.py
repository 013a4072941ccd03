"""Lists of files: what `lfs find`, `find` and `du` print, and odd lines in bounded memory."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.pfl import listing
from tarazu.parts.pfl.sizes import Halves, Sizes, half, size_class


def read(path: Path, content: bytes) -> tuple[int, int, Sizes]:
    path.write_bytes(content)
    halves = Halves()
    listed = listing.read(str(path), halves)
    return listed.files, listed.odd, halves.all


@pytest.mark.parametrize(
    ("content", "good", "odd", "size"),
    [
        (b"10 /a/b\n20 /a/c d\n", 2, 0, 30),
        (b"10\t/a/b\n20\t/a/c d\n", 2, 0, 30),
        (b"  10 /a/b\n5", 2, 0, 15),
        (b"10 /a\tb\n20  /a b\t/c\n30\t /d\n", 3, 0, 60),
        (b"7\n8\n", 2, 0, 15),
        (b"10 /a/b\n\n\n20 /x", 2, 0, 30),
        (b"10 /a/line\nbreak\n20 /x\n", 2, 1, 30),
        (b"10 /a/line\nbreak\x0020 /x\x00", 2, 0, 30),
        (b"10 /a\n-5 /b\n1e3 /c\n0x10 /d\n9223372036854775808 /e\n" + b"9" * 5000 + b" /f\n", 1, 5, 10),
        (b"9223372036854775807 /a\n" + "٣ /b\n".encode() + b"\xff\xfe /c\n0 /d\n", 2, 2, 2**63 - 1),
        (b"x" * 300_000 + b" 5 /a\n10 /b\n", 1, 1, 10),
        (b"10 /b\n" + b"5 /" + b"x" * 3_000_000, 1, 1, 10),
        (b"total 5\n10 /b\r\n", 1, 1, 10),
    ],
)
def test_lines(tmp_path: Path, content: bytes, good: int, odd: int, size: int) -> None:
    found = read(tmp_path / "list", content)
    assert found[:2] == (good, odd)
    assert (found[2].files, found[2].bytes) == (good, size)


TREE = {f"run{i}/{'deep/' * (i % 2)}f{j}": 1 << 20 for i in range(5) for j in range(40)}


@pytest.fixture(scope="module")
def tree(on_disk: Path) -> Path:
    """200 files of 1 MiB, all holes, in directories of two depths."""
    for name, size in TREE.items():
        (on_disk / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        with open(on_disk / "tree" / name, "wb") as file:
            file.truncate(size)
    (on_disk / "tree/empty").mkdir()
    return on_disk


@pytest.mark.parametrize(
    "command",
    [
        "du -ab tree/run?",
        "du -ab tree/run?/",
        "du -abc tree/run?",
        "du -ab0 tree/run?",
        r"du -ab tree/run? | sed 's/$/\r/; 1s/^/\xef\xbb\xbf/'",
        "du -ab --time tree/run?",
        "du -ab --time --time-style=full-iso tree/run?",
        "cd tree && du -ab ./run?",
        "cd tree && rmdir empty && du -ab; mkdir empty",
        'du -ab "$PWD"/tree/run?',
        "du -a --apparent-size -B1 tree/run?",
        "du -ab tree/run? | sort -n",
        "du -ab tree/run? | sort -rn",
        "du -ab tree/run? | sort -k2",
        "du -ab tree/run? | shuf",
        r"find tree/run? -printf '%s %p\n'",
        r"find tree -type f -printf '%s %p\0'",
    ],
)
def test_directories_in_a_list_are_no_files(tree: Path, tmp_path: Path, command: str) -> None:
    done = subprocess.run(["bash", "-c", command], cwd=tree, capture_output=True, check=True)
    good, odd, sizes = read(tmp_path / "list", done.stdout)
    assert (good, odd, sizes.bytes) == (200, 0, 200 << 20)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("du -b tree", "directories alone"),
        ("du -sb tree/run*", "directories alone"),
        ("du -sb tree/run*/", "directories alone"),
        ("du -b tree | sed s,tree,x/tree,", "directories alone"),
        ("du -ah --apparent-size tree", "in other units"),
        ("du -a --apparent-size tree", "in blocks"),
        ("du -am --apparent-size tree", "in blocks"),
        ("printf '8\\ta/b\\n20\\ta/c\\n28\\ta\\n'", "in blocks"),
        ("(du -ah --apparent-size tree; seq 99)", "in other units"),
        ("find tree -ls", "other lines"),
        ("ls -lRs tree", "other lines"),
        ("du -ab tree | iconv -t UTF-16", "UTF-16"),
    ],
)
def test_a_list_that_has_no_sizes_of_files_is_refused_with_a_word(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, found: str
) -> None:
    monkeypatch.chdir(tree)
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    with pytest.raises(BadInput, match=found):
        read(tmp_path / "list", done.stdout)


def test_a_list_of_directories_of_elsewhere_is_refused_by_their_sizes(tmp_path: Path) -> None:
    """As coreutils before 9.2 sum them on ext4 and ldiskfs: 4 KiB for the directory itself."""
    held = [(f"tree/run{i}", (40 << 20) + 4096) for i in range(5)]
    lines = [f"{size}\t{name}\n" for name, size in [*held, ("tree", (200 << 20) + 6 * 4096)]]
    with pytest.raises(BadInput, match="directories alone"):
        read(tmp_path / "list", "".join(lines).encode())
    with pytest.raises(BadInput, match="in blocks"):  # the same by `du`, in KiB
        read(tmp_path / "list", re.sub(r"\d+(?=\t)", lambda m: str(int(m[0]) >> 10), "".join(lines)).encode())


@pytest.mark.parametrize("content", [b"", b"\n\n", b"no sizes\nhere\n"])
def test_a_list_without_sizes_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput, match="lines with a size in bytes and a path"):
        read(tmp_path / "list", content)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadInput, match="a readable list of files"):
            listing.read(str(path), Halves())
    with pytest.raises(BadInput, match="found 'a directory'"):
        listing.sources([str(tmp_path)])


def test_odd_lines_by_the_thousand_do_no_harm(tmp_path: Path) -> None:
    rng = random.Random(7)
    pieces = [
        b"12 /a/b",
        b"\x00"[:0],
        b"99999999999999999999 /x",
        b"\xff\xfe\x1b[31m",
        b"-1 /y",
        b"1" * 30,
        b" ",
        b"5",
    ]
    content = b"\n".join(
        rng.choice(pieces) + bytes(rng.choices(range(1, 256), k=3)).replace(b"\n", b"") for _ in range(10**5)
    )
    good, odd, sizes = read(tmp_path / "list", content)
    assert good + odd > 90_000 and sizes.files == good


MEASURE = """
from tarazu.parts.pfl import listing
from tarazu.parts.pfl.sizes import Halves
halves = Halves()
counts = listing.read("-", halves)
high = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(*counts, high.split()[1])  # since exec; ru_maxrss would be that of the process that forked, too
"""


def test_memory_does_not_grow_with_the_list() -> None:
    """100,000 lines and four times as many."""
    used = []
    for lines in (100_000, 400_000):
        content = b"".join(b"%d /d%d/f%d\n" % (i * 7919 % 10**9, i % 1000, i) for i in range(lines))
        child = subprocess.run(
            [sys.executable, "-c", MEASURE], input=content, stdout=subprocess.PIPE, check=True
        )
        good, odd, _, rss = map(int, child.stdout.split())
        assert (good, odd) == (lines, 0)
        used.append(rss)
    assert used[1] < used[0] + 8_000  # KiB


@given(st.integers(0, 2**63 - 1))
def test_classes_are_narrow_and_end_at_powers_of_two(size: int) -> None:
    sizes = Sizes()
    sizes.add(size)
    assert size_class(size) <= size_class(size + 1)
    power = 1 << max(0, size.bit_length())
    assert size_class(power) < size_class(power + 1)
    if size_class(size) == size_class(size + size // 7 + 1):
        assert size <= 1 or size // 8 >= 0


def test_halves_keep_a_directory_together_where_both_have_enough() -> None:
    halves = Halves()
    for directory in range(100):
        for name in range(10):
            halves.add(b"/d%d" % directory, b"/d%d/%d" % (directory, name), 5, kind="directory")
    first, second, by = halves.split()
    assert by == "directory" and first.files + second.files == 1000
    assert first.files % 10 == 0 and 300 < first.files < 700
    alone = Halves()
    for name in range(1000):
        alone.add(b"/only", b"/only/%d" % name, 5, kind="directory")
    first, second, by = alone.split()
    assert by == "name" and 400 < first.files < 600


def test_halves_are_the_same_on_every_machine() -> None:
    assert [half(b"%d" % n) for n in range(12)] == [half(b"%d" % n) for n in range(12)]
    assert 4600 < sum(half(b"/scratch/run%d/out" % n) for n in range(10_000)) < 5400
