"""What an object costs in requests, beside the bytes in it: counted on the testbed.

Files of 1 to 32 stripes are made, written, closed and removed; the MDS's requests and the OSTs' own counters
(`obdfilter.*.stats`) say what came of it. Locks and glimpses are not the testbed's: one of each an object, counted on a
real Lustre (docs/benchmarks.md). `tarazu.layout.stripe_count.OBJECT_REQUESTS` is the sum.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from tarazu.layout.stripe_count import OBJECT_REQUESTS
from tarazu.sim.testbed import roots
from tarazu.sim.testbed import testbed as testbeds
from tests.benchmarks.figure import Figure

STRIPES = (1, 4, 8, 16, 32)
LOCKS = {"lock": 1, "glimpse": 1}
"""Of an object: the first write of a node, and a `stat` by another one."""
MAKE = """
import os, sys
for n in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/{n}", "wb") as file:
        file.write(bytes(int(sys.argv[3]) << 20))
"""
REMOVE = """
import os, sys
for name in os.listdir(sys.argv[1]):
    os.unlink(f"{sys.argv[1]}/{name}")
"""


def measure(short: bool) -> list[Figure]:
    files = 5 if short else 50
    with tempfile.TemporaryDirectory(prefix="tarazu-objects-") as directory:
        testbed = testbeds.up(Path(directory) / "tb", clients=1)
        try:
            found = {stripes: _requests(testbed, stripes, files) for stripes in STRIPES}
        finally:
            testbeds.down(testbed.directory)
    least, most = found[STRIPES[0]], found[STRIPES[-1]]
    more = files * (STRIPES[-1] - STRIPES[0])
    kinds = sorted({*least, *most})
    of_object = {kind: (most[kind] - least[kind]) / more for kind in kinds}
    figures = [Figure(f"{kind}: of a file of 1 stripe", least[kind] / files, "requests") for kind in kinds]
    figures += [Figure(f"{kind}: of an object more", value, "requests") for kind, value in of_object.items()]
    total = sum(of_object.values()) + sum(LOCKS.values())
    # As many as stripe count `auto` reckons with.
    figures.append(
        Figure(
            "of an object more, with its lock and glimpse",
            total,
            "requests",
            OBJECT_REQUESTS + 1e-9,
            OBJECT_REQUESTS - 1e-9,
        )
    )
    return figures


def _requests(testbed: testbeds.Testbed, stripes: int, files: int) -> Counter[str]:
    """Kind → how many, of making and removing so many files."""
    folder = f"of{stripes}"
    mount = testbed.client_mount(0) / folder
    mount.mkdir()
    testbed.set_default_layout(f"{stripes}@1M", testbed.mount / folder)
    before = _counters(testbed)
    testbed.exec(0, ["python3", "-c", MAKE, str(mount), str(files), str(stripes)]).check_returncode()
    testbed.refresh()
    testbed.exec(0, ["python3", "-c", REMOVE, str(mount)]).check_returncode()
    testbed.refresh()
    after = _counters(testbed)
    after.subtract(before)
    return after


def _counters(testbed: testbeds.Testbed) -> Counter[str]:
    """The MDS's requests, and objects made and removed on all OSTs."""
    requests = testbed.mds.requests()
    found = Counter({"MDS": sum(n for kind, n in requests.items() if kind != "ost")})
    for index, oss in enumerate(testbed.oss_of_ost):
        target = roots.target_name(testbed.fs_name, index)
        path = testbed.oss_root(oss) / roots.DEBUG / "lustre/obdfilter" / target / "stats"
        for line in path.read_text().splitlines():
            name, count, *_ = line.split()
            if name in ("create", "destroy"):
                found[f"OST {name}"] += int(count)
    return found
