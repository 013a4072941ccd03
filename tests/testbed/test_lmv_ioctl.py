"""LL_IOC_LMV_SETSTRIPE and its like on a directory's descriptor: errnos, modes and owners as llite and the MDT have
them (llite/dir.c, mdt/mdt_reint.c, mdt/mdt_lib.c of 2.17).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim.testbed import Testbed, down, lfs_dirs, up
from tarazu.sim.testbed.usage import metadata_done
from tests.testbed.conftest import Agent

ROOT = os.geteuid() == 0
HELPERS = """
import struct
from tarazu.sim.testbed import lfs_dirs

def make(name, mdt=1, count=1, mode=0o777, change=None, at='.', lum=None, flags=os.O_RDONLY):
    buffer = lfs_dirs.pack(name, lfs_dirs.ask(count, mdt & 0xffffffff) if lum is None else lum, mode, True)
    if change:
        change(buffer)
    fd = os.open(at, flags)
    try:
        fcntl.ioctl(fd, lfs_dirs.SET_STRIPE, buffer)
        return 0
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.close(fd)

def put(offset, value):
    return lambda buffer: struct.pack_into('<I', buffer, offset, value)
"""


class Client:
    def __init__(self, bed: Testbed) -> None:
        self.agent = Agent(bed)

    def __call__(self, source: str) -> Any:
        return self.agent(HELPERS + f"\nresult = {source}" if "\n" not in source else HELPERS + source)


@pytest.fixture(scope="module")
def bed(memory_directory: Path) -> Iterator[Testbed]:
    bed = up(memory_directory / "lmv", osss=1, osts_per_oss=1, mdts=4, interval_s=60)
    yield bed
    down(bed.directory)


@pytest.fixture(scope="module")
def client(bed: Testbed) -> Iterator[Client]:
    allow(bed, "-1")
    client = Client(bed)
    yield client
    client.agent.close()


def allow(bed: Testbed, gid: str) -> None:
    """What `lctl set_param mdt.*.enable_remote_dir_gid` does."""
    environment = os.environ | bed.node_environment("mds")
    words = ["lctl", "set_param", f"mdt.*.enable_remote_dir_gid={gid}"]
    subprocess.run(words, env=environment, check=True, capture_output=True)


def test_the_number_and_what_is_passed_are_lustres() -> None:
    """As strace saw `lfs mkdir` (control/dne.txt): _IOC(_IOC_READ|_IOC_WRITE, 0x66, 0xf0, 0x30)."""
    assert lfs_dirs.SET_STRIPE == 3 << 30 | 0x30 << 16 | 0x66 << 8 | 0xF0
    packed = lfs_dirs.pack("name", lfs_dirs.ask(1, 2), 0o755, False)
    assert len(packed) == 576 + 8 + 48
    assert struct.unpack_from("<II", packed) == (len(packed), 0x10004)
    assert struct.unpack_from("<I", packed, 476) == (0o755,)
    assert (packed[576:584], packed[584:588]) == (b"name\0\0\0\0", bytes.fromhex("d00cd30c"))


def test_it_lies_where_it_is_asked_for(bed: Testbed, client: Client) -> None:
    before = metadata_done(bed)
    for mdt in range(4):
        assert client(f"make('here{mdt}', {mdt})") == 0
        assert bed.mdt(f"here{mdt}") == mdt
    grown = [new["mkdir"] - old["mkdir"] for new, old in zip(metadata_done(bed), before, strict=True)]
    assert grown == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("make('here0')", "EEXIST"),
        ("make('new', 4)", "ENODEV"),
        ("make('new', 17000)", "ENODEV"),
        ("make('n' * 256)", "ENAMETOOLONG"),
        ("make('n' * 255)", 0),
        ("make('a/b')", "EINVAL"),
        ("make('')", "EINVAL"),
        ("make('.')", "EEXIST"),
        ("make('new', count=2001)", "EOVERFLOW"),
        ("make('new', count=-6)", "EOVERFLOW"),
        ("make('new', change=put(0, 8))", "EINVAL"),  # too small for the structure
        ("make('new', change=put(0, 1 << 20))", "EINVAL"),  # larger than anything
        ("make('new', change=put(4, 0x10003))", "EINVAL"),  # another version
        ("make('new', change=put(512, 3))", "EINVAL"),  # a name longer than its length
        ("make('new', change=put(512, 6))", "EINVAL"),  # and a shorter one
        ("make('new', change=put(512, 0))", "EINVAL"),
        ("make('new', change=put(528, 0))", "EINVAL"),
        ("make('new', change=put(528, 40))", "EINVAL"),  # no whole lmv_user_md
        ("make('new', change=put(528, 1 << 16))", "EINVAL"),  # more than was passed
        ("make('new', change=put(584, 0x0CD20CD0))", "EINVAL"),  # the magic of what GETSTRIPE answers
        ("make('new', change=put(584 + 12, 0x40000002))", "EINVAL"),  # a flag that nobody knows
        ("make('new', at='here0', flags=os.O_PATH)", "EBADF"),
        ("make('new', lum=lfs_dirs.ask(2, 1, (1, 9)))", "ENODEV"),
    ],
)
def test_what_it_refuses(bed: Testbed, client: Client, call: str, said: str | int) -> None:
    assert client(call) == said
    assert not (bed.mount / "new").exists()


def test_it_is_for_directories_that_are_there(client: Client) -> None:
    assert client(
        """
