"""Two users on one node: one whose jobs are recorded, and somebody else, who was first where his spools should lie."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.preload.conftest import preloaded
from tests.trace.conftest import close_record, create_record, end_record, spool
from tests.within_reach import interpreter, path_of_tarazu

USER, SOMEBODY = 1234, 4321
STEP = "20260101T000000-1-abcdef-host"
HOST = socket.gethostname()
LIMIT_S = 300.0
"""Nothing here takes so long, unless it waits for ever."""

MAKE = """
import os, sys
kind, place, step, target, forged = sys.argv[1:6]
host = os.uname().nodename
names = [f"{host}.{name}" for name in ("node.tzs", "ended.tzs")] + ["lease", "leader", "taken", "map", "control"]
def directory(path, mode=0o1777):
    os.mkdir(path)
    os.chmod(path, mode)
def inside(make):
    directory(place)
    directory(f"{place}/{step}")
    for name in names:
        make(f"{place}/{step}/{name}")
match kind:
    case "sticky": directory(place)
    case "open": directory(place, 0o777)
    case "closed": directory(place, 0o700)
    case "link": os.symlink(target, place)
    case "dangling": os.symlink(f"{target}/none/none", place)
    case "pipe": os.mkfifo(place, 0o666)
    case "file": open(place, "w").close()
    case "link-inside":
        directory(place)
        os.symlink(f"{target}/{step}", f"{place}/{step}")
    case "links": inside(lambda path: os.symlink(f"{target}/{step}/{os.path.basename(path)}", path))
    case "pipes": inside(lambda path: os.mkfifo(path, 0o666))
    case "pipe.tzs":
        inside(lambda path: None)
        os.mkfifo(f"{place}/{step}/x.tzs", 0o666)
    case "forged":
        inside(lambda path: None)
        with open(f"{place}/{step}/{host}.1.1.tzs", "wb") as file:
            file.write(open(forged, "rb").read())
        os.chmod(f"{place}/{step}/{host}.1.1.tzs", 0o644)
"""
KINDS = (
    "sticky", "open", "closed", "link", "dangling", "pipe", "file", "link-inside", "links", "pipes", "pipe.tzs",
    "forged",
)  # fmt: skip

SWAP = """
import ctypes, itertools, os, shutil, subprocess, sys, time
place, make = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None)
kept = []
for kind in ("sticky", "link", "pipe", "links", "forged", "pipe.tzs", "sticky"):
    kept.append(f"{place}~{len(kept)}")
    subprocess.run([sys.executable, "-c", make[0], kind, kept[-1], *make[1:]], check=True)
os.rename(kept[0], place)
print("swapping", flush=True)
target, forged = make[2:4]
for n in itertools.count():
    libc.renameat2(-100, place.encode(), -100, kept[1 + n % (len(kept) - 1)].encode(), 2)
    for directory in (place, *kept[1:]):
        try:
            found = [name for name in os.listdir(directory) if "~" not in name and name != make[1]]
        except OSError:
            continue
        for name in found:  # steps that have just been made
            try:
                if os.path.islink(f"{directory}/{name}"):
                    continue
                os.rename(f"{directory}/{name}", f"{directory}/{name}~{n}")
                if n % 2:
                    os.symlink(f"{target}/{make[1]}", f"{directory}/{name}")
                else:
                    os.mkdir(f"{directory}/{name}")
                    os.chmod(f"{directory}/{name}", 0o777)
                    shutil.copy(forged, f"{directory}/{name}/forged.tzs")
                    os.mkfifo(f"{directory}/{name}/pipe.tzs", 0o666)
            except OSError:
                pass
    time.sleep(0.0005 * (n % 5))
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two other users")


