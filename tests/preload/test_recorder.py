"""The recorder: what programs do to their files, from real programs."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

Runs = Any
PRELOAD = Path(__file__).parent.parent.parent / "preload"


def test_dd(plain: Runs) -> None:
    assert plain(["dd", "if=/dev/zero", "of=a.dat", "bs=1k", "count=5"], TARAZU_RECORD="full").returncode == 0
    (spool,) = plain.spools
    assert (spool.program, spool.recorder, spool.mode, spool.dropped, spool.ended) == ("dd", 0, 0, 0, True)
    close = plain.close("/a.dat")
    assert (close.size, close.written, close.low, close.high, close.writes, close.segments, close.flags) == (
        5120, 5120, 0, 5120, 5, 1, 1,
    )  # fmt: skip
    assert plain.create("/a.dat").flags == 0


def test_cp_and_tar(plain: Runs) -> None:
    (plain.mount / "in").write_bytes(bytes(70000))
    script = "cp in copy; tar cf t.tar in; mkdir x; tar xf t.tar -C x; mv copy moved"
    assert plain(["sh", "-c", script], TARAZU_RECORD="full").returncode == 0
    sizes = {c.key: c.size for c in plain.closes}
    archive = (plain.mount / "t.tar").stat().st_size
    assert sizes == {"/copy": 70000, "/t.tar": archive, "/x/in": 70000}


def test_many_files_that_are_open_at_a_time(plain: Runs) -> None:
    source = """
import os
fds = [os.open(f"f.{i}", os.O_CREAT | os.O_WRONLY) for i in range(900)]
for n, fd in enumerate(fds): os.write(fd, bytes(n + 1))
for fd in fds: os.close(fd)
"""
    plain.python(source)
    assert sorted(c.size for c in plain.closes) == list(range(1, 901))


def test_light_mode_counts_nothing(plain: Runs) -> None:
    plain(["dd", "if=/dev/zero", "of=a", "bs=1k", "count=5"])
    close = plain.close("/a")
    assert (close.size, close.written, close.writes, close.flags) == (5120, 0, 0, 0)
    assert plain.spools[0].recorder == 1


def test_shell_redirection_is_followed_over_exec(plain: Runs) -> None:
    plain(["sh", "-c", "head -c 3000 /dev/zero > out; echo more >> out"])
    assert max(c.size for c in plain.closes if c.key == "/out") == 3005
    assert any(c.flags & 2 and c.size == 3000 for c in plain.closes)


def test_python_writers(plain: Runs) -> None:
    source = """
import os, shutil, tempfile
with open("a", "w") as f: f.write("x" * 100000)
with os.fdopen(os.dup(os.open("b", os.O_CREAT | os.O_WRONLY)), "wb") as f: f.write(bytes(77))
with tempfile.NamedTemporaryFile(dir=".", delete=False) as f: f.write(bytes(5))
shutil.copyfile("a", "c")
os.replace("c", "d")
left_open = open("e", "wb"); left_open.write(b"123"); left_open.flush()
d = os.open("sub", os.O_RDONLY) if os.path.isdir("sub") else os.mkdir("sub")
d = os.open("sub", os.O_RDONLY)
os.close(os.open("in-sub", os.O_CREAT | os.O_WRONLY, dir_fd=d))
os._exit(5)
"""
    assert plain.python(source, TARAZU_RECORD="full").returncode == 5
    sizes = {c.key: c.size for c in plain.closes}
    sizes = {k: v for k, v in sizes.items() if not k.startswith("/tmp")}
    assert sizes == {"/a": 100000, "/b": 77, "/c": 100000, "/e": 3, "/sub/in-sub": 0}
    assert plain.spools[0].ended


def test_numpy_tofile(plain: Runs) -> None:
    assert (
        plain.python("import numpy; numpy.zeros(1000).tofile('n.dat')", TARAZU_RECORD="full").returncode == 0
    )
    close = plain.close("/n.dat")
    assert (close.size, close.written, close.high) == (8000, 8000, 8000)


def test_unflushed_streams_are_counted_at_exit(plain: Runs) -> None:
    assert plain(["awk", 'BEGIN { print "hello" > "out" }']).returncode == 0
    assert plain.close("/out").size == 6


def test_offsets_and_segments(plain: Runs) -> None:
    source = """
