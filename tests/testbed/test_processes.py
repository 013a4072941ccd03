"""Starting, stopping, killing: nothing wedges, nothing foreign is touched."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.sim.testbed import Testbed, down, open_testbed, processes, status, up
from tarazu.sim.testbed.daemons import daemon_commands


def test_a_killed_process_does_not_wedge_the_others(bed):
    writer = """
import os
i = 0
while True:
    name = 'k%d.%d' % (os.getpid(), i % 50)
    open(name, 'w').close()
    os.unlink(name)
    i += 1
"""
    environment = os.environ | bed.environment(0)
    for round_ in range(5):
        victims = [
            subprocess.Popen([sys.executable, "-c", writer], env=environment, cwd=bed.mount) for _ in range(2)
        ]
        while not any(bed.mount.glob("k*")):
            time.sleep(0.005)
        time.sleep(0.01 * round_)
        for victim in victims:
            victim.kill()
            victim.wait()
        done = bed.exec(
            0,
            ["dd", "if=/dev/zero", "of=after", "bs=1k", "count=1"],
            cwd=bed.mount,
            timeout=10,
            capture_output=True,
        )
        assert done.returncode == 0
        bed.clear()


def test_a_process_killed_while_it_holds_the_lock(bed):
    # The lock is taken in this child through ctypes, as deep inside as a kill can strike.
    script = """
import ctypes, os, signal, sys
from tarazu.sim.testbed.library import library_directory
library = ctypes.CDLL(str(library_directory() / "libtestbed.so"))
assert library.testbed_attach(sys.argv[1].encode()) == 0
library.testbed_hold_lock()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script, str(bed.directory)], check=False)
    assert done.returncode == -signal.SIGKILL
    done = bed.exec(0, ["touch", "after"], cwd=bed.mount, timeout=10)
    assert done.returncode == 0
    assert bed.layout("after").instantiated == (True,)


def test_up_refuses_a_directory_that_holds_something(tmp_path):
    (tmp_path / "precious").write_text("x")
    with pytest.raises(BadInput, match="empty directory"):
        up(tmp_path)
    with pytest.raises(BadInput, match="a testbed"):
        down(tmp_path)
    assert (tmp_path / "precious").read_text() == "x"


def test_down_is_idempotent_and_ends_the_server(tmp_path):
    bed = up(tmp_path / "tb", osss=1, osts_per_oss=1)
    pid = processes.running(bed.directory, "testbed-server")
    assert pid is not None
    assert down(bed.directory) and not down(bed.directory)
    assert not bed.directory.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_stale_pid_is_no_running_process(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "log").mkdir()
    (tmp_path / "run/other.pid").write_text(f"{os.getpid()} 12345\n")  # this pid, another start time
    assert processes.running(tmp_path, "other") is None
    assert processes.states(tmp_path) == {"other": None}
    assert processes.stop(tmp_path) == []


def test_supervisor_starts_logs_and_stops(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "log").mkdir()
    stubborn = """
import signal, time
signal.signal(signal.SIGTERM, lambda *a: exit(0))
print('up', flush=True)
time.sleep(60)
"""
    daemon = processes.Daemon("d", [sys.executable, "-c", stubborn], dict(os.environ))
    assert processes.start(tmp_path, [daemon]) == ["d"]
    assert processes.start(tmp_path, [daemon]) == []
    while "up" not in (tmp_path / "log/d.log").read_text():
        time.sleep(0.01)
    assert processes.stop(tmp_path, except_names={"d"}) == []
    assert processes.stop(tmp_path) == ["d"]


def test_daemon_command_lines(bed):
    commands = {d.name: d for d in daemon_commands(bed)}
    assert len(commands) == 1 + 4 + 2
    argv = commands["tarazu-ossd-oss3"].argv
    assert argv[1:] == [
        "--config",
        str(bed.directory / "etc/tarazu.toml"),
        "--root",
        str(bed.oss_root("oss3")),
        "--name",
        "oss3",
    ]
    assert commands["tarazu-mdsd"].argv[-1] == str(bed.mds_root)
    assert str(bed.client_root(1)) in " ".join(commands["tarazu-clientd-client2"].argv)


def test_without_its_server_programs_go_on(new_bed):
    bed: Testbed = new_bed(osss=1, osts_per_oss=2)
    processes.stop(bed.directory)
    assert bed.exec(0, ["truncate", "-s", "1M", "a"], cwd=bed.mount).returncode == 0
    assert sum(bed.usage().ost_bytes) == 1 << 20
    with pytest.raises(Unavailable):
        bed.refresh()
    assert status(bed.directory)["processes"] == {}


