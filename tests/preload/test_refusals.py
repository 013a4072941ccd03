"""Whatever Lustre refuses, a program sees what it sees without the library: errno, status and content.

Every case runs with both ways to set a layout and both kinds of lists, and is compared with a run without the
library under the same conditions.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from tarazu import native

pytestmark = pytest.mark.soak

Placed = Any
HIT, MISS, REFUSED, SKIPPED, RACED, PARTLY = 1, 3, 4, 6, 7, 8
NEW = os.O_CREAT | os.O_RDWR
REFUSING = {"inactive": {"active": False}, "full": {"full": True}, "no_create": {"no_create": True}}
NOBODY = 65534

ways = [
    pytest.param({"TARAZU_APPLY": apply, "TARAZU_LISTS": lists}, id=f"{apply}-{lists}")
    for apply in ("direct", "llapi")
    for lists in ("instantiate", "hints")
]
two_ways = [ways[0], ways[2]]
both_users = pytest.mark.parametrize("who", ["root", "user"], indirect=True)


class Seen(NamedTuple):
    """All that is left of a run for its user."""

    status: int
    output: str
    errors: str
    mode: int | None
    content: bytes | None


@pytest.fixture
def who(request: pytest.FixtureRequest, placed: Placed) -> Iterator[dict[str, int]]:
    """Who runs the program: an ordinary user, where a test does not ask for root."""
    if getattr(request, "param", "user") == "root" or os.geteuid() != 0:
        yield {}
        return
    placed.mount.chmod(0o777)
    for directory in (placed.work, placed.map_directory):
        directory.chmod(0o755)
    for above in list(placed.work.parents)[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    placed.spool_directory.mkdir(exist_ok=True)
    yield {"user": NOBODY, "group": NOBODY, "extra_groups": []}  # type: ignore[dict-item]
    placed.mount.chmod(0o755)


@pytest.fixture
def seen(placed: Placed, compiled: Any, who: dict[str, int], tmp_path_factory: Any) -> Callable[..., Seen]:
    program = compiled("creator.c")
    for above in list(program.parents)[:4]:
        above.chmod(above.stat().st_mode | 0o011)

    def run(
        preload: bool, flags: int, mode: str = "644", *, name: str = "f",
        between: Callable[[], None] | None = None, environ: Mapping[str, str] = {},
    ) -> Seen:  # fmt: skip
        for old in placed.spool_directory.glob("*"):
            old.unlink()
        placed.spool_directory.mkdir(exist_ok=True)
        if who:
            os.chown(placed.spool_directory, who["user"], who["group"])
        variables = placed.environ(**environ)
        if not preload:
            variables["LD_PRELOAD"] = placed.behind
        argv = [str(program), name, hex(flags), mode, *(["pause"] if between else [])]
        process = subprocess.Popen(
            argv, env=variables, cwd=placed.mount, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, umask=0o022, **who,
        )  # fmt: skip
        first = ""
        if between:
            assert process.stdout
            while not first.endswith("ready\n") and (line := process.stdout.readline()):
                first += line
            between()
        output, errors = process.communicate("go\n" if between else "", timeout=300)
        path = placed.mount / name
        there = path.exists()
        return Seen(
            process.returncode,
            first + output,
            errors,
            path.stat().st_mode if there else None,
            path.read_bytes() if there else None,
        )

    return run


def same(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], flags: int, mode: str = "644", *,
    before: Callable[[], None] | None = None, between: Callable[[], None] | None = None,
    undo: Callable[[], None] | None = None,
) -> Seen:  # fmt: skip
    """Run without and with the library, each from the same start; the two must have been the same."""
    runs = []
    for preload in (False, True):
        (placed.mount / "f").unlink(missing_ok=True)
        if before:
            before()
        runs.append(seen(preload, flags, mode, between=between, environ=way))
        if undo:
            undo()
    assert runs[1] == runs[0]
    return runs[1]


@pytest.mark.parametrize("way", ways)
@pytest.mark.parametrize("layout", ["plain", "three"])
@pytest.mark.parametrize("state", REFUSING)
def test_an_ost_that_refuses_at_creation(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], layout: str, state: str
) -> None:
    if layout == "plain":
        placed.map(placed.row("/f", (3, 6, 1)))
    else:
        placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    placed.bed.set_ost(6, **REFUSING[state])
    done = same(placed, seen, way, NEW)
    assert (done.status, done.errors) == (0, "") and done.content
    assert (done.content[:3], done.content[2 << 20 : (2 << 20) + 6]) == (b"abc", b"second")
    made = placed.create("/f")
    if layout == "plain":
        assert made.outcome == REFUSED and made.errno != 0
    else:
        assert made.outcome == (HIT if way["TARAZU_LISTS"] == "hints" else PARTLY)
        assert placed.osts("f")[0] == [0] and 6 not in placed.osts("f")[1]


@pytest.mark.parametrize("way", two_ways)
@pytest.mark.parametrize("state", REFUSING)
def test_an_ost_that_refuses_from_the_first_component_on(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], state: str
) -> None:
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    placed.bed.set_ost(0, **REFUSING[state])
    done = same(placed, seen, way, NEW)
    assert (done.status, done.errors) == (0, "")
    # liblustreapi asks for a list of one as for a start hint, which falls back by itself.
    assert placed.create("/f").outcome == (RACED if way["TARAZU_APPLY"] == "llapi" else REFUSED)


@pytest.mark.parametrize("way", ways)
@pytest.mark.parametrize("state", ["inactive", "no_create"])
def test_an_ost_that_refuses_at_the_first_write_of_a_later_component(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], state: str
) -> None:
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))

    def set_osts(refuse: bool) -> None:
        for index in (4, 6):
            placed.bed.set_ost(index, **{k: v == refuse for k, v in REFUSING[state].items()})

    done = same(placed, seen, way, NEW, between=lambda: set_osts(True), undo=lambda: set_osts(False))
    assert (done.status, done.errors) == (0, "") and done.content
    assert done.content.endswith(b"third") and "pwrite -1" not in done.output
    made = native.decode_lov(placed.create("/f").layout)
    assert [bool(c.osts) for c in made.components] == [True, *[way["TARAZU_LISTS"] == "instantiate"] * 2]


@pytest.mark.parametrize("way", ways)
def test_an_ost_that_is_full_at_the_first_write_of_a_later_component(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str]
) -> None:
    """Objects that are there already can be written into; the others go elsewhere."""
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    done = same(
        placed, seen, way, NEW,
        between=lambda: placed.bed.set_ost(6, full=True), undo=lambda: placed.bed.set_ost(6, full=False),
    )  # fmt: skip
    assert (done.status, done.errors) == (0, "") and "pwrite -1" not in done.output


@pytest.mark.parametrize("way", ways)
@pytest.mark.parametrize("layout", ["plain", "three"])
def test_an_ost_twice_in_a_list(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], layout: str
) -> None:
    """No map writer makes such a row; the map is changed by hand."""
    if layout == "plain":
        path, good, bad = placed.map(placed.row("/f", (3, 4))), b"\3\0\4\0", b"\3\0\3\0"
    else:
        path = placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
        good, bad = b"\5\0\6\0\1\0", b"\5\0\5\0\1\0"
    data = path.read_bytes()
    assert data.count(good) == 1
    path.write_bytes(data.replace(good, bad))
    done = same(placed, seen, way, NEW)
    assert (done.status, done.errors) == (0, "")
    made = placed.create("/f")
    if layout == "three" and way["TARAZU_LISTS"] == "hints":
        assert made.outcome == HIT  # the list was never asked for
    elif layout == "three":
        assert made.outcome in (REFUSED, PARTLY)  # refused at once, or when its objects are to be made
    else:
        assert (made.outcome, made.errno) == (REFUSED, errno.EINVAL)


@both_users
@pytest.mark.parametrize("way", two_ways)
@pytest.mark.parametrize("mode", ["444", "000"])
def test_a_file_that_its_owner_may_not_write(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], mode: str
) -> None:
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    done = same(placed, seen, way, NEW | os.O_EXCL, mode)
    assert done.status == 0 and done.content and done.content.endswith(b"third")
    assert placed.create("/f").outcome == SKIPPED


FLAGS = {
    "excl": os.O_EXCL,
    "append": os.O_APPEND,
    "trunc": os.O_TRUNC,
    "sync": os.O_SYNC,
    "cloexec": os.O_CLOEXEC,
    "nonblock": os.O_NONBLOCK,
    "excl-append": os.O_EXCL | os.O_APPEND,
    "directory": os.O_DIRECTORY,
    "nofollow": os.O_NOFOLLOW,
    "noatime": os.O_NOATIME,
}


@pytest.mark.parametrize("way", two_ways)
@pytest.mark.parametrize("flags", FLAGS)
def test_flags(placed: Placed, seen: Callable[..., Seen], way: dict[str, str], flags: str) -> None:
    placed.map(placed.row("/f", (3, 6, 1)))
    placed.bed.set_ost(6, no_create=True)
    same(placed, seen, way, NEW | FLAGS[flags])
    if flags != "directory":
        assert placed.create("/f").outcome == REFUSED


@both_users
@pytest.mark.parametrize("way", two_ways)
@pytest.mark.parametrize("flags", ["excl", "append", "trunc"])
@pytest.mark.parametrize("mode", [0o644, 0o444])
def test_an_existing_file(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], flags: str, mode: int, who: dict[str, int]
) -> None:
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    layouts = []

    def before() -> None:
        seen(False, NEW)
        with open(placed.mount / "f", "r+b") as file:
            file.write(b"precious")
        layouts.append(placed.osts("f"))
        (placed.mount / "f").chmod(mode)

    done = same(placed, seen, way, NEW | FLAGS[flags], before=before)
    if flags == "excl":
        assert done.status == 3 and f"open -1 {errno.EEXIST}" in done.output
    elif who and mode != 0o644:
        assert done.status == 3 and f"open -1 {errno.EACCES}" in done.output
    else:
        assert done.status == 0 and placed.create("/f").outcome == RACED
    assert placed.osts("f") == layouts[-1]


@pytest.mark.parametrize("way", ways)
def test_not_lustre(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], who: dict[str, int]
) -> None:
    other = placed.work / "other"
    other.mkdir()
    if who:
        os.chown(other, NOBODY, NOBODY)
    placed.map(placed.row("/f", (3, 6, 1)))
    placed.mount = other
    done = same(placed, seen, way | {"TARAZU_MOUNTS": f"{other}=lustre"}, NEW)
    assert done.status == 0 and list(other.iterdir()) == [other / "f"]
    assert placed.create("/f").outcome == SKIPPED


@both_users
@pytest.mark.parametrize("way", two_ways)
def test_a_directory_that_may_not_be_written_and_one_that_is_not_there(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], who: dict[str, int]
) -> None:
    placed.map(placed.row("/shut/f", (3, 6, 1)), placed.row("/none/f", (3, 6, 1)))
    (placed.mount / "shut").mkdir(mode=0o555)
    for name in ("shut/f", "none/f"):
        bare = seen(False, NEW, name=name, environ=way)
        (placed.mount / name).unlink(missing_ok=True)
        assert seen(True, NEW, name=name, environ=way) == bare
        assert bare.status == (3 if who or name == "none/f" else 0)


@pytest.mark.parametrize("way", ways)
@pytest.mark.parametrize("layout", ["plain", "three"])
@pytest.mark.parametrize("flags", ["none", "excl"])
def test_all_osts_refuse(
    placed: Placed, seen: Callable[..., Seen], way: dict[str, str], layout: str, flags: str
) -> None:
    """Then the program fails without the library, too; with it in the same way, and no empty file is left."""
    if layout == "plain":
        placed.map(placed.row("/f", (3, 6, 1)))
    else:
        placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    for index in range(8):
        placed.bed.set_ost(index, full=True)
    done = same(placed, seen, way, NEW | FLAGS.get(flags, 0))
    assert done.status == 3 and f"open -1 {errno.ENOSPC}" in done.output and done.content is None
    assert placed.creates == []
