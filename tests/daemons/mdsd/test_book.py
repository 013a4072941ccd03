"""The ledger on disk: what was noted and committed is there again, whatever cut the process off."""

from __future__ import annotations

import errno
import os
import shutil
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import (
    Closed,
    Died,
    Ended,
    Heard,
    Passed,
    Promised,
    Record,
    Replied,
    Revoked,
    packed,
)
from tarazu.daemons.mdsd import book as books
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import UNSEEN_S, LedgerClock, Sources
from tarazu.errors import StoreError
from tarazu.store import frames
from tests.hostile.ledger import mutate_ledger, write_ledger

IDS = st.sampled_from([f"id{n}" for n in range(6)])
TIMES = st.floats(0, 100, allow_nan=False)
PER_OST = st.dictionaries(st.integers(0, 9), st.integers(0, 1 << 40), max_size=4)


def promised(id: str, files: list[dict[int, int]], at_s: float = 1.0, **changes: object) -> Promised:
    parts = packed(pack(files))
    whole = Promised(
        id, "scratch", 1000, at_s, at_s + 50.0, 5.0, *parts, b"reply to " + id.encode(), at_s + 60.0
    )
    return msgspec.structs.replace(whole, **changes)


RECORDS = st.one_of(
    st.builds(promised, IDS, st.lists(PER_OST, max_size=4), TIMES, uid=st.integers(0, 3)),
    st.builds(Replied, IDS, st.integers(0, 3), st.binary(max_size=20), TIMES),
    st.builds(
        Closed,
        IDS,
        TIMES,
        TIMES,
        st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 1 << 41)), max_size=3).map(tuple),
    ),
    st.builds(Ended, IDS, TIMES),
    st.builds(Revoked, IDS),
    st.builds(Died, st.lists(IDS, max_size=3).map(tuple), TIMES),
    st.builds(Heard, IDS, TIMES),
    st.builds(Passed, TIMES),
)
TURNS = st.lists(st.lists(RECORDS, min_size=1, max_size=4), max_size=8)


class Node:
    """Clocks that stand still until they are told."""

    def __init__(self) -> None:
        self.boottime_s, self.unix_s, self.boot = 1000.0, 1.7e9, "boot-1"

    def clock(self) -> LedgerClock:
        return LedgerClock(Sources(lambda: self.boottime_s, lambda: self.unix_s, lambda: self.boot))


def turn(book: Book, records: list[Record]) -> str:
    for record in records:
        book.note(record)
    book.commit()
    assert book.durable == book.sequence and not book.trouble
    return book.digest()


def reopened(directory: Path) -> Book:
    book = Book.open(directory, Node().clock())
    book.close()
    return book


@settings(max_examples=60, deadline=None)
@given(turns=TURNS, compact=st.sets(st.integers(0, 7)))
def test_a_restart_changes_nothing_with_snapshots_at_any_time(
    tmp_path_factory: pytest.TempPathFactory, turns: list[list[Record]], compact: set[int]
) -> None:
    directory = tmp_path_factory.mktemp("ledger")
    book = Book.open(directory, Node().clock())
    in_memory = Book(Node().clock())
    digests = [book.digest()]
    for number, records in enumerate(turns):
        if number in compact:
            book.limit_bytes, book._compact_at = 0, 0.0
        digests.append(turn(book, records))
        for record in records:
            in_memory.note(record)
    book.close()
    assert in_memory.digest() == digests[-1]
    again = reopened(directory)
    assert (again.digest(), again.damages) == (digests[-1], [])
    # A second restart, and one through the snapshot that a standby gets.
    assert reopened(directory).digest() == digests[-1]
    other = Book(Node().clock())
    other.restore(again.snapshot())
    assert (other.digest(), other.sequence) == (digests[-1], again.sequence)


def some_turns(directory: Path) -> list[tuple[int, str]]:
    """(bytes of the log, digest) after each turn."""
    book = Book.open(directory, Node().clock())
    found = []
    for number in range(3):
        records: list[Record] = [promised(f"a{number}", [{number: 100, 7: 5}]), Ended(f"a{number - 1}", 2.0)]
        digest = turn(book, records)
        assert book._journal
        found.append((book._journal.bytes, digest))
    book.close()
    return found


