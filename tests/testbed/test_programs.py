"""Unmodified programs on the testbed: shell tools, Python, C, MPI; with stored and with sparse data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tarazu.sim.testbed.library import library_directory
from tests.mpi import OPENMPI_RUN

MIB = 1 << 20


def iorlike() -> str:
    return str(library_directory() / "testbed" / "iorlike")


def run(bed, *argv: str | Path, client: int = 0, **options):
    return bed.exec(
        client, argv, capture_output=True, text=True, cwd=bed.client_mount(client), timeout=60, **options
    )


@pytest.fixture(params=[False, True], ids=["real", "sparse"])
def either(bed, request):
    bed.mds.set("sparse", int(request.param))
    yield bed
    bed.mds.set("sparse", 0)


def test_dd(either):
    done = run(either, "dd", "if=/dev/zero", "of=a", "bs=1M", "count=5", "oflag=append", "conv=notrunc")
    assert done.returncode == 0, done.stderr
    found = os.stat(either.mount / "a")
    assert found.st_size == 5 * MIB
    assert (found.st_blocks * 512 < MIB) == bool(either.mds.get("sparse"))
    assert sum(either.usage().ost_bytes) == 5 * MIB


def test_cp_tar_and_mv_keep_contents(bed, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "b").write_bytes(os.urandom(3 * MIB))
    done = run(
        bed, "sh", "-c", f"cp -r {source} . && tar cf t.tar source && mkdir x && tar xf t.tar -C x && mv x y"
    )
    assert done.returncode == 0, done.stderr
    assert (bed.mount / "y/source/b").read_bytes() == (source / "b").read_bytes()
    with tarfile.open(bed.mount / "t.tar") as archive:
        assert archive.getnames() == ["source", "source/b"]
    used = bed.usage()
    assert used.files == 3 and sum(used.ost_bytes) == used.total_bytes


def test_sparse_copies_count_but_take_no_space(bed):
    bed.mds.set("sparse", 1)
    done = run(
        bed,
        "sh",
        "-c",
        "dd if=/dev/zero of=a bs=1M count=50 && cp a b && cp --reflink=never --sparse=never a c",
    )
    bed.mds.set("sparse", 0)
    assert done.returncode == 0, done.stderr
    for name in "abc":
        found = os.stat(bed.mount / name)
        assert found.st_size == 50 * MIB and found.st_blocks * 512 <= MIB
    assert sum(bed.usage().ost_bytes) == 150 * MIB


def test_python_ways_to_write(bed):
    script = """
import mmap, os, tempfile
with open('text', 'w') as f: print('hello', file=f)
with open('text', 'a') as f: f.write('more')
with open('map', 'w+b') as f:
    f.truncate(1 << 20)
    with mmap.mmap(f.fileno(), 0) as m: m[:5] = b'bytes'
