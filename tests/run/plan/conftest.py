"""Plans as clientd answers them."""

from __future__ import annotations

from tarazu.lustre import EOF
from tarazu.model import Component, FileName, JobStep, Layout
from tarazu.wire import local

PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))
STEP = JobStep("lustre", 1000, "app", "1")
FILES = 200


def reply(number: int, files: int = FILES, rank: int = 0) -> local.PlanReply:
    """Plan `number`, with rows of its own."""
    rows = tuple(
        local.PlannedFile(
            row_id=1 + number * files + n,
            name=FileName(f"/{number}.{n}", f"/{number}.{n}", f"/{number}.{{n}}", False, rank, 0, n),
            size_bytes=100,
            layout=0,
            osts=((n % 4, (n + 1) % 4),),
            request_index=n,
        )
        for n in range(files)
    )
    return local.PlanReply("planned", "", number + 1, f"request{number}", (PLAIN,), rows)
