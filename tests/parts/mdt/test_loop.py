"""`tarazu change mdt` on the testbed's three MDTs: what root sets, an ordinary user's directories follow; and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.model import JobStep
from tarazu.parts.changes.model.outcome import HOUR_S, Hours
from tarazu.parts.mdt.model import Mdt
from tarazu.sim.testbed import Testbed, down, up
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord, RunRecord
from tests.preload.conftest import LIBRARIES
from tests.testbed.conftest import memory_directory  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root sets defaults")
USER: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}


@pytest.fixture(scope="module")
def bed(memory_directory: Path) -> Iterator[Testbed]:  # noqa: F811
    os.environ["TESTBED_LIB_DIR"] = str(LIBRARIES)  # the checkout may be nobody else's to read
    made = up(memory_directory / "mdt-defaults", osss=1, osts_per_oss=2, clients=1, mdts=3, interval_s=0.5)
    yield made
    down(made.directory)


class Client:
    def __init__(self, bed: Testbed, root: Path) -> None:
        self.bed, self.root = bed, root
        (root / "tarazu.toml").write_text(f'[run]\nstop_file = "{root}/stop"\nstate_dir = "{root}/home"\n')
        sizes = (10**12, 9 * 10**11, 10**8, 9 * 10**7)
        mdts = tuple(Mdt(i, "mds", *sizes, busy, 0.001) for i, busy in enumerate((900.0, 50.0, 0.0)))
        view = {"mdsd": {"parts": {"mdt": {"file_systems": {"lustre": mdts}}}}}
        (root / "view.json").write_bytes(msgspec.json.encode(view))

    def sh(self, command: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.bed.exec(
            0, ["sh", "-c", command], cwd=self.bed.client_mount(), capture_output=True, text=True, **more
        )

    def change(self, *words: str, status: int = 0) -> Any:
        environment = {"TARAZU_STATE_DIRECTORY": str(self.root / "state"), "SUDO_USER": "anna"}
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tarazu",
                "change",
                *words,
                "--json",
                "--config",
                str(self.root / "tarazu.toml"),
            ],
            env=os.environ | self.bed.environment() | environment,
            cwd=self.bed.client_mount(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done
        return json.loads(done.stdout) if done.stdout else done.stderr

    def mdt(self, *words: str, status: int = 0) -> Any:
        return self.change("mdt", *words, "--view", str(self.root / "view.json"), status=status)

    def ran(self, project: str, creates: int) -> None:
        keys = [f"/{project}/run-1/{n}" for n in range(creates - 1)]
        files = tuple(FileRecord(key, key, key, 0, (0,), 0, 0, 0.0, 1) for key in keys)
        run = RunRecord(JobStep("lustre", 0, "app", "7"), 1.0, 1.0, "full", files)
        History(self.root / "home/history").append(run)

    def uneven(self) -> None:
        now = int(time.time() // HOUR_S)
        path = self.root / "state/tarazu-mdt/measures.json"
        path.parent.mkdir(parents=True, mode=0o700)
        hours = Hours({now - n: (2.5, 1.0) for n in range(1, 4)})
        path.write_bytes(msgspec.json.encode({"mdt  evenness": hours}))


@pytest.fixture
def client(bed: Testbed, tmp_path: Path) -> Iterator[Client]:
    made = Client(bed, tmp_path)
    made.sh(
        "lfs setdirstripe -D -c 1 -i -1 .; mkdir a; lfs mkdir -i 0 busy other; lfs setdirstripe -d busy other"
    )
    made.sh("chmod 777 busy other")
    yield made
    for index in range(3):
        bed.set_mdt(index, inactive=False)
    bed.clear()


def test_a_user_s_new_directories_go_where_root_has_said(bed: Testbed, client: Client) -> None:
    client.ran("other", 400)
    refused = client.sh("lfs mkdir -i 2 busy/mine", **USER)
    assert refused.returncode and "Operation not permitted" in refused.stderr
    client.sh("mkdir busy/before busy/before/sub", **USER)
    assert bed.mdt("busy/before") == 0
    client.uneven()
    (change,) = [
        c for c in client.mdt("--propose", "busy", "other")["changes"] if c["target"].endswith("/other")
    ]
    assert change["state"] == "proposed" and change["scores"][0]["before"] > change["scores"][0]["after"]
    client.change("approve", change["id"], "--reason", "as agreed")
    client.mdt("--propose", "busy", "other")
    chosen = int(client.sh("lfs getdirstripe -D -i other").stdout)
    assert chosen == 2
    client.sh("mkdir -p other/run-2/deep", **USER)
    assert [bed.mdt(name) for name in ("other/run-2", "other/run-2/deep")] == [chosen, chosen]
    assert client.change("undo", "--lever", "mdt")["agents"][0]["restored"]
    assert client.sh("lfs getdirstripe -D -R other").stdout.strip() == ""
    client.sh("mkdir other/run-3", **USER)
    assert bed.mdt("other/run-3") == 0


def test_a_new_project(bed: Testbed, client: Client) -> None:
    (command,) = client.mdt("--new", "--creates", "300", "bob")["commands"]
    assert command.startswith("lfs mkdir -i 2 -o 755 /") and command.endswith("/bob")
    client.mdt("--apply", "--new", "--creates", "300", "bob")
    assert bed.mdt("bob") == 2
    assert client.mdt("--undo")["restored"] and client.sh("ls -d bob").returncode
    client.change("apply")
    client.mdt("--apply", "--new", "--creates", "300", "bob")
    client.sh("touch bob/data")
    assert client.mdt("--undo")["left"] and client.sh("ls bob/data").returncode == 0


def test_an_mdt_that_is_away_gets_nothing(bed: Testbed, client: Client) -> None:
    """mdsd does not know yet."""
    bed.set_mdt(2, inactive=True)
    (failed,) = client.mdt("--apply", "--new", "--creates", "300", "bob", status=1)["failed"]
    assert "MDT 2: expected one that lfs mdts shows ACTIVE" in failed[1] or "No such device" in failed[1]
    assert client.sh("ls -d bob").returncode