fd, name = tempfile.mkstemp(dir='.'); os.write(fd, b'x'); os.close(fd)
fd = os.dup(os.open('dup', os.O_CREAT | os.O_WRONLY)); os.writev(fd, [b'ab', b'cd']); os.pwrite(fd, b'z', 9)
assert open('text').read() == 'hello\\nmore' and open('map', 'rb').read(5) == b'bytes'
"""
    done = run(bed, sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr
    used = bed.usage()
    assert used.files == 4 and sum(used.ost_bytes) == used.total_bytes == 10 + MIB + 1 + 10
    assert all(bed.layout(p.name).instantiated == (True,) for p in bed.mount.iterdir())


def test_standard_streams_and_c_stdio(bed):
    done = run(
        bed, "sh", "-c", "seq 100000 > a; awk '{print > \"b\"}' a; sed -i s/1/2/ b; sort -o c a; cat a b > d"
    )
    assert done.returncode == 0, done.stderr
    used = bed.usage()
    assert used.files == 4 and sum(used.ost_bytes) == used.total_bytes > 4 * 500000


def test_late_components_of_a_default_layout_follow_stdio(new_bed):
    bed = new_bed(osss=2, osts_per_oss=4, sparse=False, default_layout="0-1M:1@1M, 1M-4M:2@1M, 4M-EOF:4@1M")
    done = run(bed, "sh", "-c", 'awk \'BEGIN{for(i=0;i<300000;i++) print "0123456789" > "a"}\'')
    assert done.returncode == 0, done.stderr
    assert bed.layout("a").instantiated == (True, True, False)
    assert sum(bed.usage().ost_bytes) == 3300000


def test_iorlike_forks_ranks(either):
    done = run(
        either,
        iorlike(),
        "-F",
        "-n",
        "4",
        "-b",
        "2m",
        "-s",
        "2",
        "-S",
        "2",
        "-r",
        "7",
        "-v",
        "-o",
        "run{run:03}/s{step}/data",
    )
    assert done.returncode == 0, done.stderr
    names = sorted(str(p.relative_to(either.mount)) for p in either.mount.rglob("*") if p.is_file())
    assert names == [f"run007/s{step}/data.{rank}" for step in range(2) for rank in range(4)]
    assert either.usage().total_bytes == 8 * 4 * MIB
    assert done.stdout.count("4194304 bytes") == 8


def test_iorlike_shared_file(bed):
    assert run(bed, iorlike(), "-n", "3", "-b", "1m", "-t", "256k", "-s", "2", "-o", "shared").returncode == 0
    data = (bed.mount / "shared").read_bytes()
    assert [data[i * MIB : i * MIB + 1] for i in range(6)] == [b"a", b"b", b"c"] * 2


def test_iorlike_says_what_is_wrong(bed):
    assert "Usage" in run(bed, iorlike(), "-h").stdout
    for arguments in (["-b", "1x", "-o", "a"], ["-F"], ["-o", "a", "extra"], ["-n", "0", "-o", "a"]):
        done = run(bed, iorlike(), *arguments)
        assert done.returncode == 2 and done.stderr.startswith("iorlike: ")
    done = run(bed, iorlike(), "-n", "2", "-o", "/proc/none/file")
    assert done.returncode == 1 and "/proc/none" in done.stderr


@pytest.mark.skipif(shutil.which(OPENMPI_RUN) is None, reason="needs Open MPI (Debian: openmpi-bin)")
def test_mpirun(bed):
    done = run(
        bed,
        OPENMPI_RUN,
        "--allow-run-as-root",
        "--oversubscribe",
        "-n",
        "4",
        iorlike(),
        "-F",
        "-b",
        "1m",
        "-o",
        "m{rank}",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in bed.mount.iterdir()) == ["m0", "m1", "m2", "m3"]
    assert len({bed.layout(f"m{rank}").osts for rank in range(4)}) == 4


def test_files_made_by_a_static_program_are_accounted_for(bed):
    (bed.mount / "foreign").write_bytes(b"x" * 1000)  # this process has no hooks
    bed.refresh()
    assert sum(bed.usage().ost_bytes) == 1000


def test_statfs_and_df(new_bed):
    bed = new_bed(osss=2, osts_per_oss=2, ost_bytes=1 << 30, fill=[0.5, 0, 0, 0])
    assert run(bed, "stat", "-f", "-c", "%t %b %f", ".").stdout.split() == [
        "bd00bd0",
        str(1 << 20),
        str((1 << 20) * 7 // 8),
    ]
    assert run(bed, "stat", "-f", "-c", "%t", "/").stdout.strip() != "bd00bd0"
    run(bed, "truncate", "-s", "512M", "a")
    bed.refresh()
    assert run(bed, "df", "--output=used", "-BM", ".").stdout.split()[-1] == "1024M"
    bed.set_ost(0, active=False)
    assert run(bed, "df", "--output=size", "-BG", ".").stdout.split()[-1] == "3G"


def test_threads_and_processes_at_once(bed):
    bed.mds.set("rr_start_count", 10**6)  # no new seed in the middle
    script = """
import os, threading
def work(n):
    for i in range(20):
        with open(f'{os.getpid()}.{n}.{i}', 'wb') as f: f.write(b'x' * 5000)
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        os._exit(0)
    children.append(pid)
assert [os.waitpid(p, 0)[1] for p in children] == [0, 0, 0]
"""
    done = run(bed, sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr
    used = bed.usage()
    assert used.files == 240 and sum(used.ost_bytes) == used.total_bytes
    per_ost = [sum(1 for p in bed.mount.iterdir() if bed.layout(p.name).osts == ((i,),)) for i in range(8)]
    assert per_ost == [30] * 8


def test_environment_runs_a_shell(bed):
    environment = os.environ | bed.environment(1)
    command = ["sh", "-c", "echo $TESTBED_CLIENT; uname -n"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["client2", "client2"]
