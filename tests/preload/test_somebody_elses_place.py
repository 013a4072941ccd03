"""Somebody else has made the place of the spools before the user's first job, or changes it while one runs."""

from __future__ import annotations

import os
import time

import pytest

from tarazu.trace.spool import read_spools
from tests.somebody_else import KINDS, SOMEBODY, STEP, USER, SharedNode, as_root, shared_node

__all__ = ["shared_node"]
pytestmark = as_root


def keys(node: SharedNode) -> set[str]:
    """Of what was recorded in directories of the user's own."""
    found = set()
    for path in node.memory.rglob("*.tzs"):
        if path.is_file() and path.lstat().st_uid == USER:
            found |= {create.key for spool in read_spools(path) for create in spool.creates}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_who_made_the_place_before_has_nothing_of_the_users_written_over(
    shared_node: SharedNode, kind: str
) -> None:
    shared_node.occupy(kind)
    done = shared_node.record("dd", "if=/dev/zero", f"of={shared_node.mount}/a", "count=1", "status=none")
    assert (done.returncode, done.stderr) == (0, "")
    assert shared_node.in_home() == shared_node.before
    (beside,) = shared_node.beside()
    assert beside.name.endswith(f".{STEP}") and beside.stat().st_mode & 0o777 == 0o700
    assert beside.stat().st_uid == USER and keys(shared_node) == {"/a"}
    if not shared_node.place.is_symlink():
        assert not [p for p in shared_node.place.glob("**/*") if p.lstat().st_uid == USER]


def test_nobody_can_swap_the_place_while_the_library_writes(shared_node: SharedNode) -> None:
    names = []
    with shared_node.swapping():
        ends_at = time.monotonic() + 4
        while time.monotonic() < ends_at:
            names += [f"{shared_node.mount}/{len(names) + i}" for i in range(5)]
            script = "for f; do dd if=/dev/zero of=$f count=1 status=none; done"
            done = shared_node.record("sh", "-c", script, "sh", *names[-5:])
            assert (done.returncode, done.stderr) == (0, "")
    assert shared_node.in_home() == shared_node.before and len(names) > 20
    assert keys(shared_node) == {f"/{i}" for i in range(len(names))}


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o755, 0o1755])
def test_a_parent_of_a_third_user_is_not_trusted_though_it_is_sticky(
    shared_node: SharedNode, mode: int
) -> None:
    third = shared_node.memory / "third"
    third.mkdir()
    mine = third / "mine"
    mine.mkdir(mode=0o700)
    os.chown(mine, USER, USER)
    third.chmod(mode)
    os.chown(third, SOMEBODY, SOMEBODY)
    assert shared_node.record("touch", shared_node.mount / "a", spool_dir=mine).returncode == 0
    assert not list(mine.iterdir()) and keys(shared_node) == set()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o755])
def test_a_directory_that_others_may_write_to_counts_only_if_it_is_sticky(
    shared_node: SharedNode, mode: int
) -> None:
    open_to_all = shared_node.memory / "open"
    open_to_all.mkdir()
    open_to_all.chmod(mode)
    if not mode & 0o002:
        os.chown(open_to_all, USER, SOMEBODY)
    assert (
        shared_node.record("touch", shared_node.mount / "a", spool_dir=open_to_all / "mine").returncode == 0
    )
    trusted = mode in (0o1777, 0o755)
    assert (keys(shared_node) == {"/a"}) == trusted, "or beside it, where that is the user's to make"
    if not trusted:
        assert not list(open_to_all.iterdir())


def test_links_on_the_way_are_followed_only_where_root_or_the_user_made_them(shared_node: SharedNode) -> None:
    real = shared_node.memory / "real"
    real.mkdir()
    real.chmod(0o1777)
    for name, owner in (("roots", 0), ("own", USER), ("somebodys", SOMEBODY)):
        link = shared_node.memory / name
        link.symlink_to("real" if owner else real)
        os.chown(link, owner, owner, follow_symlinks=False)
        path = link / ".." / name / f"tarazu-{name}"
        assert shared_node.record("touch", shared_node.mount / name, spool_dir=path).returncode == 0
    assert keys(shared_node) == {"/roots", "/own"}
    assert sorted(path.name for path in real.iterdir()) == ["tarazu-own", "tarazu-roots"]


def test_a_file_with_a_second_name_is_no_spool(shared_node: SharedNode) -> None:
    """As somebody can make where the kernel does not protect hard links."""
    directory = shared_node.place / STEP
    directory.mkdir(parents=True)
    for path in (directory, shared_node.place):
        os.chown(path, USER, USER)
        path.chmod(0o700)
    thesis = shared_node.home / "thesis"
    for name in ("node", "ended"):
        os.link(thesis, directory / f"{os.uname().nodename}.{name}.tzs")
    assert shared_node.record("touch", shared_node.mount / "a").returncode == 0
    assert thesis.read_bytes() == b""


def test_a_directory_that_an_earlier_version_made_goes_on(shared_node: SharedNode) -> None:
    shared_node.place.mkdir(mode=0o700)
    os.chown(shared_node.place, USER, USER)
    assert shared_node.record("touch", shared_node.mount / "a").returncode == 0
    assert keys(shared_node) == {"/a"} and not shared_node.beside()
