"""A stand-in for `lctl pool_*` on a testbed's MGS: `python lctl_pools.py LIBTESTBED TB pool_add lustre.good OST[0-3]`.

Answers and exit statuses are those captured on Lustre 2.17.57 (tests/data/lustre/control/pools.txt); errors are as in
its source (obd.c: pool_cmd_interpret_err). A call returns when a client knows of the change, which takes a real one six
to seven seconds, however many OSTs it names: here `pool_delay_s` of TB/settings.json. MDS and clients follow at the
end of that time. One that fails for one OST changes the others, and returns at once: `pool_list`, too, shows that
after this time only, as what a call has done that was killed. Imports nothing of tarazu: it is started often.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence

POOL_NAME, MAX_OSTS, LONGEST_WORD = 15, 1024, 79
EMPTY = 123
"""ENOMEDIUM: what the MGS says of a pool that it does not have."""


class LctlFailed(Exception):
    """A message for stderr and an exit status."""


class Mgs:
    """The pools of one testbed."""

    def __init__(self, library: str, directory: str) -> None:
        self.directory = directory
        self.library = ctypes.CDLL(library)
        text, u32 = ctypes.c_char_p, ctypes.c_uint32
        self.library.testbed_attach.argtypes = [text]
        self.library.testbed_pool_add.argtypes = self.library.testbed_pool_remove.argtypes = [text, u32]
        self.library.testbed_pool_new.argtypes = self.library.testbed_pool_destroy.argtypes = [text]
        self.library.testbed_pool_get.argtypes = [u32, text, ctypes.POINTER(ctypes.c_uint16)]
        if self.library.testbed_attach(os.fsencode(directory)) < 0:
            raise LctlFailed("This command must be run on the MGS.", errno.ENODEV)
        with open(f"{directory}/testbed.json") as file:
            self.fs_name: str = json.load(file)["fs_name"]
        with open(f"{directory}/settings.json") as file:
            self.delay_s: float = json.load(file).get("pool_delay_s", 0.0)

    def pools(self) -> dict[str, list[int]]:
        name, members = ctypes.create_string_buffer(64), (ctypes.c_uint16 * MAX_OSTS)()
        by_name: dict[str, list[int]] = {}
        while (count := self.library.testbed_pool_get(len(by_name), name, members)) >= 0:
            by_name[name.value.decode()] = members[:count]
        return by_name

    def uuid(self, index: int) -> str:
        return f"{self.fs_name}-OST{index:04x}_UUID"

    def show_later(self) -> None:
        """Pools as they are now, until the end of a call's time."""
        if self.delay_s:
            with open(f"{self.directory}/mds/.shown", "w") as file:
                json.dump([time.time() + self.delay_s, self.pools()], file)

    def show_now(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.directory}/mds/.shown")

    def shown(self) -> dict[str, list[int]]:
        try:
            with open(f"{self.directory}/mds/.shown") as file:
                until_s, pools = json.load(file)
        except (FileNotFoundError, ValueError):
            return self.pools()
        return pools if time.time() < until_s else self.pools()

    def publish(self) -> None:
        """What MDS and clients show of their pools."""
        pools = self.pools()
        for device in glob.glob(f"{self.directory}/mds/root/proc/fs/lustre/lod/*") + glob.glob(
            f"{self.directory}/clients/*/proc/fs/lustre/lov/*"
        ):
            self._publish(device + "/pools", pools)
        for parameters in glob.glob(f"{self.directory}/mds/root/sys/fs/lustre/lod/*") + glob.glob(
            f"{self.directory}/clients/*/sys/fs/lustre/lov/*"
        ):
            self._publish(parameters.replace("/sys/fs/", "/proc/fs/") + "/pools", pools)

    def _publish(self, place: str, pools: dict[str, list[int]]) -> None:
        os.makedirs(place, exist_ok=True)
        for name in set(os.listdir(place)) - set(pools):
            os.unlink(f"{place}/{name}")
        for name, members in pools.items():
            with open(f"{place}/{name}.new", "w") as file:
                file.write("".join(f"{self.uuid(index)}\n" for index in members))
            os.replace(f"{place}/{name}.new", f"{place}/{name}")


