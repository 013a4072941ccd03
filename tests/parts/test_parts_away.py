"""Each part taken away alone: what is left has its help and starts, what needed it says so in a line."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tarazu.part import installed

ROOT = Path(__file__).parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
DRIVER = """
import contextlib, importlib, io, json, os, sys
tree, packages, scripts, *parts = sys.argv[1:]
sys.path[:0] = [tree, packages]
from tarazu import cli
from tarazu.daemons import programs

def tried(work):
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = work()
        except SystemExit as ended:
            status = ended.code or 0
        except BaseException as error:
            status = repr(error)
    return [status, *(text.buffer.getvalue().decode() for text in (out, err))]

def all_of_them():
    said = {"tarazu": tried(lambda: cli.main(["--help"]))}
    for name in cli.commands():
        said[f"tarazu {name}"] = tried(lambda: cli.main([*name.split(), "--help"]))
    for name in scripts.split():
        sys.argv = [f"/usr/bin/{name}", "--help"]
        said[name] = tried(programs.main)
    return said

for module, _ in cli.COMMANDS.values():
    importlib.import_module(module)  # once for all
assert not any(name.startswith("tarazu.parts.") for name in sys.modules)
answers = {}
for part in parts:
    reader, writer = os.pipe()
    if not os.fork():
        import tarazu.parts
        tarazu.parts.__path__[:] = [f"{tree}/without/{part}"]
        with open(writer, "w") as file:
            json.dump(all_of_them(), file)
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        answers[part] = json.load(file)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Part that was taken away → a command line with --help → its status, standard output and standard error."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "tarazu").symlink_to(ROOT / "tarazu")
    for part in installed():
        (tree / "without" / part).mkdir(parents=True)
        for path in (ROOT / "tarazu" / "parts").iterdir():
            if path.name != part:
                (tree / "without" / part / path.name).symlink_to(path)
    words = [tree, sysconfig.get_path("platlib"), " ".join({*SCRIPTS} - {"tarazu"}), *installed()]
    done = subprocess.run(
        [sys.executable, "-S", "-c", DRIVER, *words], capture_output=True, text=True, check=True
    )
    answers: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answers


def needing(part: str) -> set[str]:
    """The part, and those that are not there without it."""
    gone = {part}
    while more := {name for name, of in installed().items() if {*of.needs} & gone} - gone:
        gone |= more
    return gone


@pytest.mark.parametrize("part", installed())
def test_what_is_left_of_commands_and_programs_is_whole(part: str, said: dict[str, dict[str, Any]]) -> None:
    gone = needing(part)
    left = [of for name, of in installed().items() if name not in gone]
    without = said[part]
    of_gone = {
        name: parts.name for parts in installed().values() for name in parts.programs if parts.name in gone
    }
    for name, (status, out, err) in without.items():
        if name not in of_gone:
            assert (status, err) == (0, "") and f"usage: {name}" in out, (name, status, out, err)
            continue
        assert (status, out) == (2, "") and err.count("\n") == 1, (name, status, out, err)
        missing = (
            "the one that has this program" if of_gone[name] == part else f"those that {of_gone[name]} needs"
        )
        assert err.startswith(f"{name}: parts of tarazu: expected {missing}"), err
    assert {name for of in left for name in of.commands} <= {name.removeprefix("tarazu ") for name in without}
