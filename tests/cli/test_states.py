"""Every command in states of the system that are nobody's mistake: it says what is so, in a line, and ends."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tarazu import cli
from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tests.cli.driver import UNKNOWN, Command
from tests.of_parts import brought
from tests.within_reach import interpreter, path_of_tarazu


class Ended(NamedTuple):
    """What came of a command."""

    status: int | None
    """None: it did not end."""
    out: str
    err: str


DATA = Path(__file__).parents[1] / "data"
LOG = DATA / "traces" / "ckpt_fpp_n8_s8.darshan"
ARGUMENTS = {
    "run": "-- true",
    "job show": "",
    "job explain": "{mount}/app/file.0",
    "job map show": "{here}/none",
    "history list": "",
    "history show": "app",
    "history predict": "app",
    "history report": "",
    "history db show": "",
    "history import": f"{LOG} --dry-run",
    "history export": "app",
    "history gather": "",
    "history forget": "app --dry-run",
    "status": "",
    "top": "--once",
    "doctor": "",
    "doctor collect": "",
    "init": "--dry-run",
    "config": "",
    "config default": "",
    "config check": "",
    "config keys create": "client --directory {here}/keys",
    "config keys list": "",
    "config keys revoke": "client-none",
    "disable": "--job 4711",
    "enable": "--job 4711",
}
"""A command → the fewest arguments with which it does its work."""
STUDIES = {
    "job check-app": "sh",
    "demo": "--only none",
    "sim run": "{here}/quick.toml",
    "sim study": "{here}/quick.toml --out {here}/study",
    "sim validate": "--only none",
    "sim presets": "",
    "sim example": "quick",
    "sim scenarios": "--only ior-ssf-16 --seeds 1 --policy lsa",
    "sim testbed up": "{here}/testbed --osss 1 --osts-per-oss 1 --no-daemons",
    "sim testbed down": "{here}/none",
    "sim testbed status": "{here}/none",
    "sim testbed usage": "{here}/none",
    "sim testbed kill": "{here}/none oss1",
    "sim testbed revive": "{here}/none oss1",
    "sim testbed exec": "{here}/none -- true",
    "sim testbed env": "{here}/none",
}
"""Those that ask no daemon: once is enough."""
for found in brought("states", "ARGUMENTS"):
    ARGUMENTS |= found
for found in brought("states", "STUDIES"):
    STUDIES |= found


def leaves(parser: argparse.ArgumentParser, words: str = "") -> Iterator[tuple[str, bool]]:
    """Every command that does something, as the parser has it, and whether it takes --json."""
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if words and not any(action.required for action in verbs):
        yield words, "--json" in parser._option_string_actions
    for action in verbs:
        for verb, below in action.choices.items():
            yield from leaves(below, f"{words} {verb}".strip())


STATES = ("no daemon", "a silent daemon", "a late plan", "an empty history")
FULL = "nothing can be written"
NO_STREAMS = "no standard input and output"
WAYS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    FULL: ({}, {"out": "/dev/full"}),
    NO_STREAMS: ({}, {"closed": True}),
    "a narrow terminal without UTF-8": ({"COLUMNS": "20", "LC_ALL": "C"}, {"encoding": "ascii"}),
}
"""How each command is called with all daemons there: its environment, and the rest of `Command`."""
if os.geteuid() == 0 and interpreter(UNKNOWN) == sys.executable and not path_of_tarazu(UNKNOWN):
    WAYS["settings that cannot be read"] = {}, {"nobody": True}
    WAYS["without a home"] = {"TARAZU_CONFIG": os.devnull, "HOME": ""}, {"nobody": True}
LATE = """
import os, pathlib, signal, sys, time
mount, late = pathlib.Path(sys.argv[1]), sys.argv[2:]
for number in range(2):
    (mount / f"file.{number}").unlink(missing_ok=True)
    (mount / f"file.{number}").write_bytes(bytes(1 << 20))
for mdsd in late:
    os.kill(int(mdsd), signal.SIGCONT)
