"""Writes lmt-*.csv and ost-fullness.csv.gz: `python extract_pytokio.py GIT_DIRECTORY`, of a clone of NERSC/pytokio."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
LMT = {"lmt-snx11025.csv.gz": "snx11025_2018-01-28.sqlite3", "lmt-reset.csv": "lmtdb-reset.sqlite3"}
FULLNESS = "sample_ost-fullness.txt.gz"
FILE_SYSTEM = "snx11168"
"""The largest of four: 248 OSTs."""


def main(git: str) -> None:
    def content(name: str) -> bytes:
        command = ["git", f"--git-dir={git}", "show", f"HEAD:tests/inputs/{name}"]
        return subprocess.run(command, check=True, capture_output=True).stdout

    for target, source in LMT.items():
        with tempfile.NamedTemporaryFile() as file:
            file.write(content(source))
            file.flush()
            rows = sqlite3.connect(file.name).execute(
                "select timestamp, ost_name, read_bytes, write_bytes, kbytes_used, kbytes_free from OST_DATA"
                " join TIMESTAMP_INFO using (ts_id) join OST_INFO using (ost_id) order by timestamp, ost_name"
            )
            write(target, ("time", "ost", "read_bytes", "write_bytes", "used_kib", "free_kib"), rows)
    write("ost-fullness.csv.gz", *fullness(gzip.decompress(content(FULLNESS)).decode()))


def fullness(text: str) -> tuple[Sequence[str], list[list[int]]]:
    """(columns, rows): when, and KiB used on each OST; the first row holds the sizes."""
    rows, sizes = [], dict[int, int]()
    for sample in text.split("BEGIN ")[1:]:
        found = re.findall(rf"(?m)^{FILE_SYSTEM}-OST(\w{{4}})_UUID +(\d+) +(\d+)", sample)
        used = {int(index, 16): int(kib) for index, _, kib in found}
        sizes = {int(index, 16): int(kib) for index, kib, _ in found}
        rows.append([int(sample.split(None, 1)[0]), *(used[i] for i in sorted(used))])
    return ["time", *(f"OST{i:04x}" for i in sorted(sizes))], [[0, *(sizes[i] for i in sorted(sizes))], *rows]


def write(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    content = text.getvalue().encode()
    (HERE / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


if __name__ == "__main__":
    main(sys.argv[1])
