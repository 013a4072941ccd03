"""Files that a second process of the node opens while they are made: known from the first run on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.loop.conftest import make_loop

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loop.conftest import Loop

FILES = 12
PROGRAM = f"""
import os, signal, sys
top, how = sys.argv[1:]
names = [f"{{top}}/shared.{{i}}" for i in range({FILES})]
end = 96 << 20
if os.fork():
    for name in names:
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        os.pwrite(fd, b"made", end)
        os.close(fd)
    sys.exit(os.wait()[1] != 0)
env = os.environ | ({{"TARAZU_DISABLE": "1"}} if how == "without" else {{}})
os.execve(sys.executable, [sys.executable, "-c", '''
import os, sys
for name in sys.argv[1:]:
    while not os.path.exists(name): pass
    fd = os.open(name, os.O_WRONLY)
    os.pwrite(fd, b"second", 2 << 20)
    os.close(fd)
''', *names], env)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Loop, Path]]:
    """One run was recorded, in which a second process under the library opened the files."""
    for loop in make_loop(tmp_path_factory.mktemp("shared") / "tb", {}, osss=2, osts_per_oss=4, sparse=False):
        script = loop.testbed.directory / "job.py"
        script.write_text(PROGRAM)
        loop.run("python3", script, loop.mount(), "with", app="shared", mode="observe")
        loop.clear()
        yield loop, script


def test_a_second_process_without_the_library_writes_to_files_that_are_placed(
    seen: tuple[Loop, Path],
) -> None:
    loop, script = seen
    loop.run("python3", script, loop.mount(), "without", app="shared")
    assert loop.outcomes("shared") == {"hit": FILES}
    for path in loop.mount().glob("shared.*"):
        with path.open("rb") as file:
            file.seek(2 << 20)
            assert file.read(6) == b"second"
            assert path.stat().st_size == (96 << 20) + 4 and path.stat().st_nlink == 1
    assert [p.name for p in loop.mount().iterdir() if p.name.startswith(".")] == []
    loop.clear()
