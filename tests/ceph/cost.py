"""What a placed file costs its program on a CephFS of this machine: `python -m tests.ceph.cost`.

Times of one file (open; open, write and close) in a program without the library, under it without a row in the map, and
placed. The modes take turns.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from tests.ceph.cluster import Cluster, why_not
from tests.ceph.library import OnCeph, made

SOURCE = """
import os, sys, time
kind, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data, opens, wholes = bytes(size), [], []
for i in range(count):
    began = time.perf_counter()
    fd = os.open(f"{kind}{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    opened = time.perf_counter()
    os.write(fd, data)
    os.close(fd)
    opens.append(opened - began)
    wholes.append(time.perf_counter() - began)
print(sorted(opens)[count // 2] * 1e3, sorted(wholes)[count // 2] * 1e3)
"""
KINDS = {"without": {"LD_PRELOAD": ""}, "missed": {}, "placed": {}, "shared": {}}
SIZES = {4096: 60, 16 << 20: 8}
ROUNDS = 4


def measured(on: OnCeph) -> dict[tuple[int, str], tuple[float, float]]:
    """Size, kind → median ms of an open, and of all."""
    count = max(SIZES.values())
    on.map(*(on.row(f"/{k}{i}", shared=k == "shared") for k in ("placed", "shared") for i in range(count)))
    times: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for size, files in SIZES.items():
            for kind, setting in KINDS.items():
                for old in on.mount.iterdir():
                    old.unlink()
                done = on.python(SOURCE, kind, str(size), str(files), **setting)
                first, second = map(float, done.stdout.split())
                times.setdefault((size, kind), []).append((first, second))
    return {
        key: (statistics.median(a for a, _ in of), statistics.median(b for _, b in of))
        for key, of in times.items()
    }


def main() -> None:
    reason = why_not()
    if reason is not None:
        raise SystemExit(reason)
    directory = Path(tempfile.mkdtemp(prefix="ceph-"))
    directory.chmod(0o755)
    cluster = Cluster(directory, {"first": "hdd", "second": "ssd", "third": "nvme"})
    try:
        work = directory / "work"
        work.mkdir()
        times = measured(made(cluster, cluster.mount(directory / "mnt"), work))
    finally:
        cluster.end()
        shutil.rmtree(directory)
    for (size, kind), (opened, whole) in times.items():
        bare = times[size, "without"]
        print(
            f"{size:>9} bytes, {kind:<8} open {opened:6.2f} ms ({opened / bare[0]:4.1f}×), "
            f"all {whole:7.2f} ms ({whole / bare[1]:4.1f}×)"
        )


if __name__ == "__main__":
    main()
