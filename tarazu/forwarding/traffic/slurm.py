"""Jobs as Slurm prints them: `sacct --parsable2`, `scontrol show job -o`, and our own questions to sacct and squeue.

A job's name is its user's own text: it may hold separators and line breaks, and look like another job's line. Our own
questions use a separator that nobody knows before (`SACCT`, `SQUEUE`). A dump has none: lines of it that can be read in
several ways are left out, and counted.
"""

from __future__ import annotations

import math
import pwd
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from sys import intern
from typing import NamedTuple

from tarazu.errors import BadInput
from tarazu.forwarding.routers.hosts import unfold
from tarazu.forwarding.traffic.batch_job import BatchJob

COLUMNS = ("JobIDRaw", "User", "UID", "NodeList", "Submit", "Start", "End", "State", "Partition", "JobName")
"""Of our questions, the name last."""
_SQUEUE = ("%A", "%u", "%U", "%N", "%V", "%S", "%e", "%T", "%P", "%j")
TOLD = tuple(name for name in COLUMNS if name != "UID")
"""Of a line of `daemons/slurm/job_end.sh`."""
MAX_CHARACTERS = 256
"""Of a name."""
MAX_LINE = 1 << 20
ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s"}
"""Of our questions: times as seconds since 1970."""

_USER = re.compile(r" UserId=([^\s()]+)\(\d+\) GroupId=\S+ MCS_label=")
_WORD = re.compile(r"(\w+)=(\S*)")
_NO_NODES = ("", "None", "None assigned", "(null)", "N/A")


class Listed(NamedTuple):
    jobs: list[BatchJob]
    """Those that have begun and have nodes."""
    left: int
    """Lines that are none, or that may be two things."""
    why: str
    """Of the first of them."""


def sacct(since_s: float, separator: str) -> tuple[str, ...]:
    """The command that prints all jobs that ran since then; with `ENVIRONMENT`."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since_s))
    options = ("--allusers", "--allocations", "--noheader", "--parsable2", "--duplicates")
    return (
        "sacct",
        *options,
        f"--delimiter={separator}",
        f"--starttime={since}",
        f"--format={','.join(COLUMNS)}",
    )


def squeue(separator: str) -> tuple[str, ...]:
    """The command that prints all jobs that Slurm's controller still knows; with `ENVIRONMENT`."""
    options = ("--noheader", "--array", "--states=all")
    return ("squeue", *options, f"--format={separator.join(_SQUEUE)}")


def answered(text: str, separator: str, where: str) -> Listed:
    """What either command printed."""
    words = text.split(separator)
    last = len(COLUMNS) - 1
    if len(words) % last != 1 % last:
        raise BadInput(where, f"rows of {len(COLUMNS)} columns", f"{len(words)} words")
    rows: list[list[str]] = []
    for at in range(0, len(words) - 1, last):
        row = words[at : at + len(COLUMNS)]
        if at:
            row[0] = row[0].rpartition("\n")[2]
        # The next row's id follows the name, on a line of its own.
        row[-1] = row[-1].rpartition("\n")[0]
        rows.append(row)
    return _listed((dict(zip(COLUMNS, row, strict=True)) for row in rows), where)


