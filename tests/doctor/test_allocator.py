"""`tarazu doctor allocator`: an MDS's own weights beside the model's, on a captured MDS and on odd files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tarazu.cli import main
from tarazu.config import Settings
from tarazu.doctor.allocator import comparisons, look
from tarazu.doctor.node import Node
from tarazu.stats import qos_weights

DATA = Path(__file__).parents[1] / "data" / "lustre"
LOD = "sys/kernel/debug/lustre/lod/lustre-MDT0000-mdtlov"
LINE = (
    "- {{ ost_idx: {ost}, tgt_weight: {weight}, tgt_penalty: 0, tgt_penalty_per_obj: {per}, tgt_avail: {avail}, "
    "tgt_last_used: {used}, svr_nid: {nid}, svr_bavail: 9, svr_iavail: 1, svr_penalty: 0, "
    "svr_penalty_per_obj: {svr}, svr_last_used: {used} }}\n"
)


def line(
    ost: int, avail: int, per: int = 0, weight: int | None = None, used=1000, nid="10.0.0.1@tcp", svr=0
) -> str:
    weight = avail if weight is None else weight
    return LINE.format(ost=ost, avail=avail, per=per, weight=weight, used=used, nid=nid, svr=svr)


@pytest.fixture
def mds(tmp_path: Path) -> Path:
    """The captured MDS, with the space that it saw on all 35 OSTs."""
    shutil.copytree(DATA / "mds", tmp_path, dirs_exist_ok=True)
    for row in (DATA / "control/osp-kbytesavail.txt").read_text().splitlines():
        name, _, value = row.partition("=")
        _, device, parameter = name.split(".")
        path = tmp_path / "sys/fs/lustre/osp" / device / parameter
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")
    return tmp_path


def odd(root: Path, text: str, pool: str = "") -> Path:
    path = root / LOD / (f"pool/{pool}/" if pool else "") / "qos_ost_weights"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root


def test_the_model_has_a_real_mds_penalties(mds: Path) -> None:
    """35 OSTs on 2.17.57. Those whose space did not change after the MDS had looked are equal to the last unit."""
    of_all, of_pool = comparisons(mds)
    assert (of_all.pool, of_pool.pool, len(of_all.rows), len(of_pool.rows)) == ("", "flash", 35, 5)
    assert of_all.agrees and of_all.round_robin and of_all.drawn_s is None
    equal = [row.ost for row in of_all.rows if row.per_object == row.model_per_object]
    assert len(equal) >= 20
    # The pool's last component left its own penalty behind: 26 * 3,456,400 >> 9, over 5 - 1 instead of 35 - 1.
    assert of_pool.rows[0].per_object == of_pool.rows[0].model_per_object == 43_880
    # OSTs 25 to 29: 26 * 17,606,416 >> 8, over 5 OSTs and 7 - 1 servers, halved.
    assert of_all.rows[25].server_per_object == of_all.rows[25].model_server_per_object == 29_802
    assert all(row.share == row.model_share == 1 / 35 for row in of_all.rows)


def test_the_command_prints_both(mds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "allocator", "--root", str(mds)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("lustre-MDT0000-mdtlov: 35 OSTs of 7 servers; qos_prio_free 90")
    assert "round robin, each OST in its turn; no OST has been drawn by weight yet" in out[-2]
    assert "the model computes as this MDS" in out[-1]
    assert main(["doctor", "allocator", "--root", str(mds), "--pool", "flash", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["allocators"]
    assert found["pool"] == "flash" and [row["ost"] for row in found["rows"]] == [0, 1, 2, 3, 4]
    assert main(["doctor", "allocator", "--root", str(mds), "--pool", "flas"]) != 0
    assert "a pool with OSTs: flash" in capsys.readouterr().err


def test_a_copy_without_osts_space_is_no_model_that_is_100_percent_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "allocator", "--root", str(DATA / "mds")]) == 0
    out = capsys.readouterr().out
    assert "100.0%" not in out and "round robin" not in out
    assert "the available space of its OSTs is not known (osp.*.kbytesavail)" in out


def test_a_pool_that_is_not_there_is_not_taken_for_an_old_lustre(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd(tmp_path, line(0, 10**7) + line(1, 10**7))
    assert main(["doctor", "allocator", "--root", str(tmp_path), "--pool", "p"]) == 2
    assert "a pool with OSTs: none here" in capsys.readouterr().err
    odd(tmp_path, "", "empty")
    assert main(["doctor", "allocator", "--root", str(tmp_path), "--pool", "empty"]) == 2


def test_an_ost_that_came_between_two_readings_is_left_out(tmp_path: Path) -> None:
    odd(tmp_path, line(0, 10**7) + line(1, 2 * 10**7))
    odd(tmp_path, line(1, 2 * 10**7) + line(2, 10**7), "p")
    odd(tmp_path, line(7, 10**7), "q")
    assert {each.pool: [row.ost for row in each.rows] for each in comparisons(tmp_path)} == {
        "": [0, 1],
        "p": [1],
    }


def test_without_the_file_it_says_so_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for root in (tmp_path, DATA / "versions/2.15-ldiskfs/mds"):
        assert main(["doctor", "allocator", "--root", str(root)]) == 3
        (said,) = capsys.readouterr().out.splitlines()
        assert said == f"no lod.*.qos_ost_weights below {root}: Lustre has it since 2.16, on an MDS, for root"
        assert not list(look(Node(Settings(), frozenset({"mds"}), root, root)))


def test_another_allocator_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Penalties of twice the size on every OST, and weights of 2.15's kind: space times inodes."""
    odd(tmp_path, "".join(line(i, 1000 * (i + 1), per=99, svr=9999) for i in range(8)))
    (found,) = comparisons(tmp_path)
    assert not found.agrees and found.weight_apart == 0 and found.per_object_apart > 0.5
    odd(tmp_path, "".join(line(i, 10**7 * (i + 1), weight=10**12) for i in range(8)))
    assert comparisons(tmp_path)[0].weight_apart > 0.9
    assert main(["doctor", "allocator", "--root", str(tmp_path)]) == 1
    assert "DIFFERS" in capsys.readouterr().out
    (finding,) = look(Node(Settings(), frozenset({"mds"}), tmp_path, tmp_path))
    assert finding.verdict == "warn"


