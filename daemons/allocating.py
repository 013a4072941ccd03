"""What mdsd does around the allocator: is the request sane, what does the answer promise, the audit line."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path

from tarazu.errors import ConfigError
from tarazu.layout.objects import component_object_bytes
from tarazu.model import Allocation, CreateRequest
from tarazu.wire.messages import AllocationReply, AllocationRequest

log = logging.getLogger("tarazu.mdsd")

MAX_STRIPES = 5_000_000
"""Of one request; far above the largest job step, far below what would fill the memory."""
MAX_STRIPE_COUNT = 2000
"""LOV_MAX_STRIPE_COUNT."""
MAX_ID_CHARACTERS = 128


def why_malformed(request: AllocationRequest) -> str:
    """Empty for a request that can be given to the allocator, else what is wrong with it."""
    if not 0 < len(request.id) <= MAX_ID_CHARACTERS:
        return f"expected an id of 1 to {MAX_ID_CHARACTERS} characters, found {len(request.id)}"
    if not (math.isfinite(request.deadline_s) and request.deadline_s >= 0):
        return f"expected a deadline of 0 s or more, found {request.deadline_s}"
    if not (math.isfinite(request.expires_s) and request.expires_s > 0):
        return f"expected an expiry above 0 s, found {request.expires_s}"
    stripes = []
    for number, layout in enumerate(request.layouts):
        for c in layout.components:
            if not (
                0 <= c.start_bytes < c.end_bytes < 2**64
                and 0 <= c.stripe_count <= MAX_STRIPE_COUNT
                and 0 < c.stripe_size_bytes < 2**32
            ):
                return f"layout {number}: expected extents and striping within Lustre's limits"
        if not layout.components:
            return f"layout {number}: expected components, found none"
        stripes.append(sum(c.stripe_count for c in layout.components))
    total = 0
    for number, file in enumerate(request.files):
        if not 0 <= file.layout < len(stripes):
            return f"file {number}: expected a layout below {len(stripes)}, found {file.layout}"
        if not 0 <= file.size_bytes < 2**63:
            return f"file {number}: expected a size of 0 or more bytes, found {file.size_bytes}"
        total += stripes[file.layout]
    if total > MAX_STRIPES:
        return f"expected at most {MAX_STRIPES} stripes in one request, found {total}"
    return ""


def promises(files: Sequence[CreateRequest], allocation: Allocation) -> list[dict[int, int]]:
    """For each file: OST index → bytes that the forecast puts there. Start hints promise nothing."""
    sizes: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    result = []
    for file, placement in zip(files, allocation.files, strict=True):
        key = (id(file.layout), file.size_bytes)
        if key not in sizes:
            covered = file.layout.components[: file.layout.covered(file.size_bytes)]
            sizes[key] = [component_object_bytes(c, file.size_bytes) for c in covered]
        by_ost: dict[int, int] = {}
        for weights, osts in zip(sizes[key], placement.osts):
            for weight, ost in zip(weights, osts):
                by_ost[ost] = by_ost.get(ost, 0) + weight
        result.append(by_ost)
    return result


def reply_of(request: AllocationRequest, allocation: Allocation, view_age_s: float) -> AllocationReply:
    return AllocationReply(
        request.id,
        "allocated",
        osts=tuple(file.osts for file in allocation.files),
        policy=allocation.policy,
        ost_cost=allocation.ost_cost,
        ost_cost_bound=allocation.ost_cost_bound,
        elapsed_s=allocation.elapsed_s,
        view_age_s=view_age_s,
    )


class Audit:
    """One line per answered allocation request, `name=value` with strings quoted as in JSON."""

    def __init__(self, path: str) -> None:
        """`path` "" writes to the daemon's log. Raises ConfigError for a file that cannot be written."""
        self.path = Path(path) if path else None
        self._failed = False
        if self.path:
            try:
                self.path.open("a").close()
            except OSError as error:
                raise ConfigError(path, "a writable file for mdsd.audit_log", error.strerror) from None

    def write(self, request: AllocationRequest, reply: AllocationReply, waited_s: float) -> None:
        line = " ".join(f"{name}={value}" for name, value in _fields(request, reply, waited_s).items())
        if self.path is None:
            log.info("%s", line)
            return
        try:
            # Opened for each line, so that the file can be rotated without telling us.
            with self.path.open("a") as file:
                file.write(line + "\n")
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.error("%s: audit lines are lost: %s", self.path, error.strerror)
            self._failed = True


def _fields(request: AllocationRequest, reply: AllocationReply, waited_s: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
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
    else:
        fields["reason"] = json.dumps(reply.reason)
    return {**fields, "elapsed_s": f"{reply.elapsed_s:.3f}", "waited_s": f"{waited_s:.3f}"}
