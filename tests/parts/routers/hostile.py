"""Valid messages of the part, from which `tests/hostile` makes others; its readers without a case there, and why."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tarazu.parts.forwarding.messages import StepProfile
from tarazu.parts.routers import hosts, mapping_file, udsp
from tarazu.parts.routers.messages import RouterRule, RulesRequest, StepNodes
from tarazu.wire.messages import PartRequest
from tarazu.wire.reports import RouterState
from tests.hostile.cases.case import Case, text

LEFT = {
    "tarazu.parts.routers.addresses:own_nids": "the kernel's",
    "tarazu.parts.routers.ossd:_rules_of": "a message",
    "tarazu.parts.routers.run:NodeTelling._tell": "clientd's own words",
}
_NIDS = "10.77.0.[31-40]@tcp1"
_PROFILE = StepProfile(4, 10.0, 1e9, ((1, 1e9), (2, 1.5e9)), 2)
_ROUTER = RouterState("10.77.0.11@tcp", True, "tcp1")
_RULE = RouterRule(_NIDS, "10.77.0.11@tcp")


def requests() -> list[PartRequest]:
    nodes = StepNodes("s1", "job", "lustre", _NIDS, 20.0, _PROFILE)
    rules = RulesRequest("oss-hostile", (_ROUTER,), 1, (_RULE,), "apply", ("lustre",))
    return [
        PartRequest("p1", "routers", msgspec.msgpack.encode(nodes), 4242),
        PartRequest("p2", "routers", msgspec.msgpack.encode(rules)),
    ]


def _mapping(directory: Path) -> Path:
    path = directory / "mapping.json"
    mapping_file.write(path, "greedy", [udsp.rule("10.77.0.[31-40]@tcp1", "10.1.0.2@tcp")])
    return path


CASES = (
    Case("mapping in force", ("tarazu.parts.routers.mapping_file:read",), _mapping, mapping_file.read),
    Case("hosts' NIDs", (), text("nids", "n[1-3] 10.77.0.[1-3]@tcp1 # ours\nr1 10.1.0.1@tcp\n"), hosts.read),
)
