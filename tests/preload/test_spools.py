"""What recording may cost a node: nothing for tasks that make nothing, one record for a file that is opened often."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tarazu.errors import TraceError
from tarazu.model import JobStep
from tarazu.run.nodes import gather
from tarazu.run.nodes.framed import Frames
from tarazu.trace.parser import parse_files, parse_runs
from tarazu.trace.spool import parse_spools, read_spools

Runs = Any
TASKS = 400


def memory(plain: Runs) -> int:
    """Bytes that the spools of this node hold."""
    return sum(p.stat().st_blocks * 512 for p in plain.spool_directory.glob("*"))


def run_of(plain: Runs, ranks: int = 1) -> Any:
    step = JobStep("lustre", os.getuid(), "app", "1", ranks=ranks)
    return parse_files(sorted(plain.spool_directory.glob("*.tzs")), step)


def test_tasks_that_create_nothing_cost_nothing(plain: Runs) -> None:
    script = f"i=0; while [ $i -lt {TASKS} ]; do /bin/true; cat < in > /dev/null; i=$((i + 1)); done"
    (plain.mount / "in").write_bytes(b"x")
    assert plain(["sh", "-c", script]).returncode == 0
    assert not plain.spool_directory.exists()


@pytest.mark.parametrize("record", ["light", "full"])
def test_tasks_that_print_into_one_file_cost_one_record(plain: Runs, record: str) -> None:
    """As the processes of a batch script do, whose output is on Lustre."""
    script = f"i=0; while [ $i -lt {TASKS} ]; do /bin/echo $i; i=$((i + 1)); done"
    with (plain.mount / "slurm.out").open("w") as out:
        subprocess.run(["sh", "-c", script], env=plain.environ(TARAZU_RECORD=record), stdout=out, check=True)
    assert [c.size for c in plain.closes] == [(plain.mount / "slurm.out").stat().st_size]
    assert plain.spools == [] and memory(plain) <= 8192


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
def test_a_process_that_comes_while_others_make_the_nodes_file_longer_loses_nothing(plain: Runs) -> None:
    names = [f"old.{i}.{'x' * 200}" for i in range(12)]
    for name in names:
        (plain.mount / name).write_bytes(b"before")
    node = plain.spool_directory / f"{socket.gethostname()}.node.tzs"
    slow = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-P",
        str(node),
        "-e",
        "inject=fstat,mmap:delay_exit=2000000",
    ]
    late = subprocess.Popen(
        [*slow, sys.executable, "-c", f"open('{names[0]}', 'a')"], env=plain.environ(), cwd=plain.mount
    )
    until = time.monotonic() + 300
    while not (node.exists() and node.stat().st_size >= 8192) and time.monotonic() < until:
        time.sleep(0.01)
    script = f"for name in {' '.join(names[1:])}; do true >> $name; done"
    subprocess.run(["sh", "-c", script], env=plain.environ(), cwd=plain.mount, check=True)
    assert node.stat().st_size > 8192
    assert late.wait(300) == 0
    assert plain.spools == []  # it found the file sound
    assert sorted(c.key for c in plain.creates) == sorted(f"/{name}" for name in names)


@pytest.mark.parametrize("record", ["light", "full"])
def test_tasks_that_append_to_one_log_cost_a_record_a_rank(plain: Runs, record: str) -> None:
    (plain.mount / "log").write_bytes(b"begun\n")
    script = f"i=0; while [ $i -lt {TASKS} ]; do /bin/true >> log; i=$((i + 1)); done"
    assert plain(["sh", "-c", script], TARAZU_RECORD=record).returncode == 0
    assert len(plain.creates) == len(plain.closes) == 1 and memory(plain) <= 8192
    assert run_of(plain).files[0].existed


def test_a_log_that_is_opened_again_and_again_costs_one_record(plain: Runs) -> None:
    source = """
for i in range(20000):
    with open("log", "a") as f: f.write("x")
