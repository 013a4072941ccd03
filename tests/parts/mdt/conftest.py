"""Servers as they were captured, and an ossd's collector with the part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu.parts.mdt.messages import MdtReport, MdtReports
from tarazu.parts.mdt.ossd import InReportMdt
from tarazu.stats.collector import Collector
from tarazu.wire.reports import OssReport
from tests.daemons.conftest import Site


@pytest.fixture
def data() -> Path:
    return Path(__file__).parents[2] / "data" / "lustre"


def collector(root: Path, name: str) -> Collector:
    part = InReportMdt()

    def said(of: Collector) -> dict[str, bytes]:
        return {"mdt": body} if (body := part.read(of)) else {}

    return Collector(root, name, parts=said)


def mdts(report: OssReport) -> tuple[MdtReport, ...]:
    body = report.parts.get("mdt")
    return msgspec.msgpack.decode(body, type=MdtReports).mdts if body else ()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.stop()
