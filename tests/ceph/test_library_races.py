"""Many processes on one file of a CephFS, full pools, kills: no byte is lost, nobody waits long."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.ceph.cluster import Cluster
from tests.ceph.library import HIT, RACED, REFUSED, OnCeph, on_ceph
from tests.preload.conftest import compiled

pytestmark = [pytest.mark.ceph, pytest.mark.slow, pytest.mark.soak]
__all__ = ["compiled", "on_ceph"]
PROCESSES = 64
BLOCK = 1000
NOT_READ = 3
"""Status of a racer that does not read back what it has written."""


@pytest.fixture(scope="module")
def second_mount(cluster: Cluster) -> Path:
    """Another client of the same file system, as another node is."""
    return cluster.mount(cluster.directory / "second")


@pytest.fixture(scope="module")
def reader(cluster: Cluster) -> Path:
    """A third client, on which no racer runs."""
    return cluster.mount(cluster.directory / "reader")


@pytest.mark.parametrize("shared", [False, True], ids=["unexpected", "expected"])
@pytest.mark.parametrize("step", [BLOCK, 1 << 20], ids=["close", "apart"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_64_processes_race_for_a_file(
    on_ceph: OnCeph,
    mount: Path,
    second_mount: Path,
    reader: Path,
    compiled: Any,
    shared: bool,
    step: int,
    nodes: int,
) -> None:
    """ceph-fuse now and then has a size that is old and, on two nodes, reads nothing, or zeros, of what the other node
    has just written: without tarazu too (one of 20 such races). What was written is there all the same.
    """
    on_ceph.map(on_ceph.row("/s", shared=shared))
    elsewhere = second_mount / on_ceph.mount.relative_to(mount)
    while not elsewhere.is_dir():
        time.sleep(0.01)
    racer, environ = compiled("racer.c"), on_ceph.environ()
    environ["TARAZU_MOUNTS"] += f":{elsewhere}=cephfs@ceph"
    when = str(time.time() + 2.0)
    running = [
        subprocess.Popen(
            [racer, "s", str(step), when, str(rank)],
            env=environ,
            cwd=elsewhere if rank % nodes else on_ceph.mount,
        )
        for rank in range(PROCESSES)
    ]
    ended = {process.wait(60) for process in running}
    assert ended <= ({0} if nodes == 1 else {0, NOT_READ})
    data = (reader / on_ceph.mount.relative_to(mount) / "s").read_bytes()
    expected = bytearray((PROCESSES - 1) * step + BLOCK)
    for rank in range(PROCESSES):
        expected[rank * step : rank * step + BLOCK] = bytes([rank + 1]) * BLOCK
    assert data == expected
    makers = [c for c in on_ceph.creates if not c.flags & 1]
    assert len(makers) == 1 and makers[0].outcome in (HIT, RACED)
    assert {c.outcome for c in on_ceph.creates if c.flags & 1} <= {RACED}
    assert on_ceph.pool("s") == ("third" if makers[0].outcome == HIT else "first")
    assert 0 < max(c.size for c in on_ceph.closes) <= len(data)


@pytest.mark.parametrize("how", ["excl", "join", "late"])
def test_what_processes_write_into_shared_files_is_all_there(
    on_ceph: OnCeph, compiled: Any, how: str
) -> None:
    processes, files, step, block = 16, 8, 1 << 20, 64
    on_ceph.map(*(on_ceph.row(f"/shared.{i}") for i in range(files)))
    done = on_ceph([str(a) for a in (compiled("sharers.c"), processes, files, step, how)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected = bytearray((processes - 1) * step + block)
    for process in range(processes):
        expected[process * step : process * step + block] = bytes([ord("a") + process]) * block
    assert [i for i in range(files) if (on_ceph.mount / f"shared.{i}").read_bytes() != expected] == []


def test_the_pool_of_a_file_with_data_is_never_changed(
    on_ceph: OnCeph, mount: Path, second_mount: Path
) -> None:
    """Another node writes between the open and the setting of the pool, and the MDS has not heard of it yet."""
    on_ceph.map(on_ceph.row("/f"))
    elsewhere = second_mount / on_ceph.mount.relative_to(mount)
    opened, written = on_ceph.work / "opened", on_ceph.work / "written"
    other = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, time\n"
            "while not os.path.exists(sys.argv[1]): pass\n"
            "fd = os.open(sys.argv[2], os.O_WRONLY)\n"
            "os.write(fd, b'theirs')\n"
            "open(sys.argv[3], 'w').close()\n"
            "time.sleep(1)",
            *map(str, (opened, elsewhere / "f", written)),
        ]
    )
    source = """
