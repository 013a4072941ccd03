"""Databases to run the contract tests against: SQLite, and a private MariaDB server where one is installed."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = shutil.which("mariadbd") or next(
    (p for p in ("/usr/sbin/mariadbd", "/usr/sbin/mysqld") if os.path.exists(p)), None
)
INSTALL = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")


class Server:
    """A MariaDB server of our own, without network."""

    def __init__(self, root: Path) -> None:
        self.root, self.socket = root, root / "s.sock"
        self._common = ["--no-defaults", f"--datadir={root / 'data'}", f"--user={getpass.getuser()}"]
        self._process: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        assert INSTALL is not None
        words = [INSTALL, *self._common, "--auth-root-authentication-method=normal", "--skip-test-db"]
        done = subprocess.run(words, check=False, capture_output=True, text=True, errors="replace")
        if done.returncode:
            pytest.fail(f"{INSTALL}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}")

    def start(self, *options: str) -> None:
        assert SERVER is not None
        self.socket.unlink(missing_ok=True)
        own = [f"--socket={self.socket}", "--skip-networking", f"--pid-file={self.root / 'pid'}", *options]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen([SERVER, *self._common, *own], stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while not self._listens() and self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if not self._listens():
            pytest.fail(f"mariadbd did not start: {(self.root / 'log').read_text()[-2000:]}")

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as end:
            return end.connect_ex(str(self.socket)) == 0

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(120)


def _server(root: Path) -> Server:
    if SERVER is None or INSTALL is None or shutil.which("my_print_defaults") is None:
        pytest.skip("MariaDB is not installed (Debian: mariadb-server-core, mariadb-client-core)")
    pytest.importorskip("pymysql")
    server = Server(root)
    server.install()
    return server


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a server that nobody stops."""
    server = _server(tmp_path_factory.mktemp("mariadb"))
    server.start()
    yield server.socket
    server.stop()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests kill and start again; it runs between them."""
    server = _server(tmp_path_factory.mktemp("killed"))
    server.start()
    yield server
    server.stop()
