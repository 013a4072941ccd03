"""What mdsd keeps of how the system was: what comes back of it, how large it is, what a damaged file costs."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tarazu.config import Settings
from tarazu.daemons.mdsd import hour, record
from tarazu.daemons.mdsd.hour import AMOUNT, Hour, OstNow, ServerNow, Sums, decode, encode, packed
from tarazu.daemons.mdsd.record import KEEP_S, MOST_BYTES, Record, span_s
from tarazu.ost_state import Verdict
from tarazu.then import JobThen
from tarazu.wire import messages
from tarazu.wire.messages import ThenReply, ThenRequest
from tarazu.wire.transport import Peer

BEGIN_S = 1_800_000_000
PEER = Peer("client1", b"1")


def filled(spans: int = 60, osts: int = 4) -> Hour:
    """A minute each: OST 1 slow, OST 3 full; job 12 moves most, job 4711 does most operations on oss0."""
    kept = Hour("scratch", BEGIN_S, 60)
    for span in range(spans):
        now = {
            index: OstNow(
                f"oss{index // 2}", 6e9, 1e9, 7000.0, 0.5, 0.2 if index == 1 else 1.0,
                0.99 if index == 3 else 0.4, Verdict.FULL if index == 3 else Verdict.OK, 5e8,
            )
            for index in range(osts)
        }  # fmt: skip
        jobs = (JobThen("12", 8e9, 100), JobThen("4711", 1e9, 5000))
        servers = {"oss0": ServerNow(0.5, 1e10, jobs), "oss1": ServerNow(0.9, 1e10, ())}
        kept.add(BEGIN_S + 60 * (span + 1), now, servers, 300.0)
    return kept


def test_amounts_come_back_to_six_percent() -> None:
    for value in (1, 7, 4096, 1e6, 3.3e9, 1e13):
        assert AMOUNT[packed(value)] == pytest.approx(value, rel=0.065)
    assert packed(None) == 0 and AMOUNT[packed(0.0)] == 0 and packed(float("inf")) == 255


def test_what_was_kept_of_a_time_comes_back_by_ost_server_and_job() -> None:
    sums = Sums([0, 1], BEGIN_S + 60, BEGIN_S + 60 + 90)  # one span and a half
    sums.add(decode(encode(filled().kept())))
    found = sums.system(35)
    assert found is not None and found.seconds == pytest.approx(90) and found.usable_osts == 35
    assert list(found.osts) == [0, 1, 3], "those that were asked for, and the full one"
    assert found.osts[0].bytes == pytest.approx(1.5 * 7e9, rel=0.1)
    assert found.osts[0].operations == pytest.approx(1.5 * 7000, rel=0.1)
    assert (found.osts[0].in_flight, found.osts[1].speed) == (
        pytest.approx(0.5, rel=0.1),
        pytest.approx(0.2, rel=0.05),
    )
    assert found.osts[3].verdict is Verdict.FULL and found.osts[3].fill == pytest.approx(0.99, abs=0.01)
    assert found.osts[0].peak_bytes_per_s == 5e8
    assert list(found.servers) == ["oss0"]
    of = found.servers["oss0"]
    assert [job.job_id for job in of.jobs] == ["12", "4711"]
    assert of.jobs[1].operations == pytest.approx(7500, rel=0.1)
    assert (of.bytes, of.link_bytes_per_s) == (pytest.approx(2 * 1.5 * 7e9, rel=0.1), 1e10)
    assert found.metadata_per_s == pytest.approx(300, rel=0.07)


def test_of_a_time_before_nothing_is_known() -> None:
    sums = Sums([0], BEGIN_S - 600, BEGIN_S)
    sums.add(filled().kept())
    assert sums.system() is None


def test_osts_that_come_within_the_hour_are_unknown_before() -> None:
    kept = Hour("scratch", BEGIN_S, 60)
    one = OstNow("oss0", 1e9, 0.0, 10.0, None, None, 0.1, Verdict.OK, None)
    kept.add(BEGIN_S + 60, {0: one}, {}, None)
    kept.add(BEGIN_S + 120, {0: one, 7: one}, {}, None)
    sums = Sums([0, 7], BEGIN_S, BEGIN_S + 120)
    sums.add(kept.kept())
    found = sums.system()
    assert found is not None and found.metadata_per_s is None and found.osts[7].speed is None
    assert found.osts[0].bytes == pytest.approx(2e9, rel=0.07) and found.osts[7].bytes == pytest.approx(
        1e9, rel=0.07
    )


@pytest.mark.parametrize("osts", [35, 480, 3600, 10_000, 80_000])
def test_its_size_is_bounded_at_any_number_of_osts(osts: int) -> None:
    span = span_s(osts, 1.0)
    assert span == {35: 1, 480: 5, 3600: 30, 10_000: 60, 80_000: 300}[osts]
    if osts <= 10_000:
        assert osts * len(hour.COLUMNS) * KEEP_S / span <= MOST_BYTES


def test_an_hour_of_a_thousand_osts_takes_half_a_megabyte() -> None:
    kept = Hour("scratch", BEGIN_S, 60)
    random = np.random.default_rng(0)
    amounts = random.lognormal(20, 3, (60, 1000, 3))
    for span in range(60):
        now = {
            index: OstNow(f"oss{index // 20}", *amounts[span, index], 1.0, 1.0, 0.5, Verdict.OK, 1e9)
            for index in range(1000)
        }
        servers = {f"oss{n}": ServerNow(0.2, 1e10, [JobThen(str(n % 97), 1e9, 1e3)] * 3) for n in range(50)}
        kept.add(BEGIN_S + 60 * (span + 1), now, servers, 300.0)
    assert kept.bytes < 1600 << 10
    assert len(encode(kept.kept())) < 512 << 10


class Settling:
    """Just after mdsd's start, while servers come back."""

    def may_settle(self) -> bool:
        return True