"""
    assert plain.python(source, TARAZU_RECORD="full").returncode == 0
    assert [(c.key, c.size) for c in plain.closes] == [("/log", 20000)]
    assert plain.closes[0].writes == 20000 and plain.closes[0].segments == 1
    assert len(plain.creates) == 1 and memory(plain) <= 16384
    (file,) = run_of(plain).files
    assert (file.size_bytes, file.written_bytes, file.existed) == (20000, 20000, False)


def test_spools_take_what_they_need_when_their_processes_have_ended(plain: Runs) -> None:
    script = f"i=0; while [ $i -lt {TASKS} ]; do dd if=/dev/zero of=f.$i bs=1 count=1 status=none; i=$((i + 1)); done"
    assert plain(["sh", "-c", script]).returncode == 0
    assert sorted(p.name.split(".", 1)[1] for p in plain.spool_directory.iterdir()) == [
        "ended.tzs",
        "node.tzs",
    ]
    assert memory(plain) <= TASKS * 640 and len(plain.spools) == TASKS
    run = run_of(plain)
    assert run.complete and len(run.files) == run.processes == TASKS and run.unended == 0


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_redirection_leaves_no_spool_of_the_shell_behind(plain: Runs, shell: str) -> None:
    """A child of the shell makes the file and becomes the program (bash): it never ends as what it was."""
    script = f"i=0; while [ $i -lt {TASKS} ]; do /bin/echo $i > out.$i; i=$((i + 1)); done; :"
    assert plain([shell, "-c", script]).returncode == 0
    assert len(plain.spools) <= 1 and memory(plain) <= TASKS * 512
    files = {f.key: f.size_bytes for f in run_of(plain).files}
    assert files == {f"/out.{i}": len(f"{i}\n") for i in range(TASKS)}


def test_a_process_that_is_killed_leaves_what_it_recorded(plain: Runs) -> None:
    source = "import os, signal; open('f', 'x').close(); os.kill(os.getpid(), signal.SIGKILL)"
    assert plain.python(source).returncode == -signal.SIGKILL
    (spool,) = plain.spools
    assert not spool.ended and [c.key for c in spool.creates] == ["/f"]
    assert run_of(plain).unended == 1


def test_records_beyond_the_limit_of_the_node_are_counted_as_lost(plain: Runs) -> None:
    source = """
import os
for i in range(3000): os.close(os.open(f"f.{i}", os.O_CREAT | os.O_WRONLY))
"""
    several = f"""
import os
for _ in range(4):
    if os.fork() == 0:
        exec({source!r}.replace("f.{{i}}", f"{{os.getpid()}}.{{{{i}}}}"))
        os._exit(0)
for _ in range(4): os.wait()
"""
    done = plain.python(several, TARAZU_SPOOL_KIB="256")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(plain.mount.iterdir())) == 12000
    assert memory(plain) <= 260 << 10
    run = run_of(plain)
    # Of each file a create and a close.
    assert run.dropped_records > 0 and not run.complete
    assert run.dropped_records >= 12000 - len(run.files)


def test_a_limit_that_leaves_no_room_at_all_is_no_failure(plain: Runs) -> None:
    done = plain.python("open('f', 'w').write('x')", TARAZU_SPOOL_KIB="1")
    assert (done.returncode, done.stderr, (plain.mount / "f").read_text()) == (0, "", "x")
    assert plain.spools == [] and run_of(plain).dropped_records == 2


def test_a_limit_on_the_size_of_files_is_no_signal(plain: Runs) -> None:
    """Spools are files too: growing them beyond RLIMIT_FSIZE would be SIGXFSZ."""
    for blocks in ("0", "5", "9"):
        done = plain(["sh", "-c", f"ulimit -f {blocks}; for i in 1 2 3 4 5 6 7 8 9; do : > f$i; done"])
        assert (done.returncode, done.stderr) == (0, "")


def fetched(plain: Runs) -> Path | None:
    """The spools of this "node" after their way through a pipe."""
    command = gather.collect_command(str(plain.spool_directory), plain.work)
    output = subprocess.run(command, check=True, capture_output=True).stdout
    frames = Frames(plain.work)
    for line in output.splitlines():
        frames.take(line)
    (answer,) = frames.answers
    return answer.file


def test_spools_are_gathered_at_the_length_that_is_used(plain: Runs) -> None:
    """Also those of processes that were killed, which lie in files of their own with room to grow."""
    source = "import os, signal\nfor i in range(30): open(f'{os.getpid()}.{i}', 'x').close()\nos.kill(os.getpid(), 9)"
    script = f'for i in 1 2 3; do python3 -c "{source}"; done; : > last'
    plain(["sh", "-c", script])
    before = run_of(plain)
    used = sum(
        s.header.used_bytes
        for p in plain.spool_directory.glob("*.tzs")
        for s in read_spools(p)
        if s.header.pid
    )
    gathered = fetched(plain)
    assert gathered and gathered.stat().st_size == used + 4096
    after = parse_files([gathered], JobStep("lustre", os.getuid(), "app", "1"))
    assert after.files == before.files and len(after.files) == 91 and after.lost_bytes == 0
    assert not plain.spool_directory.exists()


def test_gathering_keeps_every_process_that_has_ended(plain: Runs) -> None:
    script = "for i in 1 2 3 4 5; do dd if=/dev/zero of=f.$i bs=1 count=$i status=none; done"
    plain(["sh", "-c", script])
    before = run_of(plain)
    gathered = fetched(plain)
    assert gathered and len(before.files) == before.processes == 5
    after = parse_files([gathered], JobStep("lustre", os.getuid(), "app", "1"))
    assert after.files == before.files and (after.processes, after.lost_bytes) == (5, 0)


def test_spools_that_cannot_be_gathered_do_not_stay_in_memory(plain: Runs) -> None:
    """Nobody would come for them any more; the job's line names the node."""
    plain(["touch", "f"])
    command = gather.collect_command(str(plain.spool_directory), plain.work)
    with open("/dev/full", "wb") as full:
        subprocess.run(command, check=False, stdout=full, stderr=subprocess.DEVNULL)
    assert not plain.spool_directory.exists()


