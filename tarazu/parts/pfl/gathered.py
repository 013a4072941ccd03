"""Files of recorded runs and of Darshan logs, with who wrote them, and how many at one time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

from tarazu.errors import TraceError
from tarazu.parts.pfl.sizes import Halves
from tarazu.predict.waves import waves
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord


def add_run(files: Sequence[FileRecord], run: bytes, into: Halves) -> int:
    """The files of one run, which stay in one half; how many had a known size.

    Files of one name but for numbers count as written at one time where they are of one wave.
    """
    known = [file for file in files if file.closed and not file.existed]
    of_wave = waves(known)
    alike = Counter((f.loose, wave) for f, wave in zip(known, of_wave, strict=True))
    for file, wave in zip(known, of_wave, strict=True):
        writers = max(file.writers, file.creator_count, 1) if file.shared else 1
        into.add(run, run + os.fsencode(file.key), file.size_bytes, writers, alike[file.loose, wave])
    return len(known)


def add_history(
    history: History, fs_name: str, into: Halves, problem: Callable[[TraceError], None]
) -> tuple[int, int]:
    """All runs on a file system (empty: on all); how many runs and files."""
    runs = files = 0
    for of, application in history.applications():
        if fs_name in ("", of):
            for path, run in history.each(of, application, problem):
                runs += 1
                files += add_run(run.files, os.fsencode(path.name), into)
    return runs, files


def add_log(path: str, mount: str, into: Halves) -> int:
    """What a job of a Darshan log wrote below a directory; how many files. Raises TraceError."""
    from tarazu.trace.darshan_runs import import_log

    run = import_log(path, mount=mount)
    return add_run(run.files, os.fsencode(os.path.basename(path)), into)