def _names(fs_name: str, words: Sequence[str]) -> list[int]:
    """`OST0001`, `lustre-OST0001_UUID`, `OST[0-3,7]`, hexadecimal as Lustre has them. Raises Failed."""
    osts = []
    for word in words:
        match = re.fullmatch(rf"(?:{re.escape(fs_name)}-)?OST(?:([0-9a-fA-F]{{4}})|\[(.+)\])(?:_UUID)?", word)
        if not match or len(word) > LONGEST_WORD:
            raise LctlFailed("Wrong format for OST list\npool: Invalid argument", errno.EINVAL)
        if match[1]:
            osts.append(int(match[1], 16))
            continue
        for part in match[2].split(","):
            first, _, last = part.partition("-")
            osts += range(int(first, 16), int(last or first, 16) + 1)
    return osts


def change(mgs: Mgs, command: str, pool: str, words: Sequence[str]) -> int:
    """Raises Failed."""
    fs_name, _, name = pool.partition(".")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or fs_name != mgs.fs_name:
        text = "can contain only alphanumeric characters, underscores, and dashes besides the required '.'"
        raise LctlFailed(f"lctl {command}: {text}", errno.EINVAL)
    if len(name) > POOL_NAME:
        raise LctlFailed(f"{command}: poolname is too long", errno.ENAMETOOLONG)
    label = name.encode()
    if command in ("pool_new", "pool_destroy"):
        time.sleep(mgs.delay_s)
        call = mgs.library.testbed_pool_new if command == "pool_new" else mgs.library.testbed_pool_destroy
        if rc := -call(label):
            says = {
                errno.EEXIST: f"pool {pool} already exists",
                errno.ENOENT: f"pool {pool} not found",
                errno.ENOTEMPTY: f"pool {pool} not empty, please remove all members",
            }
            raise LctlFailed(f"lctl {command}: {says.get(rc, os.strerror(rc))}", rc)
        mgs.publish()
        say(f"Pool {pool} {'created' if command == 'pool_new' else 'destroyed'}")
        return 0
    if not words:
        raise LctlFailed(f"usage: {command} <fsname>.<poolname> <ostname indexed list>", 1)
    indices = _names(fs_name, words)
    mgs.show_later()
    add = command == "pool_add"
    call = mgs.library.testbed_pool_add if add else mgs.library.testbed_pool_remove
    status = 0
    for index in indices:
        if rc := -call(label, index):
            status = rc
            ost = mgs.uuid(index)
            says = {
                EMPTY: f"pool {pool} not found",
                errno.EEXIST: f"{ost} is already in pool {pool}",
                errno.ENOENT: f"{ost} not found in pool {pool}",
                errno.ENODEV: f"{ost} is not part of the '{fs_name}' fs.",
            }
            say(f"lctl {command}: {says.get(rc, os.strerror(rc))}")
    if not status:
        time.sleep(mgs.delay_s * len(words))
        mgs.show_now()
    mgs.publish()
    if not status:
        for index in indices:
            say(f"OST {mgs.uuid(index)} {'added to' if add else 'removed from'} pool {pool}")
    return status


def pool_list(mgs: Mgs, command: str, name: str, words: Sequence[str]) -> int:
    """Raises Failed."""
    fs_name, _, pool = name.partition(".")
    pools = mgs.shown()
    if not pool:
        print(f"Pools from {fs_name}:")
        print("".join(f"{fs_name}.{each}\n" for each in pools), end="")
        return 0
    print(f"Pool: {name}")
    if pool not in pools:
        raise LctlFailed(f"{command}: {os.strerror(errno.ENOENT)}", errno.ENOENT)
    print("".join(f"{mgs.uuid(index)}\n" for index in pools[pool]), end="")
    return 0


COMMANDS: dict[str, Callable[[Mgs, str, str, Sequence[str]], int]] = {
    "pool_new": change,
    "pool_add": change,
    "pool_remove": change,
    "pool_destroy": change,
    "pool_list": pool_list,
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(words: Sequence[str]) -> int:
    library, directory, command, *rest = words
    rest = [word for word in rest if word not in ("-n", "--nowait")]
    if command not in COMMANDS or not rest:
        say(f"usage: {command} <fsname>.<poolname> …")
        return 1
    lock = os.open(f"{directory}/mds/.pools", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        mgs = Mgs(library, directory)
        if command != "pool_list":
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        return COMMANDS[command](mgs, command, rest[0], rest[1:])
    except LctlFailed as failed:
        say(failed.args[0])
        return int(failed.args[1])
    finally:
        os.close(lock)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