import os
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.write(fd, bytes(10)); os.write(fd, bytes(10))
os.lseek(fd, 100, 0); os.write(fd, bytes(10))
other = os.dup(fd)
os.write(other, bytes(10))
os.pwritev(fd, [bytes(5), bytes(5)], 500)
os.close(fd)
os.writev(other, [bytes(1)])
os.close(other)
"""
    assert plain.python(source, TARAZU_RECORD="full").returncode == 0
    close = plain.close("/f")
    assert (close.size, close.written, close.low, close.high, close.writes, close.segments) == (
        510, 51, 0, 510, 6, 4,
    )  # fmt: skip


def test_reopening_without_creating(plain: Runs) -> None:
    (plain.mount / "f").write_bytes(b"12345")
    plain.python(
        "f = open('f', 'r+b'); f.seek(10); f.write(b'x'); f.close(); open('f').read()", TARAZU_RECORD="full"
    )
    assert plain.creates == []
    close = plain.close("/f")
    assert (close.size, close.low, close.flags) == (11, 10, 3)


def test_names_count_per_template_and_keep_their_number(plain: Runs) -> None:
    source = """
import os
def make(name):
    try: os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError: pass
for name in ("s1.dat", "s2.dat", "s2.dat", "s3.dat"): make(name)
os.unlink("s1.dat"); make("s1.dat")
for name in ("d.20240501", "d.20240502"): make(name)
"""
    plain.python(source)
    seen = [(c.key, c.nth_precise, c.nth_loose, c.flags & 2) for c in plain.creates]
    assert seen == [
        ("/s1.dat", 0, 0, 2),
        ("/s2.dat", 0, 1, 0),
        ("/s3.dat", 0, 2, 0),
        ("/d.20240501", 0, 0, 0),
        ("/d.20240502", 1, 1, 0),
    ]


def test_identity_in_the_header(plain: Runs) -> None:
    plain(["touch", "f.3"], SLURM_JOB_ID="99887", OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="8")
    (spool,) = plain.spools
    assert (spool.job, spool.rank, spool.ranks, spool.host) == ("99887", 3, 8, os.uname().nodename)
    assert plain.create("/f.3").precise == "/f.{rank}"
    plain(["touch", "g"], SLURM_JOB_ID="1", TARAZU_JOB="2", TARAZU_RANK="5", SLURM_PROCID="6")
    assert (plain.spools[0].job, plain.spools[0].rank) == ("2", 5)


def test_a_batch_script_is_one_process_whatever_the_allocation(plain: Runs) -> None:
    plain(["touch", "f"], SLURM_JOB_ID="99887", SLURM_PROCID="0", SLURM_NTASKS="64")
    assert (plain.spools[0].rank, plain.spools[0].ranks) == (0, 0)


def test_names_of_a_task_of_a_job_array(plain: Runs) -> None:
    array = {"SLURM_JOB_ID": "99890", "TARAZU_ARRAY_JOB": "99887", "TARAZU_ARRAY_INDEX": "3"}
    plain(["touch", "f_99887_3.dat"], **array)
    assert plain.create("/f_99887_3.dat").precise == "/f_{job}_{array}.dat"


def test_host_directory_and_private_modes(plain: Runs) -> None:
    plain(["touch", "f"], TARAZU_SPOOL=str(plain.spool_directory / "a" / "%h"))
    directory, host = plain.spool_directory / "a" / os.uname().nodename, os.uname().nodename
    assert {p.name for p in directory.iterdir()} == {f"{host}.node.tzs", f"{host}.ended.tzs"}
    assert {p.stat().st_mode & 0o777 for p in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["absolute", "relative", "link", "dots", "dirfd", "chdir", "fchdir"])
def test_every_way_to_say_a_path_gives_one_key(plain: Runs, how: str) -> None:
    (plain.mount / "a" / "b").mkdir(parents=True)
    (plain.work / "link").symlink_to(plain.mount / "a")
    (plain.mount / "inside").symlink_to("a/b")
    source = f"""
