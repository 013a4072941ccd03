"""mdsd's audit log: one line per answered allocation request, per step that died, per change of an OST's health;
and what parts note.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from tarazu.allocate.ledger import Dead
from tarazu.daemons.audit_file import AuditFile
from tarazu.daemons.mdsd.health import HealthChange, word
from tarazu.wire.bounds import MAX_ID_CHARACTERS
from tarazu.wire.messages import AllocationReply, AllocationRequest

log = logging.getLogger("tarazu.mdsd")


class Audit:
    """Lines of `name=value`, strings quoted as in JSON."""

    def __init__(self, path: str) -> None:
        """`path` "" writes to the daemon's log. Raises ConfigError for a file that cannot be written."""
        self._file = AuditFile(path, log)
        self._file.check("mdsd.audit_log")

    def write(
        self, request: AllocationRequest, reply: AllocationReply, waited_s: float, refused_key: str = ""
    ) -> None:
        """`refused_key`: the name of the key that may not ask this."""
        key = {"key": json.dumps(refused_key)} if refused_key else {}
        self._file.line({**_fields(request, reply, waited_s), **key})

    def died(self, dead: Dead) -> None:
        """A job step was silent for too long: what it had open is promised no more."""
        self._file.line(
            {
                "status": "died",
                "id": json.dumps(dead.id),
                "fs": json.dumps(dead.fs_name),
                "uid": dead.uid,
                "bytes": dead.size_bytes,
                "silent_s": f"{dead.silent_s:.1f}",
            }
        )

    def health(self, change: HealthChange, allocations: int) -> None:
        """The health of an OST changed; the leaders of the `allocations` with promises there get the news."""
        (fs_name, index), before, now = change
        self._file.line(
            {
                "status": "health",
                "fs": json.dumps(fs_name),
                "ost": index,
                "health": word(now) or "well",
                "why": json.dumps(now.why),
                "was": word(before) or "well",
                "allocations": allocations,
            }
        )

    def part(self, name: str, fields: Mapping[str, object]) -> None:
        """What a part has to note; values as they are to stand there."""
        self._file.line({"status": "part", "part": name, **fields})


def _fields(request: AllocationRequest, reply: AllocationReply, waited_s: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "status": reply.status,
        "id": json.dumps(request.id[:MAX_ID_CHARACTERS]),
        "fs": json.dumps(request.fs_name[:MAX_ID_CHARACTERS]),
        "uid": request.uid,
        "job": json.dumps(request.job_id[:MAX_ID_CHARACTERS]),
        "files": len(request.files),
        "bytes": sum(file.size_bytes for file in request.files),
    }
    if reply.status == "allocated":
        fields |= {
            "policy": reply.policy,
            "cost": f"{reply.ost_cost:.4f}",
            "bound": f"{reply.ost_cost_bound:.4f}",
        }
        if reply.left:
            fields["left"] = sum(len(left.files) for left in reply.left)
            fields["reason"] = json.dumps(reply.left[0].why)
    else:
        fields["reason"] = json.dumps(reply.reason)
    return {**fields, "elapsed_s": f"{reply.elapsed_s:.3f}", "waited_s": f"{waited_s:.3f}"}