import ctypes, os, sys
opened, written = sys.argv[1:]
fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
print(os.pwrite(fd, b"ours", 100))
"""
    # strace delays the set until the other has written.
    environ = on_ceph.environ()
    preload = environ.pop("LD_PRELOAD")
    trace = ["strace", "-qq", "-e", "trace=fsetxattr", "-e", "inject=fsetxattr:delay_enter=1500000"]
    argv = [
        *trace,
        "-o",
        str(on_ceph.work / "trace"),
        "-E",
        f"LD_PRELOAD={preload}",
        sys.executable,
        "-c",
        source,
    ]
    maker = subprocess.Popen(
        [*argv, str(opened), str(written)], env=environ, cwd=on_ceph.mount, stdout=subprocess.PIPE, text=True
    )
    while not (on_ceph.mount / "f").exists():
        time.sleep(0.01)
    opened.touch()
    output, _ = maker.communicate(timeout=30)
    assert (maker.returncode, output, other.wait(30)) == (0, "4\n", 0)
    data = (on_ceph.mount / "f").read_bytes()
    assert (data[:6], data[100:]) == (b"theirs", b"ours")
    assert on_ceph.create("/f").outcome == RACED and on_ceph.pool("f") == "first"


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_the_first_write_does_not_wait_for_the_journal(on_ceph: OnCeph, shared: bool) -> None:
    """An idle MDS writes it every 5 s, and until then nobody can write to a file whose pool was set."""
    on_ceph.map(*(on_ceph.row(f"/f{i}", shared=shared) for i in range(6)))
    source = """
import os, time
longest = 0
for i in range(6):
    began = time.monotonic()
    fd = os.open(f"f{i}", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x")
    longest = max(longest, time.monotonic() - began)
print(longest)
"""
    done = on_ceph.python(source)
    assert float(done.stdout) < 2.0, done.stderr
    assert {c.outcome for c in on_ceph.creates} == {HIT}


def test_a_full_pool(cluster: Cluster, on_ceph: OnCeph) -> None:
    """One's own file goes where it would have gone."""
    cluster.ceph("osd pool create", pool="full", pg_num=8, pool_type="replicated", rule="c")
    cluster.ceph("fs add_data_pool", fs_name="cephfs", pool="full")
    on_ceph.pools |= {p["poolname"]: p["poolnum"] for p in cluster.ceph("osd lspools")}
    on_ceph.map(*(on_ceph.row(f"/{name}", "full") for name in ("before", *(f"f{i}" for i in range(30)))))
    source = "import sys, os\nwith open(sys.argv[1], 'wb') as f: f.write(b'x' * 100_000)"
    try:
        assert on_ceph.python(source, "before").returncode == 0
        assert on_ceph.pool("before") == "full"
        cluster.ceph("osd pool set-quota", pool="full", field="max_bytes", val="1000")
        until = time.monotonic() + 60
        while "full" not in str(
            next(p for p in cluster.ceph("osd dump")["pools"] if p["pool_name"] == "full")["flags_names"]
        ):
            assert time.monotonic() < until
            time.sleep(0.2)
        outcomes = []
        for i in range(30):
            done = on_ceph.python(source, f"f{i}")
            assert (done.returncode, done.stderr) == (0, "")
            outcomes.append((on_ceph.create(f"/f{i}").outcome, on_ceph.create(f"/f{i}").errno))
            if outcomes[-1][0] == REFUSED:
                assert on_ceph.pool(f"f{i}") == "first"
                assert (on_ceph.mount / f"f{i}").read_bytes() == b"x" * 100_000
                break
            time.sleep(0.5)
        assert outcomes[-1] == (REFUSED, errno.ENOSPC)  # as soon as this client knows
    finally:
        for path in on_ceph.mount.iterdir():
            path.unlink()
        cluster.ceph("osd pool set-quota", pool="full", field="max_bytes", val="0")
        cluster.ceph("fs rm_data_pool", fs_name="cephfs", pool="full")


MAKE = """
import itertools, os, sys
for i in itertools.count():
    name = f"{sys.argv[1]}.{i % 8}"
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
    os.write(fd, name.encode() * 1000)
    os.fsync(fd)
    os.close(fd)
    os.rename(name, name + ".whole")
    print(name + ".whole", flush=True)
"""


def test_kills(on_ceph: OnCeph) -> None:
    """What was finished is whole; a file that is left half-way is one's own to write, at once."""
    kills = int(os.environ.get("TARAZU_KILLS", "40"))
    on_ceph.map(*(on_ceph.row(f"/k{k}.{i}") for k in range(kills) for i in range(8)))
    chance = random.Random(1)
    environ = on_ceph.environ()
    left = 0
    for k in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", MAKE, f"k{k}"],
            env=environ,
            cwd=on_ceph.mount,
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(chance.uniform(0.05, 0.35))
        process.send_signal(signal.SIGKILL)
        done, _ = process.communicate(timeout=30)
        for whole in done.split():
            data = (on_ceph.mount / whole).read_bytes()
            assert data == whole.removesuffix(".whole").encode() * 1000
        for path in on_ceph.mount.glob(f"k{k}.?"):
            left += 1
            began = time.monotonic()
            path.write_bytes(b"mine")
            assert path.read_bytes() == b"mine" and time.monotonic() - began < 8
            assert on_ceph.pool(path.name) in ("first", "third")
    assert left
