"""Each file that the product reads, damaged: refused in one line, set aside or harmless; and no reader is forgotten."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.hostile import files, sites
from tests.hostile.cases import CASES
from tests.hostile.cases.case import Case
from tests.of_parts import brought

KERNEL = "the kernel's own, or of root's units: `make hostile --only statistics-files`, or nothing is parsed"
MESSAGE = "a message: `make hostile --only requests`, and `test_hostile.py`"
OWN = "comes with the package"
NOTHING = "nothing is parsed: a lock, a copy, a digest, or any text is one"
LEFT = {
    "tarazu.cli.init:_settings": NOTHING,
    "tarazu.cli.job.own:not_placed": NOTHING,
    "tarazu.cli:main": NOTHING,
    "tarazu.escapes:_of_this_session": KERNEL,
    "tarazu.config.files:value": "a word of the command line or environment",
    "tarazu.daemons.clientd.forecasts.frames:decode": MESSAGE,
    "tarazu.daemons.clientd.forecasts.prepared:decode": MESSAGE,
    "tarazu.daemons.clientd.forecasts.work:give_up": KERNEL,
    "tarazu.daemons.mdsd.placing:Placing._ask": MESSAGE,
    "tarazu.daemons.mdsd.placing:serve": MESSAGE,
    "tarazu.daemons.ossd.service:as_json_text": OWN,
    "tarazu.daemons.secrets:_holding": NOTHING,
    "tarazu.daemons.slurm:script": OWN,
    "tarazu.doctor.left_behind:_libraries": NOTHING,
    "tarazu.doctor.left_behind:_noted": NOTHING,
    "tarazu.doctor.left_behind:_running": KERNEL,
    "tarazu.doctor.left_behind:_units": NOTHING,
    "tarazu.doctor.lustre:_as_daemon": MESSAGE,
    "tarazu.doctor.node:Node.process": KERNEL,
    "tarazu.doctor.node:Node.text": KERNEL,
    "tarazu.doctor.node:_seen": KERNEL,
    "tarazu.batch.environment:_has_terminal": NOTHING,
    "tarazu.durable:boot_id": KERNEL,
    "tarazu.run.leftovers:_is_open": NOTHING,
    "tarazu.run.leftovers:_lease": NOTHING,
    "tarazu.run.nodes.gather:gather": MESSAGE,
    "tarazu.run.nodes.send_map:send": NOTHING,
    "tarazu.run.directories:file_system_type": KERNEL,
    "tarazu.run.plan.reports:StepReports.report": NOTHING,
    "tarazu.run.program:restore_environment": KERNEL,
    "tarazu.run.watch:SpoolWatch._headers": "`spool that grows`",
    "tarazu.run.watch:SpoolWatch._read": "`spool that grows`",
    "tarazu.signals:stat_of": KERNEL,
    "tarazu.stats.client:_lines": KERNEL,
    "tarazu.stats.client:mount_entries": KERNEL,
    "tarazu.stats.osp:beginning": KERNEL,
    "tarazu.stats.reading:_regular": KERNEL,
    "tarazu.stats.reading:again": KERNEL,
    "tarazu.stats.reading:chunks": KERNEL,
    "tarazu.trace.training:Importer._keep": NOTHING,
    "tarazu.trace.training:Importer._log": NOTHING,
    "tarazu.trusted:_is_namespace": KERNEL,
    "tarazu.trusted:_look": NOTHING,
    "tarazu.wire.local:decode": MESSAGE,
    "tarazu.wire.messages:decode": MESSAGE,
    "tarazu.wire.door:ended_peers": KERNEL,
    "tarazu.wire.unread:memory_bytes": KERNEL,
}
"""Readers without a case of their own, and why."""
MOST_PLACES = 60
"""In each file; `make hostile` changes each byte."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is set aside is said in a line each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_no_reader_is_forgotten() -> None:
    known = {site for case in CASES for site in case.sites} | set(LEFT)
    known |= {site for left in brought("hostile", "LEFT") for site in left}
    found = sites.sites()
    assert sorted(found - known) == [], "a reader without a case in tests/hostile/cases"
    assert sorted(known - found) == [], "a reader that is no more"


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # pyarrow's, of a row that is no UTF-8
@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
def test_a_damaged_file_is_refused_in_a_line_or_set_aside(case: Case, tmp_path: Path) -> None:
    """And the case reads by the functions that it names."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.add(f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}")

    file = case.make(tmp_path)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        case.read(file)
    finally:
        sys.setprofile(before)
    assert set(case.sites) <= entered
    assert files.damage(case, random.Random(case.name), places=MOST_PLACES).damaged > 50
