"""A valid report of the part, from which `tests/hostile` makes others; its readers without a case there, and why."""

from __future__ import annotations

import msgspec

from tarazu.parts.mdt.asking import mdts_in
from tarazu.parts.mdt.messages import MdtJob, MdtOperation, MdtReport, MdtReports
from tests.hostile.cases.case import Case, text

LEFT = {"tarazu.parts.mdt.ossd:lines": "ossd's own words"}
_DID = (MdtOperation("mkdir", 100, 700_000), MdtOperation("open", 10_000, 9_000_000))
_MDTS = tuple(
    MdtReport("hostile", n, 1 << 30, 1 << 29, 1 << 20, 1 << 19, _DID, 1.0, (MdtJob("dd.0", 7),))
    for n in range(2)
)
CASES = (
    Case(
        "MDTs in a status",
        ("tarazu.parts.mdt.asking:mdts_in",),
        text(
            "status.json",
            '{"mdsd": {"parts": {"mdt": {"file_systems": {"fs": [{"index": 0, "server": "mds1", "total_bytes": 9, '
            '"avail_bytes": 9, "files_total": 9, "files_free": 9}]}}}}}\n',
        ),
        lambda path: mdts_in(str(path), "fs"),
    ),
)
REPORTS = {"mdt": msgspec.msgpack.encode(MdtReports(_MDTS))}