import os
M, W = {str(plain.mount)!r}, {str(plain.work)!r}
how = {how!r}
for name in ("f1", "f2"):
    flags, d = os.O_CREAT | os.O_WRONLY, None
    if how == "absolute": path = M + "/a/b/" + name
    if how == "relative": path = "a/b/" + name
    if how == "link": path = (W + "/link/b/" if name == "f1" else "inside/") + name
    if how == "dots": path = M + "//a/./../a//b/" + name
    if how == "dirfd": path, d = "b/" + name, os.open("a", os.O_RDONLY)
    if how == "chdir": os.chdir(M + "/a/b"); path = name
    if how == "fchdir":
        os.chdir("/"); d2 = os.open(M + "/a", os.O_RDONLY); os.fchdir(d2); os.close(d2); path = "b/" + name
    os.close(os.open(path, flags, dir_fd=d))
"""
    done = plain.python(source)
    assert done.stderr == ""
    assert [c.key for c in plain.creates] == ["/a/b/f1", "/a/b/f2"]


def test_a_reused_directory_descriptor_is_looked_up_again(plain: Runs) -> None:
    source = """
import os
for d in ("a", "b"):
    os.mkdir(d)
    with os.scandir(d): pass
    fd = os.open(d, os.O_RDONLY)
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
"""
    plain.python(source)
    assert [c.key for c in plain.creates] == ["/a/f", "/b/f"]


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
def test_no_system_call_for_a_directory_seen_before(plain: Runs, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    source = f"""
import os
for i in range(4):
    os.close(os.open({str(plain.mount)!r} + f"/f{{i}}", os.O_CREAT | os.O_WRONLY))
"""
    environ = plain.environ()
    preload = environ.pop("LD_PRELOAD")
    argv = ["strace", "-o", str(trace), "-E", f"LD_PRELOAD={preload}", sys.executable, "-c", source]
    assert plain.run(argv, environ).returncode == 0
    lines = trace.read_text().splitlines()
    (first, second, *_) = (i for i, line in enumerate(lines) if "/f1" in line or "/f2" in line)
    calls = Counter(line.split("(")[0] for line in lines[first:second])
    assert (
        calls == {"openat": 1, "statx": 2, "getpid": 4, "fstat": 1, "close": 1} or sum(calls.values()) <= 10
    )
    assert not calls & Counter({"readlink": 9, "readlinkat": 9, "getcwd": 9, "openat2": 9})


def test_ompio_lock_tests_and_excluded_names_are_nowhere(plain: Runs) -> None:
    plain(["touch", "f", "f.locktest.3", "x.darshan_partial", "logs"], TARAZU_EXCLUDE="*.darshan*:/logs")
    assert [c.key for c in plain.creates] == ["/f"]
    plain(["touch", "out1", "f2"], TARAZU_INCLUDE="/out*")
    assert [c.key for c in plain.creates] == ["/out1"]
    plain(["touch", "f3"], TARAZU_EXCLUDE_PROGRAMS="dd:tou*")
    assert plain.spools == []


def test_globs_are_those_of_fnmatch(compiled: Any) -> None:
    program = compiled("globs.c", f"-I{PRELOAD}", str(PRELOAD / "base" / "glob.c"))
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_glob_takes_characters_of_several_bytes_whole(plain: Runs) -> None:
    plain(["touch", "é.1", "e.1", "ö"], TARAZU_INCLUDE="/[é-ü].1:/?")
    assert [c.key for c in plain.creates] == ["/é.1", "/ö"]


def test_a_killed_process_leaves_its_records(plain: Runs) -> None:
    source = "import os, signal; f = open('f', 'w'); f.write('x'); f.close(); os.kill(os.getpid(), 9)"
    assert plain.python(source).returncode == -signal.SIGKILL
    (spool,) = plain.spools
    assert [c.key for c in spool.creates] == [c.key for c in spool.closes] == ["/f"]
    assert not spool.ended


def check_many(plain: Runs) -> None:
    """Each of 1,280 files has its two records, in the spool of its process."""
    child, parent = plain.spools
    if child.parent != parent.pid:
        child, parent = parent, child
    assert child.parent == parent.pid
    # What a child makes first is noted on the node: it might become another program.
    (node,) = [s for s in plain.all_spools if not s.pid]
    assert len(node.creates) == 2
    assert {c.size for c in node.closes} == {2500}
    for spool, creates, closes, start in ((parent, [], [], 0), (child, node.creates, node.closes, 100)):
        expected = Counter(f"/t{start + t}.f{i}" for t in range(16) for i in range(40))
        assert Counter(c.key for c in [*spool.creates, *creates]) == expected
        assert Counter(c.key for c in [*spool.closes, *closes]) == expected
        assert {(c.size, c.written, c.writes, c.segments) for c in spool.closes} == {(2500, 1500, 2, 2)}
        assert spool.ended and spool.dropped == 0 and spool.capacity > 65536


def test_a_spool_grows_and_threads_and_forks_lose_nothing(plain: Runs, compiled: Any) -> None:
    assert plain([compiled("many.c")], TARAZU_RECORD="full").returncode == 0
    check_many(plain)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
def test_threads_lose_nothing_while_one_takes_long_to_make_the_spool_longer(
    plain: Runs, compiled: Any
) -> None:
    """As on a busy node, where whoever holds the spool may get no processor for longer than others wait."""
    environ = plain.environ(TARAZU_RECORD="full")
    preload = environ.pop("LD_PRELOAD")
    slow = ["-e", "trace=fallocate", "-e", "inject=fallocate:delay_enter=400000"]
    argv = ["strace", "-f", "-qq", "-o", "/dev/null", *slow, "-E", f"LD_PRELOAD={preload}"]
    assert plain.run([*argv, str(compiled("many.c"))], environ).returncode == 0
    check_many(plain)


def test_vfork_spawn_system_and_clone(plain: Runs, compiled: Any) -> None:
    done = plain([compiled("spawn.c")])
    assert (done.returncode, done.stderr) == (0, "")
    assert plain.close("/kept").size == 8
    assert plain.create("/after").key == "/after"
    cloned = next(s for s in plain.all_spools if any(c.key == "/cloned" for c in s.creates))
    kept = next(s for s in plain.spools if any(c.key == "/kept" for c in s.creates))
    assert cloned.pid != kept.pid and [c.key for c in kept.creates] == ["/kept", "/after"]


def test_a_forked_worker_counts_from_zero_and_closes_its_own(plain: Runs) -> None:
    source = """