open('file', 'w').close()
file = make('new', at='file')
os.mkdir('gone')
fd = os.open('gone', os.O_RDONLY)
os.rmdir('gone')
gone = make('new', at=f'/proc/self/fd/{fd}')
os.close(fd)
result = [file, gone]
"""
    ) == ["ENOTTY", "ENOENT"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0])
@pytest.mark.parametrize("mode", [0o777, 0o700, 0o1777, 0o2755])
@pytest.mark.parametrize("parent", ["plain", "sgid", "acl"])
def test_mode_and_owner_are_those_of_mkdir(client: Client, umask: int, mode: int, parent: str) -> None:
    name = f"{parent}{umask:o}{mode:o}"
    answer = client(
        f"""
os.umask(0o022)
os.makedirs({name!r})
if {parent!r} == 'sgid':
    os.chmod({name!r}, 0o2775)
if {parent!r} == 'acl':
    acl = struct.pack('<I', 2) + b''.join(
        struct.pack('<HHI', *entry) for entry in ((1, 7, 0xffffffff), (4, 5, 0xffffffff), (32, 0, 0xffffffff)))
    try:
        os.setxattr({name!r}, 'system.posix_acl_default', acl)
    except OSError:
        pass
os.umask({umask})
os.mkdir({name!r} + '/mkdir', {mode})
refused = make('ioctl', 2, mode={mode}, at={name!r})
os.umask(0o022)
both = [os.stat({name!r} + '/' + each) for each in ('mkdir', 'ioctl')]
result = [refused] + [[each.st_mode, each.st_uid, each.st_gid] for each in both]
"""
    )
    assert answer[0] == 0
    assert answer[1] == answer[2]


def test_a_default_layout_is_inherited_as_by_mkdir(client: Client) -> None:
    answer = client(
        """
os.mkdir('layout')
os.setxattr('layout', 'lustre.lov', plain(1, size=2 * MIB))
make('below', 3, at='layout')
result = os.getxattr('layout', 'lustre.lov') == os.getxattr('layout/below', 'lustre.lov')
"""
    )
    assert answer is True


@pytest.mark.skipif(not ROOT, reason="changes users")
def test_users_may_where_their_group_may(bed: Testbed, client: Client) -> None:
    (bed.mount / "users").mkdir()
    (bed.mount / "users").chmod(0o777)

    def attempt(name: str, gid: int, *groups: int, at: str = "users") -> str | int:
        become = f"os.setgroups({list(groups)}); os.setgid({gid}); os.setuid(65534)"
        source = f"import errno, fcntl, os\n{HELPERS}\n{become}\nprint(make({name!r}, 1, at={at!r}))"
        mount = bed.client_mount()
        done = bed.exec(0, [sys.executable, "-c", source], cwd=mount, capture_output=True, text=True)
        return done.stdout.strip() or done.stderr

    try:
        allow(bed, "0")
        assert attempt("a", 65534) == "EPERM"
        assert attempt("users", 65534, at=".") == "EPERM"  # before EEXIST and EACCES
        assert attempt("b", 0) == "0"
        allow(bed, "1234")
        assert attempt("c", 65534) == "EPERM"
        assert attempt("d", 1234) == "0"
        assert attempt("e", 65534, 1234) == "0"
        allow(bed, "-1")
        assert attempt("f", 65534) == "0"
        assert attempt("f", 65534) == "EEXIST"
        assert attempt("g", 65534, at=".") == "EACCES"
        assert client("make('root', 1)") == 0
    finally:
        allow(bed, "-1")


def test_a_switch_forbids_it_to_root_too(bed: Testbed, client: Client) -> None:
    environment = os.environ | bed.node_environment("mds")
    for value, said in (("0", "EPERM"), ("1", 0)):
        words = ["lctl", "set_param", f"mdt.*MDT0001.enable_remote_dir={value}"]
        subprocess.run(words, env=environment, check=True, capture_output=True)
        assert client("make('switched', 1)") == said


def test_what_a_directory_has_is_asked_for_by_its_magic(client: Client) -> None:
    answer = client(
        """
