"""What the page shows of `tarazu whatif --json` is what that prints."""

from __future__ import annotations

import msgspec

from tarazu.parts.page import results as shown
from tarazu.parts.whatif.comparison import Comparison
from tarazu.parts.whatif.study import WhatIf
from tarazu.report.placed import Placed, Spread


def test_it_is_what_the_command_prints() -> None:
    """Field by field, and with the same figure for what there is to gain."""
    for ours, theirs in ((shown.SavedJob, WhatIf), (shown.SavedComparison, Comparison)):
        assert set(ours.__struct_fields__) <= set(theirs.__struct_fields__), ours

    def placed(policy: str, seconds: float) -> Placed:
        spread = Spread(seconds, seconds, seconds)
        return Placed(policy, 1, spread, spread)

    whole = WhatIf(
        "a.darshan", "ior", "/scratch", 4, 4, 4, 9, 0.0, 1.0, 1.0, 1, 8, "1", placed("logged", 9.5),
        Comparison((placed("tarazu", 3.25),), 1.0, 3.0, 4), (), (), (), "", "",
    )  # fmt: skip
    (job,) = msgspec.json.decode(msgspec.json.encode([whole]), type=tuple[shown.SavedJob, ...])
    assert job.gain_s == whole.gain_s == 6.25
