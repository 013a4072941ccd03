"""A placed file lies in the pool of the map; programs notice nothing of it, whatever Ceph refuses.

Programs and tables are those of tests/preload (more of them in test_programs.py). What is Lustre's alone has no
counterpart here: components, OST lists and start hints, their objects, liblustreapi, `O_LOV_DELAY_CREATE`, files
without a layout, names beside a file's own.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarazu.filesystem import ceph
from tarazu.stats.client import Mount
from tests.ceph.cluster import Cluster
from tests.ceph.library import (
    ADVISED,
    FS,
    HIT,
    MISS,
    NEW,
    NOBODY,
    RACED,
    REFUSED,
    SKIPPED,
    OnCeph,
    Seen,
    clients,
    made,
    on_ceph,
)
from tests.preload.conftest import compiled
from tests.preload.test_refusals import FLAGS

pytestmark = [pytest.mark.ceph, pytest.mark.slow]
__all__ = ["clients", "compiled", "on_ceph"]
PROGRAMS = Path(__file__).parents[1] / "preload" / "programs"
PRELOAD = Path(__file__).parents[2] / "preload"


def seen(on: OnCeph, program: Path, preload: bool, flags: int, mode: str = "644", user: bool = True) -> Seen:
    shutil.rmtree(on.spool_directory, ignore_errors=True)
    on.spool_directory.mkdir()
    if user:
        os.chown(on.spool_directory, NOBODY, NOBODY)
    environ = on.environ() if preload else {**on.environ(), "LD_PRELOAD": ""}
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if user else {}
    done = subprocess.run(
        [program, "f", hex(flags), mode], env=environ, cwd=on.mount, capture_output=True, text=True,
        timeout=60, umask=0o022, check=False, **who,
    )  # fmt: skip
    path = on.mount / "f"
    there = path.exists()
    left = (path.stat().st_mode, path.read_bytes()) if there else (None, None)
    return Seen(done.returncode, done.stdout, done.stderr, *left)


def creator(compiled: Any) -> Path:
    program: Path = compiled("creator.c")
    for above in list(program.parents)[:4]:
        above.chmod(above.stat().st_mode | 0o011)
    return program


def same(
    on: OnCeph, program: Path, flags: int, mode: str = "644", *,
    before: Callable[[], None] | None = None, user: bool = True,
) -> Seen:  # fmt: skip
    runs = []
    for preload in (False, True):
        (on.mount / "f").unlink(missing_ok=True)
        if before:
            before()
        runs.append(seen(on, program, preload, flags, mode, user))
    assert runs[1] == runs[0]
    return runs[1]


@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
@pytest.mark.parametrize("flags", ["none", *FLAGS])
def test_flags(on_ceph: OnCeph, compiled: Any, flags: str, user: bool) -> None:
    on_ceph.map(on_ceph.row("/f"))
    done = same(on_ceph, creator(compiled), NEW | FLAGS.get(flags, 0), user=user)
    if flags != "directory":
        assert done.status == 0 and done.content and done.content[2 << 20 : (2 << 20) + 6] in (b"second", b"")
        made = on_ceph.create("/f")
        assert (made.outcome, made.found, made.row_id, made.errno) == (HIT, 1, 7, 0)
        assert on_ceph.pool("f") == "third" and on_ceph.recorded("/f") == on_ceph.pools["third"]
        assert on_ceph.close("/f").size == len(done.content)


@pytest.mark.parametrize("access", ["rdonly", "wronly"])
def test_access(on_ceph: OnCeph, compiled: Any, access: str) -> None:
    on_ceph.map(on_ceph.row("/f"))
    same(on_ceph, creator(compiled), os.O_CREAT | (os.O_WRONLY if access == "wronly" else 0))
    assert on_ceph.create("/f").outcome == HIT and on_ceph.pool("f") == "third"


@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
@pytest.mark.parametrize("mode", ["444", "000"])
def test_a_file_that_its_owner_may_not_write(on_ceph: OnCeph, compiled: Any, mode: str, user: bool) -> None:
    on_ceph.map(on_ceph.row("/f"))
    done = same(on_ceph, creator(compiled), NEW | os.O_EXCL, mode, user=user)
    assert done.status == 0 and on_ceph.create("/f").outcome == SKIPPED and on_ceph.pool("f") == "first"


@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
@pytest.mark.parametrize("flags", ["none", "excl", "append", "trunc"])
@pytest.mark.parametrize("mode", [0o644, 0o444])
def test_an_existing_file_stays_where_it_is(
    on_ceph: OnCeph, compiled: Any, flags: str, mode: int, user: bool
) -> None:
    on_ceph.map(on_ceph.row("/f"))

    def before() -> None:
        (on_ceph.mount / "f").write_bytes(b"precious")
        os.chown(on_ceph.mount / "f", NOBODY, NOBODY)
        (on_ceph.mount / "f").chmod(mode)

    done = same(on_ceph, creator(compiled), NEW | FLAGS.get(flags, 0), before=before, user=user)
    assert on_ceph.pool("f") == "first"
    if flags == "excl":
        assert done.status == 3 and f"open -1 {errno.EEXIST}" in done.output
    elif user and mode == 0o444:
        assert done.status == 3 and f"open -1 {errno.EACCES}" in done.output
    else:
        assert done.status == 0 and on_ceph.create("/f").outcome == RACED


MODES: dict[str, dict[str, str]] = {
    "observe": {"TARAZU_MODE": "observe", "TARAZU_RECORD": "full"},
    "place": {},
    "place-full": {"TARAZU_RECORD": "full"},
    "place-llapi": {"TARAZU_APPLY": "llapi"},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_every_wrapped_function(on_ceph: OnCeph, tmp_path: Path, mode: str, shared: bool) -> None:
    """All that tests/preload compares on a file system that fails, where nothing fails."""
    from tests.preload.test_what_a_program_sees import PARTS, functions

    program = tmp_path / "visible"
    subprocess.run(
        ["cc", "-O1", "-g", f"-I{PRELOAD}", *PROGRAMS.glob("visible*.c"), "-o", program], check=True
    )
    on_ceph.map(
        *(on_ceph.row(f"/none/{n}", shared=shared, row_id=i) for i, n in enumerate([*functions(), *PARTS]))
    )
    said = []
    for run in (on_ceph.bare, on_ceph):
        shutil.rmtree(on_ceph.mount / "none", ignore_errors=True)
        (on_ceph.mount / "none").mkdir()
        done = run([program, "none"], **MODES[mode])
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout.splitlines())
    assert [b for a, b in zip(*said, strict=True) if a != b] == []
    outcomes = {c.outcome for c in on_ceph.creates}
    assert HIT in outcomes if mode != "observe" else HIT not in outcomes


WRITE = "import sys\nfor name in sys.argv[1:]:\n    open(name, 'w').write(name * 1000)"


def written(on: OnCeph, *names: str, **extra: str) -> None:
    done = on.python(WRITE, *names, **extra)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [(on.mount / name).read_text() for name in names] == [name * 1000 for name in names]


@pytest.mark.parametrize(
    ("setting", "outcome"),
    [
        ({"TARAZU_MODE": "observe"}, 0),
        ({"TARAZU_MODE": "advise"}, ADVISED),
        ({"TARAZU_EXCLUDE": "/f"}, None),
        ({"TARAZU_INCLUDE": "/other"}, None),
        ({"TARAZU_EXCLUDE_PROGRAMS": "python*"}, None),
        ({"TARAZU_DISABLE": "1"}, None),
        ({"TARAZU_MOUNTS": "/somewhere=cephfs@ceph"}, None),
        ({"TARAZU_MOUNTS": "/somewhere=cephfs@other"}, None),
    ],
)
def test_opt_outs(on_ceph: OnCeph, setting: dict[str, str], outcome: int | None) -> None:
    on_ceph.map(on_ceph.row("/f"))
    written(on_ceph, "f", **setting)
    assert on_ceph.pool("f") == "first"
    assert [c.outcome for c in on_ceph.creates] == ([] if outcome is None else [outcome])


def test_the_mount_table_tells_it(on_ceph: OnCeph, mount: Path) -> None:
    key = f"/{on_ceph.mount.relative_to(mount)}/f"
    on_ceph.map(on_ceph.row(key))
    del on_ceph.environment["TARAZU_MOUNTS"]
    written(on_ceph, "f", "g")
    assert on_ceph.pool("f") == "third" and on_ceph.pool("g") == "first"
    assert (on_ceph.create(key).fs, on_ceph.create(key).outcome) == (FS, HIT)
    assert on_ceph.create(key[:-1] + "g").outcome == MISS


def test_a_file_system_that_is_no_ceph_is_left_alone(on_ceph: OnCeph, tmp_path: Path) -> None:
    on_ceph.mount = tmp_path / "plain"
    on_ceph.mount.mkdir()
    on_ceph.map(on_ceph.row("/f"), on_ceph.row("/g"))
    written(on_ceph, "f", "g", TARAZU_MOUNTS=f"{on_ceph.mount}={FS}@ceph")
    assert on_ceph.create("/f").outcome == on_ceph.create("/g").outcome == SKIPPED


def tries(on: OnCeph, *names: str) -> int:
    """How often a process that writes these files asks for a pool."""
    environ = on.environ()
    preload = environ.pop("LD_PRELOAD")
    trace = [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=fsetxattr",
        "-o",
        on.work / "trace",
        "-E",
        f"LD_PRELOAD={preload}",
    ]
    done = on.run([str(a) for a in (*trace, sys.executable, "-c", WRITE, *names)], environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [(on.mount / name).read_text() for name in names] == [name * 1000 for name in names]
    return (on.work / "trace").read_text().count("ceph.file.layout.pool")


def test_a_client_whose_key_lacks_p_asks_once(
    cluster: Cluster, clients: Callable[..., Path], mount: Path, tmp_path: Path
) -> None:
    on = made(cluster, clients("nop", "allow rw", "allow rw"), tmp_path)
    on.map(*(on.row(f"/{name}") for name in "fgh"))
    assert tries(on, "f", "g", "h") == 1
    assert [(c.outcome, c.errno, c.layout) for c in on.creates] == [(REFUSED, errno.EACCES, b"")] * 3
    assert {on.pool(name) for name in "fgh"} == {"first"}


def test_a_client_whose_key_lacks_p_in_one_directory_is_placed_in_others(
    cluster: Cluster, clients: Callable[..., Path], mount: Path, tmp_path: Path
) -> None:
    on = made(cluster, mount, tmp_path)
    below = f"/{on.mount.relative_to(mount)}"
    where = clients("part", f"allow rw, allow rwp path={below}/may", "allow rw")
    on.mount = where / on.mount.relative_to(mount)
    on.environment["TARAZU_MOUNTS"] = f"{on.mount}={FS}@ceph"
    for directory in ("not", "may", "nor"):
        (on.mount / directory).mkdir()
    names = [f"{directory}/{name}" for name in "abc" for directory in ("not", "may", "nor")]
    on.map(*(on.row(f"/{name}") for name in names))
    assert tries(on, *names) == 2 + 3
    for name in names:
        expected = (HIT, 0, "third") if name.startswith("may") else (REFUSED, errno.EACCES, "first")
        assert (on.create(f"/{name}").outcome, on.create(f"/{name}").errno, on.pool(name)) == expected
    third = on.pools["third"]
    mounts = [Mount(str(where), FS, kind="ceph")]
    for first, refused in (("not", True), ("may", False)):
        found = ceph.refused_targets(mounts, [f"{below}/{first}/x", f"{below}/{first}/new/x"], {third})
        assert bool(found) is refused
    assert ceph.refused_targets(mounts, [f"{below}/not/x", f"{below}/may/x"], {third}) == {}
    assert [p.name for p in on.mount.rglob(f"{ceph.TRIED}*")] == []


def test_a_file_whose_pool_is_the_planned_one_is_left_as_it_is(on_ceph: OnCeph) -> None:
    """Nothing is set, and no journal is waited for."""
    on_ceph.map(on_ceph.row("/f", "first"), on_ceph.row("/g", "first", shared=True), on_ceph.row("/h"))
    assert tries(on_ceph, "f", "g", "h") == 1
    assert [(c.outcome, on_ceph.recorded(c.key)) for c in on_ceph.creates] == [
        (HIT, on_ceph.pools["first"]),
        (HIT, on_ceph.pools["first"]),
        (HIT, on_ceph.pools["third"]),
    ]


def test_a_client_without_rights_in_the_pool_gets_its_file_elsewhere(
    cluster: Cluster, clients: Callable[..., Path], mount: Path, tmp_path: Path
) -> None:
    """The MDS takes the pool, and the program's first write would fail."""
    on = made(cluster, clients("one", "allow rwp", "allow rw pool=first, allow rw pool=second"), tmp_path)
    on.map(on.row("/f"), on.row("/g"), on.row("/h", "second"))
    assert tries(on, "f", "g", "h") == 3  # there, back, and the one of the other pool
    assert [(on.create(k).outcome, on.create(k).errno) for k in ("/f", "/g")] == [(REFUSED, errno.EPERM)] * 2
    assert (on.create("/h").outcome, on.pool("h")) == (HIT, "second")
    assert {on.pool("f"), on.pool("g")} == {"first"}


def test_a_pool_that_left_the_file_system(cluster: Cluster, on_ceph: OnCeph) -> None:
    cluster.ceph("osd pool create", pool="gone", pg_num=8, pool_type="replicated", rule="c")
    cluster.ceph("fs add_data_pool", fs_name=FS, pool="gone")
    ids = {pool["poolname"]: pool["poolnum"] for pool in cluster.ceph("osd lspools")}
    on_ceph.pools |= {"gone": ids["gone"]}
    on_ceph.map(on_ceph.row("/f", "gone"), on_ceph.row("/g", "gone"))
    written(on_ceph, "f")
    assert on_ceph.pool("f") == "gone"
    (on_ceph.mount / "f").unlink()
    cluster.ceph("fs rm_data_pool", fs_name=FS, pool="gone")
    written(on_ceph, "f", "g")
    assert {(c.outcome, c.errno) for c in on_ceph.creates} == {(REFUSED, errno.EINVAL)}
    assert {on_ceph.pool("f"), on_ceph.pool("g")} == {"first"}
