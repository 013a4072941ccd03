"""The corpus of the fuzzers, and every beginning of its files, under sanitizers; `make fuzz` looks for more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PRELOAD = HERE.parent.parent / "preload"
CORE = [*(PRELOAD / "core").glob("*.c"), PRELOAD / "base/pages.c", PRELOAD / "base/rawsys.c"]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize("target", ["map", "lov", "names"])
def test_corpus(target: str, tmp_path: Path) -> None:
    program = tmp_path / target
    sources = [HERE / f"fuzz_{target}.c", HERE / "replay.c", *CORE]
    options = ("-g", "-O1", "-std=gnu11", "-w", f"-I{PRELOAD}", *SANITIZERS)
    subprocess.run(["cc", *options, *map(str, sources), "-o", str(program)], check=True)
    files = sorted((HERE / "corpus" / target).iterdir())
    assert len(files) >= 5
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(
        [program, *files], capture_output=True, text=True, env=clean, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(f) for f in files]