while late and not list(pathlib.Path(os.environ["TARAZU_MAP"]).glob("map.*")):
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ended]]:
    """State and command → what came of it. On the first client a plan came too late, the second has no history."""
    directory = tmp_path_factory.mktemp("states")
    bed = testbeds.up(directory / "tb", osss=2, osts_per_oss=2, clients=2)
    with ExitStack() as stack:
        stack.callback(testbeds.down, bed.directory)
        configure(bed, {"layout": {"min_size": 0}, "run": {"wait_s": 0}})
        bed.start_daemons()
        wait_until_ready(bed)
        (bed.client_mount(0) / "app").mkdir()
        mdsd = processes.running(bed.directory, "tarazu-mdsd")
        assert mdsd
        for more in ((), (str(mdsd),)):
            if more:
                os.kill(mdsd, signal.SIGSTOP)  # the program lets it go on when its files are there
            program = [sys.executable, "-c", LATE, str(bed.client_mount(0) / "app"), *more]
            bed.exec(0, demo.tarazu_command("run", "--app", "app", "--", *program), timeout=240)
        assert "why='too late" in (bed.directory / "home" / "jobs.log").read_text()
        takes_json = dict(leaves(cli.command("")))
        commands = {}
        for state in STATES:
            environ, here = state_of(state, bed, directory, stack)
            for name, line in (ARGUMENTS | (STUDIES if state == STATES[0] else {})).items():
                words = line.format(here=here, mount=environ["TESTBED_MOUNT"])
                for option in ("", "--json") if takes_json[name] and state in STATES[2:] else ("",):
                    commands[f"{state}: {name} {option}"] = Command(f"{name} {option} {words}", environ)
                for way, (more, how) in WAYS.items() if state == STATES[2] else ():
                    own = {word: value for word, value in (environ | more).items() if value}
                    commands[f"{way}: {name}"] = Command(f"{name} {words}", own, **how)
        stack.callback(testbeds.down, directory / STATES[0].replace(" ", "-") / "testbed")
        driver = subprocess.run(
            [sys.executable, "-m", "tests.cli.driver"],
            input=json.dumps(commands),
            env=os.environ | bed.environment(0),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        yield {name: Ended(*ended) for name, ended in json.loads(driver.stdout).items()}


def state_of(
    state: str, bed: testbeds.Testbed, directory: Path, stack: ExitStack
) -> tuple[dict[str, str], Path]:
    """The environment of a command there, and a directory of its own."""
    here = directory / state.replace(" ", "-")
    (here / "bin").mkdir(parents=True)
    (here / "bin" / "sbatch").symlink_to("/bin/true")
    environ = os.environ | bed.environment(int(state != STATES[2]))
    environ["PATH"] = f"{here / 'bin'}:{environ['PATH']}"
    if state == STATES[2]:
        return environ, here
    environ["TARAZU_RUN_STATE_DIR"] = str(here / "state")
    if state == STATES[3]:
        return environ, here
    for name in ("TARAZU_CLIENTD_SOCKET", "TARAZU_PART_BURSTS_SOCKET"):
        environ[name] = str(here / name)
        if state == STATES[1]:
            silent = stack.enter_context(socket.socket(socket.AF_UNIX))
            silent.bind(environ[name])
            silent.listen(200)
    for name in ("TARAZU_MDSD_REQUESTS", "TARAZU_MDSD_STATISTICS", *chain(*brought("states", "ADDRESSES"))):
        environ[name] = f"tcp://127.0.0.1:{processes.free_port()}"
        if state == STATES[1]:
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=200))
            environ[name] = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
    return environ, here


def test_every_command_has_a_row() -> None:
    assert sorted(name for name, _ in leaves(cli.command(""))) == sorted(ARGUMENTS | STUDIES)


@pytest.mark.parametrize("state", (*STATES, *WAYS))
def test_no_command_shows_a_traceback(state: str, driven: dict[str, Ended]) -> None:
    problems = {}
    # What was refused has its lines before the one that says that nothing can be written.
    lines = {FULL: range(1, 100), NO_STREAMS: range(100)}.get(state, range(1, 2))
    for name, ended in driven.items():
        if name.startswith(f"{state}: ") and (
            ended.status not in (0, 1, 2, 3)
            or any(word in ended.err for word in ("Traceback", "a mistake of tarazu's"))
            or (ended.status and not ended.out and ended.err.count("\n") not in lines)
        ):
            problems[name] = ended
    assert not problems


def test_what_nobody_thought_of_is_a_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: argparse.Namespace) -> int:
        raise KeyError("no such\nthing")

    monkeypatch.setattr("tarazu.cli.config.execute", broken)
    assert cli.main(["config"]) == 1
    expected = "tarazu config: KeyError: 'no such\\nthing' (a mistake of tarazu's: --debug shows where)\n"
    assert capsys.readouterr().err == expected
    with pytest.raises(KeyError):
        cli.main(["config", "--debug"])


def test_what_a_terminal_has_no_characters_for_is_written_out() -> None:
    """`UnicodeEncodeError`; and bytes of a name that is not UTF-8 come out as they are."""
    text = "cli.top_help = lambda: '\\u2192 \\udcff\\n'"
    code = f"import sys\nfrom tarazu import cli\n{text}\nsys.exit(cli.main(['help']))"
    environ = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\\u2192 \xff\n", b"")
