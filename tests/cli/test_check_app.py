"""`tarazu job check-app`: what it says of a program is what happens to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarazu import built
from tarazu.cli import main
from tarazu.errors import BadInput
from tarazu.escapes import ESCAPES, MAY, NOTE, EscapeReport, check, libraries, read_elf

PROGRAMS = Path(__file__).parents[1] / "preload" / "programs"
Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def compiled(source: str, *options: str, name: str = "app") -> Path:
        """`source`: a program of tests/preload/programs, or C."""
        path = PROGRAMS / source
        if not source.endswith(".c"):
            path = tmp_path / f"{name}.c"
            path.write_text(source)
        subprocess.run(["cc", "-w", path, "-o", tmp_path / name, "-pthread", *options], check=True)
        return tmp_path / name

    return compiled


def levels(report: EscapeReport, text: str) -> list[str]:
    return [f.level for f in report.findings if text in f.what]


def real(path: str | None) -> str:
    return os.path.realpath(path or "")


SOME = [shutil.which(n) for n in ("dd", "tar", "bash", "git", "gcc")] + [real("/proc/self/exe")]


@pytest.mark.parametrize("path", [p for p in SOME if p], ids=lambda p: Path(p).name)
def test_symbols_are_those_of_nm(path: str) -> None:
    listed = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    imports = set(re.findall(r"^ +[Uw] ([^@\n]+)", listed, re.M))
    exports = set(re.findall(r"^[0-9a-f]+ [A-TV-Zuviw] ([^@\n]+)", listed, re.M))
    elf = read_elf(path)
    assert elf.imports - {""} == imports
    assert elf.exports == exports
    assert elf.interpreter.startswith("/lib")


def test_libraries_are_those_that_are_mapped_when_it_runs() -> None:
    program = shutil.which("dd") or ""
    maps = subprocess.run([program, "if=/proc/self/maps"], capture_output=True, text=True, check=True).stdout
    loaded, missing = libraries(read_elf(program), os.environ)
    assert missing == ()
    assert {real(e.path) for e in loaded} == set(re.findall(r" (/\S+\.so[.\d]*)$", maps, re.M))


def test_a_program_whose_libraries_cannot_be_listed(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "defpath", "/nonexistent")
    report = check(str(build("every.c")), {"PATH": "/bin"})
    assert levels(report, "libraries were not checked") == [MAY] and report.libraries == ()


@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_every_kind_of_hash_table(build: Build, style: str) -> None:
    elf = read_elf(build("every.c", f"-Wl,--hash-style={style}", "-rdynamic"))
    assert {"open", "mkostemps64", "freopen64"} <= elf.imports and "main" in elf.exports


def test_an_ordinary_program_is_seen_as_a_whole(build: Build) -> None:
    for options in ([], ["-fno-plt"], ["-O2", "-D_FORTIFY_SOURCE=2"], ["-no-pie"], ["-Wl,-z,now"]):
        report = check(str(build("every.c", *options)), os.environ)
        assert not report.escapes and report.kind == "dynamic"
        assert {"open", "openat64", "creat", "fopen64", "freopen", "mkstemp", "mkostemps64"} <= set(
            report.covered
        )


@pytest.mark.parametrize("options", [["-static"], ["-static-pie"]])
def test_a_static_program(build: Build, options: list[str]) -> None:
    report = check(str(build("every.c", *options)), os.environ)
    assert report.kind == "static" and levels(report, "statically linked") == [ESCAPES]


def test_set_uid_and_capabilities(build: Build) -> None:
    path = build("int main() {}")
    path.chmod(0o4755)
    assert levels(check(str(path), os.environ), "set-uid") == [ESCAPES]
    path.chmod(0o755)
    if os.geteuid() == 0:
        os.setxattr(path, "security.capability", bytes.fromhex("0100000202000000000000000000000000000000"))
        assert levels(check(str(path), os.environ), "capabilities") == [ESCAPES]


@pytest.mark.parametrize(
    ("body", "text", "level"),
    [
        ("dlmopen(-1, argv[1], 2);", "name space", MAY),
        ("dlopen(argv[1], 2);", "loads libraries while it runs", NOTE),
        ("syscall(39);", "by number", NOTE),
        ("posix_spawn_file_actions_addopen(0, 1, argv[1], 0, 0);", "posix_spawn", MAY),
        ("mknod(argv[1], 0, 0);", "mknod", NOTE),
        ("tmpfile();", "without a name", NOTE),
    ],
)
def test_calls_that_tell(build: Build, body: str, text: str, level: str) -> None:
    source = (
        f"#define _GNU_SOURCE\n#include <stdio.h>\nint main(int argc, char **argv) {{ {body} return 0; }}\n"
    )
    path = build(source)
    report = check(str(path), os.environ)
    assert levels(report, text) == [level]
    (finding,) = [f for f in report.findings if text in f.what]
    assert finding.where == (str(path),)
    assert report.escapes == (level == MAY)


def test_io_uring_in_a_library_beside_the_program(build: Build, tmp_path: Path) -> None:
    body = "int io_uring_prep_openat(void); int f(void) { return io_uring_prep_openat(); }"
    library = build(body, "-shared", "-fPIC", name="libring.so")
    program = build(
        "int f(void); int main() { return f(); }", f"-L{tmp_path}", "-lring", "-Wl,--allow-shlib-undefined",
        "-Wl,-rpath,$ORIGIN",
    )  # fmt: skip
    report = check(str(program), os.environ)
    assert levels(report, "io_uring") == [MAY]
    assert str(library) in report.libraries
    library.unlink()
    assert levels(check(str(program), os.environ), "libring.so is not found") == [MAY]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    build(body, "-shared", "-fPIC", name="elsewhere/libring.so")
    environ = {**os.environ, "LD_LIBRARY_PATH": str(elsewhere)}
    assert levels(check(str(program), environ), "io_uring") == [MAY]


def test_another_open_is_named(build: Build) -> None:
    source = "int open(const char *p, int f, ...) { return -1; } int main() { return open(0, 0); }"
    assert levels(check(str(build(source, "-rdynamic")), os.environ), "defines open itself") == [NOTE]


def test_go_and_musl(build: Build) -> None:
    go = 'const char x[] __attribute__((section(".go.buildinfo"), used)) = "go"; int main() {}'
    assert levels(check(str(build(go)), os.environ), "Go program") == [ESCAPES]
    musl = build("int main() {}", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
    assert levels(check(str(musl), os.environ), "musl") == [ESCAPES]


@pytest.mark.parametrize("kind", ["address", "thread", "address static", "thread static"])
def test_a_program_under_a_sanitizer(build: Build, kind: str) -> None:
    name, _, static = kind.partition(" ")
    options = ["-static-libasan" if name == "address" else "-static-libtsan"] if static else []
    report = check(str(build("every.c", f"-fsanitize={name}", *options)), os.environ)
    assert levels(report, "sanitizer") == [ESCAPES] and report.covered == ()


def test_a_program_with_checks_that_do_not_watch_others(build: Build) -> None:
    report = check(str(build("every.c", "-fsanitize=undefined,leak")), os.environ)
    assert levels(report, "sanitizer") == [] and "open" in report.covered


def test_scripts(build: Build, tmp_path: Path) -> None:
    script = tmp_path / "script"
    for first, level, runs in (
        ("#!/bin/sh -e", MAY, real("/bin/sh")),
        ("#!/usr/bin/env bash", MAY, shutil.which("bash")),
        (f"#!{sys.executable}", NOTE, sys.executable),
        ("#! /usr/bin/env -S A=b perl -w", NOTE, shutil.which("perl")),
    ):
        script.write_text(f"{first}\n")
        script.chmod(0o755)
        report = check(str(script), os.environ)
        assert levels(report, "script") == [level] and report.kind.startswith("script (")
        assert real(report.chain[-1]) == real(runs)
    static = build("int main() {}", "-static", name="interpreter")
    script.write_text(f"#!{static}\n")
    assert ESCAPES in [f.level for f in check(str(script), os.environ).findings]
    script.write_text(f"#!{script}\n")
    with pytest.raises(BadInput, match="interpreters end at a program"):
        check(str(script), os.environ)


def test_exit_status_and_output(build: Build, capsys: Any, tmp_path: Path) -> None:
    good = str(build("plugin.c", "-shared", "-fPIC", name="lib.so"))
    assert main(["job", "check-app", "dd"]) == 0
    assert "nothing escapes" in capsys.readouterr().out
    assert main(["job", "check-app", "--json", str(build("every.c", "-static"))]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["escapes"] is True and told["findings"][0]["level"] == ESCAPES
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    for bad in (str(text), "/nonexistent", str(tmp_path)):
        assert main(["job", "check-app", bad]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("tarazu job check-app: ")
    assert main(["job", "check-app", good]) == 1  # a library is no program: it has no loader


def test_a_node_without_pyelftools_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "tarazu.escapes")
    for name in [name for name in sys.modules if name.startswith("elftools")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "elftools", None)
    assert main(["job", "check-app", "dd"]) == 1
    assert capsys.readouterr().err == (
        "tarazu job check-app: expected pyelftools (pip install pyelftools), found no elftools.elf\n"
    )


SMALL = built.library_path("libtarazu.so").read_bytes()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=8),
    st.integers(0, len(SMALL)),
)
@example(flips=[(39, 128)], length=1)
def test_damaged_files_are_bad_input_or_read(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]], length: int
) -> None:
    data = bytearray(SMALL)
    for at, value in flips:
        data[at % 2048 if at % 2 else at] = value
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(bytes(data[: len(data) if length % 3 else length]))
    try:
        read_elf(path)
    except BadInput as error:
        assert len(str(error).splitlines()) == 1
