"""The histories of one forecast, read row by row into what a forecast looks at, within limits for all of them.

Ten runs of a hundred thousand files are a million rows: names are shared between runs, and only the newest
runs keep theirs, as only these are continued.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO

from tarazu import ranges
from tarazu.errors import TraceError
from tarazu.model import ANY_RANK
from tarazu.table import Csv
from tarazu.trace.records import (
    CLOSED,
    CONTIGUOUS,
    COUNTED,
    LARGEST_BYTES,
    LATEST_S,
    MOST_RANKS,
    NOT_KNOWN_S,
    OUTCOMES,
    PastFile,
    PastRun,
    RunRecord,
)
from tarazu.trace.runfile import MAX_RUN_BYTES, Header, TooLarge, bytes_read, check_count, read_header, reader
from tarazu.trace.table import COLUMNS, LONGEST_NAME
from tarazu.units import counted

MAX_BYTES = 256 << 20
"""Of all histories of one forecast; the newest ones win."""
MAX_FILES = 1_500_000
MOST_FIRST_LINES_BYTES = 32 << 20
RUNS_WITH_KEYS = 3
"""Names are guessed from the newest run that has such files."""
RUNS_WITH_NAMES = 5
"""Numbers in names are continued over the newest runs."""
MOST_NTH = 0xFFFFFFFF
_SHORT, _MOST_CREATORS = 256, 10_000
"""Characters and number of the lists of ranks that are remembered."""
_MARKS = {
    ("0", "0", "0"): 0,
    ("0", "0", "1"): CLOSED,
    ("0", "1", "0"): COUNTED,
    ("0", "1", "1"): COUNTED | CLOSED,
    ("1", "0", "0"): CONTIGUOUS,
    ("1", "0", "1"): CONTIGUOUS | CLOSED,
    ("1", "1", "0"): CONTIGUOUS | COUNTED,
    ("1", "1", "1"): CONTIGUOUS | COUNTED | CLOSED,
}
"""Columns contiguous, counted, closed → PastFile.marks."""


class HistoryLimits(NamedTuple):
    """What all histories of one forecast may have together."""

    total_bytes: int = MAX_BYTES
    files: int = MAX_FILES


class _Full(Exception):
    """What is left of the limits does not suffice for this run."""


def read_past(
    descriptors: Sequence[int], last: int, limits: HistoryLimits | None = None
) -> tuple[list[PastRun], list[str]]:
    """The newest `last` of these runs (oldest first, so given and so returned), and what is wrong with others.

    The descriptors stay open and their offsets as they are. A run that cannot be used is left out; when the
    limits are reached the oldest ones are.
    """
    reading = _Reading(limits or HistoryLimits())
    wanted = descriptors[max(len(descriptors) - last, 0) :]
    runs: list[PastRun] = []
    problems = []
    for count, descriptor in enumerate(reversed(wanted)):
        try:
            runs.append(reading.run(descriptor))
        except TraceError as error:
            problems.append(f"history left out: {error}")
        except _Full:
            problems.append(
                f"history left out: {len(wanted) - count} older runs: the histories of one forecast may have "
                f"{reading.limits.total_bytes} bytes and {counted(reading.limits.files, 'file')} in all"
            )
            break
    return runs[::-1], problems


def read_first_lines(
    descriptors: Sequence[int], last: int, most_bytes: int = MOST_FIRST_LINES_BYTES
) -> list[RunRecord]:
    """The newest `last` of these runs without their files, oldest first, as far as they can be read; no more than
    `most_bytes` of them all.
    """
    runs: list[RunRecord] = []
    for descriptor in reversed(descriptors[max(len(descriptors) - last, 0) :]):
        where = named(descriptor)
        try:
            with reader(os.dup(descriptor), MAX_RUN_BYTES, where) as file:
                try:
                    runs.append(read_header(file, where).run(where))
                finally:
                    most_bytes -= bytes_read(file)
        except (OSError, TraceError):
            continue  # `read_past` tells what is wrong with it
        if most_bytes <= 0:
            break
    return runs[::-1]


def named(descriptor: int) -> str:
    """The file behind a descriptor, as the kernel names it."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return f"descriptor {descriptor}"


