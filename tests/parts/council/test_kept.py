"""What a council has on disk."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.service import claim
from tarazu.daemons.writer import Writer
from tarazu.errors import StoreError, Unavailable
from tarazu.parts.council import kept as module
from tarazu.parts.council.here import here, set_mode
from tarazu.parts.council.kept import CouncilDirectory


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
    assert found is not None and (found.mode, found.why, found.ordered) == ("apply", "by me", True)
    assert found.learned == [] and found.unread == "" and found.status == {}
    assert set_mode(settings, "observe", "tarazu change tune --undo") == "apply"
    (tmp_path / "tarazu-council" / "mode").write_bytes(b"{}")
    with pytest.raises(StoreError, match="a mode that was ordered"):
        here(settings)
    assert set_mode(settings, "observe", "") == "advise"


def test_knowledge_that_is_none_is_said_where_it_is_shown(tmp_path: Path) -> None:
    settings = config.Settings(state=config.State(str(tmp_path)))
    (tmp_path / "tarazu-council").mkdir()
    (tmp_path / "tarazu-council" / "knowledge.json").write_bytes(b"\xff")
    (tmp_path / "tarazu-council" / "status.json").write_bytes(b"\xff")
    found = here(settings)
    assert found is not None and "what a council has learned" in found.unread


def test_a_disk_that_is_slow_or_full_holds_nobody_up() -> None:
    writer, go, written = Writer(), threading.Event(), []

    def slow(data: bytes) -> None:
        go.wait(120.0)
        written.append(data)

    def full(data: bytes) -> None:
        raise StoreError("/k", "a directory that can be written", "No space left on device")

    for n in range(100):
        writer.write(slow, lambda n=n: b"%d" % n)
    go.set()
    writer.close()
    assert written[-1] == b"99" and len(written) <= 2 and writer.trouble == ""
    writer = Writer()
    writer.write(full, lambda: b"")
    writer.write(written.append, lambda: b"beside")
    writer.close()
    assert "No space left" in writer.trouble and written[-1] == b"beside"


def test_a_mistake_in_one_text_does_not_end_all_writing() -> None:
    writer, done = Writer(), threading.Event()

    def wrong() -> bytes:
        done.set()
        raise OverflowError("no number of JSON")

    written: list[bytes] = []
    writer.write(lambda _: None, wrong)
    assert done.wait(120.0)
    writer.write(written.append, lambda: b"next")
    writer.close()
    assert written == [b"next"] and "no number of JSON" in writer.trouble