@pytest.mark.parametrize(
    "options",
    [
        {"osss": 0},
        {"fill": [0.5]},
        {"fill": [2.0] * 35},
        {"slow": {99: 2}},
        {"slow": {1: 0}},
        {"interval_s": 0},
        {"default_layout": "nonsense"},
        {"pools": {"p": [99]}},
        {"default_layout": "0-1000:1, 1000-EOF:2"},
        {"default_layout": "0-1M:1@4M, 1M-EOF:2"},  # the end is no multiple of the stripe size
    ],
)
def test_values_that_make_no_sense_leave_nothing_behind(tmp_path, options):
    with pytest.raises(TarazuError):
        up(tmp_path / "tb", **options)
    assert not (tmp_path / "tb").exists()


def test_set_ost_refuses_what_does_not_exist(bed):
    with pytest.raises(BadInput):
        bed.set_ost(8, full=True)
    with pytest.raises(BadInput):
        bed.set_ost(0, broken=True)
    with pytest.raises(BadInput):
        bed.set_oss("oss9", cpu=1)


def cli(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tarazu", "testbed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_command_line(tmp_path):
    directory = tmp_path / "tb"
    made = cli(
        "up",
        directory,
        "--osss",
        2,
        "--osts-per-oss",
        2,
        "--ost-size",
        "1G",
        "--slow",
        "1=10",
        "--pool",
        "p=0,3",
        "--layout",
        "2@1M",
        "--fill",
        "0,0.5,0,0",
        "--clients",
        2,
        "--json",
    )
    assert made.returncode == 0, made.stderr
    shown = json.loads(made.stdout)
    assert shown["osts"] == 4 and shown["ost_bytes"] == 1 << 30 and list(shown["speeds"]) == ["1"]
    again = cli("up", directory)
    assert (
        again.returncode == 2
        and again.stderr.startswith("tarazu sim testbed: ")
        and again.stderr.count("\n") == 1
    )
    ran = cli(
        "exec",
        directory,
        "--on",
        "client2",
        "--",
        "sh",
        "-c",
        "hostname; truncate -s 4M $TESTBED/mnt/a; exit 7",
    )
    assert (ran.returncode, ran.stdout) == (7, "client2\n")
    assert cli("exec", directory, "--", "/nonexistent").returncode == 127
    assert cli("exec", directory, "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert cli("exec", directory).returncode == 2
    assert cli("exec", "--on", "client3", directory, "--", "true").returncode == 2
    used = json.loads(cli("usage", directory, "--json").stdout)
    assert used["files"] == 1 and sorted(used["ost_bytes"]) == [0, 0, 2 << 20, 2 << 20]
    assert "OST cost 2.000" in cli("usage", directory).stdout
    assert "testbed-server" in cli("status", directory).stdout
    assert "export TESTBED=" in cli("env", directory).stdout
    assert len(open_testbed(directory).layout("a").osts[0]) == 2
    assert cli("down", directory).returncode == 0 and not directory.exists()
    assert cli("down", directory).returncode == 0
    assert cli("status", directory).returncode == 2
    assert "emulated Lustre" in cli("--help").stdout


def test_a_daemon_killed_a_moment_ago_is_started_again(tmp_path: Path) -> None:
    # It takes long to die: much memory, threads, and a port that its successor needs.
    program = """
import socket, sys, threading, time
ballast = bytearray(200 << 20)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
for _ in range(4):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
open(sys.argv[2], "a").write("up\\n")
time.sleep(600)
"""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "run").mkdir()
    (tmp_path / "log").mkdir()
    ups = tmp_path / "ups"
    argv = [sys.executable, "-c", program, str(port), str(ups)]
    daemon = processes.Daemon("slow", argv, dict(os.environ))
    try:
        for number in range(1, 6):
            assert processes.start(tmp_path, [daemon]) == ["slow"], (
                "the dying one was taken for a running one"
            )
            deadline = time.monotonic() + 20
            while not ups.exists() or len(ups.read_text().splitlines()) < number:
                assert time.monotonic() < deadline, (tmp_path / "log" / "slow.log").read_text()
                time.sleep(0.01)
            pid = processes.running(tmp_path, "slow")
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert processes.running(tmp_path, "slow") is None
    finally:
        processes.stop(tmp_path)