class _Reading:
    """Reads runs, newest first."""

    def __init__(self, limits: HistoryLimits) -> None:
        self.limits = limits
        self._left_bytes, self._left_files = limits
        self._runs = 0
        self._names: dict[str, str] = {}
        self._numbers: dict[int, int] = {}
        self._creators: dict[str, tuple[int, int]] = {}

    def run(self, descriptor: int) -> PastRun:
        """The next older run. Raises TraceError, or _Full."""
        where = named(descriptor)
        most_bytes = min(MAX_RUN_BYTES, self._left_bytes)
        file: TextIO | None = None
        try:
            file = reader(os.dup(descriptor), most_bytes, where)
            return self._decode(file, where)
        except TooLarge:
            if most_bytes < MAX_RUN_BYTES:
                raise _Full from None
            raise
        except OSError as error:
            raise TraceError(where, "a readable run", str(error)) from None
        finally:
            if file is not None:
                self._left_bytes -= bytes_read(file)
                file.close()

    def _decode(self, file: TextIO, where: str) -> PastRun:
        header = read_header(file, where)
        run = header.run(where)
        counts = dict.fromkeys(OUTCOMES, 0)
        files = self._files(file, where, header, counts)
        self._runs += 1
        return PastRun(
            step=run.step,
            start_s=run.start_s,
            mode=run.mode,
            files=files,
            outcomes={outcome: count for outcome, count in counts.items() if count},
            ranks_seen=run.ranks_seen,
            ranks_expected=run.ranks_expected,
            dropped_records=run.dropped_records,
            lost_bytes=run.lost_bytes,
            partial=run.partial,
            exit_status=run.exit_status,
            duration_s=run.duration_s,
            phases=run.phases,
        )

    def _files(
        self, file: TextIO, where: str, header: Header, counts: dict[str, int]
    ) -> tuple[PastFile, ...]:
        if header.files > self._left_files:
            raise _Full
        rows = Csv(file, where, COLUMNS, error=TraceError, first_line=2)
        try:
            files = tuple(map(self._converter(header.files, counts), rows))
        except (ValueError, KeyError) as error:
            raise TraceError(rows.place, "a file of a run", str(error)) from None
        check_count(header, len(files), where)
        self._left_files -= len(files)
        return files

    def _converter(self, most: int, counts: dict[str, int]) -> Callable[[list[str]], PastFile]:
        """Row → PastFile; counts outcomes. A million rows come by: only what is used is looked at."""
        names, numbers, creators = self._names, self._numbers, self._creators
        # Names of one run only are forgotten with it, but for the newest run's.
        own: dict[str, str] = {} if self._runs else names
        with_keys, with_names = self._runs < RUNS_WITH_KEYS, self._runs < RUNS_WITH_NAMES
        left = most
        last_text, last_size = "", 0

        def convert(row: list[str]) -> PastFile:
            nonlocal left, last_text, last_size
            key, precise, loose = row[0], row[1], row[2]
            left -= 1
            if left < 0 or len(key) > LONGEST_NAME or len(precise) > LONGEST_NAME or key[:1] != "/":
                raise ValueError(f"key {key[:40]!r} does not start with /, or there are too many or too long")
            loose = names.setdefault(loose, loose)
            new = own.setdefault(precise, precise) if with_names else loose
            precise = names.get(precise, new)
            rank, size_text = int(row[3]), row[8]
            rank = numbers.setdefault(rank, rank)
            if row[4] == row[3]:
                creator, creator_count = rank, 1
            else:
                who = creators.get(row[4])
                if who is None:
                    who = _creators(row[4])
                    if len(row[4]) <= _SHORT and len(creators) < _MOST_CREATORS:
                        creators[row[4]] = who
                creator, creator_count = who
            if size_text != last_text:
                last_text, last_size = size_text, int(size_text)
            at_s, until_s = float(row[7]), float(row[14])
            writers, nth_precise, nth_loose = int(row[10]), int(row[5]), int(row[6])
            nth_loose = numbers.setdefault(nth_loose, nth_loose)
            writers = numbers.setdefault(writers, writers)
            if not (
                ANY_RANK <= rank < MOST_RANKS
                and 0 <= nth_precise < MOST_NTH
                and 0 <= nth_loose < MOST_NTH
                and 0.0 <= at_s <= LATEST_S
                and NOT_KNOWN_S <= until_s <= LATEST_S
                and 0 <= last_size <= LARGEST_BYTES
                and 0 <= writers <= MOST_RANKS
            ):
                raise ValueError("a number is out of its range")
            counts[row[16]] += 1
            if not with_keys or key == precise:
                key = precise
            marks = _MARKS[row[11], row[12], row[13]]
            return PastFile(
                key, precise, loose, rank, creator, creator_count, nth_precise, nth_loose, at_s, last_size,
                writers, marks, until_s,
            )  # fmt: skip

        return convert


def _creators(text: str) -> tuple[int, int]:
    """The first rank and the number of folded ranks; they are never unfolded. Raises ValueError."""
    spans = ranges.spans(text)
    count = sum(last - first + 1 for first, last in spans)
    return (spans[0][0], count) if spans else (ANY_RANK, 0)
