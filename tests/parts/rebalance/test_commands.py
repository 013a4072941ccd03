"""`tarazu change rebalance` on a testbed: its script moves files with a stand-in for `lfs migrate`, and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.cli import main
from tarazu.model import Ost, SystemView
from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.testbed import OST_BYTES

SICK = 5
HOSTILE = "it's $(touch INJECTED)\n`x` \\ -n"

WRITE = """
import os, sys, time
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.testbed import lov
MIB, now = 1 << 20, int(time.time())
os.makedirs("set"), os.makedirs("other")
def make(name, parts, size):
    composite = len(parts) > 1
    layout = Layout(tuple(Component(a, b, MIB, len(o) or c) for a, b, c, o in parts), composite)
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | 0o20000, 0o600)
    os.setxattr(fd, "lustre.lov", lov.encode(layout, tuple(tuple(o) for *_, o in parts)))
    os.write(fd, name.encode() * (size // len(name)) + b"x" * (size % len(name)))
    os.close(fd)
    os.utime(name, (now - 7200, now - 500_000))
for i in range(5):
    make(f"set/f{i}", [(0, EOF, 1, [(4, 5)[i % 2]])], 2 * MIB)
make("set/pfl", [(0, MIB, 1, [5]), (MIB, 4 * MIB, 1, [4]), (4 * MIB, EOF, 2, [])], 3 * MIB)
make("set/" + sys.argv[1], [(0, EOF, 1, [5])], 2 * MIB)
"""


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    """8 OSTs on 2 servers; OST 5 is ten times slower. /set lies on two of them only. TB/view.json is what is known."""
    with tempfile.TemporaryDirectory(prefix="tz-rebalance-") as directory:
        made = up(Path(directory) / "tb", osss=2, osts_per_oss=4, sparse=False, slow={SICK: 10.0})
        try:
            made.exec(0, [sys.executable, "-c", WRITE, HOSTILE], cwd=made.client_mount()).check_returncode()
            osts = tuple(
                Ost(i, oss, OST_BYTES, OST_BYTES, OST_BYTES, write_bytes_per_s=made.speeds()[i])
                for i, oss in enumerate(made.oss_of_ost)
            )
            view = SystemView(made.fs_name, time.time(), osts)
            (made.directory / "view.json").write_bytes(msgspec.json.encode(view))
            yield made
        finally:
            down(made.directory)


@pytest.fixture
def on_client(bed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Testbed:
    """This process is one on the client, but for the preloaded library, which only its children get."""
    for name, value in (bed.environment() | {"TARAZU_CLIENTD_SOCKET": "/nonexistent"}).items():
        monkeypatch.setenv(name, value)
    return bed


def advised(bed: Testbed, *words: str) -> Any:
    """What `tarazu change rebalance --advise --json` prints on the client."""
    program: list[str | Path] = [
        "-m",
        "tarazu",
        "change",
        "rebalance",
        "--advise",
        "--json",
        "--min-size",
        "1M",
        "--idle",
        "0",
        *words,
    ]
    program += ["--view", bed.directory / "view.json"]
    done = bed.exec(0, [sys.executable, *program, bed.client_mount() / "set"], capture_output=True)
    assert not done.returncode, done.stderr.decode()
    return json.loads(done.stdout)


def placed(bed: Testbed) -> dict[str, tuple[tuple[int, ...], ...]]:
    return {p.name: bed.layout(p).osts for p in sorted((bed.mount / "set").iterdir())}


def slowest_s(bed: Testbed) -> float:
    """Seconds in which the slowest OST reads all of /set, at the speeds that the testbed really has."""
    from tarazu.layout.objects import object_bytes

    held = [0.0] * 8
    for path in (bed.mount / "set").iterdir():
        found = bed.layout(path)
        sizes = object_bytes(found.layout, path.stat().st_size)
        for osts, parts in zip(found.osts, sizes, strict=True):
            for ost, size in zip(osts, parts, strict=False):
                held[ost] += size
    return max(size / speed for size, speed in zip(held, bed.speeds(), strict=True))


def run(bed: Testbed, script: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return bed.exec(0, ["bash", script, *words], env=env, capture_output=True, text=True, cwd=script.parent)


@pytest.fixture(scope="module")
def told(bed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """The advice, and its script."""
    path = tmp_path_factory.mktemp("told") / "move.sh"
    return advised(bed, "--days", "1e9", "--script", str(path)), path.read_text(errors="surrogateescape")


@pytest.fixture
def script(on_client: Testbed, told: tuple[Any, str], tmp_path: Path) -> Path:
    path = tmp_path / "move.sh"
    path.write_text(told[1], errors="surrogateescape")
    return path


def test_the_script_brings_what_was_promised_and_takes_it_back(
    on_client: Testbed, told: tuple[Any, str], script: Path, tmp_path: Path
) -> None:
    before, now = placed(on_client), slowest_s(on_client)
    content = {
        p: (p.read_bytes(), p.stat().st_mtime, p.stat().st_ino) for p in (on_client.mount / "set").iterdir()
    }
    advice, path = told[0], script
    (dataset,) = advice["datasets"]
    assert dataset["before_s"] == pytest.approx(now) and dataset["slowest"] == SICK
    assert advice["notes"] == [] and not advice["left"]
    done = run(on_client, path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    then = slowest_s(on_client)
    assert then == pytest.approx(dataset["after_s"])
    assert then < now / 4
    moved = {os.fsdecode(m["path"]).rpartition("/")[2] for step in advice["steps"] for m in step["moves"]}
    after = placed(on_client)
    assert {name for name in after if after[name] != before[name]} == moved >= {HOSTILE}
    assert {p: (p.read_bytes(), p.stat().st_mtime, p.stat().st_ino) for p in content} == content
    assert not list(tmp_path.glob("INJECTED*")) and not list(on_client.mount.rglob("*VOLATILE*"))
    assert run(on_client, path).stderr == "", "done already"
    assert run(on_client, path, "undo").returncode == 0
    assert placed(on_client) == before
    assert {
        line.split("\t")[1] for line in run(on_client, path, "list").stdout.split("\n") if "\t" in line
    } == {"back"}


def test_a_killed_script_goes_on_and_leaves_what_is_in_use(on_client: Testbed, script: Path) -> None:
    before = placed(on_client)
    notes, stop = Path(f"{script}.notes"), script.parent / "stop"
    env = os.environ | on_client.environment() | {"BUSY": f"grep -q moved {notes}", "PAUSE": "0.05"}
    running = subprocess.Popen(["bash", script], env=env, start_new_session=True, stderr=-1, stdout=-3)
    deadline = time.monotonic() + 300
    while not notes.exists() or " moved" not in notes.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert "is running already" in run(on_client, script).stderr
    assert running.poll() is None, "waits while it is busy"
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert sum(placed(on_client)[n] != before[n] for n in before) == 1
    stop.touch()
    assert run(on_client, script, STOP=str(stop)).returncode == 3

    listed = [line.split("\t") for line in run(on_client, script, "list").stdout.split("\n")]
    left = [Path(row[3]) for row in listed if row[1:2] == ["to do"] and "/f" in row[3][-3:]]
    one, two, three = left[:3]
    was = one.stat()
    os.utime(one, (was.st_atime, was.st_mtime + 5))
    os.setxattr(two, "user.testbed.hsm", b"(0x00000009) exists archived, archive_id:1")
    with three.open("ab"):
        done = run(on_client, script)
    os.utime(one, (was.st_atime, was.st_mtime))
    os.removexattr(two, "user.testbed.hsm")
    assert done.returncode == 0
    for path, why in ((one, "changed or gone"), (two, "known to HSM"), (three, "not moved")):
        assert f"{path}: {why}" in done.stderr
    after = placed(on_client)
    assert {p.name for p in (one, two, three)} <= {name for name in after if after[name] == before[name]}
    assert sum(after[n] != before[n] for n in after) == sum(len(row) > 3 for row in listed) - 3
    with notes.open("a") as file:
        file.write(
            "x[$(touch INJECTED)] moved\n1 begun\n"
        )  # as if it had been killed while it moved it again
    assert run(on_client, script, "undo").returncode == 0 and placed(on_client) == before
    assert not list(script.parent.glob("INJECTED*"))


def test_a_file_stays_where_the_users_default_names_osts(on_client: Testbed) -> None:
    def default(*words: str) -> None:
        done = on_client.exec(0, ["lfs", "setstripe", *words, on_client.client_mount() / "set"])
        assert done.returncode == 0

    default("-i", "5")
    try:
        advice = advised(on_client)
    finally:
        default("-d")
    assert not advice["datasets"]
    assert [*advice["left"]] == ["where a directory's default names OSTs"]


def test_advice_as_text(on_client: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["change", "rebalance", "--min-size", "1M", "--reads-per-day", "24"]
    words += ["--view", str(on_client.directory / "view.json"), str(on_client.client_mount() / "set")]
    done = on_client.exec(
        0, [sys.executable, "-m", "tarazu", *words, "--idle", "0"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "OST 5" in done.stdout and "lfs migrate --non-block -W 200M -c 1 -S 1M -o " in done.stdout
    assert "paid back after" in done.stdout and "bound, s" in done.stdout
    os.utime(on_client.mount / "set" / "f0")
    assert main(words) == 0
    assert "1 file, 2.0 MiB: being written" in capsys.readouterr().out, (
        "but for those, this process reads no layouts"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "a directory to look at"),
        (["/proc"], "a path on a mounted Lustre file system"),
        (["{set}", "--rate", "1K"], "1M or more"),
        (["{set}", "--pool", "none"], "a pool of lustre with OSTs"),
        (["{set}/f0"], "a directory"),
        (["{set}", "--view", "/nonexistent"], "a readable file"),
    ],
)
def test_bad_questions_are_one_line(
    on_client: Testbed, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    place = str(on_client.client_mount() / "set")
    filled = [word.replace("{set}", place) for word in words]
    assert main(["change", "rebalance", "--view", str(on_client.directory / "view.json"), *filled]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line
