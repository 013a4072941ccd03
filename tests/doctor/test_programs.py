"""The doctor's look at the preload and at a step's directories, with the real library and real programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tarazu import built, durable
from tarazu.doctor import preload
from tarazu.errors import TarazuError
from tarazu.run import directories as run_directories
from tarazu.run import leftovers
from tests.doctor.conftest import Tree, as_nobody, verdicts

REAL = built.library_path("libtarazu.so")


def use(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    monkeypatch.setattr(built, "library_path", lambda _: library)


def test_the_library_loads_and_what_it_records_is_read(tree: Tree) -> None:
    found = tree.look("preload", "launch")
    assert (found["preload"].verdict, found["recorder"].verdict) == ("ok", "ok"), found
    assert found["llapi"].verdict == "skip"


def test_a_library_that_cannot_be_loaded_or_reached(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tree.write("lib/libtarazu.so", "no library"))
    found = tree.look("preload", "launch")["preload"]
    assert found.verdict == "fail" and "libtarazu.so" in found.found
    closed = tree.root / "closed"
    closed.mkdir()
    shutil.copy(REAL, closed)
    closed.chmod(0o700)
    use(monkeypatch, closed / "libtarazu.so")
    assert "other users cannot load it" in tree.look("preload", "launch")["libtarazu.so"].found
    spaced = tree.root / "a b"
    spaced.mkdir()
    shutil.copy(REAL, spaced)
    use(monkeypatch, spaced / "libtarazu.so")
    assert "a space or a colon" in tree.look("preload", "launch")["libtarazu.so"].found


def test_a_library_that_records_nothing_is_found(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, built.library_path("libtarazu_core.so"))
    found = tree.look("preload", "launch")
    assert found["preload"].verdict == "ok" and found["recorder"].verdict == "fail"


def test_other_preloads_and_a_missing_llapi(tree: Tree) -> None:
    tree.put("run", apply="llapi")
    tree.write("etc/ld.so.preload", "/usr/lib/other.so\n")
    environ = {"PATH": os.environ["PATH"], "LD_PRELOAD": "/nowhere/x.so libm.so.6"}
    found = tree.look("preload", "launch", environ=environ)
    assert found["/etc/ld.so.preload"].verdict == "warn" and "/nowhere/x.so" in found["LD_PRELOAD"].found
    assert found["llapi"].verdict in ("ok", "fail")
    environ = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(REAL), "TARAZU_DISABLE": "1"}
    found = tree.look("preload", "launch", environ=environ)
    assert found["LD_PRELOAD"].verdict == found["TARAZU_DISABLE"].verdict == "warn"


def test_directories_that_are_well(tree: Tree) -> None:
    found = tree.look("directories", "launch")
    assert set(verdicts(found).values()) <= {"ok"} and "run.map_dir" in found


def test_directories_that_are_not(tree: Tree, on_disk: Path) -> None:
    (tree.directory / "state").write_text("a file")
    maps = tree.directory / "maps"
    maps.mkdir()
    left = maps / "20260101-000000-host-1"
    left.mkdir()
    boot = durable.BOOT_ID.read_bytes()
    (left / leftovers.LEASE).write_bytes(boot)
    tree.put("run", gather="none", spool_dir=str(on_disk / "spools"))
    found = tree.look("directories", "launch")
    assert found["run.state_dir"].verdict == "fail"
    assert found["run.map_dir: left"].verdict == "warn" and left.is_dir()
    assert found["run.map_dir"].verdict == "fail" and "other nodes do not share" in found["run.map_dir"].found
    assert found["run.spool_dir"].verdict == "warn" and "slower than memory" in found["run.spool_dir"].found


def test_a_launcher_that_loses_the_preload(tree: Tree) -> None:
    directory = tree.root / "bin"
    directory.mkdir()
    for name in ("srun", "mpirun"):
        shutil.copy("/bin/true", directory / name)
    (directory / "srun").chmod(0o4755)
    found = tree.look("preload", "launch", environ={"PATH": str(directory)})
    assert found["srun"].verdict == "warn" and "set-uid" in found["srun"].found and "mpirun" not in found


def test_a_recorder_of_another_version_and_no_library(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = tree.write("spool/x.tzs", "TZSPOOL9 of the year 2040" * 20).parent
    assert "different versions" in preload._recorded(spool).mend

    def missing(_: str) -> Path:
        raise TarazuError("libtarazu.so is not built")

    monkeypatch.setattr(built, "library_path", missing)
    assert verdicts(tree.look("preload", "launch")) == {"libtarazu.so": "fail"}


def test_directories_on_file_systems_of_the_network(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stood in for: no such mount can be made here."""
    monkeypatch.setattr(run_directories, "file_system_type", lambda _: "nfs4")
    found = tree.look("directories", "launch")
    assert found["run.map_dir"].verdict == "ok" and found["run.spool_dir"].verdict == "fail"
    assert "network" in found["run.spool_dir"].found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_directories_of_others(tree: Tree) -> None:
    maps = tree.directory / "maps"
    maps.mkdir()
    os.chown(maps, 12345, 12345)
    assert "nothing is recorded there" in tree.look("directories", "launch")["run.map_dir"].found
    with as_nobody(tree.directory):
        found = tree.look("directories", "launch")["run.state_dir"]
    assert found.verdict == "fail" and "this user cannot write" in found.found
