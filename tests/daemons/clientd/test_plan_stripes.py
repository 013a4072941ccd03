"""Why a plan's files have so many stripes."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.cli import explain
from tarazu.daemons import questions
from tarazu.daemons.clientd.planner import Planner
from tarazu.model import JobStep, Ost, SystemView
from tarazu.part import Live, Part
from tarazu.store.database import open_database
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local
from tarazu.wire.messages import Reply, Request, ViewReply, ViewRequest
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.listening import PATIENCE_S

GIB = 1 << 30


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "ANSWER_S", PATIENCE_S)


UID = os.getuid()
"""The forecast's process reads the curves as the user."""
STEP = JobStep("lustre", UID, "app", "2")
VIEW = SystemView("lustre", 0.0, tuple(Ost(n, "oss", 1 << 44, 1 << 43, 1 << 43) for n in range(8)))


class Mdsd(threading.Thread):
    """Answers views."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.transport = ZmqTransport(None)
        self.replier = self.transport.replier("tcp://127.0.0.1:*")
        self.address = self.replier.address
        self.asked: list[Request] = []
        self.ended = False

    def run(self) -> None:
        while not self.ended:
            if found := self.replier.receive(0.05):
                self.asked.append(found[1])
                if (reply := self.answer(found[1])) is not None:
                    self.replier.reply(found[0], reply)
        self.transport.close()

    def answer(self, asked: Request) -> Reply | None:
        if isinstance(asked, ViewRequest):
            return ViewReply(asked.message_id, VIEW)
        return None


class Plans:
    """A planner, whose plans are only stored."""

    def __init__(self, mdsd: Mdsd, directory: Path, parts: Live[Part] | None = None) -> None:
        settings = config.override(config.load(None), "clientd", database=str(directory / "i.db"))
        settings = config.override(settings, "keys", insecure=True)
        self.settings = config.override(settings, "mdsd", requests=mdsd.address)
        self.planner = Planner(self.settings, parts)
        self.history = directory / "past.run"
        files = (FileRecord("/a", "/a", "/a", 0, (0,), 0, 0, 0.1, 4 * GIB),)
        self.history.write_bytes(encode_run(RunRecord(STEP, 1.0, 100.0, "light", files, 1, 1)))

    def stripes(self, stripe_count: str, of_parts: Mapping[str, Mapping[str, Any]] | None = None) -> str:
        settings = config.override(self.settings, "layout", stripe_count=stripe_count)
        for name, own in (of_parts or {}).items():
            settings = replace(settings, part=settings.part.having(name, own))
        self.planner.take_over(settings)
        request = local.PlanRequest(STEP, 1, tuple(range(8)), tuple(range(8)), place=False)
        with self.history.open("rb") as file:
            reply = self.planner.plan(
                request, [file.fileno()], UID, lambda *_: local.DirectoryLayouts(b"", {})
            )
        assert reply.status == "forecast"
        with open_database(self.settings.clientd.database) as database:
            (row,) = database.files(reply.plan_id)
            plan = next(plan for plan in database.plans() if plan.id == reply.plan_id)
        assert row.layout is not None and plan.reason == reply.stripes
        return f"{row.layout.components[0].stripe_count}: {reply.stripes}"


def test_explain_did_not_say_why_auto_chose_its_stripes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mdsd = Mdsd()
    plans = Plans(mdsd, tmp_path)
    mdsd.start()
    try:
        told = plans.stripes("auto")
        assert told.startswith(
            "8: auto: 8 instead of 1: written in the time that an OST takes for 731.4 MiB instead of 5.7 GiB; "
        )
        assert "8 objects instead of 1 count as " in told
        with open_database(plans.settings.clientd.database) as database:
            (plan,) = database.plans()
            (row,) = database.files(plan.id)
        explain._print_plan(plan, row)
        assert f"  stripes: {plan.reason}\n" in capsys.readouterr().out
        assert plans.stripes("4") == "4: "
    finally:
        plans.planner.close()
        mdsd.ended = True
        mdsd.join()
