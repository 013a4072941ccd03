"""Databases to run the contract tests against: SQLite, and a private MariaDB server where one is installed."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = shutil.which("mariadbd") or next(
    (p for p in ("/usr/sbin/mariadbd", "/usr/sbin/mysqld") if os.path.exists(p)), None
)
INSTALL = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a server of our own, without network; stopped afterwards."""
    if SERVER is None or INSTALL is None or shutil.which("my_print_defaults") is None:
        pytest.skip("MariaDB is not installed (Debian: mariadb-server-core, mariadb-client-core)")
    pytest.importorskip("pymysql")
    root = tmp_path_factory.mktemp("mariadb")
    data, socket = root / "data", root / "s.sock"
    user = getpass.getuser()
    common = ["--no-defaults", f"--datadir={data}", f"--user={user}"]
    subprocess.run(
        [INSTALL, *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
        check=True,
        capture_output=True,
    )
    log = (root / "log").open("wb")
    server = subprocess.Popen(
        [SERVER, *common, f"--socket={socket}", "--skip-networking", f"--pid-file={root / 'pid'}"],
        stdout=log,
        stderr=log,
    )
    try:
        for _ in range(300):
            if socket.exists() or server.poll() is not None:
                break
            time.sleep(0.1)
        if not socket.exists():
            pytest.fail(f"mariadbd did not start: {(root / 'log').read_text()[-2000:]}")
        yield socket
    finally:
        server.terminate()
        server.wait(30)
        log.close()
