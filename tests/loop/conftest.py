"""A testbed with the real daemons, for tests of the whole loop."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.library import library_directory


class Loop:
    """A testbed, its daemons, and the `tarazu` command on its clients."""

    def __init__(self, testbed: testbeds.Testbed) -> None:
        self.testbed = testbed
        self.home = testbed.directory / "home"

    def mount(self, client: int = 0) -> Path:
        return self.testbed.client_mount(client)

    def tarazu(
        self, *words: object, client: int = 0, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """`tarazu WORDS…` on a client; output is captured."""
        argv = demo.tarazu_command(*map(str, words))
        options = {
            "capture_output": True,
            "text": True,
            "timeout": 120,
            "stdin": subprocess.DEVNULL,
            **options,
        }
        return self.testbed.exec(client, argv, env=env, **options)

    def run(
        self, *program: object, app: str, mode: str = "place", **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """`tarazu run` of a program, which must end with status 0 and print nothing on standard error."""
        done = self.tarazu("run", "--app", app, "--mode", mode, "--", *program, **options)
        assert (done.returncode, done.stderr) == (0, ""), (done, self.log())
        return done

    def json(self, *words: object, client: int = 0) -> Any:
        done = self.tarazu(*words, "--json", client=client)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def rows(self, app: str) -> list[dict[str, Any]]:
        """Files of the newest plan."""
        return self.json("history", "db", "show", "--app", app)["files"]

    def outcomes(self, app: str) -> dict[str, int]:
        """Of the newest run."""
        return self.json("history", "list", app)[-1]["outcomes"]

    def clear(self) -> None:
        """Remove what was written, once the servers have seen it."""
        self.testbed.refresh()
        self.testbed.clear()
        self.testbed.refresh()

    def configure(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Change the configuration and start the daemons anew."""
        processes.stop(self.testbed.directory, except_names={testbeds.SERVER})
        configure(self.testbed, patient(changes))
        self.testbed.start_daemons()
        wait_until_ready(self.testbed)

    def log(self) -> str:
        path = self.home / "tarazu.log"
        return path.read_text() if path.exists() else ""


def patient(changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The tests' machine may be busy: a plan that takes longer than the usual 2 s is no failure of theirs."""
    return {**changes, "run": {"wait_s": 120.0, **changes.get("run", {})}}


def make_loop(directory: Path, changes: Mapping[str, Mapping[str, Any]], **options: Any) -> Iterator[Loop]:
    testbed = testbeds.up(directory, **{"clients": 1, **options})
    try:
        configure(testbed, patient(changes))
        testbed.start_daemons()
        wait_until_ready(testbed)
        yield Loop(testbed)
        assert testbed.crashed() is None
    finally:
        testbeds.down(directory)


@pytest.fixture(scope="module")
def loop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """The module's CLIENTS (one) and CHANGES of settings; else stripe count 8, every file placed however small. Data
    are sparse. 35 OSTs as in the paper, but on one server: six more daemons to start would show nothing else.
    """
    usual = {"layout": {"stripe_count": "paper", "striping": "raid0", "min_size": 0}}
    changes = usual | getattr(request.module, "CHANGES", {})
    options = {"clients": getattr(request.module, "CLIENTS", 1), "osss": 1, "osts_per_oss": 35}
    yield from make_loop(tmp_path_factory.mktemp("loop") / "tb", changes, **options)


@pytest.fixture
def iorlike() -> Path:
    return library_directory() / "testbed" / "iorlike"
