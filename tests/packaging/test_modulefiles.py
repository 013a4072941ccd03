"""Module files, by the real Lmod and environment-modules, below a prefix of one's own and below /usr."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "packaging/modulefiles"
VERSION = "1.2.3"
PATH = "/opt/other/bin:/usr/bin:/bin"


def _first(*globs: str) -> str:
    return next((str(path) for glob in globs for path in Path("/").glob(glob)), "")


TCL = _first("usr/lib/*/modulecmd.tcl", "usr/local/lib/environment-modules/usr/lib/*/modulecmd.tcl")
SYSTEMS = {
    "lmod": [_first("usr/share/lmod/lmod/libexec/lmod"), "bash"],
    "environment-modules": [shutil.which("tclsh") or "", TCL, "bash"],
}


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> list[str]:
    """The command that prints what a shell is to do."""
    command = SYSTEMS[request.param]
    if not all(command):
        pytest.skip(f"needs {request.param} (Debian's package of that name)")
    return command


def _install(prefix: Path) -> Path:
    """The directory for MODULEPATH."""
    modules = prefix / "share/modulefiles"
    (modules / "tarazu").mkdir(parents=True)
    shutil.copy(FILES / "tarazu.lua", modules / "tarazu" / f"{VERSION}.lua")
    shutil.copy(FILES / "tarazu.tcl", modules / "tarazu" / VERSION)
    return modules


def _changed(
    system: list[str], modules: Path, *words: str, env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What `module WORDS…` leaves a shell with, where it differs; empty: unset."""
    before = {
        "PATH": PATH,
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "MODULEPATH": str(modules),
        **(env or {}),
    }
    then = "; ".join(f'eval "$({shlex.join([*system, word, "tarazu"])})"' for word in words)
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", f"{then}; /usr/bin/env -0"],
        env=before,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stderr == "", done.stderr
    after = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
    ours = {k: v for k, v in after.items() if before.get(k) != v} | dict.fromkeys(
        before.keys() - after.keys(), ""
    )
    internal = ("_", "SHLVL", "PWD", "OLDPWD", "LOADEDMODULES")
    return {k: v for k, v in ours.items() if k not in internal and not k.startswith(("_", "LMOD"))}


def test_the_commands_are_known_and_nothing_is_preloaded(system: list[str], tmp_path: Path) -> None:
    modules = _install(tmp_path / "opt")
    bin = tmp_path / "opt/bin"
    assert _changed(system, modules, "load") == {"PATH": f"{bin}:{PATH}"}
    of_manual = _changed(system, modules, "load", env={"MANPATH": "/opt/other/man"})
    assert of_manual["MANPATH"] == f"{tmp_path}/opt/share/man:/opt/other/man"
    assert _changed(system, modules, "load", "unload", env={"MANPATH": "/opt/other/man"}) == {}


def test_of_a_package_of_the_system_nothing_is_to_be_changed(system: list[str], tmp_path: Path) -> None:
    if not shutil.which("bwrap") or os.geteuid() != 0:
        pytest.skip("needs bwrap (Debian: bubblewrap) and root")
    modules = _install(tmp_path / "usr")
    kept = [str(path) for path in Path("/usr/share").glob("[lt]*") if path.name in ("lmod", "lua", "tcltk")]
    binds = [word for path in kept for word in ("--ro-bind", path, path)]
    target = Path("/usr/share/modulefiles")
    view = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--tmpfs",
        "/usr/share",
        *binds,
        "--ro-bind",
        str(modules),
        str(target),
    ]
    assert _changed([*view, *system], target, "load") == {}


def test_help_and_whatis_say_how_a_job_is_started(system: list[str], tmp_path: Path) -> None:
    modules = _install(tmp_path / "opt")
    env = {**os.environ, "MODULEPATH": str(modules), "HOME": "/nonexistent"}
    for word, expected in {"help": "tarazu run -- srun ./app", "whatis": VERSION}.items():
        done = subprocess.run(
            [*system, word, "tarazu"], env=env, capture_output=True, text=True, check=True, timeout=300
        )
        assert expected in done.stderr + done.stdout
