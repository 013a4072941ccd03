"""clientd and hostile users of its socket: sizes, silence, what is no file."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import pwd
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.cli.db import from_clientd
from tarazu.config import without_password
from tarazu.daemons.clientd import stored_plans
from tarazu.daemons.clientd.reports import read_history
from tarazu.daemons.clientd.service import Clientd, check_ids, listen
from tarazu.daemons.service import Wakeup
from tarazu.daemons.shares import Share
from tarazu.errors import Busy, ConfigError, TraceError, Unavailable, WireError
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, Forecast, JobStep, Layout
from tarazu.plan.left_to_lustre import as_the_site_wants
from tarazu.predict import RUNS
from tarazu.store.rows import NewFile
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import MAX_RUN_BYTES, encode_run
from tarazu.wire import local
from tarazu.wire.channel import Channel, connect
from tests.daemons.conftest import PATIENCE_S


def test_a_history_must_be_a_file_of_sane_size(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    large = tmp_path / "large.run"
    with large.open("wb") as file:
        file.truncate(MAX_RUN_BYTES + 1)
    device, big = os.open("/dev/zero", os.O_RDONLY), os.open(large, os.O_RDONLY)
    try:
        for descriptor in (reading, device, big):
            with pytest.raises(TraceError, match="expected a file"):
                read_history(descriptor)
    finally:
        for descriptor in (reading, writing, device, big):
            os.close(descriptor)


def test_an_announced_frame_beyond_the_limit_is_refused_before_it_comes() -> None:
    here, there = socket.socketpair()
    there.sendall(struct.pack("<I", local.MAX_REQUEST_BYTES + 1))
    with there, Channel(here, max_bytes=local.MAX_REQUEST_BYTES) as channel, pytest.raises(WireError):
        channel.receive()


def test_a_frame_for_which_there_is_no_room_is_busy_and_takes_none() -> None:
    share = Share(100)
    here, there = socket.socketpair()
    body = b"x" * 60
    there.sendall(struct.pack("<I", len(body)) + body)
    with there, Channel(here, room=share.of(1)) as channel, pytest.raises(Busy, match="no room"):
        channel.receive()
    assert not share.used


def test_room_and_descriptors_are_given_back_with_the_conversation() -> None:
    frames, descriptors = Share(1000), Share(10)
    here, there = socket.socketpair()
    with there, Channel(there) as sender, open(os.devnull, "rb") as file:
        with Channel(here, room=frames.of(1), descriptor_room=descriptors.of(1)) as channel:
            sender.send(local.StatusQuery(), [file.fileno()] * 3)
            assert isinstance(channel.receive(), local.StatusQuery)
            assert frames.used[1] > 0 and descriptors.used[1] == 3 == len(channel.descriptors)
            taken = list(channel.descriptors)
        assert not frames.used and not descriptors.used
        for descriptor in taken:
            with pytest.raises(OSError):
                os.fstat(descriptor)


def test_a_step_cannot_name_more_allocations_than_it_has() -> None:
    check_ids(["a"] * local.MAX_IDS)
    for ids in (["a"] * (local.MAX_IDS + 1), [""], ["a" * 1000]):
        with pytest.raises(WireError, match="at most"):
            check_ids(ids)


def test_a_conversation_ends_although_a_byte_comes_now_and_then() -> None:
    here, there = socket.socketpair()
    there.sendall(struct.pack("<I", 1000) + b"x")
    with there, Channel(here, deadline_s=0.3) as channel, pytest.raises(Unavailable):
        channel.receive()


def test_everyone_on_the_node_reaches_the_socket_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        path = tmp_path / "tarazu" / "clientd.sock"
        with listen(path):
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
    finally:
        os.umask(before)


def test_what_lies_in_the_sockets_place_and_is_none_stays(tmp_path: Path) -> None:
    other, link = tmp_path / "interaction.db", tmp_path / "clientd.sock"
    other.write_text("rows")
    link.symlink_to(other)
    for path in (other, link):
        with pytest.raises(ConfigError, match="socket can be made, found 'another file'"):
            listen(path)
    assert other.read_text() == "rows" and link.is_symlink()


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("mysql://tarazu:secret@db/t", "mysql://tarazu:***@db/t"),
        ("mysql://tarazu:with@and:in@db/t", "mysql://tarazu:***@db/t"),
        ("mysql://tarazu@db/t", "mysql://tarazu@db/t"),
        ("/var/lib/tarazu/interaction.db", "/var/lib/tarazu/interaction.db"),
    ],
)
def test_passwords_are_not_shown(location: str, shown: str) -> None:
    assert without_password(location) == shown


class Told(logging.Handler):
    """What a logger says."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def history_file(path: Path, start_s: float, size: int = 1 << 20) -> Path:
    step = JobStep("lustre", 0, "app", "1")
    file = FileRecord("/d/f", "/d/f", "/d/f", 0, (0,), 0, 0, 1.0, size)
    path.write_bytes(encode_run(RunRecord(step, start_s, 10.0, "full", (file,), 1, 1)))
    return path


