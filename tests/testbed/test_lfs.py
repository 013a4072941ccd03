"""The stand-in for lfs: its output is that of Lustre's own, byte by byte, and the emulated MDS obeys it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim.testbed import Testbed, lfs

LAYOUTS = Path(__file__).parents[1] / "data" / "lustre" / "layout"
# Not pfl4_explicit: of lists that the MDS keeps for later the attribute tells nothing.
FILES = [
    "plain_1stripe",
    "plain_explicit_3_1_5",
    "plain_c8",
    "plain_default",
    "pfl2_128M",
    "overstriped_C10_1ost",
    "overstriped_C70",
    "dom_pfl",
    "sel_z",
    "sel_mixed",
    "pool_flash",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("options", "ending"), [({}, ".txt"), ({"y": ""}, "-y.yaml")])
def test_shows_a_layout_as_lustre_does(
    name: str, options: dict[str, str], ending: str, monkeypatch: Any, capsys: Any
) -> None:
    blob = (LAYOUTS / f"{name}.lustre.lov.bin").read_bytes()
    monkeypatch.setattr(os, "getxattr", lambda path, attribute: blob)
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    lfs.show(name, options, True)
    assert capsys.readouterr().out == (LAYOUTS / f"{name}.getstripe{ending}").read_text()


def test_shows_a_directorys_default_as_lustre_does(monkeypatch: Any, capsys: Any) -> None:
    blob = (LAYOUTS / "dir_default_pfl.lustre.lov.bin").read_bytes()
    monkeypatch.setattr(os, "getxattr", lambda path, attribute: blob)
    monkeypatch.setattr(lfs, "_attribute", lambda path, is_dir: blob)
    monkeypatch.setattr(lfs, "_parameter", {"stripecount": "1", "stripesize": "4194304"}.get)
    for options, ending in (({"d": ""}, "-d.txt"), ({"d": "", "y": ""}, "-d-y.yaml")):
        lfs.show(str(LAYOUTS), options, False)
        assert capsys.readouterr().out == (LAYOUTS / f"dir_default_pfl.getstripe{ending}").read_text()


def lfs_of(bed: Testbed, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | bed.environment()
    return subprocess.run(
        words, env=environment, cwd=bed.client_mount(), capture_output=True, text=True, check=False, **options
    )


def run(bed: Testbed, *words: str, status: int = 0) -> str:
    done = lfs_of(bed, "lfs", *words)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_a_directorys_default_is_obeyed_inherited_and_taken_back(bed: Testbed) -> None:
    (bed.client_mount() / "d").mkdir()
    run(bed, "setstripe", "-c", "2", "-o", "1,2", "d")
    assert run(bed, "getstripe", "-d", "d").splitlines()[0].endswith("stripe_offset: 1")
    lfs_of(bed, "sh", "-c", "mkdir d/below; : > d/below/f; : > d/f")
    assert bed.layout("d/below/f").osts == bed.layout("d/f").osts == ((1, 2),)
    run(bed, "setstripe", "-d", "d")
    lfs_of(bed, "sh", "-c", ": > d/g; : > d/below/g; mkdir d/later; : > d/later/g")
    # The directory that was made meanwhile has a copy of its own.
    assert bed.layout("d/below/g").osts == ((1, 2),)
    assert len(bed.layout("d/g").osts[0]) == len(bed.layout("d/later/g").osts[0]) == 1
    assert "pattern:        stripe_offset: -1" in run(bed, "getstripe", "-d", "d")


def test_a_start_index_is_shown_by_getstripe_and_hidden_in_the_attribute(bed: Testbed) -> None:
    """As a real client does it (`ll_sanitize_xattr`): the attribute of one directory may be set on another."""
    (bed.client_mount() / "i").mkdir()
    show = "import os, sys; print(os.getxattr(sys.argv[1], 'lustre.lov')[30:32].hex())"
    for options in (["-i", "3"], ["-c", "2", "-o", "3,1"]):
        run(bed, "setstripe", *options, "i")
        assert run(bed, "getstripe", "-i", "-d", "i").strip() == "3"
        assert lfs_of(bed, sys.executable, "-c", show, "i").stdout.strip() == "ffff"


def test_a_directory_without_a_default_shows_that_of_the_root(bed: Testbed) -> None:
    (bed.client_mount() / "none").mkdir()
    run(bed, "setstripe", "-c", "3", ".")
    try:
        assert run(bed, "getstripe", "-c", "-d", "none").strip() == "3"
    finally:
        run(bed, "setstripe", "-d", ".")


def test_what_lustre_refuses_is_refused(bed: Testbed) -> None:
    assert "pool 'lustre.nosuch' does not exist" in run(bed, "setstripe", "-p", "nosuch", ".", status=22)
    run(bed, "setstripe", "-c", "2", "f")
    assert "stripe already set" in run(bed, "setstripe", "-c", "2", "f", status=17)
    assert "stripe_count(3) != nr_tgts(2)" in run(bed, "setstripe", "-c", "3", "-o", "1,2", "g", status=1)


def test_a_name_that_is_not_there_becomes_an_empty_file_but_not_as_a_directory(bed: Testbed) -> None:
    run(bed, "setstripe", "-d", "nosuch")
    assert (bed.client_mount() / "nosuch").stat().st_size == 0
    assert "unable to open 'none/.': No such" in run(bed, "setstripe", "-d", "none/.", status=2)
    run(bed, "setstripe", "-c", "2", "none/.", status=2)
    assert "Not a directory" in run(bed, "setstripe", "-d", "nosuch/.", status=20)
    assert not (bed.client_mount() / "none").exists()
    assert "stripe already set" in run(bed, "setstripe", "-d", "nosuch", status=17)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_sets_the_default_of_his_own_directories_only(bed: Testbed) -> None:
    for name, uid in (("mine", 65534), ("others", 0)):
        (bed.client_mount() / name).mkdir()
        os.chown(bed.client_mount() / name, uid, uid)
    user: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    assert lfs_of(bed, "lfs", "setstripe", "-c", "2", "mine", **user).returncode == 0
    refused = lfs_of(bed, "lfs", "setstripe", "-c", "2", "others", **user)
    assert refused.returncode == 1 and "Operation not permitted" in refused.stderr