def test_a_log_cut_at_any_byte_of_its_tail_is_as_it_was_before_the_last_turn(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    turns = some_turns(whole)
    (log,) = whole.glob("log-*")
    before = turns[-2]
    for size in range(before[0], turns[-1][0]):
        cut = tmp_path / f"cut{size}"
        shutil.copytree(whole, cut)
        os.truncate(cut / log.name, size)
        book = Book.open(cut, Node().clock())
        assert (book.digest(), book.damages) == (before[1], [])
        # It goes on behind the cut.
        digest = turn(book, [promised("new", [{1: 1}])])
        book.close()
        assert reopened(cut).digest() == digest
        shutil.rmtree(cut)


def test_an_empty_log_as_a_kill_leaves_it_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / f"log-{0:020}").touch()
    book = Book.open(tmp_path, Node().clock())
    digest = turn(book, [promised("a", [{1: 1}])])
    book.close()
    assert reopened(tmp_path).digest() == digest


def test_a_flipped_bit_in_the_middle_costs_one_turn_and_is_said_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turns = some_turns(tmp_path)
    (log,) = tmp_path.glob("log-*")
    data = bytearray(log.read_bytes())
    data[turns[0][0] + 60] ^= 4
    log.write_bytes(data)
    book = Book.open(tmp_path, Node().clock())
    damage = book.damages[0]
    assert (damage.path, damage.offset) == (log, turns[0][0])
    assert f"{log}: byte {turns[0][0]}: expected a frame of" in caplog.text and "with checksum" in caplog.text
    held = {id for id, _ in book.ledger.promises()}
    assert held == {"a0", "a2"}, "what is before and behind it counts"
    digest = book.digest()
    book.close()
    assert [p.name for p in tmp_path.glob("damaged-*")] == [f"damaged-{log.name}-1"]
    assert (tmp_path / f"damaged-{log.name}-1").read_bytes() == data
    again = reopened(tmp_path)
    assert (again.digest(), again.damages) == (digest, [])


def test_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    some_turns(tmp_path)
    (log,) = tmp_path.glob("log-*")
    newer = frames.header(0).replace((1).to_bytes(4, "little"), (2).to_bytes(4, "little"), 1)[:-4]
    newer += zlib.crc32(newer).to_bytes(4, "little")
    data = newer + log.read_bytes()[len(newer) :]
    log.write_bytes(data)
    with pytest.raises(StoreError, match="expected a ledger of version 1 or older, found 2"):
        Book.open(tmp_path, Node().clock())
    assert log.read_bytes() == data


def test_a_ledger_is_the_same_bytes_for_the_same_records(tmp_path: Path) -> None:
    assert write_ledger(tmp_path / "a") == write_ledger(tmp_path / "b")
    files = [{p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in "ab"]
    assert files[0] == files[1] and len(files[0]) == 2


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = Book.open(tmp_path)
    with pytest.raises(StoreError, match="a ledger that no other process uses"):
        Book.open(tmp_path)
    first.close()
    Book.open(tmp_path).close()


def test_a_compaction_cut_off_anywhere_leaves_the_state_before_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill -9 leaves after each step that changes the directory."""
    directory, kept = tmp_path / "ledger", tmp_path / "kept"
    directory.mkdir()
    steps: list[Path] = []

    def keep(*_: object) -> None:
        steps.append(kept / str(len(steps)))
        shutil.copytree(directory, steps[-1])

    for name in ("fsync", "pwrite", "ftruncate"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real: (keep(), real(*a), keep())[1])
    for name in ("unlink", "rename"):
        real = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda *a, real=real: (keep(), real(*a), keep())[1])
    book = Book.open(directory, Node().clock())
    turn(book, [promised("a", [{1: 100}])])
    begin = len(steps)
    before = book.digest()
    book.limit_bytes = 0
    after = turn(book, [promised("b", [{2: 7}]), Replied("c", 1, b"no", 90.0)])
    book.close()
    assert len(steps) - begin >= 10
    monkeypatch.undo()
    for step in steps[begin:]:
        found = reopened(step)
        assert found.digest() in (before, after) and not found.damages
    assert found.digest() == after


class FullDisk:
    """Writes of the journal end in ENOSPC after some bytes while `full`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        real = os.pwrite

        def pwrite(fd: int, data: memoryview, offset: int) -> int:
            if not self.full:
                return real(fd, data, offset)
            if len(data) > 10:
                return real(fd, data[:10], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "pwrite", pwrite)


@pytest.mark.parametrize("queued", [books.MAX_QUEUED_BYTES, 0])
def test_a_full_disk_holds_records_back_and_they_are_written_once_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: int
) -> None:
    monkeypatch.setattr(books, "MAX_QUEUED_BYTES", queued)
    monkeypatch.setattr(books, "RETRY_S", 0.0)
    disk = FullDisk(monkeypatch)
    book = Book.open(tmp_path, Node().clock())
    turn(book, [promised("a", [{1: 100}]), promised("b", [{1: 100}])])
    durable, digest = book.durable, book.digest()
    disk.full = True
    book.note(promised("c", [{1: 100}]))
    book.commit()
    assert book.durable == durable and "No space left on device" in book.trouble
    assert not reopened_copy(tmp_path, digest).damages
    book.note(Revoked("c"))
    book.note(Ended("a", 2.0))
    book.commit()
    book.commit()
    assert book.durable == durable and book.ledger.promised("scratch") == {1: 100}
    disk.full = False
    book.commit()
    assert book.durable == book.sequence and not book.trouble
    book.close()
    again = reopened(tmp_path)
    assert again.digest() == book.digest() and again.ledger.promised("scratch") == {1: 100}
    assert not again.damages


