"""Programs that their user built with a compiler's sanitizer behave as they do without the library."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.preload.conftest import Runs

PROGRAMS = Path(__file__).parent / "programs"
OFF = {
    "address": ("-fsanitize=address",),
    "address linked in": ("-fsanitize=address", "-static-libasan"),
    "thread": ("-fsanitize=thread",),
    "thread linked in": ("-fsanitize=thread", "-static-libtsan"),
}
if shutil.which("clang++"):
    OFF |= {"address by clang++": ("-fsanitize=address",), "thread by clang++": ("-fsanitize=thread",)}
    OFF["address in a library by clang++"] = ("-fsanitize=address", "-shared-libsan")
ON = {"undefined": ("-fsanitize=undefined",), "leak": ("-fsanitize=leak",), "none": ()}

needs_gxx = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++ (Debian: g++)")


def printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("sanitized")

    def build(kind: str) -> Path:
        program = directory / kind.replace(" ", "-")
        if not program.exists():
            source, options = PROGRAMS / "sanitized.cc", list((OFF | ON)[kind])
            compiler = "clang++" if "clang++" in kind else "g++"
            if "-shared-libsan" in options:
                options.append(f"-Wl,-rpath,{printed(compiler, '-print-runtime-dir')}")
            subprocess.run([compiler, "-g", "-pthread", *options, source, "-o", program], check=True)
        return program

    return build


def said(done: subprocess.CompletedProcess[str]) -> tuple[int, str, list[str]]:
    """Status, output, and what kinds of mistakes were found."""
    found = re.findall(r"^(?:==\d+==)?(?:ERROR|WARNING|SUMMARY): (\w+: [\w-]+)", done.stderr, re.MULTILINE)
    assert found or not done.stderr, done.stderr
    return done.returncode, done.stdout, found


@needs_gxx
@pytest.mark.parametrize("mistake", ["", "freed", "leak", "race"])
@pytest.mark.parametrize("kind", OFF)
def test_asan_runtime_does_not_come_first(plain: Runs, built: Any, kind: str, mistake: str) -> None:
    """And the thread sanitizer reported the library's own work as the program's races."""
    bare, done = plain.bare([built(kind), mistake]), plain([built(kind), mistake])
    assert said(done) == said(bare)
    assert plain.all_spools == []


@needs_gxx
@pytest.mark.parametrize("kind", ON)
def test_sanitizers_that_do_not_watch_others_are_no_hindrance(plain: Runs, built: Any, kind: str) -> None:
    for mistake in ("", "leak"):
        bare, done = plain.bare([built(kind), mistake]), plain([built(kind), mistake])
        assert said(done) == said(bare)
        assert {c.key for c in plain.creates} == {f"/file{i}" for i in range(3)}


@needs_gxx
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_options_of_the_users_own_stay(plain: Runs, built: Any, kind: str) -> None:
    options = {"ASAN_OPTIONS": "exitcode=42", "TSAN_OPTIONS": "exitcode=42"}
    assert plain([built(kind), "freed"], **options).returncode == 42


@needs_gxx
def test_what_a_sanitized_program_starts_is_recorded(plain: Runs, built: Any) -> None:
    assert said(plain([built("address"), "child"])) == (3, "done\n", [])
    assert [c.key for c in plain.creates] == ["/child"]
    done = plain(["sh", "-c", f"{built('address')}; echo $?; touch after"])
    assert (done.stdout, done.stderr) == ("done\n3\n", "")
    assert [c.key for c in plain.creates] == ["/after"]


@needs_gxx
def test_with_the_runtime_preloaded_too(plain: Runs, built: Any) -> None:
    """Into a program that was not built for it, before the library and behind it."""
    runtime = Path(printed("g++", "-print-file-name=libasan.so")).resolve()
    for both in (f"{runtime}:{plain.library}", f"{plain.library}:{runtime}"):
        done = plain([built("none")], LD_PRELOAD=both)
        assert said(done) == (3, "done\n", [])
        assert plain.all_spools == []


def test_what_is_loaded_is_shown_as_without_the_library(plain: Runs, compiled: Any) -> None:
    for options in ((), ("-fsanitize=address",), ("-fsanitize=thread",)):
        program = compiled("loaded.c", *options)
        bare, done = plain.bare([program]), plain([program])
        assert (done.returncode, done.stdout, done.stderr) == (0, bare.stdout, bare.stderr)
        assert done.stdout.endswith("1 1 1 1\n") and "libc.so.6" in done.stdout


@needs_gxx
def test_under_tarazu_run(plain: Runs, built: Any) -> None:
    clean = plain.environ(HOME=str(plain.work))
    for name in ("LD_PRELOAD", "TARAZU_SPOOL"):
        del clean[name]
    run = [sys.executable, "-m", "tarazu", "run", "--"]
    for command in ([str(built("address"))], ["sh", "-c", f"{built('address')}"]):
        assert said(plain.run([*run, *command], clean)) == (3, "done\n", [])
    assert said(plain.run([*run, str(built("address")), "freed"], clean)) == said(
        plain.bare([built("address"), "freed"])
    )
