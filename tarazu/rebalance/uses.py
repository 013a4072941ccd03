"""Which files were moved again and again: of Darshan logs what was read, of tarazu's history what was rewritten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tarazu.rebalance.datasets import Use
from tarazu.trace.darshan.log import Log
from tarazu.trace.records import RunRecord


def of_log(log: Log) -> Use:
    """What the job read of files on Lustre, by their paths of then."""
    moved: dict[str, int] = defaultdict(int)
    rows = log.accesses
    for record, size in zip(rows["record"].tolist(), rows["read_bytes"].tolist(), strict=True):
        name = log.names.get(record, "")
        mount = log.mount_of(name) if size else None
        if mount and mount.kind == "lustre":
            moved[name] += size
    return Use(log.application or log.path, log.start_s, moved)


def of_history(runs: Iterable[RunRecord], mounts: Mapping[str, str]) -> list[Use]:
    """Files that were there when a run opened them to write: they keep their OSTs, however often they are rewritten.

    mounts: file system name → its mount point.
    """
    made = []
    for run in runs:
        mount = mounts.get(run.step.fs_name)
        if mount is None:
            continue
        moved = {mount + f.key: f.written_bytes or f.size_bytes for f in run.files if f.existed}
        made.append(Use(run.step.application, run.start_s, moved))
    return made
