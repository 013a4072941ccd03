"""Nothing of ours asks a dead server for a file's size for ever."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

import tarazu
from tarazu import statx
from tarazu.sim.whatif.replay import size_on_disk

ON_LUSTRE = ("tarazu/rebalance", "sim/whatif", "tarazu/cli/explain.py")
"""Look at users' files."""


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


def test_a_dead_server_is_waited_for_for_a_while_and_not_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files whose size nobody noted; each look at one would hang."""
    (tmp_path / "f").touch()
    over, asked = threading.Event(), []

    def hangs(path: object, follow: bool) -> statx.Attributes:
        asked.append(path)
        over.wait(30)
        raise OSError

    monkeypatch.setattr(statx, "_asked", hangs)
    begin = time.monotonic()
    for _ in range(100):
        with pytest.raises(TimeoutError, match="no answer of its servers within"):
            statx.look(tmp_path / "f", limit_s=0.05)
    assert len(asked) == statx.MOST_HANGING and time.monotonic() - begin < 10
    over.set()
    monkeypatch.undo()
    while time.monotonic() < begin + 30 and any(thread.is_alive() for thread in statx._hanging):
        time.sleep(0.01)
    assert statx.look(tmp_path / "f").st_size == 0


def test_commands_look_at_users_files_in_no_other_way() -> None:
    """`stat` asks each OST of a file: `tarazu report` hung so for as long as a server was down."""
    top = Path(tarazu.__file__).parents[1]
    other = re.compile(r"os\.l?stat\(|\.l?stat\(\)|getsize\(|\.(exists|is_file)\(")
    for place in ON_LUSTRE:
        for path in sorted((top / place).rglob("*.py")) if (top / place).is_dir() else [top / place]:
            assert not other.search(path.read_text()), path