@pytest.fixture
def clientd(tmp_path: Path) -> Iterator[Clientd]:
    """One without mdsd, on a socket of its own, in this process."""
    fields = {"socket": str(tmp_path / "s"), "database": str(tmp_path / "i.db")}
    settings = config.override(config.override(config.Settings(), "clientd", **fields), "keys", insecure=True)
    settings = config.override(settings, "layout", min_size=0)
    wakeup = Wakeup()
    found = Clientd(settings, wakeup)
    thread = threading.Thread(target=found.loop)
    thread.start()
    try:
        yield found
    finally:
        wakeup.stopping = True
        wakeup.wake()
        thread.join(PATIENCE_S)
        found.close()


def plan(clientd: Clientd, paths: list[Path], **fields: Any) -> local.PlanReply:
    """Without OSTs: what is forecast and stored."""
    step = JobStep("lustre", 0, "app", "2")
    descriptors = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in paths]
    request = local.PlanRequest(step, len(descriptors), (), (), place=False)
    try:
        with connect(clientd.settings.clientd.socket, PATIENCE_S) as channel:
            answer = channel.ask(msgspec.structs.replace(request, **fields), descriptors)
            if isinstance(answer, local.DirectoriesWanted):
                answer = channel.ask(local.DirectoryLayouts(b"", {}))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    assert isinstance(answer, local.PlanReply)
    return answer


def test_damaged_histories_are_left_out_named_and_logged_once_and_the_rest_is_planned(
    clientd: Clientd, tmp_path: Path
) -> None:
    good = [history_file(tmp_path / f"{n}.run", 1e9 + n, (n + 1) << 20) for n in range(2)]
    truncated = tmp_path / "truncated.run"
    truncated.write_bytes(good[1].read_bytes()[:-30])
    fifo, huge = tmp_path / "fifo.run", tmp_path / "huge.run"
    os.mkfifo(fifo)
    with huge.open("wb") as file:
        file.truncate(MAX_RUN_BYTES + 1)
    told = Told()
    logging.getLogger("tarazu.clientd").addHandler(told)
    try:
        # The damaged ones are the newest, also the very last.
        one = plan(clientd, [good[0], good[1], huge, fifo])
        two = plan(clientd, [good[0], good[1], fifo, truncated])
    finally:
        logging.getLogger("tarazu.clientd").removeHandler(told)
    assert (one.status, one.forecast_files) == (two.status, two.forecast_files) == ("forecast", 1)
    assert one.forecast_bytes == 3 << 20, "both good runs were used"
    assert len(one.warnings) == 2 and str(fifo) in one.warnings[0] and str(huge) in one.warnings[1]
    assert str(truncated) in two.warnings[0]
    for path in (fifo, huge, truncated):
        assert sum(str(path) in line for line in told.lines) == 1, told.lines


