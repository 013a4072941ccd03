"""`tarazu run`: its command line, and what it does not import, for every job step waits for its start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.cli import command, run

PLAIN = [
    "true",
    "-- true",
    "-- --app x",
    "--app ior ./ior -w -F",
    "--app=ior --mode=place -- mpirun -np 4 ./ior",
    "--mode observe --config /x.toml --debug --root /r ./a -- -b",
    "--app= true",
    "--",
]
ELSE = [
    "",
    "--help",
    "--app",
    "--mode nonsense true",
    "--ap x true",
    "-x true",
    "--app -x true",
    "--debug",
    "-",
]


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_command_line_is_read_as_its_parser_reads_it(line: str) -> None:
    asked, parsed = run.plainly(line.split()), command("run").parse_args(line.split())
    assert asked
    assert asked._asdict() == {name: getattr(parsed, name) for name in asked._fields}


@pytest.mark.parametrize("line", ELSE)
def test_any_other_command_line_is_left_to_the_parser(line: str) -> None:
    assert run.plainly(line.split()) is None


def _loaded(tmp_path: Path, mode: str) -> set[str]:
    """Modules of a process that has led a step without any daemon there; not those loaded beside the program."""
    code = (
        "import sys; before = set(sys.modules); from tarazu.cli import main\n"
        "from tarazu.run import leader; leader.load = lambda step: None\n"
        f"main(['run', '--mode', {mode!r}, '--', 'true'])\n"
        "print(*set(sys.modules) - before)"
    )
    environ = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "TARAZU_MOUNTS": f"{tmp_path}=scratch",
        "TARAZU_RUN_SPOOL_DIR": str(tmp_path / "spools"),
        "TARAZU_RUN_STOP_FILE": str(tmp_path / "stop"),
        "TARAZU_CLIENTD_SOCKET": str(tmp_path / "none.sock"),
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {
    "argparse",
    "asyncio",
    "dataclasses",
    "inspect",
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "zmq",
    "tarazu.cli.output",
}


def test_a_job_that_is_observed_waits_for_few_imports(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path, "observe")
    assert {"tarazu.run.leader", "tarazu.run.end"} <= loaded, "it was not led"
    slow = {
        "glob",
        "hashlib",
        "ipaddress",
        "json",
        "multiprocessing",
        "platform",
        "random",
        "secrets",
        "shlex",
        "shutil",
        "socket",
        "tempfile",
        "typing_extensions",
        "tarazu.wire.messages",
    }
    assert not loaded & (HEAVY | slow)
    assert not [name for name in loaded if name.startswith(("tarazu.run.plan.", "tarazu.daemons"))]


def test_a_job_that_is_placed_waits_for_few_imports(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path, "place")
    assert "tarazu.run.plan.schedule" in loaded, "nothing was planned"
    assert not loaded & (HEAVY | {"hashlib", "secrets", "tempfile"})
