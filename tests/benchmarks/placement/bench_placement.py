"""What the preloaded library costs: opens, lookups beside databases, the recorder, the map's size.

Run: python -m tests.benchmarks.placement.bench_placement [--quick]
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tarazu import built
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, Layout
from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import MapRow, write_map
from tests.benchmarks.placement.pairs import HEADER, HERE, PRELOAD, Driver, compare, compile_c, quartiles

MIB = 1 << 20
PFL1 = Layout(
    (
        Component(0, 128 * MIB, MIB, 1),
        Component(128 * MIB, 512 * MIB, MIB, 3),
        Component(512 * MIB, 2048 * MIB, MIB, 8),
        Component(2048 * MIB, EOF, MIB, 16),
    ),
    composite=True,
)
RANK, NAMES = 3, 1000
CORE = [*(PRELOAD / "core").glob("*.c"), PRELOAD / "base/pages.c", PRELOAD / "base/rawsys.c"]
THREADS = 64


def make_map(directory: Path, count: int) -> float:
    """A map of `count` files that rank 3 creates, each with explicit lists on all its components; bytes per row."""
    layouts = [tuple((start + k) % 35 for k in range(28)) for start in range(35)]
    key = bytes(range(16))

    def row(i: int) -> MapRow:
        name, osts = f"/run/out.{i:08d}", layouts[i % 35]
        parts = (osts[:1], osts[1:4], osts[4:12], osts[12:])
        return MapRow(
            "lustre", FileName(name, name, "/run/out.#", False, RANK, 0, i), i, PFL1, parts, (True,) * 4
        )

    directory.mkdir()
    write_control(directory)
    rows = map(row, range(count))
    size = write_map(directory / "map.1", generation=1, hash_key=key, ost_counts={"lustre": 35}, rows=rows)
    announce(directory, 1)
    return size / count


def pair(
    program: Path, work: Path, mount: Path, name: str, step: int, **environment: str
) -> tuple[Driver, Driver]:
    """(without, with)"""
    ours = {"TARAZU_MOUNTS": f"{mount}=lustre", "TARAZU_SPOOL": str(work / "spool"), "TARAZU_RANK": str(RANK)}
    arguments = [str(mount), str(work / "elsewhere"), name, str(step)]
    return Driver(program, arguments, None), Driver(
        program, arguments, {**ours, "TARAZU_JOB": "4711", **environment}
    )


def opens(program: Path, work: Path, counts: list[int], rounds: int) -> None:
    print(f"\nAdded to an open up to the first system call (goals: 100, 300 and 1500 ns)\n{HEADER}")
    for count in counts:
        environment = {"TARAZU_MAP": str(work / f"maps{count}"), "TARAZU_MODE": "place"}
        hits = pair(program, work, work / "mnt", "out", count // NAMES, **environment)
        misses = pair(program, work, work / "mnt", "none", count // NAMES, **environment)
        for threads in (1, THREADS):
            cases = [("managed, a miss", misses, "managed"), ("managed, a hit", hits, "managed")]
            if count == counts[0]:
                cases.insert(0, ("outside the mounts", hits, "outside"))
            for title, drivers, case in cases:
                figure = compare(*drivers, case, threads, 5000 if threads == 1 else 200, rounds)
                print(f"{title:18} {count:8} rows {threads:3} threads  {figure}", flush=True)
        for driver in (*hits, *misses):
            driver.close()


def recorder(program: Path, memory: Path, rounds: int) -> None:
    print(
        f"\nRecorder, on {memory.parent} (goals: full 60 ns a write, light 0; 5000 ns a create and close)\n{HEADER}"
    )
    for mode in ("full", "light"):
        drivers = pair(program, memory, memory / "mnt", "out", 1, TARAZU_RECORD=mode)
        for case, iterations in (("write", max(2_000_000 // rounds, 1000)), ("create", 1000)):
            title = f"{case if case == 'write' else 'create and close'}, {mode}"
            print(f"{title:42} {compare(*drivers, case, 1, iterations, rounds)}", flush=True)
        for driver in drivers:
            driver.close()


@contextlib.contextmanager
def mariadb(directory: Path) -> Iterator[Path | None]:
    """The socket of a private server; None where there is none."""
    server = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    install = shutil.which("mariadb-install-db")
    if not server or not install:
        yield None
        return
    data, socket = directory / "data", directory / "socket"
    common = ["--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}"]
    first = [install, *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(first, check=True, capture_output=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = [f"--socket={socket}", "--skip-networking", f"--pid-file={directory / 'pid'}"]
    process = subprocess.Popen([server, *common, *options], **quiet)
    try:
        for _ in range(300):
            if socket.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        yield socket if socket.exists() else None
    finally:
        process.terminate()
        process.wait(30)


def client_library() -> list[str]:
    """The options to compile and link with MariaDB's C library; empty where it is not installed."""
    config = shutil.which("mariadb_config")
    if not config:
        return []
    text = subprocess.run([config, "--cflags", "--libs"], capture_output=True, text=True, check=True).stdout
    return ["-DHAVE_MARIADB", *shlex.split(text)]