def test_whom_the_site_does_not_want_gets_no_plan_whatever_his_own_settings_say(tmp_path: Path) -> None:
    fields = {"socket": str(tmp_path / "s"), "database": str(tmp_path / "i.db")}
    settings = config.override(config.override(config.Settings(), "clientd", **fields), "keys", insecure=True)
    found = Clientd(settings, Wakeup())

    def refused(run: dict[str, Any], **asked: Any) -> str:
        found.settings = config.override(settings, "run", **run)
        step = local.PlanRequest(JobStep("lustre", 4711, "app", "2"), 0, (), (), place=False)
        ends = socket.socketpair()
        with (
            Channel(ends[0]) as here,
            Channel(ends[1]) as there,
            contextlib.suppress(PastTheLists),
        ):
            found._plan(there, msgspec.structs.replace(step, **asked), os.getuid())
            answer = here.receive()
            assert isinstance(answer, local.PlanReply) and answer.status == "never"
            return answer.reason
        return ""

    class PastTheLists(Exception):
        pass

    def planned(*_: object, **__: object) -> None:
        raise PastTheLists

    try:
        found.planner.plan = planned  # type: ignore[assignment]
        me = pwd.getpwuid(os.getuid()).pw_name
        assert refused({"exclude_users": (me,)}) == f"run.exclude_users names {me}"
        assert refused({"exclude_programs": ("ap?",)}) == "run.exclude_programs names app"
        only = {"only_users": ("nobody",), "only_projects": ("chem",), "only_partitions": ("test",)}
        assert refused(only).startswith("run.only_users, run.only_projects")
        assert refused(only, project="chem") == refused(only, partition="test") == ""
        assert refused({"only_users": (str(os.getuid()),)}) == refused({}) == ""
    finally:
        found.close()


def test_files_that_the_site_does_not_want_placed_are_left_to_lustre_and_it_is_said_why() -> None:
    name = FileName("/d/tmp/a", "/d/tmp/a", "/d/tmp/a", False, 0, 0, 0)
    file = NewFile(Forecast(name, 1 << 30), Layout((Component(0, EOF, 1 << 20, 4),)))
    (left,) = as_the_site_wants(config.RunSettings(exclude=("*/tmp/*",)), [file])
    assert (left.layout, left.left_because) == (None, "run.exclude names it")
    assert as_the_site_wants(config.RunSettings(include=("/d/*",)), [file]) == [file]


def test_histories_beyond_what_a_forecast_takes_are_not_even_looked_at(
    clientd: Clientd, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.run"
    bad.write_bytes(b"nothing")
    good = [history_file(tmp_path / f"{n}.run", 1e9 + n) for n in range(RUNS)]
    reply = plan(clientd, [bad, *good])
    assert reply.warnings == () and reply.forecast_files == 1


@pytest.mark.parametrize("ranks", [2**31, 2**62])
def test_a_step_of_absurdly_many_ranks_gets_no_forecast_at_once_and_a_reason(
    clientd: Clientd, tmp_path: Path, ranks: int
) -> None:
    history = [history_file(tmp_path / f"{n}.run", 1e9 + n) for n in range(2)]
    step = JobStep("lustre", 0, "app", "2", ranks=ranks)
    reply = plan(clientd, history, step=step)
    assert (reply.status, reply.forecast_files) == ("nothing", 0)
    assert f"expected 0 to {1 << 24} ranks and nodes, found {ranks}" in reply.reason


def test_a_question_about_a_very_large_plan_is_answered_in_part_and_says_so(
    clientd: Clientd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored_plans, "MAX_ROWS", 3)
    files = tuple(FileRecord(f"/d/{n}", f"/d/{n}", "/d/{n}", 0, (0,), 0, n, 1.0, 1 << 20) for n in range(5))
    past = tmp_path / "five.run"
    past.write_bytes(encode_run(RunRecord(JobStep("lustre", 0, "app", "1"), 1e9, 9.0, "full", files, 1, 1)))
    reply = plan(clientd, [past])
    assert reply.forecast_files == 5
    answer = clientd.stored.rows(local.PlansQuery(plan_id=reply.plan_id), 0)
    assert (len(answer.files), answer.more) == (3, 2)
    path = tmp_path / "tarazu.toml"
    path.write_text(f"[clientd]\nsocket = '{clientd.settings.clientd.socket}'\n")
    shown = from_clientd(argparse.Namespace(config=str(path)), local.PlansQuery(plan_id=reply.plan_id))[1]
    assert len(shown) == 3 and "2 further files" in capsys.readouterr().err
