"""Valid messages of every kind: what mutations start from, and what may come in the wrong order or to the wrong end."""

from __future__ import annotations

import os
from typing import Any

from tarazu.lustre import EOF
from tarazu.model import Component, JobStep, Layout
from tarazu.wire import local, messages
from tarazu.wire.reports import (
    IoCounters,
    JobRate,
    OssReport,
    OstReport,
)
from tests.of_parts import brought

_LAYOUTS = (Layout((Component(0, EOF, 1 << 20, 2),)), Layout((Component(0, EOF, 1 << 20, 1),)))


def report(name: str = "oss-hostile", osts: int = 3) -> OssReport:
    counters = IoCounters("brw_stats", 10, 1 << 30, 10_000, 5, 5, 1.0)
    targets = tuple(
        OstReport("hostile", n, 1 << 40, 1 << 39, 1 << 39, writes=counters, reads=counters)
        for n in range(osts)
    )
    jobs = (JobRate("dd.0", 1, 1),)
    parts = {
        "nobody": b"\x80",
        **{name: said for of in brought("hostile", "REPORTS") for name, said in of.items()},
    }
    return OssReport(name, 1, 1.0, 60.0, 0.1, 0.1, 1.0, targets, jobs, 0.01, ("x",), parts=parts)


def requests() -> list[Any]:
    files = tuple(messages.FileSpec(1 << 26, n % 2, n) for n in range(4))
    return [
        messages.AllocationRequest("h1", "lustre", 4242, "job", _LAYOUTS, files, 0.5, 20.0, 5.0),
        messages.FileClosed("h1", "m1", ((0, 5), (3, 1 << 30))),
        messages.StepEnded("h1", "m2"),
        messages.StepAlive(("h1", "h2"), "m3"),
        messages.ViewRequest("m4", "lustre", {"lustre": {"flash": (0, 1)}}),
        messages.StatusRequest("m5"),
        messages.PartRequest("m6", "nobody", b"\x80", 4242),
        *(request for made in brought("hostile", "requests") for request in made()),
    ]


def replies() -> list[Any]:
    return [
        messages.AllocationReply("h1", "allocated", osts=(((0, 1),),), policy="tarazu"),
        messages.Acknowledged("m1"),
        messages.StatusReply("m5", {"a": 1}),
        messages.ViewReply("m4"),
    ]


def of_mdsd() -> list[bytes]:
    """For both of its ends: what belongs to the one is wrong at the other."""
    return [messages.encode(m) for m in (*requests(), *requests(), report(), report("oss2", 0), *replies())]


def of_clientd() -> list[bytes]:
    step = JobStep("lustre", os.getuid(), "app", "4711", numbers=(1.0,))
    asked: list[Any] = [
        local.PlanRequest(step, 0, (0, 1), (0, 1), {"flash": (0,)}),
        local.StepProgress(("h1",), 5.0, {"h1": ((0, 1),)}),
        messages.PromiseTold("h1", "", "lustre", 0, 60.0, 4.0, b"12", b"12345678", bytes(8)),
        local.PartTold("nobody", "s1", b"\x80"),
        local.StepReport("lustre", (1,), ("h1",)),
        local.PrepareNext("lustre"),
        local.PlansQuery("app"),
        local.ViewQuery("lustre"),
        local.Done(),
        local.DirectoryLayouts(b"", {"a": b"\x00"}),
        local.Failed("x"),
    ]
    return [local.encode(message) for message in asked]