def read(path: Path) -> Listed:
    """A dump of either kind, of any size. Raises BadInput for a file that is none."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return parse(iter(lambda: file.readline(MAX_LINE), ""), str(path))
    except OSError as error:
        raise BadInput(str(path), "a readable file", error.strerror) from None


def parse(lines: Iterable[str], where: str) -> Listed:
    """`sacct --parsable2` with its header, or `scontrol show job -o`. Raises BadInput for what is neither."""
    every = iter(lines)
    first = next((line for line in every if line.strip()), "")
    if first.startswith("JobId=") or not first:
        return _listed(_of_scontrol(chain([first], every)), where)
    header = first.rstrip("\n").split("|")
    known = {name.lower(): name for name in (*COLUMNS, "JobID")}
    columns = [known.get(name.strip().lower(), name) for name in header]
    needed = {"NodeList", "Start", "End", "JobName"} - set(columns)
    if needed or not {"JobID", "JobIDRaw"} & set(columns) or not {"User", "UID"} & set(columns):
        raise BadInput(
            where,
            "sacct --parsable2 with a header of JobIDRaw, User, JobName, NodeList, Start, End, or scontrol show job -o",
            first[:80].rstrip("\n"),
        )
    return _listed(_of_sacct(every, columns), where)


def _of_sacct(lines: Iterable[str], columns: Sequence[str]) -> Iterator[dict[str, str]]:
    name = columns.index("JobName")
    for line in lines:
        words = line.rstrip("\n").split("|")
        more = len(words) - len(columns)
        if more > 0:  # separators in the name
            words[name : name + more + 1] = ["|".join(words[name : name + more + 1])]
        yield dict(zip(columns, words, strict=True)) if len(words) == len(columns) else {"": line}


def _of_scontrol(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    names = {"UserId": "User", "SubmitTime": "Submit", "StartTime": "Start", "EndTime": "End"}
    for line in lines:
        users = list(_USER.finditer(line))
        if not line.startswith("JobId=") or len(users) != 1 or " JobName=" not in line[: users[0].start()]:
            yield {"": line}
            continue
        before, after = line[: users[0].start()], line[users[0].end() :]
        ids, _, name = before.partition(" JobName=")
        # Free text comes last, after the nodes: of each word the first counts.
        known: dict[str, str] = {}
        for word, value in _WORD.findall(after):
            known.setdefault(word, value)
        row = {names.get(word, word): value for word, value in known.items()}
        row |= {
            "JobIDRaw": ids[len("JobId=") :].split(" ")[0],
            "JobName": name,
            "User": users[0][1],
            "State": known.get("JobState", ""),
        }
        yield row


def _listed(rows: Iterable[dict[str, str]], where: str) -> Listed:
    jobs: list[BatchJob] = []
    left, why = 0, ""
    for number, row in enumerate(rows, 1):
        try:
            if "" in row:
                if not row[""].strip():
                    continue
                raise BadInput(f"{where}: job {number}", "a job's line", row[""][:60].strip())
            if (job := _job(row)) is not None:
                jobs.append(job)
        except (BadInput, ValueError, OverflowError) as error:
            left += 1
            why = why or str(error)
    return Listed(jobs, left, why)


def _job(row: dict[str, str]) -> BatchJob | None:
    """None for a step, and for what has not begun. Raises BadInput, ValueError."""
    id = row.get("JobIDRaw") or row["JobID"]
    if "." in id:
        return None
    if not re.fullmatch(r"\w{1,32}(?:[+_][\w\[\]%,-]{1,64})?", id, re.ASCII):
        raise BadInput(id[:40], "the number of a job")
    state = row.get("State", "").split(" ")[0].upper()
    start_s = seconds(row["Start"])
    if start_s is None or row["NodeList"] in _NO_NODES or state in ("PENDING", "COMPLETING"):
        # Of a job that is completing squeue names only the nodes that are not free yet.
        return None
    end_s = None if state in ("RUNNING", "SUSPENDED") else seconds(row["End"])
    if end_s is not None and end_s < start_s:
        raise BadInput(f"job {id}", "an end after its start", row["End"][:40])
    hosts = unfold(row["NodeList"])
    if not hosts:
        return None
    return BatchJob(
        id=id,
        user=intern((row.get("User") or _user(row.get("UID", "")))[:MAX_CHARACTERS]),
        name=intern(row["JobName"][:MAX_CHARACTERS]),
        nodes=tuple(map(intern, hosts)),
        start_s=start_s,
        end_s=math.inf if end_s is None else end_s,
        submit_s=seconds(row.get("Submit", "")) or 0.0,
        state=intern(state[:MAX_CHARACTERS]),
        partition=intern(row.get("Partition", "")[:MAX_CHARACTERS]),
    )


@lru_cache(maxsize=4096)
def _user(uid: str) -> str:
    """sacct knows the names of those alone whom the site has put into its accounting."""
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError, OverflowError):
        return uid


def seconds(text: str) -> float | None:
    """Since 1970, of digits or `2026-11-22T14:33:14` (local time); None where Slurm says that it does not know."""
    text = text.strip()
    if text in ("", "Unknown", "None", "N/A", "NONE", "(null)"):
        return None
    if re.fullmatch(r"\d{1,11}", text, re.ASCII):
        return float(text) or None
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        raise BadInput(text[:40], "a time such as 2026-11-22T14:33:14") from None
