"""What a council has on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.service import claim
from tarazu.errors import StoreError, Unavailable
from tarazu.parts.council import here as module
from tarazu.parts.council.here import CouncilDirectory, here, set_mode


def test_knowledge_is_replaced_whole_and_what_a_crash_left_goes(tmp_path: Path) -> None:
    kept = CouncilDirectory(tmp_path / "k")
    assert kept.knowledge() is None
    kept.write_knowledge(b"one")
    (kept.directory / ".knowledge.json.ab12.part").write_bytes(b"half")
    kept.write_knowledge(b"two")
    found = kept.knowledge()
    assert found is not None and found[0] == b"two" and found[1] < 60
    claimed = claim(kept.directory, "another one has it")
    assert sorted(p.name for p in kept.directory.iterdir()) == ["daemon", "knowledge.json"]
    with pytest.raises(Unavailable, match="another one has it"):
        claim(kept.directory, "another one has it")
    module.os.close(claimed)


def test_too_much_is_no_knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 3)
    (tmp_path / "knowledge.json").write_bytes(b"four")
    with pytest.raises(StoreError, match="at most 3 bytes"):
        CouncilDirectory(tmp_path).knowledge()


def test_what_was_ordered_counts_until_another_order(tmp_path: Path) -> None:
    settings = config.override(
        config.Settings(state=config.State(str(tmp_path))), "part.council", mode="advise"
    )
    assert here(settings) is None
    assert set_mode(settings, "apply", "by me") == "advise"
    found = here(settings)
    assert found is not None and (found.mode, found.why) == ("apply", "by me")
    assert found.learned == [] and found.unread == ""
    assert set_mode(settings, "observe", "tarazu change tune --undo") == "apply"
    (tmp_path / "tarazu-council" / "mode").write_bytes(b"{}")
    with pytest.raises(StoreError, match="a mode that was ordered"):
        here(settings)
    assert set_mode(settings, "observe", "") == "advise"


def test_knowledge_that_is_none_is_said_where_it_is_shown(tmp_path: Path) -> None:
    settings = config.Settings(state=config.State(str(tmp_path)))
    (tmp_path / "tarazu-council").mkdir()
    (tmp_path / "tarazu-council" / "knowledge.json").write_bytes(b"\xff")
    found = here(settings)
    assert found is not None and "what a council has learned" in found.unread
