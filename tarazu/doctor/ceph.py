"""What this node sees of CephFS: its mounts, and whether the monitors answer the key by which pools are reported."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tarazu.doctor.node import Finding, Node, ok, skip, warn
from tarazu.errors import TarazuError
from tarazu.filesystem import pools
from tarazu.filesystem.rados import Rados, RadosError
from tarazu.stats import client
from tarazu.units import counted

WAIT_S = 5.0


def look(node: Node) -> Iterator[Finding]:
    try:
        mounted = [mount for mount in client.mounts(node.root, {}) if mount.kind == "ceph"]
    except TarazuError:
        mounted = []
    for mount in mounted:
        yield ok("mount", f"{mount.fs_name} on {mount.path}")
    conf = pools.configuration(node.root, os.environ)
    if conf is None:
        return
    try:
        rados = Rados(pools.CLIENT, conf, WAIT_S)
    except RadosError as error:
        yield skip("pools", f"not reported from here: {error}", "one node needs the key: docs/ceph.md")
        return
    try:
        report = pools.Pools().report(pools.ask(rados.command), 0.0, 0.0)
    except RadosError as error:
        yield warn(
            "pools", f"not reported: {error}", "ceph --id tarazu status; docs/ceph.md says which rights"
        )
        return
    finally:
        rados.close()
    odd = [f"{ost.label}: {ost.why}" for ost in report.osts if ost.why]
    if odd:
        yield warn("pools", "; ".join(odd[:3]), "ceph health detail")
    else:
        yield ok("pools", f"{counted(len(report.osts), 'data pool')} can be reported")
