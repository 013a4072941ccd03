"""A plan with stripe counts by curves beside mdsds that do not say how many stripes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.daemons import questions
from tarazu.part import Live
from tarazu.parts.forwarding.messages import CountReply, CountRequest
from tarazu.wire.messages import Acknowledged, PartReply, PartRequest, Reply, Request
from tests.daemons.clientd import test_plan_stripes
from tests.daemons.clientd.test_plan_stripes import GIB, UID, Plans, patient  # noqa: F401
from tests.daemons.listening import PATIENCE_S


class Mdsd(test_plan_stripes.Mdsd):
    """Also says how many stripes; `count` None: it is silent; below 0: it has no such part."""

    count: int | None = None

    def answer(self, asked: Request) -> Reply | None:
        if not isinstance(asked, PartRequest):
            return super().answer(asked)
        if self.count is None:
            return None
        if self.count < 0:
            return Acknowledged(asked.message_id)
        return PartReply(asked.message_id, msgspec.msgpack.encode(CountReply(self.count, "by a test")))

    def counts(self) -> list[tuple[int, CountRequest]]:
        """Those who asked, and what for."""
        return [
            (asked.uid, msgspec.msgpack.decode(asked.body, type=CountRequest))
            for asked in self.asked
            if isinstance(asked, PartRequest) and asked.part == "forwarding"
        ]


def stripes(plans: Plans, curves: str, stripe_count: str = "auto") -> str:
    return plans.stripes(stripe_count, {"forwarding": {"stripe_counts": True, "curves": curves}})


@pytest.mark.long
def test_without_an_answer_everything_is_as_with_auto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("application,resources,bytes_per_s\napp,1,1e9\napp,3,2e9\n")
    mdsd = Mdsd()
    plans = Plans(mdsd, tmp_path, Live(lambda part: part))
    mdsd.start()
    try:
        assert stripes(plans, str(tmp_path / "none")).startswith(f"8: as auto: {tmp_path}")
        assert stripes(plans, str(path), "4") == "4: " and not mdsd.counts()
        assert "as auto: tcp://" in (told := stripes(plans, str(path))) and "within 1 s, found none" in told
        monkeypatch.setattr(questions, "PART_S", PATIENCE_S)
        mdsd.count = -1
        assert "as auto: mdsd: expected its PartReply, found 'Acknowledged'" in stripes(plans, str(path))
        mdsd.count = 0
        assert stripes(plans, str(path)).startswith("8: as auto: by a test; auto: 8 instead of 1: ")
        mdsd.count = 5
        assert stripes(plans, str(path)) == f"5: 5 by a test; the curve of app in {path}"
        uid, asked = mdsd.counts()[-1]
        assert (asked.profile.io_bytes, asked.alive_s, uid) == (4 * GIB, 0, UID)
        assert asked.profile.points == ((1, 1e9), (3, 2e9))
    finally:
        plans.planner.close()
        mdsd.ended = True
        mdsd.join()
