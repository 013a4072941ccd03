"""The leader asks liblustreapi (here the testbed's stand-in) about each layout template."""

import json
import os
import subprocess
import sys

import pytest

from tarazu.layout.setstripe import parse_layout
from tarazu.run.plan import llapi
from tarazu.sim.testbed.library import library_directory

SCRIPT = """
import json, sys
from tarazu.run.plan import llapi
from tarazu.layout.setstripe import parse_layout
print(json.dumps([llapi.refusal(parse_layout(text)[0]) for text in sys.argv[1:]]))
"""


def refusals(*texts: str) -> list[str]:
    environ = {**os.environ, "LD_LIBRARY_PATH": str(library_directory() / "testbed")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *texts], env=environ, capture_output=True, check=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_layouts_that_lustre_takes() -> None:
    texts = [
        "-c 8 -S 1M",
        "-E 128M -c 1 -S 16M -E 512M -c 3 -S 16M -E -1 -c 16 -S 32M",
        "-c 2 -S 4M -p flash",
    ]
    assert refusals(*texts, "-E 1M -L mdt -E -1 -c 4 -S 4M") == [""] * 4


@pytest.mark.parametrize(
    "text",
    [
        "-E 2G -c 8 -S 192M -E -1 -c 1 -S 1M",  # the paper's table 1
        "-E 100K -c 1 -S 64K -E -1 -c 1 -S 1M",
        "-c 1 -S 100K",
    ],
)
def test_layouts_that_lustre_refuses(text: str) -> None:
    assert refusals(text)[0].startswith("llapi_layout_")


def test_without_the_library_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llapi, "SONAME", "liblustreapi.so.none")
    llapi._library.cache_clear()
    try:
        assert llapi.refusal(parse_layout("-c 1 -S 100K")[0]) == ""
    finally:
        llapi._library.cache_clear()
