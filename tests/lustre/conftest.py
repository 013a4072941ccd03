"""A real Lustre mount: $TARAZU_LUSTRE_MOUNT. Nothing else is needed but `lfs`.

    TARAZU_LUSTRE_MOUNT=/mnt/lustre python -m pytest tests/lustre

As root the tests also run as an ordinary user ($TARAZU_LUSTRE_USER, else uid 65534). What only an administrator of
the servers can do, to make one OST refuse objects and to undo it, is run when it is given as two commands, with
{index} and {index:04x} for the OST, for example:

    TARAZU_LUSTRE_REFUSE='ssh mds lctl set_param osp.*-OST{index:04x}-osc-MDT0000.max_create_count=0'
    TARAZU_LUSTRE_ACCEPT='ssh mds lctl set_param osp.*-OST{index:04x}-osc-MDT0000.max_create_count=20000'

The tests write below a directory of their own and remove it. They name only OSTs that `lfs df` lists: an index that
does not exist can bring an MDS down, and is never sent.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tarazu import built, native
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.testbed import lov
from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import MapRow, write_map
from tarazu.trace.spool import CreateRecord, read_spools
from tests.map_rows import map_row

MIB = 1 << 20
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or "python3"
VARIABLE = "TARAZU_LUSTRE_MOUNT"

CREATOR = """
import errno, fcntl, os, signal, sys
name, flags, mode = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3], 8)
signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1})
try:
    fd = os.open(name, flags | os.O_CREAT, mode)
except OSError as error:
    print("open", errno.errorcode[error.errno])
    sys.exit(3)
print(fd, fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD), oct(os.fstat(fd).st_mode))
print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
if len(sys.argv) > 4:
    print("ready", flush=True)
    sys.stdin.readline()
if flags & 3:
    for text, at in ((b"abc", 0), (b"second", 2 << 20), (b"third", 9 << 20)):
        try:
            print(os.pwrite(fd, text, at))
        except OSError as error:
            print("write", errno.errorcode[error.errno])
print(os.lseek(fd, 0, 2))
os.close(fd)
"""


class Seen(NamedTuple):
    status: int
    output: str
    errors: str
    mode: int | None
    content: bytes | None


def content(path: Path) -> bytes:
    """Also of a file of this user's whose mode forbids it."""
    mode = path.stat().st_mode
    path.chmod(mode | 0o400)
    try:
        return path.read_bytes()
    finally:
        path.chmod(mode)


