"""`tarazu change mdt`: directories of projects on two MDTs, from what runs have created to what is set and undone."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.cli import main
from tarazu.model import JobStep
from tarazu.parts.changes.model.outcome import HOUR_S, Hours
from tarazu.parts.mdt import lever as levers
from tarazu.parts.mdt import lmv
from tarazu.parts.mdt.model import Mdt
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord, RunRecord
from tests.parts.mdt import lfs as lfs_mdt
from tests.parts.mdt.lever_case import SPREAD, MkdirCase

HOT = "-c 1 -i -1 -X 1 --max-inherit-rr 1"
"""One project alone makes MDT 0 the busiest: it is spread."""


class Client:
    """A node with `lfs`, three projects, and the histories of their owner; `busy`: creates in a second on each MDT."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.case = MkdirCase(root)
        self.scratch = self.case.scratch
        self.configuration = root / "tarazu.toml"
        self.configuration.write_text(
            f'[state]\ndirectory = "{root}/state"\n'
            f'[run]\nstop_file = "{root}/stop"\nstate_dir = "{root}/home"\n[clientd]\nsocket = "{root}/none"\n'
        )
        self.see(0.8, 0.0)

    def see(self, *busy: float, create_s: float = 0.001, **more: Any) -> None:
        """`create_s`: on the last one."""
        mdts = tuple(
            Mdt(
                index=i,
                server=f"mds{i}",
                total_bytes=10**12,
                avail_bytes=9 * 10**11,
                files_total=10**8,
                files_free=9 * 10**7,
                creates_per_s=1000 * each,
                create_s=create_s if i == len(busy) - 1 else 0.001,
                **more,
            )
            for i, each in enumerate(busy)
        )
        view = {"mdsd": {"parts": {"mdt": {"file_systems": {"lustre": mdts}}}}}
        (self.root / "view.json").write_bytes(msgspec.json.encode(view))

    def ran(self, project: str, creates: int) -> None:
        """A run that made a directory, and files in it."""
        keys = [f"/{project}/run-1/{n}" for n in range(creates - 1)]
        files = tuple(FileRecord(key, key, key, 0, (0,), 0, 0, 0.0, 1) for key in keys)
        step = JobStep("lustre", os.getuid(), f"app-{project}", "7")
        History(self.root / "home/history").append(RunRecord(step, 1.0, 1.0, "full", files))

    def uneven(self, hours: int) -> None:
        """As if a timer had looked before."""
        now = int(time.time() // HOUR_S)
        sums = {now - n: (1.9, 1.0) for n in range(1, hours + 1)}
        store = self.case.root / "state/tarazu-mdt/measures.json"
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_bytes(msgspec.json.encode({"mdt  evenness": Hours(sums)}))

    def __call__(self, *words: str) -> tuple[int, str, str]:
        status = main(["change", *words, "--config", str(self.configuration)])
        said = self.capsys.readouterr()
        return status, said.out, said.err

    def mdt(self, *words: str, project: str = "one") -> Any:
        view = (
            () if "--undo" in words else (str(self.scratch / project), "--view", str(self.root / "view.json"))
        )
        status, out, err = self("mdt", *words, *view, "--json")
        return json.loads(out) if out else (status, err)

    def default(self, project: str = "one") -> str:
        return lmv.words_of(lfs_mdt.of(self.scratch / project, self.root)[1])


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Client:
    if os.geteuid() != 0:
        pytest.skip("root sets defaults")
    made = Client(tmp_path, capsys)
    for name, value in made.case.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TARAZU_MOUNTS", f"{made.scratch}=lustre")
    monkeypatch.setenv("SUDO_USER", "anna")
    monkeypatch.setattr(levers, "own_default_lmv", lambda path: lfs_mdt.of(path, tmp_path)[1])
    return made


def test_advise_says_what_moves_what_it_gives_and_changes_nothing(client: Client) -> None:
    client.ran("one", 600)
    before = client.case.now()
    found = client.mdt()
    (choice,) = found["choices"]
    assert choice["words"] == HOT and choice["moves_per_s"] == 600
    times = [choice[name] for name in ("before_s", "lustre_s", "after_s", "bound_s")]
    assert times == pytest.approx([0.8, 0.8, 0.5, 0.4]), "200 a second of others stay on MDT 0"
    assert found["commands"] == [f"lfs setdirstripe -D {HOT} {client.scratch}/one"]
    assert found["unevenness"] == 2.0 and not found["lasted"]
    assert client.case.now() == before and not (client.root / "state").exists()
    status, out, _ = client("mdt", str(client.scratch / "one"), "--view", str(client.root / "view.json"))
    assert status == 0 and f"lfs setdirstripe -D {HOT}" in out and "busiest MDT 2 times the mean" in out


def test_proposed_approved_set_and_undone(client: Client) -> None:
    client.ran("one", 600)
    before = client.case.now()
    assert client.mdt("--propose")["changes"] == [], "not before it has lasted"
    client.uneven(1)
    assert client.mdt("--propose")["changes"] == [], "nor before three hours, of which this is one"
    client.uneven(2)
    (change,) = client.mdt("--propose")["changes"]
    assert (change["state"], change["lever"], change["scores"][0]["measure"]) == ("proposed", "mdt", "time")
    assert change["commands"] == [f"lfs setdirstripe -D {HOT} {client.scratch}/one"]
    assert client.case.now() == before
    assert client("approve", change["id"], "--reason", "as agreed")[0] == 0
    assert client.mdt("--propose")["set"][0]["wanted"] == {"": HOT}
    assert client.default() == HOT
    client.see(0.0, 0.0)
    assert client.mdt("--propose")["looked"]["lasted"], "an idle moment says nothing"
    # The MDTs are even now, by it: it stays.
    client.see(0.4, 0.4)
    found = client.mdt("--propose")
    assert [c["state"] for c in found["changes"]] == ["set"] and client.default() == HOT
    assert found["looked"]["choices"][0]["why"] == "tarazu has set it"
    assert client("undo", change["id"])[0] == 0
    assert client.case.now() == before
    client.see(0.8, 0.0)
    assert "taken back by anna" in str(client.mdt("--propose"))
    assert client.case.now() == before


def test_apply_by_its_id_and_undo_of_the_verb(client: Client) -> None:
    client.ran("one", 600)
    client.uneven(3)
    (change,) = client.mdt("--propose")["changes"]
    assert client("apply", change["id"])[0] == 0 and client.default() == HOT
    assert [each["change"]["wanted"] for each in client.mdt("--undo")["restored"]] == [{"": HOT}]
    assert client.default() == ""
    assert client.mdt("--apply")[0] == 1, "held until tarazu change apply"
    assert "nothing is set again until `tarazu change apply`" in client("mdt", "--undo")[1]
    assert client("apply")[0] == 0 and client.mdt("--apply")["set"]


def test_what_stood_there_comes_back_exactly(client: Client) -> None:
    """The second project has a default of its own, which Lustre chooses by; here with a slow MDT 1."""
    client.ran("two", 800)
    client.see(0.4, 0.4, create_s=0.01)
    before = client.case.now()
    (change,) = client.mdt("--apply", project="two")["set"]
    assert change["wanted"] == {"": "-c 1 -i 0"} and client.default("two") == "-c 1 -i 0"
    lfs_mdt.make(client.scratch / "two/made-later", client.root)
    client.mdt("--undo")
    assert (
        client.default("two") == SPREAD
        and client.default("two/made-later") == "-c 1 -i -1 --max-inherit-rr 2"
    )
    shutil.rmtree(client.scratch / "two/made-later")
    assert client.case.now() == before


def test_somebody_else_s_default_stays(client: Client) -> None:
    client.ran("one", 600)
    client.mdt("--apply")
    client.case._set("one", "-c 1 -i 0")
    (left,) = client.mdt("--undo")["left"]
    assert left["theirs"] == {f"{client.scratch}/one": "-c 1 -i 0"} and client.default() == "-c 1 -i 0"
    assert "somebody has chosen its MDT" in client.mdt()["choices"][0]["why"]


def test_a_new_directory_is_made_and_removed_while_nobody_has_used_it(client: Client) -> None:
    found = client.mdt("--new", "--creates", "100", project="alice")
    assert found["commands"] == [f"lfs mkdir -i 1 -o 755 {client.scratch}/alice"]
    assert found["choices"][0]["lustre_s"] == pytest.approx(0.9)
    client.mdt("--apply", "--new", "--creates", "100", project="alice")
    alice = client.scratch / "alice"
    assert lfs_mdt.of(alice, client.root)[0] == 1 and alice.stat().st_mode & 0o777 == 0o755
    assert client.mdt("--new", project="alice")["choices"][0]["why"] == "tarazu has set it"
    assert len(client.mdt("--undo")["restored"]) == 1 and not alice.exists()
    client("apply")
    client.mdt("--apply", "--new", "--creates", "100", project="alice")
    os.chown(alice, 12345, 12345)
    assert len(client.mdt("--undo")["left"]) == 1 and alice.is_dir()


def test_an_mdt_that_lfs_does_not_show_active_is_sent_nothing(client: Client) -> None:
    """mdsd may not know yet: MDT 2 is away."""
    client.see(0.5, 0.5, 0.0)
    (why,) = client.mdt("--apply", "--new", "--creates", "100", project="bob")["failed"]
    assert "MDT 2: expected one that lfs mdts shows ACTIVE (0, 1)" in why[1]
    assert not (client.scratch / "bob").exists()


def test_why_nothing_is_done(client: Client) -> None:
    assert "no recorded creates" in client.mdt()["choices"][0]["why"]
    client.uneven(3)
    (cannot,) = client.mdt("--propose")["changes"]
    assert (cannot["state"], cannot["target"]) == ("cannot mend", "lustre")
    assert "no directory's default helps" in cannot["why"]
    client.see(0.8, 0.0, active=False)
    client.ran("one", 600)
    assert client.mdt()["choices"][0]["why"] == "0 of 2 MDTs can take directories"


def test_while_the_site_is_stopped_nothing_is_set_and_what_is_set_stays(client: Client) -> None:
    client.ran("one", 600)
    client.mdt("--apply")
    (client.root / "stop").write_text("stopped by a test\n")
    for action in ("--apply", "--propose"):
        status, why = client.mdt(action, project="three")
        assert status == 1 and "stopped" in why
    assert client.default() == HOT
    assert len(client.mdt("--undo")["restored"]) == 1 and client.default() == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "expected a directory, found 'none'"),
        (("/nowhere",), "expected directories on one Lustre file system"),
        (("{scratch}/none",), "expected a directory, found 'nothing'"),
        (("{scratch}/one", "--user", "no-such-user"), "expected the name of a user"),
        (("{scratch}/one", "--view", "{root}/tarazu.toml"), "expected the output of `tarazu status --json`"),
        (("--new", "{scratch}/none/x"), "expected a directory, found 'nothing'"),
    ],
)
def test_bad_input_is_one_line(client: Client, words: tuple[str, ...], expected: str) -> None:
    named = [word.format(scratch=client.scratch, root=client.root) for word in words]
    view = () if "--view" in words else ("--view", str(client.root / "view.json"))
    status, out, err = client("mdt", *named, *view)
    assert status == 2 and expected in err and err.count("\n") == 1 and not out


def test_a_file_system_with_one_mdt(client: Client) -> None:
    client.see(0.5)
    status, err = client.mdt()
    assert status == 2 and "expected two MDTs at least" in err