class SharedNode:
    """Its memory, which everybody may write to, and what the user has in his home."""

    def __init__(self, base: Path) -> None:
        base.chmod(0o755)
        self.memory, self.home, self.mount = base / "shm", base / "home", base / "mnt"
        self.place = self.memory / f"tarazu-{USER}"
        for path, uid, mode in (
            (self.memory, 0, 0o1777),
            (self.home, USER, 0o755),
            (self.mount, USER, 0o755),
            (self.home / STEP, USER, 0o700),
        ):
            path.mkdir()
            os.chown(path, uid, uid)
            path.chmod(mode)
        for name in ("node.tzs", "ended.tzs"):
            self._precious(self.home / STEP / f"{HOST}.{name}")
        for name in ("lease", "leader", "control", "x.tzs"):
            self._precious(self.home / STEP / name)
        self._precious(self.home / "thesis")
        self._precious(self.home / f"{HOST}.node.tzs")
        self.forged = base / "forged"
        records = [create_record("/forged", "/forged", "/forged"), close_record("/forged", 100), end_record()]
        self.forged.write_bytes(spool(records))
        self.before = self.in_home()

    def _precious(self, path: Path) -> None:
        path.write_bytes(b"")  # the library takes an empty one for its own
        os.chown(path, USER, USER)
        path.chmod(0o600)

    def in_home(self) -> dict[str, tuple[int, int, bytes]]:
        """What the user has there, but for what tarazu keeps by intention."""
        paths = [p for p in sorted(self.home.rglob("*")) if ".local" not in p.parts]
        return {
            str(p): (p.lstat().st_mode, p.lstat().st_uid, p.read_bytes() if p.is_file() else b"")
            for p in paths
        }

    def start(self, uid: int, *words: object, **environ: str) -> subprocess.Popen[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8", **environ}
        if found := path_of_tarazu(USER):
            env["PYTHONPATH"] = found
        return subprocess.Popen(
            [str(word) for word in words], env=env, user=uid, group=uid, extra_groups=[], cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self, uid: int, *words: object, **environ: str) -> subprocess.CompletedProcess[str]:
        """What has not ended within LIMIT_S hangs."""
        with self.start(uid, *words, **environ) as process:
            try:
                out, err = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                pytest.fail(f"hangs: {words[:6]}")
        return subprocess.CompletedProcess(list(map(str, words)), process.returncode, out, err)

    def occupy(self, kind: str, place: Path | None = None) -> None:
        """Somebody else makes the place."""
        made = self.run(SOMEBODY, *self._make(kind, place or self.place))
        assert made.returncode == 0, made.stderr

    def _make(self, kind: str, place: Path) -> list[object]:
        return [interpreter(USER), "-c", MAKE, kind, place, STEP, self.home, self.forged]

    @contextlib.contextmanager
    def swapping(self) -> Iterator[None]:
        """Somebody else puts one thing after another where the place is, and where steps are made in it."""
        words = [interpreter(USER), "-c", SWAP, self.place, MAKE, STEP, self.home, self.forged]
        with self.start(SOMEBODY, *words) as process:
            try:
                assert process.stdout and process.stdout.readline() == "swapping\n"
                yield
            finally:
                os.killpg(process.pid, 9)

    def record(self, *words: object, spool_dir: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A program of the user's under the library."""
        return self.run(
            USER, *words,
            LD_PRELOAD=preloaded(), TARAZU_MOUNTS=f"{self.mount}=lustre", TARAZU_STEP="s",
            TARAZU_SPOOL=f"{spool_dir or self.place}/{STEP}",
        )  # fmt: skip

    def lead(self, *words: object, **environ: str) -> subprocess.CompletedProcess[str]:
        """`tarazu run` of the user."""
        run = {
            "TARAZU_MOUNTS": f"{self.mount}=lustre",
            "TARAZU_RUN_SPOOL_DIR": f"{self.memory}/tarazu-{{uid}}",
            "TARAZU_RUN_WAIT_S": "0.1",
            "TARAZU_PREDICT_LOOK_S": "0.05",
            "TARAZU_CLIENTD_SOCKET": str(self.home / "no-socket"),
        }
        return self.run(
            USER, interpreter(USER), "-m", "tarazu", "run", "--app", "app", "--", *words, **run | environ
        )

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "tarazu"

    def history(self) -> str:
        """All runs that are remembered, as text."""
        return "".join(path.read_text() for path in sorted(self.state.rglob("*.run")))

    def beside(self) -> list[Path]:
        return sorted(self.memory.glob(f"{self.place.name}.*"))


@pytest.fixture
def shared_node() -> Iterator[SharedNode]:
    base = Path(tempfile.mkdtemp(prefix="tarazu-shared-", dir="/dev/shm"))
    node = SharedNode(base)
    if not interpreter(USER):
        shutil.rmtree(base)
        pytest.skip("there is no Python that other users can start")
    yield node
    for _ in range(3):  # what was killed may still be busy
        shutil.rmtree(base, ignore_errors=True)
        time.sleep(0.01)