class LustreMount:
    """The mount, a directory of the tests' own on it, and programs there with and without the library."""

    interpreter = PYTHON

    def __init__(self, mount: Path, user: dict[str, Any]) -> None:
        self.mount = mount
        self.user = user
        self.directory = mount / f"tarazu-tests-{os.uname().nodename}-{secrets.token_hex(4)}"
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.work = Path(tempfile.mkdtemp(prefix="tarazu-lustre-"))
        self.work.chmod(0o755)
        self.map_directory = self.work / "maps"
        self.spools = self.work / "spools"
        self.library = shutil.copy(built.library_path("libtarazu.so"), self.work)
        os.chmod(self.library, 0o755)
        self.generation = 0
        self.environment: dict[str, str] = {}
        self.osts = self._osts()
        self.fs_name, self.prefix = self._key_of_directory()

    def lfs(self, *words: str | Path) -> str:
        """What `lfs` prints. Fails the test when it fails."""
        done = subprocess.run(["lfs", *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def _osts(self) -> list[int]:
        """Indices of the OSTs that can be written."""
        return [int(i) for i in re.findall(r"\[OST:(\d+)", self.lfs("df", self.mount))]

    def _key_of_directory(self) -> tuple[str, str]:
        """As the recorder sees it: below a file set the key has more in front than the path shows."""
        done = self.run(["touch", "probe"], TARAZU_MODE="observe")
        assert done.returncode == 0, done.stderr
        (made,) = self.creates
        (self.directory / "probe").unlink()
        return made.fs_name, made.key.removesuffix("/probe")

    def environ(self, preload: bool, **extra: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TARAZU_") or k == "TARAZU_MOUNTS"}
        behind = os.environ.get("LD_PRELOAD", "")
        return {
            **kept,
            "TARAZU_SPOOL": str(self.spools),
            "TARAZU_MODE": "place",
            "TARAZU_MAP": str(self.map_directory),
            **self.environment,
            **extra,
            "LD_PRELOAD": f"{self.library} {behind}".strip() if preload else behind,
        }

    def start(self, argv: Sequence[str | Path], preload: bool = True, **extra: str) -> subprocess.Popen[str]:
        self.spools.mkdir(mode=0o700, exist_ok=True)
        if self.user:
            os.chown(self.spools, self.user["user"], self.user["group"])
        return subprocess.Popen(
            [str(a) for a in argv], env=self.environ(preload, **extra), cwd=self.directory, text=True, umask=0o022,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **self.user,
        )  # fmt: skip

    def run(
        self, argv: Sequence[str | Path], preload: bool = True, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.spools, ignore_errors=True)
        with self.start(argv, preload, **extra) as process:
            output, errors = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def python(self, source: str, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return self.run([PYTHON, "-c", source, *words], **extra)

    def see(
        self, preload: bool, name: str, flags: str = "os.O_RDWR", mode: str = "644", between: Any = None, **extra: str
    ) -> Seen:  # fmt: skip
        """What a program that creates a file and writes into three components can see, and what is left."""
        shutil.rmtree(self.spools, ignore_errors=True)
        words = [PYTHON, "-c", CREATOR, name, flags, mode, *(["wait"] if between else [])]
        with self.start(words, preload, **extra) as process:
            first = ""
            if between and process.stdout:
                while not first.endswith("ready\n") and (line := process.stdout.readline()):
                    first += line
                between()
            output, errors = process.communicate("go\n" if between else "", timeout=300)
        path = self.directory / name
        there = path.exists()
        return Seen(
            process.returncode, first + output, errors,
            path.stat().st_mode if there else None, content(path) if there else None,
        )  # fmt: skip

    def same(self, name: str, flags: str = "os.O_RDWR", mode: str = "644", **extra: str) -> Seen:
        """Without and with the library, from the same start; the two must not differ."""
        runs = []
        for preload in (False, True):
            (self.directory / name).unlink(missing_ok=True)
            runs.append(self.see(preload, name, flags, mode, **extra))
        assert runs[1] == runs[0]
        return runs[1]

    def row(
        self, name: str, *osts: Sequence[int], layout: Layout | None = None, shared: bool = False
    ) -> MapRow:
        # The OST lists keep to what is there, whatever a test got wrong.
        assert {index for part in osts for index in part} <= set(self.osts)
        return map_row(f"{self.prefix}/{name}", *osts, layout=layout, fs_name=self.fs_name, shared=shared)

    def map(self, *rows: MapRow) -> Path:
        if not self.map_directory.exists():
            self.map_directory.mkdir()
            write_control(self.map_directory)
        self.generation += 1
        path = self.map_directory / f"map.{self.generation}"
        counts = {self.fs_name: max(self.osts) + 1}
        write_map(
            path, generation=self.generation, hash_key=secrets.token_bytes(16), ost_counts=counts, rows=rows
        )
        announce(self.map_directory, self.generation)
        return path

    def some(self, count: int, start: int = 0) -> tuple[int, ...]:
        """That many OSTs, fewer where there are fewer."""
        n = len(self.osts)
        return tuple(self.osts[(start + i) % n] for i in range(min(count, n)))

    def three(self) -> tuple[Layout, tuple[tuple[int, ...], ...]]:
        """A progressive layout whose components begin at 0, 1 and 8 MiB, and its lists."""
        lists = (self.some(1), self.some(2, 1), self.some(4, 3))
        ends = (0, MIB, 8 * MIB, EOF)
        parts = (Component(a, b, MIB, len(o)) for a, b, o in zip(ends, ends[1:], lists))
        return Layout(tuple(parts), composite=True), lists

    def layout_of(self, name: str) -> list[tuple[int, ...]]:
        """The OSTs of each component: `lfs getstripe -y` and `lustre.lov` have to agree."""
        path = self.directory / name
        text = self.lfs("getstripe", "-y", path)
        parts = re.split(r"(?m)^\s+- lcme_id:", text)
        said = [tuple(int(i) for i in re.findall(r"l_ost_idx:\s*(\d+)", p)) for p in parts[1:] or parts]
        blob = os.getxattr(path, "lustre.lov")
        decoded = native.decode_lov(blob)
        assert [c.osts for c in decoded.components] == said == list(lov.decode(blob).osts)
        if not any(c.extension for c in decoded.components):
            counts = [int(c) for c in re.findall(r"lmm_stripe_count:\s*(\d+)", text)]
            assert [c.component.stripe_count for c in decoded.components] == counts
        return said

    @property
    def creates(self) -> list[CreateRecord]:
        return [c for p in sorted(self.spools.glob("*.tzs")) for s in read_spools(p) for c in s.creates]

    def created(self, name: str) -> CreateRecord:
        (found,) = [c for c in self.creates if c.key == f"{self.prefix}/{name}"]
        return found

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)


def _ordinary_user() -> dict[str, Any]:
    name = os.environ.get("TARAZU_LUSTRE_USER", "")
    uid, gid = 65534, 65534
    if name:
        entry = pwd.getpwnam(name)
        uid, gid = entry.pw_uid, entry.pw_gid
    return {"user": uid, "group": gid, "extra_groups": []}


@pytest.fixture(params=["self", "ordinary user"], scope="session")
def whole_mount(request: pytest.FixtureRequest) -> Iterator[LustreMount]:
    path = os.environ.get(VARIABLE, "")
    if not path:
        pytest.skip(f"{VARIABLE} names no Lustre mount")
    if not shutil.which("lfs"):
        pytest.skip("`lfs` is not on this node")
    if request.param != "self" and os.geteuid() != 0:
        pytest.skip("only root can become another user; this user was tested")
    mount = LustreMount(Path(path), {} if request.param == "self" else _ordinary_user())
    try:
        yield mount
    finally:
        mount.remove()


@pytest.fixture
def lustre(whole_mount: LustreMount) -> Iterator[LustreMount]:
    """As whoever runs the tests, and where that is root as an ordinary user, too."""
    yield whole_mount
    for directory in (whole_mount.directory, whole_mount.spools, whole_mount.work / "other"):
        for entry in directory.glob("*"):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.rmtree(whole_mount.map_directory, ignore_errors=True)
    whole_mount.generation = 0
