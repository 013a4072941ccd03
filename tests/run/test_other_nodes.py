"""Nodes that do not share the map directory: what is sent to them, and what the job's line says."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tarazu import native
from tarazu.config import Run
from tarazu.errors import TarazuError
from tarazu.lustre import EOF
from tarazu.model import Component, JobStep, Layout
from tarazu.run import filesystems, gather, nodes, openmpi, sending
from tarazu.run.framed import Frames
from tarazu.run.others import OtherNodes
from tarazu.store.control import announce, read_control, write_control
from tarazu.store.placement_map import MapRow, write_map

LAYOUT = Layout((Component(0, EOF, 1 << 20, 2),))


def write_maps(directory: Path, rows: int) -> None:
    """Two generations of a map of so many rows."""
    write_control(directory)
    for generation in (1, 2):
        write_map(
            directory / f"map.{generation}", generation=generation, hash_key=bytes(16),
            ost_counts={"lustre": 8}, rows=[row(f"/{generation}/{i}") for i in range(rows)],
        )  # fmt: skip
        announce(directory, generation)


def row(key: str) -> MapRow:
    names = native.template(key, rank=-1)
    precise, loose, volatile = names.precise, names.loose, names.volatile
    return MapRow("lustre", key, precise, loose, volatile, -1, 0, 0, 7, LAYOUT, ((3, 1),), (True,))


class Node:
    """A "node" with a /dev/shm of its own and nothing of the leader's but `program`."""

    def __init__(self, tmp: Path) -> None:
        self.spool = f"{tmp}/shm/tarazu-0/step"
        self.map = Path(f"{self.spool}/map")
        self.map.mkdir(parents=True)
        (Path(self.spool) / gather.LEADERS).touch()
        self.copy = tmp / "node2"
        self.copy.mkdir()
        # What is mounted over the leader's is what stays when the command has ended.
        script = 'mount --bind "$0" "$1" && shift && exec "$@"'
        self.words = ("unshare", "--mount", "sh", "-c", script, str(self.copy), f"{tmp}/shm")

    def each(self, feeds_all: bool) -> nodes.EachNode:
        return nodes.EachNode(self.words, ("n2",), feeds_all=feeds_all)

    @property
    def received(self) -> Path:
        return self.copy / "tarazu-0" / "step" / "map"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    if subprocess.run([*made.words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    yield made


@pytest.mark.parametrize("feeds_all", [True, False])
def test_the_first_map_comes_to_a_node_that_has_no_map_directory(node: Node, feeds_all: bool) -> None:
    write_maps(node.map, 500)
    frames = sending.send(node.each(feeds_all), node.spool, node.map, 1, os.environ, 20.0)
    assert [(a.kind, a.answer) for a in frames.answers] == [("got", "yes")]
    assert (node.received / "map.1").read_bytes() == (node.map / "map.1").read_bytes()
    assert read_control(node.received) == (1, None, None), "a later map is not there"
    assert sorted(p.name for p in node.received.iterdir()) == ["control", "map.1"]
    for directory in (node.received, node.received.parent, node.received.parent.parent):
        assert directory.stat().st_mode & 0o777 == 0o700
    again = sending.send(node.each(feeds_all), node.spool, node.map, 1, os.environ, 20.0)
    assert [a.kind for a in again.answers] == ["refused"], "two processes on one node"


@pytest.mark.parametrize("kind", ["writable", "symlink", "somebody's"])
def test_a_planted_directory_is_refused(node: Node, kind: str) -> None:
    write_maps(node.map, 1)
    parent = node.copy / "tarazu-0"
    if kind == "symlink":
        (node.copy / "other").mkdir()
        parent.mkdir()
        (parent / "step").symlink_to("../other")
    else:
        parent.mkdir()
        (parent / "step").mkdir()
        if kind == "writable":
            parent.chmod(0o777)
        else:
            os.chown(parent / "step", 12345, 12345)
    frames = sending.send(node.each(True), node.spool, node.map, 1, os.environ, 20.0)
    assert [(a.kind, a.answer) for a in frames.answers] == [("refused", "no")]


def test_a_map_too_large_for_arguments_is_said_to_be(node: Node) -> None:
    write_maps(node.map, 1)
    (node.map / "map.2").write_bytes(bytes(sending.MOST_IN_ARGUMENTS + 1))
    with pytest.raises(TarazuError, match="KiB: unshare can send 512 KiB"):
        sending.send(node.each(False), node.spool, node.map, 2, os.environ, 20.0)
    assert sending.send(node.each(True), node.spool, node.map, 2, os.environ, 20.0).answers[0].kind == "got"


def others(maps: Path, each: nodes.EachNode | None) -> OtherNodes:
    made = OtherNodes(Run(), "place", ["app"], {}, maps)
    made._each = each
    return made


def test_the_line_names_who_does_not_share_and_who_missed_later_plans(node: Node, tmp_path: Path) -> None:
    write_maps(node.map, 10)
    (tmp_path / "control").touch()
    name = os.uname().nodename
    spool = node.copy / "tarazu-0" / "step"
    told = f"{tmp_path} is not shared by"

    def ended(
        made: OtherNodes, map_dir: Path, generation: int, *, lost: int = 0, recorded: bool = True
    ) -> list[str]:
        if recorded:
            spool.mkdir(parents=True, exist_ok=True)
            (spool / "n2.ended.tzs").write_bytes(b"some")
        step, dest = JobStep("lustre", 0, "app", "1", ranks=4), Path(tempfile.mkdtemp(dir=tmp_path))
        _, problem = made.gather(node.spool, Path(node.spool), map_dir, dest, step)
        assert (problem, spool.exists()) == ("", False), "fetching removes it"
        return made.problems(generation, lost)

    def made() -> OtherNodes:
        return others(tmp_path, node.each(True))

    assert ended(made(), node.map, 2) == [f"{told} {name} (run.map_dir)"]
    assert ended(made(), node.map, 2, lost=3, recorded=False) == [], "who ran nothing missed nothing"
    assert ended(made(), tmp_path, 2) == []
    for generation, problems in (
        (1, []),
        (2, [f"later plans did not reach {name}: {told} them (run.map_dir)"]),
    ):
        sent = made()
        sent.send(node.spool, node.map, 1, 20.0)
        assert ended(sent, node.map, generation) == problems
    late = made()
    with pytest.raises(TarazuError, match="no time was left"):
        late.send(node.spool, node.map, 1, 0.01)
    assert ended(late, node.map, 1) == [f"{told} {name} (run.map_dir), no time was left to send the plan"]


def test_where_nobody_can_be_asked_the_line_says_how_many_ranks_have_no_map() -> None:
    for each, whom in ((None, "the nodes of 3 ranks"), (nodes.EachNode(("false",), ("n2", "n3")), "n2, n3")):
        made = others(Path("/dev/shm/maps"), each)
        assert made.problems(1, 3) == [f"/dev/shm/maps is not shared by {whom} (run.map_dir)"]
        assert made.problems(1, 0) == made.problems(0, 3) == []


def test_spools_of_a_launcher_without_output_come_through_the_directory(node: Node, tmp_path: Path) -> None:
    """As `pbsdsh`, whose processes write to the job's own streams."""
    spool = node.copy / "tarazu-0" / "step"
    spool.mkdir(parents=True)
    data = secrets.token_bytes(100_000)
    (spool / "n2.ended.tzs").write_bytes(data)
    dest = tmp_path / "dest"
    dest.mkdir()
    silent = nodes.EachNode(node.words, ("n2",), answers=False)
    assert gather.gather(silent, node.spool, tmp_path, dest, os.environ).problem == ""
    assert [p.read_bytes() for p in dest.glob("*.tzs")] == [data] and not spool.exists()
    spool.mkdir(parents=True)
    command = gather.collect_command(str(spool), tmp_path, Path("/nowhere"))
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"", b"") and spool.exists(), "a directory that is not shared"


@pytest.mark.parametrize(
    ("line", "kind"),
    [("- nfs4 server:/home rw", "nfs4"), ("- ext4 /dev/sda1 rw", "ext4"), ("- lustre n@o:/fs rw", "lustre")],
)
def test_a_directory_is_of_the_kind_that_the_mounts_say(tmp_path: Path, line: str, kind: str) -> None:
    device = os.stat(tmp_path).st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    table.write_text(f"20 1 0:1 / / rw - rootfs none rw\n21 20 {numbers} / /a rw shared:1 {line}\n")
    assert filesystems.kind(tmp_path / "not" / "there", table) == kind
    table.write_text(f"20 1 0:1 / / rw - rootfs none rw\n21 20 0:9999 / {tmp_path.parent} rw {line}\n")
    assert filesystems.kind(tmp_path, table) == kind, "files of some have other device numbers"
    assert filesystems.kind(tmp_path, tmp_path / "none") == ""


def test_a_directory_of_this_node_is_known_as_one() -> None:
    assert filesystems.on_this_node_alone(Path("/dev/shm/none"))


FIRST, SECOND = openmpi.LIST, openmpi.SECOND_LIST
TUNED = "mca_base_envar_file_prefix"


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


LISTS: Sequence[tuple[str, dict[str, str], str | None]] = [
    ("mpirun -np 2 app", {}, "A;B"),
    ("mpirun.openmpi -np 2 app -x 5", {}, "A;B"),
    ("time orterun app", {}, "A;B"),
    ("mpirun --am file -np 2 app", {}, "A;B"),
    ("mpirun --tune file -np 2 app", {}, None),
    ("mpirun --tune file -x HIS -np 2 app", {}, None),
    (f"mpirun --mca {TUNED} file -np 2 app", {}, None),
    ("mpirun app", {f"OMPI_MCA_{TUNED}": "file"}, None),
    ("mpirun -x HIS app", {FIRST: "HIS"}, None),
    ("srun -n 2 app", {}, None),
    ("app", {}, None),
    ("mpirun app", {openmpi.LIST: "HIS;C=1"}, "HIS;C=1;A;B"),
    ("mpirun app", {openmpi.LIST: "HIS,C=1", f"{openmpi.LIST}_delimiter": ","}, "HIS,C=1,A,B"),
]


@pytest.mark.parametrize(("words", "environ", "expected"), LISTS)
def test_open_mpis_list_of_variables(
    words: str, environ: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    made = openmpi.forwarded(words.split(), {"HOME": str(tmp_path), **environ}, ["A", "B"])
    assert made == ({openmpi.LIST: expected} if expected else {})


def test_beside_x_ours_are_a_second_list_that_open_mpi_does_not_refuse(tmp_path: Path) -> None:
    for words in ("mpirun -x HIS -np 2 app", "mpirun -np 1 app : -x HIS=1 -np 2 app"):
        assert openmpi.forwarded(words.split(), {"HOME": str(tmp_path)}, ["A", "B"]) == {SECOND: "A;B"}


def test_a_list_in_a_file_is_not_hidden(tmp_path: Path) -> None:
    files = [
        tmp_path / "home" / ".openmpi" / "mca-params.conf",
        tmp_path / "mpi" / "etc" / "openmpi-mca-params.conf",
    ]
    program = tmp_path / "mpi" / "bin" / "mpirun"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/true", program)
    environ = {"HOME": str(tmp_path / "home"), "PATH": str(program.parent)}
    for file, name in zip(reversed(files), ("SITE", "HIS"), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text(f"# mca_base_env_list = no\nbtl = tcp\n mca_base_env_list = {name}\n")
        assert openmpi.forwarded(["mpirun", "app"], environ, ["A"]) == {openmpi.LIST: f"{name};A"}
        assert openmpi.forwarded(["mpirun", "-x", "B", "app"], environ, ["A"]) == {}
    files[0].write_text(f"{TUNED} = his.conf\n")
    assert openmpi.forwarded(["mpirun", "app"], environ, ["A"]) == {}