import os
a = open("a1", "w"); a.write("x"); a.flush()
if os.fork() == 0:
    b = open("a2", "w"); b.write("yy"); b.close()
    os._exit(0)
os.wait()
a.write("z"); a.close()
"""
    assert plain.python(source).returncode == 0
    assert {(c.key, c.nth_loose) for c in plain.creates} == {("/a1", 0), ("/a2", 0)}
    assert {(c.key, c.size) for c in plain.closes} == {("/a1", 2), ("/a2", 2)}


def test_errno_and_results_are_those_of_a_bare_run(plain: Runs, compiled: Any) -> None:
    program = compiled("errors.c")
    bare = plain.bare([program])
    for entry in list(plain.mount.iterdir()):
        subprocess.run(["rm", "-r", entry], check=True)
    recorded = plain([program], TARAZU_RECORD="full")
    assert (recorded.returncode, recorded.stderr) == (bare.returncode, bare.stderr) == (0, "")
    assert recorded.stdout == bare.stdout
    assert len(bare.stdout.splitlines()) > 45


def test_a_full_spool_device_only_loses_records(plain: Runs) -> None:
    done = plain(["touch", "f"], TARAZU_SPOOL="/proc/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    done = plain(["sh", "-c", "ulimit -n 3; echo a > f"])
    assert done.returncode != 0 and (plain.mount / "f").read_bytes() == b""


def test_times_are_ordered(plain: Runs) -> None:
    before = time.time_ns()
    plain(["touch", "f"])
    (path,) = plain.spool_directory.glob("*.ended.tzs")
    data = path.read_bytes()
    start = struct.unpack_from("<Q", data, 32)[0]
    created = struct.unpack_from("<Q", data, 256 + 8)[0]
    assert before <= start <= created <= time.time_ns()