@pytest.mark.parametrize("name", ["ended.tzs", "node.tzs"])
def test_a_pipe_in_the_place_of_a_spool_hangs_nobody(plain: Runs, name: str) -> None:
    plain.spool_directory.mkdir(mode=0o700)
    os.mkfifo(plain.spool_directory / f"{os.uname().nodename}.{name}")
    environ = plain.environ()
    done = subprocess.run(["touch", "f"], env=environ, cwd=plain.mount, timeout=300, check=False)
    assert done.returncode == 0 and (plain.mount / "f").exists()


@pytest.mark.parametrize(("at", "value"), [(24, 1 << 40), (16, 1 << 40), (16, 0), (8, 7), (256, 0xFFFFFFF0)])
def test_a_damaged_node_file_harms_no_program(plain: Runs, at: int, value: int) -> None:
    (plain.mount / "log").write_bytes(b"begun\n")
    script = "echo x >> log; /bin/echo y >> log"
    assert plain(["bash", "-c", script]).returncode == 0
    (node,) = plain.spool_directory.glob("*.node.tzs")
    data = bytearray(node.read_bytes())
    if at == 256:
        data[256:4096] = struct.pack("<I", value) * 960
    else:
        struct.pack_into("<Q" if value > 0xFFFF or (at < 32 and at != 8) else "<I", data, at, value)
    node.write_bytes(data)
    done = subprocess.run(
        ["bash", "-c", script], env=plain.environ(), cwd=plain.mount, timeout=300, check=False
    )
    assert done.returncode == 0 and (plain.mount / "log").read_text() == "begun\n" + "x\ny\n" * 2


def test_what_could_not_be_recorded_for_want_of_descriptors_is_counted(plain: Runs) -> None:
    source = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
while True:
    try: held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError: break
