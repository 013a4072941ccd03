"""A job for `make bench-real`: `job.py KIND DIRECTORY MIB NOTE` writes files there and notes the seconds that it took.

It needs nothing but Python, so that it runs wherever a file system is mounted. Each file is synced before it is closed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import Pool

PIECE = b"x" * (1 << 20)


def write(path: str, mib: float, offset_mib: float = 0.0) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    at, end = int(offset_mib * 2**20), int((offset_mib + mib) * 2**20)
    while at < end:
        at += os.pwrite(descriptor, PIECE[: end - at], at)
    os.fsync(descriptor)
    os.close(descriptor)


def read(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    while os.read(descriptor, 1 << 20):
        pass
    os.close(descriptor)


def forked(count: int, work: Callable[[int], None]) -> None:
    """So many processes at once."""
    children = []
    for number in range(count):
        pid = os.fork()
        if not pid:
            try:
                work(number)
            except BaseException as error:
                print(error, file=sys.stderr)
                os._exit(1)
            os._exit(0)
        children.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in children):
        sys.exit("a process failed")


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def one_of_pool(given: tuple[str, float]) -> None:
    write(*given)


def in_pool(mib: float) -> None:
    with Pool(6) as pool:
        pool.map(one_of_pool, [(f"pool.{n}", mib / 3) for n in range(18)], chunksize=1)


def by_xargs(mib: float) -> None:
    names = "".join(f"xargs.{n}\n" for n in range(12))
    copy = f"dd if=/dev/zero of={{}} bs=1M count={max(1, round(mib / 2))} conv=fsync status=none"
    subprocess.run(["xargs", "-P", "6", "-I", "{}", *copy.split()], input=names, text=True, check=True)


def serially(mib: float) -> None:
    for number in range(8):
        write(f"serial.{number}", mib / 4)


def in_steps(mib: float) -> None:
    for step in range(4):
        forked(8, lambda n, step=step: write(f"step{step}.{n}", mib / 4))  # type: ignore[misc]
        time.sleep(0.1)


def beside_readers(mib: float) -> None:
    def either(number: int) -> None:
        if number < 8:
            write(f"new.{number}", mib)
        else:
            read(f"old.{number - 8}")

    forked(16, either)


def small(mib: float) -> None:
    forked(8, lambda n: [write(f"small.{n}.{i}", 1 / 16) for i in range(20)] and None)


KINDS: dict[str, Callable[[float], None]] = {
    "forked": lambda mib: forked(16, lambda n: write(f"forked.{n}", mib)),
    "threads": lambda mib: in_threads(8, lambda n: write(f"thread.{n}", mib)),
    "pool": in_pool,
    "serial": serially,
    "steps": in_steps,
    "shared": lambda mib: forked(16, lambda n: write("shared", mib / 2, n * mib / 2)),
    "small": small,
    "one": lambda mib: write("one", 2 * mib),
    "readers": beside_readers,
    "xargs": by_xargs,
    "unequal": lambda mib: forked(16, lambda n: write(f"unequal.{n}", mib * (n + 1) / 8)),
}
"""What it does → with files of so many MiB."""


def main() -> None:
    kind, directory, mib, note = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    os.makedirs(directory, exist_ok=True)
    os.chdir(directory)
    for name in os.listdir("."):
        if not name.startswith("old."):
            os.unlink(name)
    if kind == "readers" and not os.path.exists("old.7"):
        for number in range(8):
            write(f"old.{number}", mib / 4)
    begin = time.monotonic()
    KINDS[kind](mib)
    with open(note, "w") as out:
        out.write(str(time.monotonic() - begin))


if __name__ == "__main__":
    main()
