"""`tarazu doctor collect`: what a node gives, as root and as an ordinary user, and on a node without Lustre."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.cli import main

DATA = Path(__file__).parent.parent / "data" / "lustre"
NOBODY = 65534


def collect(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> tuple[int, str]:
    status = main(["doctor", "collect", "--root", str(root), *words])
    return status, capsys.readouterr().out


def test_every_source_of_an_oss_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = collect(capsys, DATA / "oss", "--dump")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == f"OSS below {DATA / 'oss'}, Lustre of unknown version"
    assert lines[-1] == "not read of what this node should have: nothing"
    jobs = "proc/fs/lustre/obdfilter/lustre-OST0001/job_stats"
    assert f"  lustre-OST0001: {jobs} [2.16 and later: histograms]: 4 jobs: ior.0, chown.0, 4711, …" in lines
    most = "3 clients; most: 192.168.77.21@tcp 60850176 bytes, 192.168.77.22@tcp 0 bytes"
    assert any("exports/192.168.77.10@tcp/stats" in line and most in line for line in lines)


def test_every_source_of_an_mds_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = collect(capsys, DATA / "versions/2.12-ldiskfs/mds", "--dump", "--json")
    found = json.loads(out)
    assert status == 0 and found["roles"] == ["mds"] and found["missing"] == []
    refusing = {
        s["device"]: s["parsed"] for s in found["sources"] if s["parameter"] == "osp.*.prealloc_status"
    }
    assert refusing["scratch-OST0002-osc-MDT0000"] == "refuses: ENOSPC"
    assert refusing["scratch-OST0000-osc-MDT0000"] == "takes new objects"


def test_a_report_without_dump(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarazu.cli.collect.INTERVAL_S", 0.01)
    status, out = collect(capsys, DATA / "versions/2.16-zfs/oss")
    assert status == 0 and "scratch-OST0003: 25.0% of 0.0 GB used" in out and "timed by ost_io" in out
    status, out = collect(capsys, DATA / "versions/2.16-zfs/oss", "--json")
    assert [o["index"] for o in json.loads(out)["osts"]] == [3, 4]


def test_what_mdsd_would_see(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tarazu.cli.collect.INTERVAL_S", 0.01)
    root = DATA / "versions/2.12-ldiskfs/mds"
    status, out = collect(capsys, root)
    assert status == 0 and "scratch-OST0002: full: prealloc_status ENOSPC" in out.splitlines()
    assert "scratch-MDT0000: " in out and not caplog.messages, "nothing of an OSS is missed here"
    status, out = collect(capsys, root, "--json")
    assert json.loads(out)["problems"]["scratch-OST0002"] == "full: prealloc_status ENOSPC"


def test_bytes_that_could_not_be_read_are_not_zero(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tarazu.cli.collect.INTERVAL_S", 0.01)
    root = shutil.copytree(DATA / "oss", tmp_path / "oss")
    shutil.rmtree(root / "sys/kernel/debug")
    status, out = collect(capsys, root)
    assert status == 1 and "written and read: unknown" in out and "written 0" not in out


def test_a_node_without_lustre(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    for name in ("stat", "meminfo"):
        shutil.copy(DATA / "oss/proc" / name, tmp_path / "proc")
    status, out = collect(capsys, tmp_path, "--dump")
    assert status == 3
    assert out.splitlines()[0] == f"no Lustre server or client: no target, MDT or mount below {tmp_path}"


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A copy of an OSS whose debugfs only root may search, seen by someone else."""
    directory = Path(tempfile.mkdtemp(prefix="tarazu-collect-"))
    root = Path(shutil.copytree(DATA / "oss", directory / "oss"))
    directory.chmod(0o755)
    debugfs = root / "sys/kernel/debug"
    was_root = os.geteuid() == 0
    try:
        debugfs.chmod(0o700 if was_root else 0)
        if was_root:
            os.seteuid(NOBODY)
        yield root
    finally:
        if was_root:
            os.seteuid(0)
        debugfs.chmod(0o755)
        shutil.rmtree(directory)


def test_an_ordinary_user_is_told_what_is_closed(
    capsys: pytest.CaptureFixture[str], ordinary_user: Path
) -> None:
    status, out = collect(capsys, ordinary_user, "--dump")
    assert status == 1
    why = f"no permission to look into {ordinary_user}/sys/kernel/debug"
    lines = out.splitlines()
    assert (
        lines[lines.index("obdfilter.*.stats   bytes, requests and times of each OST") + 1]
        == f"  NOT READ: {why}"
    )
    assert "  lustre-OST0000: sys/fs/lustre/obdfilter/lustre-OST0000/kbytesfree: 933184" in lines
    closed = "lnet.stats, obdfilter.*.stats, osd-*.*.brw_stats, ost.OSS.ost_io.stats"
    assert lines[-1] == f"not read of what this node should have: {closed}"


def test_a_client_is_told_what_it_sees(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("10.0.0.1@tcp:/scratch /mnt/scratch lustre rw 0 0\n")
    active = tmp_path / "sys/fs/lustre/osc/scratch-OST0000-osc-ffff8880/active"
    active.parent.mkdir(parents=True)
    active.write_text("1\n")
    _, out = collect(capsys, tmp_path, "--dump")
    assert "client below" in out and "/mnt/scratch: proc/mounts: scratch: 1 of 1 OST active, 0 pools" in out