def reopened_copy(directory: Path, digest: str) -> Book:
    copy = directory.with_name(directory.name + "-copy")
    shutil.copytree(directory, copy)
    book = reopened(copy)
    assert book.digest() == digest
    return book


def test_the_ledgers_clock_follows_no_jump_and_counts_an_absence(tmp_path: Path) -> None:
    node = Node()
    clock = node.clock()
    begin = clock.now()
    node.unix_s += 1e9
    assert clock.now() == begin
    node.boottime_s += 30
    assert clock.now() == begin + 30
    node.boottime_s -= 1e6
    assert clock.now() == begin + 30
    node.boottime_s += 1e8
    assert clock.now() == begin + 30 + UNSEEN_S
    mark, now = clock.mark(), clock.now()
    # mdsd was away in the same boot: that is counted.
    node.boottime_s += 7200
    node.unix_s -= 1e9
    clock = node.clock()
    clock.resume(mark, now)
    assert clock.now() == now + 7200
    # In another boot Unix time counts, as far as it can be believed.
    for passed_s, counted_s in ((60, 60), (-1e9, 0), (1e9, UNSEEN_S)):
        mark, now = clock.mark(), clock.now()
        node.boot += "x"
        node.boottime_s, node.unix_s = 5.0, node.unix_s + passed_s
        clock = node.clock()
        clock.resume(mark, now)
        assert clock.now() == pytest.approx(now + counted_s)


def test_after_a_restart_living_steps_count_as_heard_and_time_went_on(tmp_path: Path) -> None:
    node = Node()
    book = Book.open(tmp_path, node.clock())
    now = book.clock.now()
    book.note(promised("lives", [{1: 100}], now, expires_at_s=now + 5000, alive_s=30.0))
    book.note(promised("expires", [{1: 50}], now, expires_at_s=now + 100, alive_s=30.0))
    book.commit()
    book.close()
    node.boottime_s += 600
    node.unix_s += 600
    book = Book.open(tmp_path, node.clock())
    assert book.pass_time(book.clock.now(), listening=True) == []
    assert book.ledger.promised("scratch") == {1: 100}
    node.boottime_s += 29
    assert book.pass_time(book.clock.now(), listening=True) == []
    node.boottime_s += 2
    (dead,) = book.pass_time(book.clock.now(), listening=True)
    assert dead.id == "lives"
    book.close()


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"expected a directory for the ledger \(below state.directory\)"):
        Book.open(tmp_path / "file" / "below")


def test_damaged_and_forged_ledgers_are_opened_and_repaired() -> None:
    counts = mutate_ledger(150, seed=7)
    assert sum(counts.values()) == 150 and counts["damaged"] > 30


def test_a_book_that_is_restored_forgets_what_was_closed_twice_when_the_other_one_does() -> None:
    one, other = Book(LedgerClock()), Book(LedgerClock())
    one.note(promised("b", [{0: 100}], 1.0, alive_s=0.0))
    one.note(promised("a", [{0: 100}, {0: 100}], 1.0, alive_s=0.0))
    one.note(Closed("a", 2.0, 3.5, ((0, 50),)))
    one.note(Closed("a", 3.0, 5.5, ((0, 50),)))  # later than said first: its timer of 4.0 stays
    one.note(Closed("b", 3.0, 5.2, ((0, 50),)))
    other.restore(one.snapshot())
    for record in (Ended("a", 3.2), Passed(5.7), Passed(6.0)):
        one.note(record)
        other.note(record)
        assert one.digest() == other.digest()
    assert not len(one.ledger)
