"""What a real sacct prints of a real database: times, separators, users who are in no account."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.batch.slurm import Slurm
from tarazu.sim.testbed.processes import free_port
from tests.store.conftest import INSTALL, SERVER, Server

NEEDED = ("munged", "slurmdbd", "sacct", "sacctmgr")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
NOT_HERE = [name for name in NEEDED if shutil.which(name, path=_PATH) is None]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(NOT_HERE) or SERVER is None or INSTALL is None or os.geteuid() != 0,
        reason=f"needs root, MariaDB and Slurm's accounting (Debian: slurmdbd), not found: {NOT_HERE}",
    ),
]
PATIENCE_S = 300.0
NAME = "a|b\n9|root"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cursor of the database that slurmdbd serves; Slurm's commands ask that."""
    pymysql = pytest.importorskip("pymysql")
    for name in ("db", "munge"):
        (tmp_path / name).mkdir()
    server, port, own_port = Server(tmp_path / "db"), free_port(), free_port()
    server.install()
    server.start("--skip-networking=0", f"--port={port}", "--bind-address=127.0.0.1")
    munge = tmp_path / "munge"
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o600)
    auth = f"AuthType=auth/munge\nAuthInfo=socket={munge}/socket\nSlurmUser=root\n"
    (tmp_path / "slurm.conf").write_text(
        f"{auth}ClusterName=test\nSlurmctldHost=localhost\nStateSaveLocation={tmp_path}\nNodeName=n[1-2]\n"
        f"PartitionName=test Nodes=ALL\nAccountingStorageType=accounting_storage/slurmdbd\n"
        f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={own_port}\nAccountingStoragePass={munge}/socket\n"
    )
    (tmp_path / "slurmdbd.conf").write_text(
        f"{auth}DbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={own_port}\nLogFile={tmp_path}/slurmdbd.log\n"
        f"PidFile={tmp_path}/slurmdbd.pid\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n"
        f"StoragePort={port}\nStorageUser=slurm\nStoragePass=x\nStorageLoc=acct\n"
    )
    (tmp_path / "slurmdbd.conf").chmod(0o600)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setenv("PATH", _PATH)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munged = ["munged", "--foreground", "--force", *(f"--{o}={munge / f}" for o, f in files.items())]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = []
    try:
        with contextlib.closing(
            pymysql.connect(unix_socket=str(server.socket), user="root", autocommit=True)
        ) as made:
            cursor = made.cursor()
            cursor.execute("CREATE USER slurm@'%' IDENTIFIED BY 'x'")
            cursor.execute("GRANT ALL ON *.* TO slurm@'%'")
            for command in (munged, ["slurmdbd", "-D"]):
                processes.append(subprocess.Popen(command, **quiet))  # type: ignore[call-overload]
            deadline = time.monotonic() + PATIENCE_S
            add = ["sacctmgr", "-i", "add", "cluster", "test"]
            while subprocess.run(add, check=False, timeout=PATIENCE_S, **quiet).returncode:  # type: ignore[call-overload]
                assert time.monotonic() < deadline, (tmp_path / "slurmdbd.log").read_text()
                time.sleep(0.3)
            cursor.execute("USE acct")
            yield cursor
    finally:
        for process in processes:
            process.terminate()
            process.wait(PATIENCE_S)
        server.stop()


def test_sacct_of_a_database(database: Any) -> None:
    database.execute("SHOW COLUMNS FROM test_job_table")
    needed = [c[0] for c in database.fetchall() if c[2] == "NO" and c[4] is None and "auto" not in c[5]]
    now = int(time.time())
    job = {"id_job": 7, "job_name": NAME, "nodelist": "n[1-2]", "nodes_alloc": 2, "partition": "test"}
    job |= {"time_submit": now - 100, "time_start": now - 90, "time_end": now - 30, "state": 3}
    running = {**job, "id_job": 8, "job_name": "run", "time_end": 0, "state": 1}
    pending = {**job, "id_job": 9, "time_end": 0, "time_start": 0, "state": 0, "nodelist": "None assigned"}
    for row in (job, running, pending):
        whole = {**dict.fromkeys(needed, 0), "time_eligible": now - 100, **row}
        columns, marks = ",".join(f"`{name}`" for name in whole), ",".join(["%s"] * len(whole))
        database.execute(f"INSERT INTO test_job_table ({columns}) VALUES ({marks})", list(whole.values()))
    listed = Slurm().ended(now - 3600)
    assert [(j.id, j.user, j.name, j.nodes, j.start_s, j.end_s) for j in listed.jobs] == [
        ("7", "root", NAME, ("n1", "n2"), now - 90, now - 30),
        ("8", "root", "run", ("n1", "n2"), now - 90, math.inf),
    ]
    assert not listed.left