os.close(held.pop())
for i in range(10): os.close(os.open(f"f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
for fd in held: os.close(fd)
time.sleep(1.1)
for i in range(10): os.close(os.open(f"g{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
"""
    assert plain.python(source).returncode == 0
    run = run_of(plain)
    assert {f.key for f in run.files if f.closed} >= {f"/g{i}" for i in range(10)}
    assert run.dropped_records == 20 and not run.complete


def test_ranks_that_join_shared_files_are_all_known(plain: Runs) -> None:
    """However many: what finds no room on the node goes into spools."""
    for i in range(40):
        (plain.mount / f"shared.{i}").write_bytes(b"x" * 10)
    source = """
import os
for i in range(40):
    fd = os.open(f"shared.{i}", os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(fd, b"y", 100 + int(os.environ["TARAZU_RANK"]))
    os.close(fd)
"""
    environ = plain.environ(TARAZU_SPOOL_KIB="4096")
    for rank in range(16):
        subprocess.run(
            [sys.executable, "-c", source],
            env=environ | {"TARAZU_RANK": str(rank)},
            cwd=plain.mount,
            check=True,
        )
    run = run_of(plain, ranks=16)
    assert run.dropped_records == 0 and run.ranks_seen == 16 and len(run.files) == 40
    assert {f.creators for f in run.files} == {tuple(range(16))} and {f.size_bytes for f in run.files} == {
        116
    }


def test_records_that_were_lost_move_no_times(plain: Runs) -> None:
    """A node whose memory held nothing says only how much was lost: not that the step began in 1970."""
    plain(["touch", "f"])
    (node,) = plain.spool_directory.glob("*.node.tzs")
    data = bytearray(node.read_bytes())
    struct.pack_into("<Q", data, 40, 7)
    data[256:4096] = bytes(3840)
    node.write_bytes(data)
    run = run_of(plain)
    assert run.dropped_records == 7 and [f.at_s < 10 for f in run.files] == [True]


def test_a_file_that_is_opened_again_is_not_closed(plain: Runs) -> None:
    source = "import os\nfd = os.open('f', {how}); os.write(fd, b'12345'); os.kill(os.getpid(), 9)"
    for how in ("os.O_CREAT | os.O_TRUNC | os.O_WRONLY", "os.O_RDWR"):
        made = "open('f', 'wb').write(b'x' * 1000)\n"
        (plain.mount / "f").unlink(missing_ok=True)
        plain.python(made + source.format(how=how))
        (file,) = run_of(plain).files
        assert not file.closed
    plain.python("import os\nopen('g', 'w').write('x')\nos.close(os.open('g', os.O_CREAT | os.O_RDONLY))")
    assert run_of(plain).files[0].closed


def test_a_spool_that_is_there_twice_counts_once(plain: Runs) -> None:
    """Killed while it was handed over: a part of it behind the others, and all of it in its own file."""
    plain(
        [
            "sh",
            "-c",
            "dd if=/dev/zero of=a bs=1 count=3 status=none; dd if=/dev/zero of=b bs=1 count=4 status=none",
        ]
    )
    (ended,) = plain.spool_directory.glob("*.ended.tzs")
    data = ended.read_bytes()
    first, second = (s.header.used_bytes for s in parse_spools(data))
    (plain.spool_directory / "h.1.1.tzs").write_bytes(data[:first])
    ended.write_bytes(data[: first - 100] + data[first : first + second])
    run = run_of(plain)
    assert [(f.key, f.size_bytes) for f in run.files] == [("/a", 3), ("/b", 4)]
    assert (run.processes, run.lost_bytes) == (2, 0)


def test_damaged_spools_are_read_as_far_as_they_go(plain: Runs) -> None:
    """Whatever a killed process, a full memory or a fault has left: no exception, no endless chain."""
    script = (
        "echo a > a; echo b >> a; /bin/echo c > c; dd if=/dev/zero of=d bs=1 count=9 status=none; echo e >> c"
    )
    plain(["bash", "-c", script])
    data = b"".join(p.read_bytes() for p in sorted(plain.spool_directory.glob("*.tzs")))
    chance = random.Random(7)
    for _ in range(500):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 20)):
            at = chance.choice(
                [chance.randrange(len(broken)), chance.randrange(4096, 5000), chance.randrange(260)]
            )
            broken[at] = chance.choice([0, 255, chance.randrange(256)])
        cut = bytes(broken[: chance.choice([len(broken), chance.randrange(len(broken))])])
        try:
            found = parse_spools(cut)
        except TraceError:
            continue
        parse_runs(found, JobStep("lustre", 0, "app", "1"))


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
@pytest.mark.parametrize("record", ["light", "full"])
def test_a_close_asks_no_server(plain: Runs, record: str) -> None:
    """An fstat on Lustre asks every OST of the file; statfs asks the MDS and all OSTs."""
    maps = plain.work / "maps"
    maps.mkdir()
    environ = plain.environ(TARAZU_RECORD=record, TARAZU_MAP=str(maps), TARAZU_MODE="place")
    preload = environ.pop("LD_PRELOAD")
    trace = plain.work / "trace"
    argv = ["strace", "-f", "-y", "-e", "trace=%file,%desc", "-o", str(trace), "-E", f"LD_PRELOAD={preload}"]
    program = ["dd", "if=/dev/zero", "of=new", "bs=1k", "count=3", "status=none"]
    assert plain.run([*argv, *program], environ).returncode == 0
    lines = [li.split(maxsplit=1)[1] for li in trace.read_text().splitlines()]
    lines = [li.replace(f"AT_FDCWD<{plain.mount}>", "AT_FDCWD") for li in lines]
    asked = [
        li
        for li in lines
        if str(plain.mount) in li and "AT_STATX_DONT_SYNC" not in li and "AT_STATX_SYNC" not in li
    ]
    asked = [li for li in asked if li.startswith(("fstat", "newfstatat", "statx", "stat", "lstat"))]
    assert asked == [] and not any(li.startswith("statfs") for li in lines)
    assert any("AT_STATX_DONT_SYNC" in li for li in lines)
    assert plain.close("/new").size == 3072


def test_the_limit_follows_the_memory_of_the_node(plain: Runs) -> None:
    """Nobody asks for it before the spools are large."""
    plain(["touch", "f"])
    (node,) = plain.spool_directory.glob("*.node.tzs")
    assert not any(node.read_bytes()[48:56])
    plain.python("for i in range(1000): open(f'f.{i}', 'w').close()")
    (node,) = plain.spool_directory.glob("*.node.tzs")
    limit = int.from_bytes(node.read_bytes()[48:56], "little")
    total = int(Path("/proc/meminfo").read_text().split()[1]) << 10
    assert limit == pytest.approx(min(256 << 20, total // 100), rel=0.01)


def test_a_long_node_file_holds_all_that_processes_opened(plain: Runs) -> None:
    """It is mapped in pieces; another process finds what the first has noted in each of them."""
    count = 6000
    for i in range(count):
        (plain.mount / f"old.{i}").write_bytes(b"before")
    source = f"""
import os
for i in range({count}):
    os.close(os.open(f"old.{{i}}", os.O_CREAT | os.O_WRONLY))
"""
    environ = plain.environ()
    for _ in range(2):
        subprocess.run([sys.executable, "-c", source], env=environ, cwd=plain.mount, check=True)
    (node,) = plain.spool_directory.glob("*.node.tzs")
    assert node.stat().st_size > 1 << 20 and plain.spools == []
    assert sorted(c.key for c in plain.creates) == sorted(f"/old.{i}" for i in range(count))


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
def test_signals_while_a_spool_gets_longer_cost_no_record(plain: Runs) -> None:
    """In memory fallocate gives up for any signal that waits, as profilers send thousands."""
    source = """
import os
for i in range(500): os.close(os.open(f"f.{i}", os.O_CREAT | os.O_WRONLY))
"""
    environ = plain.environ()
    preload = environ.pop("LD_PRELOAD")
    signals = ["-e", "trace=fallocate", "-e", "inject=fallocate:error=EINTR:when=1+2"]
    argv = ["strace", "-qq", "-o", "/dev/null", *signals, "-E", f"LD_PRELOAD={preload}"]
    assert plain.run([*argv, sys.executable, "-c", source], environ).returncode == 0
    run = run_of(plain)
    assert (len(run.files), run.dropped_records) == (500, 0)


def test_a_thread_that_never_comes_back_from_its_spool_holds_up_the_others_for_two_seconds_only(
    plain: Runs, compiled: Any
) -> None:
    """Each of their opens and closes waited for its locks, as long as they wait for any."""
    plain.behind = str(compiled("stuck.c", "-shared", "-fPIC", "-ldl"))
    source = """
import ctypes, os, threading, time
library = ctypes.CDLL(None)
value = lambda name: ctypes.c_int.in_dll(library, name).value
def make(name): os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
threading.Thread(target=make, args=("first",), daemon=True).start()
while not value("stuck"): time.sleep(0.001)
for n in range(40): make(f"f{n}")
print(value("waits"), len(os.listdir(".")), flush=True)
os._exit(0)
"""
    done = plain.python(source)
    waits, files = map(int, done.stdout.split())
    # A fifth of a second each, for the spool's lock and the node file's; there are 80 calls.
    assert (files, done.stderr) == (41, "") and waits <= 24
