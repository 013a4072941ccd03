"""Files that are there whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

from tarazu import durable


def test_a_reader_sees_the_old_or_the_whole_new_file_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    before = os.umask(0o077)
    try:
        durable.replace(path, b"one", mode=0o644)
        held = path.open("rb")
        durable.replace(path, b"two", mode=0o640, sync_name=True)
    finally:
        os.umask(before)
    with held:
        assert held.read() == b"one"
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_without_room_the_old_file_is_still_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    program = (
        "import resource, signal, sys\n"
        "from tarazu import durable\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: durable.replace(sys.argv[1], bytes(1000))\n"
        "except OSError as error: print(error.errno)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "27"
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
