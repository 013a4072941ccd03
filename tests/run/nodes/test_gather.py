"""Spools of other nodes: how they come where a launcher prints nothing, or memory is full."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.run.nodes import gather
from tarazu.run.nodes.each_node import EachNode
from tarazu.run.nodes.framed import Frames
from tests.run.nodes.conftest import Node
from tests.waiting import until


def test_spools_of_a_launcher_without_output_come_through_the_directory(node: Node, tmp_path: Path) -> None:
    """As `pbsdsh`, whose processes write to the job's own streams."""
    spool = node.copy / "tarazu-0" / "step"
    spool.mkdir(parents=True)
    data = secrets.token_bytes(100_000)
    (spool / "n2.ended.tzs").write_bytes(data)
    dest = tmp_path / "dest"
    dest.mkdir()
    silent = EachNode(node.words, ("n2",), answers=False)
    assert gather.gather(silent, node.spool, tmp_path, dest, os.environ).problem == ""
    assert [p.read_bytes() for p in dest.glob("*.tzs")] == [data] and not spool.exists()
    spool.mkdir(parents=True)
    command = gather.collect_command(str(spool), tmp_path, Path("/nowhere"))
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"", b"") and spool.exists(), "a directory that is not shared"


@pytest.mark.parametrize("elsewhere", [True, False])
def test_spools_are_packed_where_there_is_room_and_go_where_there_is_none(
    tmp_path: Path, elsewhere: bool
) -> None:
    """Memory is full: temporary files go to another file system, or nothing comes and nothing stays."""
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    data = secrets.token_bytes(600 << 10)
    (tmp_path / "n2.ended.tzs").write_bytes(data)
    script = (
        f"mount -t tmpfs -o size=1M none {full} && mkdir {full}/step &&"
        f" cp {tmp_path}/n2.ended.tzs {full}/step || exit 77;"
        f'"$@"; ls {full} >&2'
    )
    command = gather.collect_command(f"{full}/step", tmp_path)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command],
        capture_output=True, check=False, env=os.environ | {"TMPDIR": str(other if elsewhere else full)},
    )  # fmt: skip
    if done.returncode:
        pytest.skip("needs the right to mount")
    frames = Frames(tmp_path)
    for line in done.stdout.splitlines():
        frames.take(line)
    frames.close()
    kinds = [answer.kind for answer in frames.answers]
    assert kinds == (["gz"] if elsewhere else ["failed"]) and done.stderr == b""
    assert [path.read_bytes() for path in tmp_path.glob("0.tzs")] == [data] * elsewhere
    assert list(other.iterdir()) == []


def test_a_launcher_beside_the_program_ends_with_a_leader_that_is_killed() -> None:
    code = (
        "import os\nfrom tarazu.run.nodes import each_node\n"
        "limits = each_node.CommandLimits(3600, 1 << 20)\n"
        "each = each_node.EachNode(('sh', '-c'), ())\n"
        "said = lambda line: os.write(1, line + b'\\n')\n"
        "each_node.run(each, ['echo $$; exec sleep infinity'], os.environ, said, limits)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as leader:
        assert leader.stdout
        pid = int(leader.stdout.readline())
        leader.kill()
    until(lambda: not Path(f"/proc/{pid}").exists())
