"""Makes `io500.csv` again: `python tests/data/evidence/extract_io500.py GIT_DIRECTORY_OF_IO500/submission-data`.

A row for each submission on Lustre and phase of IOR. A submission counts as on Lustre where the name of its system or
file system says so (`name`), where its scripts set Lustre's stripes, or it says its type (`said`), or where its files
lie below a mount that is called so (`path`); not where GekkoFS or IME lie over it. Of results submitted twice the first
is kept.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import TarazuError
from tarazu.parts.whatif.ior import results
from tarazu.parts.whatif.ior.lost import lost
from tarazu.parts.whatif.ior.output import Phase

OUT = Path(__file__).with_name("io500.csv")
NAMED = re.compile(r"lustre|exascaler", re.IGNORECASE)
OVER_IT = re.compile(r"gekkofs|\bime\b", re.IGNORECASE)
SAID = re.compile(
    r"^[^#;\n]{0,200}(?:\blfs (?:setstripe|setdirstripe)\b|filesystem(?:_type)?=\W?Lustre\b"
    r"|romio_filesystem_type *= *LUSTRE)",
    re.MULTILINE,
)
PATH = re.compile(
    r"^(?:Path|datadir|\s*-o|Command line).{0,600}?/(?:lustre|exafs)", re.MULTILINE | re.IGNORECASE
)
PHASES = {f"ior-{kind}-{operation}" for kind in ("easy", "hard") for operation in ("write", "read")}
LOOKED_AT = 1 << 22
"""Bytes of a file in which Lustre is looked for."""


class Row(NamedTuple):
    site: str
    system: str
    file_system: str
    year: str
    submission: str
    lustre_by: str
    phase: str
    ior: str
    ranks: int
    ranks_per_node: int
    first_s: float | None
    """Of single ranks, as the next two."""
    mean_s: float | None
    last_s: float | None
    deadline_s: float | None
    mean_share: float | None
    """What the mean rank had moved at the deadline by what the fastest had."""
    moved_s: float | None
    between_nodes: float | None
    """Share of the spread of single ranks."""


def main(directory: str) -> None:
    kept: dict[object, Row] = {}
    for name, files in submissions(directory):
        for row in rows(name, files):
            kept.setdefault((row.phase, row.ranks, row.first_s, row.mean_s, row.deadline_s, row.moved_s), row)
    ordered = sorted(kept.values())
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows([["" if v is None else v for v in row] for row in ordered])
    print(f"{OUT}: {len(ordered)} rows, {len({row.submission for row in ordered})} submissions")


def submissions(directory: str) -> Iterator[tuple[tuple[str, ...], dict[str, bytes]]]:
    """((site, system, file system, year, submission), path below it → content), without files that are not there."""
    git = ("git", "--git-dir", directory)
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True).stdout
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for entry in filter(None, listed.decode("utf-8", "replace").split("\0")):
        meta, _, path = entry.partition("\t")
        parts = path.split("/")
        at = next((n for n, part in enumerate(parts) if part.startswith("submission-")), 0)
        if 4 <= at < len(parts) - 1:
            name = (*parts[:2], "/".join(parts[2 : at - 1]), parts[at - 1], parts[at])
            found.setdefault(name, {})["/".join(parts[at + 1 :])] = meta.split()[2]
    with subprocess.Popen(
        [*git, "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as reader:
        for name, blobs in sorted(found.items()):
            yield name, dict(_contents(reader, blobs))


def _contents(reader: subprocess.Popen[bytes], blobs: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    assert reader.stdin and reader.stdout
    for path, blob in blobs.items():
        reader.stdin.write(blob.encode() + b"\n")
        reader.stdin.flush()
        head = reader.stdout.readline().split()
        if head[-1] != b"missing":
            content = reader.stdout.read(int(head[2]))
            reader.stdout.read(1)
            yield path, content


def lustre_by(name: tuple[str, ...], files: dict[str, bytes]) -> str:
    """How it is known; empty where it is not known."""
    if OVER_IT.search(f"{name[1]}/{name[2]}"):
        return ""
    if NAMED.search(f"{name[1]}/{name[2]}"):
        return "name"
    texts = [content[:LOOKED_AT].decode("utf-8", "replace") for content in files.values()]
    if any(SAID.search(text) for text in texts):
        return "said"
    return "path" if any(PATH.search(text) for text in texts) else ""


def rows(name: tuple[str, ...], files: dict[str, bytes]) -> list[Row]:
    by = lustre_by(name, files)
    if not by:
        return []
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files.items():
            if re.search(r"(?:^|/)ior[^/]*\.(?:txt|csv)$", path):
                to = Path(folder, path)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(content)
        try:
            read = results.read(folder)
        except TarazuError as error:
            print(f"{'/'.join(name)}: {str(error).replace(folder, '')}", file=sys.stderr)
            return []
    best = max(read, key=lambda of: sum(one.at_most_share is not None for one in of.lost))
    return [
        _row(name, by, phase)
        for phase in best.phases
        if phase.name.replace("_", "-") in PHASES and not phase.why_not
    ]


def _row(name: tuple[str, ...], by: str, phase: Phase) -> Row:
    of, wall, ranks = lost(phase), phase.stonewall, sorted(phase.ranks_s)
    if wall and wall.all_done:
        wall, ranks = None, []
    between = of.between_nodes.share if of.between_nodes else None
    return Row(
        *name,
        by,
        phase.name.replace("_", "-"),
        phase.version,
        phase.tasks or len(ranks),
        phase.tasks_per_node,
        round(ranks[0], 3) if ranks else None,
        round(sum(ranks) / len(ranks), 3) if ranks else None,
        round(ranks[-1], 3) if ranks else None,
        wall.at_s if wall else None,
        round(wall.mean_share, 4) if wall and wall.mean_share else None,
        phase.moved_s or None,
        None if between is None else round(between, 3),
    )


if __name__ == "__main__":
    main(sys.argv[1])