def ask(path, request, *head):
    buffer = bytearray(48 + 24 * 8)
    struct.pack_into('<IiIII', buffer, 0, *head)
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, request, buffer)
        return list(struct.unpack_from('<IiII', buffer))
    except OSError as error:
        return [errno.errorcode[error.errno], struct.unpack_from('<i', buffer, 4)[0]]
    finally:
        os.close(fd)
make('striped', 2, count=2)
make('alone', lum=lfs_dirs.ask(1, 2, inherit=255))
index = bytearray(4)
fd = os.open('alone', os.O_RDONLY)
fcntl.ioctl(fd, lfs_dirs.GET_MDTIDX, index)
os.close(fd)
result = [ask('striped', lfs_dirs.GET_STRIPE, lfs_dirs.STRIPES, 8, 0, 0, 0),
          ask('striped', lfs_dirs.GET_STRIPE, lfs_dirs.STRIPES, 1, 0, 0, 0),
          ask('alone', lfs_dirs.GET_STRIPE, lfs_dirs.STRIPES, 8, 0, 0, 0),
          ask('alone', lfs_dirs.GET_STRIPE, lfs_dirs.USER, 0, 0, 0, 1),
          ask('alone', lfs_dirs.GET_STRIPE, lfs_dirs.USER, 0, 0, 0, 0),
          ask('alone', lfs_dirs.GET_STRIPE, 1, 0, 0, 0, 0),
          list(index)]
"""
    )
    assert answer[0] == [lfs_dirs.STRIPES, 2, 2, 2]
    assert answer[1] == ["E2BIG", 2]
    assert [each[0] for each in answer[2:4]] == ["ENODATA", "ENODATA"]
    assert answer[4] == [lfs_dirs.USER, 1, 0xFFFFFFFF, 0]
    assert answer[5][0] == "EINVAL"
    assert answer[6] == [2, 0, 0, 0]


def test_the_attributes_set_nothing(client: Client) -> None:
    """As captured: of a directory that is there neither its MDT nor its default can be set so."""
    source = "[attempt(os.setxattr, 'here0', 'lustre.' + name, bytes(48)) for name in ('dmv', 'lmv')]"
    assert [getattr(errno, each) for each in client(source)] == [errno.EOPNOTSUPP] * 2


def test_elsewhere_it_is_no_ioctl_of_ours(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError) as raised:
            fcntl.ioctl(descriptor, lfs_dirs.SET_STRIPE, lfs_dirs.pack("a", lfs_dirs.ask(1, 0), 0o777, True))
        assert raised.value.errno == errno.ENOTTY
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not ROOT, reason="only root may say on which MDT a directory lies, and sees defaults")
@pytest.mark.parametrize(
    ("inherit", "count", "mdt", "kept"),
    [(0, 1, 2, (0, 2, 0)), (0, 0, 2, (0, 2, 0)), (3, 1, 2, (0, 2, 3)), (255, 1, 2, None), (0, 2, 2, None)],
)
def test_what_lies_below_is_held_to_the_mdt_unless_nothing_is_inherited(
    client: Client, inherit: int, count: int, mdt: int, kept: tuple[int, ...] | None
) -> None:
    """Seen on 2.17.57: the server sets `trusted.dmv`, with a count of 0 for 1 (lod_ah_init)."""
    name = f"held{inherit}.{count}"
    said = client(f"""
made = make({name!r}, lum=lfs_dirs.ask({count}, {mdt}, inherit={inherit}))
try:
    result = made, os.getxattr({name!r}, 'trusted.dmv').hex()
except OSError as error:
    result = made, error.errno
""")
    if kept is None:
        assert said == [0, errno.ENODATA]
    else:
        lum = lfs_dirs.LUM.pack(lfs_dirs.USER, kept[0], kept[1], 0, 0, kept[2], 0, 0, 0, 0, b"")
        assert said == [0, lum.hex()]
