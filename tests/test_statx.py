"""Nothing of ours asks a dead server for a file's size for ever."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tarazu
from tarazu import statx
from tarazu.report.replay import size_on_disk
from tests.waiting import until

ON_LUSTRE = ("tarazu/cli/explain.py",)
"""Look at users' files; so do the parts that import `statx`."""


def test_what_is_known_without_the_servers_is_what_stat_says(tmp_path: Path) -> None:
    file, link = tmp_path / "f", tmp_path / "l"
    file.write_bytes(bytes(123_457))
    os.utime(file, (1e9 + 1, 1e9 + 2))
    link.symlink_to("f")
    for path, follow in ((file, True), (link, True), (link, False), (tmp_path, True)):
        found, of = statx.look(path, follow=follow), os.stat(path, follow_symlinks=follow)
        assert found == tuple(int(getattr(of, name)) for name in found._fields)
    with pytest.raises(FileNotFoundError):
        statx.look(tmp_path / "none")
    assert statx.statx(tmp_path, statx.FORCE_SYNC) is not None
    assert (size_on_disk(str(file)), size_on_disk(str(tmp_path / "none"))) == (123_457, -1)


@pytest.fixture
def lookers(monkeypatch: pytest.MonkeyPatch) -> Iterator[statx._Lookers]:
    monkeypatch.setattr(statx, "_lookers", statx._Lookers())
    yield statx._lookers
    statx.end()


def hang(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Looks wait until the file that is returned is there."""
    over = folder / "over"
    code = (
        "import os, sys, time\nfor line in sys.stdin:\n"
        f"    while not os.path.exists({str(over)!r}): time.sleep(0.01)\n"
        f"    os.write(1, b'1 ' * {len(statx.Attributes._fields)} + b'\\n')"
    )
    monkeypatch.setattr(statx, "COMMAND", [sys.executable, "-I", "-S", "-c", code])
    return over


def test_a_dead_server_is_waited_for_for_a_while_and_not_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lookers: statx._Lookers
) -> None:
    """Each look at a file hangs; also on Lustre 2.12, which asks the servers whatever it is told."""
    with monkeypatch.context() as patch:
        over = hang(patch, tmp_path)
        for _ in range(100):
            with pytest.raises(TimeoutError, match="no answer of its servers within"):
                statx.look(tmp_path, limit_s=0.05)
        assert len(lookers._hanging) == statx.MOST_HANGING
        over.touch()

        def is_back() -> bool:
            with contextlib.suppress(TimeoutError):
                statx.look(tmp_path, limit_s=0.5)
            return not lookers._hanging

        until(is_back)


def test_a_process_ends_while_a_look_hangs(tmp_path: Path) -> None:
    """A thread that waits for a dead server is ended by nothing, and the shell waits for the process: `tarazu history
    report` hung for as long as a server was down."""
    source = (
        "import sys\nfrom tarazu import statx\n"
        f"statx.COMMAND = ['/bin/sh', '-c', 'echo $$ > {tmp_path}/pid; exec /bin/sleep infinity']\n"
        "try: statx.look('/', limit_s=0.1)\nexcept TimeoutError: print('told')"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")
    pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_many_threads_look_at_a_time(tmp_path: Path, lookers: statx._Lookers) -> None:
    files = [tmp_path / f"{n}" for n in range(50)]
    for n, path in enumerate(files):
        path.write_bytes(bytes(n))
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        for _ in range(20):
            assert [found.st_size for found in threads.map(statx.look, files)] == list(range(50))
    assert len(lookers._idle) <= 16


def test_a_look_in_a_forked_process_is_its_own(tmp_path: Path) -> None:
    statx.look(tmp_path)
    child = os.fork()
    if not child:
        os._exit(0 if statx.look(tmp_path) == statx.look(tmp_path) and len(statx._lookers._idle) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_commands_look_at_users_files_in_no_other_way() -> None:
    """`stat` asks each OST of a file: `tarazu history report` hung so for as long as a server was down."""
    top = Path(tarazu.__file__).parents[1]
    other = re.compile(r"os\.l?stat\(|\.l?stat\(\)|getsize\(|\.(exists|is_file)\(")
    parts = {path.relative_to(top).parts[2] for path in (top / "tarazu/parts").rglob("*.py") if _looks(path)}
    for place in (*ON_LUSTRE, *(f"tarazu/parts/{part}" for part in parts)):
        for path in sorted((top / place).rglob("*.py")) if (top / place).is_dir() else [top / place]:
            assert not other.search(path.read_text()), path


def _looks(path: Path) -> bool:
    return bool(re.search(r"import.*\bstatx\b", path.read_text()))