def test_no_turn_follows_the_last_at_once_while_servers_come_back() -> None:
    keeper = Record("", lambda peer, reply: None, lambda: None)
    now = time.monotonic() + 1
    keeper.look(Settling(), None, now)  # type: ignore[arg-type]  # no sample is taken
    assert keeper.next_s(now) > 0
    keeper.close()


def answered(keeper: Record, from_ago_s: float, to_ago_s: float, replies: list[bytes]) -> ThenReply:
    keeper.ask(PEER, ThenRequest("q", "scratch", (0, 1), from_ago_s, to_ago_s), 4)
    deadline = time.monotonic() + 120
    while not replies and time.monotonic() < deadline:
        time.sleep(0.01)
        keeper.look(None, None, time.monotonic() - 1e6)  # type: ignore[arg-type]  # no sample is due
    reply = messages.decode(replies.pop())
    assert isinstance(reply, ThenReply)
    return reply


@pytest.fixture
def kept_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An hour that ended half an hour ago."""
    monkeypatch.setattr(time, "time", lambda: BEGIN_S + 5400.0)
    keeper = Record(str(tmp_path), lambda peer, reply: None, lambda: None)
    keeper._write(filled().kept())
    keeper.close()
    return tmp_path


def test_it_is_there_after_a_restart_and_a_damaged_file_costs_an_hour_only(kept_files: Path) -> None:
    replies: list[bytes] = []
    keeper = Record(str(kept_files), lambda peer, reply: replies.append(reply), lambda: None)
    found = answered(keeper, 5400, 1800, replies).system
    assert found is not None and found.seconds == pytest.approx(3600)
    (path,) = (kept_files / "then").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    for content in (b"", b"\x78\x9c", path.read_bytes()[:-20], b"\xff" * 1000):
        path.write_bytes(content)
        assert answered(keeper, 5400, 1800, replies).system is None
    keeper.close()


def test_a_question_that_nobody_waits_for_any_more_costs_the_next_ones_nothing(
    kept_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(record, "THEN_S", -1.0)
    monkeypatch.setattr(record, "decode", read.append)
    replies: list[bytes] = []
    keeper = Record(str(kept_files), lambda peer, reply: replies.append(reply), lambda: None)
    for number in range(record.MOST_WAITING + 1):
        keeper.ask(PEER, ThenRequest(str(number), "scratch", (0, 1), 5400, 1800), 4)
    keeper._worker.submit(lambda: None).result()
    keeper.look(None, None, time.monotonic() - 1e6)  # type: ignore[arg-type]  # no sample is due
    assert (read, replies) == ([], [])
    monkeypatch.undo()
    monkeypatch.setattr(time, "time", lambda: BEGIN_S + 5400.0)
    assert answered(keeper, 5400, 1800, replies).system is not None
    keeper.close()


def test_many_questions_at_once_hold_one_copy_of_the_hour() -> None:
    kept = filled(2)
    one = kept.kept()
    assert kept.kept() is one
    kept.add(BEGIN_S + 240, {}, {}, None)
    assert kept.kept() is not one and (len(one.spans), len(kept.kept().spans)) == (2, 3)


def test_a_file_with_a_span_that_no_hour_has_is_refused_when_it_is_read() -> None:
    kept = filled(2).kept()
    for span in (-1, 1 << 16):
        kept.spans[0] = span
        with pytest.raises(ValueError, match="a span that no hour has"):
            decode(encode(kept))


def test_a_clock_that_was_set_back_counts_no_time_twice(kept_files: Path) -> None:
    replies: list[bytes] = []
    keeper = Record(str(kept_files), lambda peer, reply: replies.append(reply), lambda: None)
    again = filled()
    again.begin_s += 1800
    keeper._write(again.kept())
    found = answered(keeper, 5400, 0, replies).system
    assert found is not None and found.seconds == pytest.approx(5400)
    assert found.osts[0].bytes == pytest.approx(90 * 7e9, rel=0.1)
    keeper.close()


def test_what_is_older_than_two_days_goes_and_what_is_too_much(
    kept_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Record(str(kept_files), lambda peer, reply: None, lambda: None)
    later = filled()
    later.begin_s += 7200
    monkeypatch.setattr(record, "MOST_BYTES", 1)
    keeper._write(later.kept())
    names = [path.name for path in (kept_files / "then").iterdir()]
    assert names == [], "not even the newest, where nothing fits"
    monkeypatch.undo()
    keeper._write(filled().kept())
    monkeypatch.setattr(time, "time", lambda: BEGIN_S + KEEP_S + 7300.0)
    later = filled()
    later.begin_s = BEGIN_S + KEEP_S
    keeper._write(later.kept())
    assert [path.name for path in (kept_files / "then").iterdir()] == [f"{later.begin_s}-scratch.hour"]
    keeper.close()


def test_settings_have_nothing_of_it() -> None:
    """It is bounded by itself."""
    assert not any("record" in name for name in Settings().mdsd.__dataclass_fields__)
