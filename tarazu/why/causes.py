"""Which causes cost a run its time, by a model of the slowest OST."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.why.facts import Explanation, Run, System


def causes(run: Run, earlier: Sequence[Run], system: System | None = None) -> Explanation:
    """Why `run` took as long as it did, beside `earlier` ones of the same application and beside `system`.

    `earlier`: any of the application, each with its own `system` where that is known; those of another signature
    (ranks, bytes within a factor) are passed over. `system` None: `run.system`.
    """
    raise NotImplementedError