def test_an_mds_that_looked_at_space_long_ago_is_not_blamed(tmp_path: Path) -> None:
    """Of a second MDT where nobody creates files: its numbers are of another day's space."""
    odd(tmp_path, "".join(line(i, 10**7 * (i + 1), per=12345, svr=54321) for i in range(4)))
    (found,) = comparisons(tmp_path, 1000 + 3600.0)
    assert found.agrees is None and found.per_object_apart > 0.02
    (finding,) = look(Node(Settings(), frozenset({"mds"}), tmp_path, tmp_path))
    assert finding.verdict == "warn"  # a copy is as of its last draw
    assert main(["doctor", "allocator", "--root", str(tmp_path)]) == 1


def test_what_was_never_computed_is_not_compared(tmp_path: Path) -> None:
    """Where all files go into a pool, the others' penalties and those of servers are 0 for ever."""
    members = [line(i, 10**7 * (i + 1), per=26 * 10**7 * (i + 1) // 512) for i in range(2)]
    odd(tmp_path, "".join([*members, line(2, 3 * 10**7), line(3, 4 * 10**7)]))
    odd(tmp_path, "".join(members), "p")
    of_all, of_pool = comparisons(tmp_path)
    assert of_all.agrees and of_pool.agrees and of_all.per_object_apart == 0
    odd(tmp_path, "".join(line(i, 0, used=0) for i in range(4)))
    assert comparisons(tmp_path, only="")[0].agrees is None


def test_shares_follow_the_weights(tmp_path: Path) -> None:
    """Nothing known but the file: one OST has three quarters of the space."""
    odd(tmp_path, line(0, 3 * 10**7) + line(1, 10**7, nid="10.0.0.2@tcp"))
    (found,) = comparisons(tmp_path)
    assert [row.share for row in found.rows] == [row.rest_share for row in found.rows] == [0.75, 0.25]
    assert not found.round_robin and found.elsewhere == 0


def test_a_stale_weight_is_not_compared_in_round_robin(tmp_path: Path) -> None:
    odd(tmp_path, "".join(line(i, 10**7, weight=5 * 10**6) for i in range(4)))
    (found,) = comparisons(tmp_path, 5000.0)
    assert found.round_robin and found.drawn_s == 4000 and found.weight_apart is None
    assert all(row.share == 0.25 for row in found.rows)


@pytest.mark.parametrize(
    "text",
    [
        line(0, 10**7),  # a single OST
        line(0, 0) + line(1, 0),  # nothing is available
        line(0, 2**64 - 1, per=2**64 - 1, weight=2**64 - 1, used=2**64 - 1, svr=2**64 - 1) + line(1, 1),
        line(5, 10**7) + line(5, 1) + line(65535, 1) + line(1, 2**70),  # twice, no OST, a number of 71 bits
        line(3, 10**7, nid="fd00:0:0:0:0:0:0:1@tcp") + line(9000, 10**6, nid="x" * 300),
        "\n\n" + line(1, 10**7) + "- { ost_idx: 2, tgt_weight: -1 }\n- {}\n}{\0\n" + "- { " * 5000,
        "".join(line(i, 10**7 + i) for i in range(2000)),
    ],
    ids=["one", "empty", "huge", "odd indices", "IPv6", "rubbish", "2,000"],
)
def test_odd_files(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    odd(tmp_path, text)
    odd(tmp_path, text, "p")
    for each in comparisons(tmp_path, 2000.0):
        assert each.rows and 0 <= each.spread <= 1
        assert all(0 <= row.model_share <= 1 and row.model_per_object >= 0 for row in each.rows)
        assert sum(row.model_share for row in each.rows) == pytest.approx(1) or not any(
            row.model_share for row in each.rows
        )
    assert main(["doctor", "allocator", "--root", str(tmp_path)]) in (0, 1)
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["rubbish\n", "- { ost_idx: 1 }\n", "- { mdt_idx: 0, tgt_weight: 0 }\n"])
def test_a_file_of_another_kind_is_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    odd(tmp_path, text)
    assert main(["doctor", "allocator", "--root", str(tmp_path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "expected the MDS's own weights of its OSTs, found" in said and "no line of an OST" in said
    (finding,) = look(Node(Settings(), frozenset({"mds"}), tmp_path, tmp_path))
    assert finding.verdict == "warn"


def test_an_empty_file_and_a_directory_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd(tmp_path, "")
    assert main(["doctor", "allocator", "--root", str(tmp_path)]) == 3
    (tmp_path / LOD / "qos_ost_weights").unlink()
    (tmp_path / LOD / "qos_ost_weights").mkdir()
    assert main(["doctor", "allocator", "--root", str(tmp_path)]) == 2
    assert "found a directory" in capsys.readouterr().err


def test_file_systems_and_mdts_are_told_apart(tmp_path: Path) -> None:
    """Two MDTs of one file system, and another file system: each has its own connections."""
    for device, kib in (("home-MDT0000", 4000), ("home-MDT0001", 8000), ("work-MDT0000", 16000)):
        path = tmp_path / "sys/kernel/debug/lustre/lod" / f"{device}-mdtlov" / "qos_ost_weights"
        path.parent.mkdir(parents=True)
        path.write_text(line(0, 5) + line(1, 5))
        fs, _, mdt = device.partition("-")
        osp = tmp_path / "sys/fs/lustre/osp" / f"{fs}-OST0001-osc-{mdt}"
        osp.mkdir(parents=True)
        (osp / "kbytesavail").write_text(f"{kib}\n")
    seen = {each.device: each.rows[1].avail_bytes for each in comparisons(tmp_path)}
    assert seen == {
        "home-MDT0000-mdtlov": 4000 * 1024,
        "home-MDT0001-mdtlov": 8000 * 1024,
        "work-MDT0000-mdtlov": 16000 * 1024,
    }


def test_the_reader_leaves_server_space_out_which_pools_add_to() -> None:
    (one,) = qos_weights.parse(line(7, 1, nid="a@o2ib"))
    assert one._replace(server="") == (7, "", 1, 0, 0, 1, 1000, 0, 0, 1000)
