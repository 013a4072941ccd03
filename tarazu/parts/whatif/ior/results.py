"""A file or a folder of IOR's outputs → results: one for each folder that holds some, as IO500 writes them.

In a folder `X.txt` is an output, and the table of its ranks the file that its command names, else `X.csv`. Other files,
mdtest's among them, are left alone.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import msgspec

from tarazu import statx
from tarazu.errors import BadInput, TarazuError
from tarazu.parts.whatif.ior import output, table
from tarazu.parts.whatif.ior.lost import Lost, lost
from tarazu.parts.whatif.ior.output import Phase
from tarazu.parts.whatif.ior.table import Group
from tarazu.units import counted

MAX_BYTES = 64 << 20
"""Of one file."""
MOST_FILES = 100_000
MOST_CANNOT = 10
"""Folders that cannot be read that are named."""
SUFFIXES = {".txt", ".csv", ".out", ".log", ""}
BEGINNING = 8 << 20
"""Bytes in which an output shows what it is: launchers may say much before it."""


class Result(msgspec.Struct):
    """The phases of one folder, or of one file."""

    where: str
    phases: list[Phase]
    notes: list[str]

    @property
    def lost(self) -> list[Lost]:
        return [lost(phase) for phase in self.phases]


def is_ior(path: str) -> bool:
    """A folder, or a text that is IOR's: not a Darshan log."""
    if os.path.isdir(path):
        return True
    if not _is_file(path):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(BEGINNING)
    except OSError:
        return False
    return _kind(head) != ""


def _kind(head: bytes) -> str:
    """`output`, `table`; empty for another file."""
    if b"\0" in head:
        return ""
    text = _decoded(head)
    if table.is_table(text):
        return "table"
    return "output" if output.BEGINS.search(text) else ""


def read(path: str) -> list[Result]:
    """Raises BadInput for a file that is none of IOR's, and a folder without any."""
    if not os.path.isdir(path):
        return [_of_file(Path(path))]
    try:
        os.listdir(path)
    except OSError as error:
        raise BadInput(path, "a folder that can be read", error.strerror) from None
    folders: dict[Path, list[Path]] = {}
    seen = 0
    unread: list[OSError] = []
    for top, names, files in os.walk(path, onerror=unread.append):
        names.sort()
        for name in sorted(files):
            seen += 1
            if seen > MOST_FILES:
                raise BadInput(path, f"at most {MOST_FILES} files", "more")
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                folders.setdefault(Path(top), []).append(Path(top, name))
    results = []
    for folder, paths in folders.items():
        texts, notes = _texts(paths)
        if texts:
            results.append(_of_files(str(folder), texts, notes))
    cannot = [f"{error.filename}: {error.strerror}" for error in unread]
    if not results:
        raise BadInput(
            path,
            "a folder with outputs of IOR or IO500 (a Darshan log is a file)",
            "; ".join([counted(seen, "other file"), *cannot[:MOST_CANNOT]]),
        )
    results[0].notes += cannot[:MOST_CANNOT]
    return results


def _of_file(path: Path) -> Result:
    """One output, with the table of ranks beside it."""
    texts = {path: _text(path)}
    result = _of_files(str(path), texts, [])
    if table.is_table(texts[path]):
        return result
    for name in dict.fromkeys([*(phase.table for phase in result.phases), path.with_suffix(".csv").name]):
        beside = path.with_name(name) if name else path
        if beside != path and _is_file(beside):
            found, notes = _texts([beside])
            if any(table.is_table(text) for text in found.values()):
                return _of_files(str(path), {**texts, **found}, notes)
    return result


def _is_file(path: Path | str) -> bool:
    """Nothing that hangs is waited for."""
    try:
        return stat.S_ISREG(statx.look(path).st_mode)
    except OSError:
        return False


def _texts(paths: list[Path]) -> tuple[dict[Path, str], list[str]]:
    """(what is IOR's, notes on what cannot be read)."""
    texts, notes = {}, []
    for path in paths:
        try:
            if not _is_file(path):
                continue
            with path.open("rb") as file:
                kind = _kind(file.read(BEGINNING))
            if kind:
                texts[path] = _text(path)
        except OSError as error:
            notes.append(f"{path}: {error.strerror}")
        except TarazuError as error:
            notes.append(str(error))
    return texts, notes


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(str(path), "a readable output of IOR", error.strerror) from None
    if len(raw) > MAX_BYTES:
        raise BadInput(str(path), f"at most {MAX_BYTES >> 20} MiB of IOR's output", "more")
    return _decoded(raw)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _of_files(where: str, texts: dict[Path, str], notes: list[str]) -> Result:
    alone = len(texts) == 1
    made: list[tuple[Path, Phase]] = []
    tables: dict[str, list[Group]] = {}
    for path in sorted(texts):
        try:
            if table.is_table(texts[path]):
                tables[path.name] = table.groups(texts[path], str(path))
            else:
                made += [(path, phase) for phase in output.phases(texts[path], str(path), path.stem)]
        except BadInput as error:
            if alone:
                raise
            notes.append(str(error))
    once: dict[object, tuple[Path, Phase]] = {}
    for path, phase in made:
        # A batch job's own output may hold again what stands in the files beside it.
        key = (
            (phase.command, phase.operation, phase.moved_s, phase.bytes_per_s) if phase.moved_s else id(phase)
        )
        once.setdefault(key, (path, phase))
    phases = []
    for path, phase in once.values():
        for name in (phase.table, path.with_suffix(".csv").name):
            if name in tables:
                _join(phase, tables[name], name, notes)
                break
        phases.append(phase)
    for name, left in tables.items():
        phases += _alone(Path(name).stem, left, notes)
    return Result(where, sorted(phases, key=_order), notes)


def _join(phase: Phase, groups: list[Group], name: str, notes: list[str]) -> None:
    """Gives a phase the first rows of its operation, which are then no other's."""
    group = next((g for g in groups if g.operation == phase.operation), None)
    if group is None:
        return
    groups.remove(group)
    if phase.tasks and len(group.ranks_s) != phase.tasks:
        notes.append(f"{name}: has {len(group.ranks_s)} of {counted(phase.tasks, 'rank')}, and is left out")
        return
    phase.ranks_s = group.ranks_s


def _alone(name: str, groups: list[Group], notes: list[str]) -> list[Phase]:
    """Of a table without an output that says how many ranks there were."""
    phases = []
    for group in groups:
        phase = Phase(name, group.operation, tasks=len(group.ranks_s), ranks_s=group.ranks_s)
        if group.ends_early:
            phase.ranks_s, phase.why_not = (), "its table of ranks ends in the middle of a line"
        phases.append(phase)
    return output.numbered(phases)


def _order(phase: Phase) -> tuple[bool, list[tuple[int, str]]]:
    """Writing first; the tenth after the ninth."""
    name = re.findall(r"\D+|[0-9]+|\d", phase.name)
    return phase.operation != "write", [
        (int(part) if part.isascii() and part.isdecimal() else -1, part) for part in name
    ]