def lookups(work: Path, memory: Path, counts: list[int], rounds: int) -> None:
    """One process does all of them in turn, so that each has its share of what disturbs the machine."""
    print(
        "\nOne name looked up, µs (median, interquartile range) and how much longer than in the map (goal 20)"
    )
    if not Path("/usr/include/sqlite3.h").exists():
        print("SQLite's header is not installed (Debian: libsqlite3-dev): no comparison")
        return
    options = client_library()
    if not options:
        print("MariaDB's C library is not installed (Debian: libmariadb-dev): without its line")
    program = compile_c(work / "lookup", [HERE / "lookup.c", *CORE], f"-I{PRELOAD}", *options, "-lsqlite3")
    with mariadb(memory) if options else contextlib.nullcontext() as socket:
        if options and not socket:
            print("mariadbd is not installed (Debian: mariadb-server-core): without its line")
        for count in counts:
            files = [str(work / f"maps{count}" / "map.1"), str(count), str(rounds), "20000"]
            database = memory / f"{count}.sqlite"
            command = [str(program), *files, str(database), *([str(socket)] if socket else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            database.unlink()
            show_lookups(count, done.stdout)


def show_lookups(count: int, text: str) -> None:
    titles = {
        "map": "map, name as it is",
        "templates": "map, with templates",
        "sqlite": "SQLite, C API",
        "mariadb": "MariaDB, C API, local socket",
    }
    figures = {line.split()[0]: quartiles([float(v) for v in line.split()[1:]]) for line in text.splitlines()}
    for name, (low, median, high) in figures.items():
        ratio = median / figures["map"][1]
        values = f"{median / 1e3:9.3f}  {low / 1e3:8.3f} … {high / 1e3:<8.3f} {ratio:8.1f} ×"
        print(f"{titles[name]:30} {count:8} rows {values}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no map of a million rows")
    quick = parser.parse_args().quick
    rounds, counts = (21, [1_000, 100_000]) if quick else (101, [1_000, 100_000, 1_000_000])
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with (
        tempfile.TemporaryDirectory(prefix="tarazu-") as a,
        tempfile.TemporaryDirectory(prefix="tarazu-", dir=shared) as b,
    ):
        work, memory = Path(a), Path(b)
        for directory in (work / "mnt" / "run", work / "elsewhere", memory / "mnt" / "run"):
            directory.mkdir(parents=True)
        (memory / "elsewhere").mkdir()
        print(f"library: {built.library_path('libtarazu.so')}; {os.cpu_count()} processors")
        print(
            "Medians of interleaved pairs; processor time of the calling thread.\n\nMap, PFL 1 (goal: 96 bytes a row)"
        )
        for count in counts:
            print(f"{count:8} rows: {make_map(work / f'maps{count}', count):.1f} bytes a row", flush=True)
        program = compile_c(work / "driver", [HERE / "driver.c"], "-rdynamic")
        opens(program, work, counts, rounds)
        lookups(work, memory, counts, rounds)
        recorder(program, memory, rounds)


if __name__ == "__main__":
    main()
