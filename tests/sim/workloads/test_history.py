from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.errors import BadInput
from tarazu.model import Component, Layout
from tarazu.native import encode_lov
from tarazu.sim.workloads import history
from tarazu.sim.workloads.workload import OperationKind
from tarazu.trace.darshan_runs import import_log
from tarazu.trace.runfile import encode_run, read_run

DATA = Path(__file__).parents[2] / "data" / "traces"


@pytest.mark.parametrize(
    ("name", "written"),
    [("series_ckpt_0_b2048k", 125435904 + 8 * 463), ("ior_posix_ssf_n8_t64k_strided_nored", 64 << 20)],
)
def test_a_run_of_the_history_is_played_again(tmp_path: Path, name: str, written: int) -> None:
    """Log → run → history's own file and back → workload: bytes, files, ranks, order and times are the run's."""
    run = import_log(DATA / f"{name}.darshan", mount="/scratch/run")
    path = tmp_path / "x.run"
    path.write_bytes(encode_run(run))
    work = history.workload(read_run(path))
    assert [(f.key, f.size_bytes, f.exists) for f in work.files] == [
        (f.key, f.size_bytes, False) for f in run.files
    ]
    assert work.moved_bytes(OperationKind.WRITE) == written and work.ranks == run.step.ranks == 8
    creates = work.operations[work.operations["kind"] == OperationKind.CREATE]
    assert {(int(o["file"]), float(o["earliest_s"])) for o in creates} == {
        (n, f.at_s) for n, f in enumerate(run.files)
    }
    for number, file in enumerate(run.files):
        mine = work.operations[work.operations["file"] == number]
        assert set(mine["rank"].tolist()) == set(file.creators)
    assert "reads" in work.assumed[0] and not work.moved_bytes(OperationKind.READ)


def test_layouts_of_the_history() -> None:
    run = import_log(DATA / "series_ckpt_0_b2048k.darshan", mount="/scratch/run")
    layout = Layout((Component(0, 2**64 - 1, 1 << 20, 2),))
    first = msgspec.structs.replace(run.files[0], layout=encode_lov(layout, [(3, 1)]), existed=True)
    other = msgspec.structs.replace(run.files[1], layout=b"nothing that is known")
    run = msgspec.structs.replace(run, files=(first, other), partial=True)
    work = history.workload(run, placement=True, ranks_per_node=3)
    assert work.files[0].layout == layout and work.files[0].exists and work.files[1].layout is None
    assert (work.ranks_per_node, work.nodes) == (3, 3)
    assert work.operations["kind"][work.operations["file"] == 0][0] == OperationKind.OPEN
    assert any("missing" in line for line in work.assumed)
    assert history.workload(run).files[0].layout is None


def test_a_run_without_files() -> None:
    run = import_log(DATA / "series_ckpt_0_b2048k.darshan", mount="/none")
    with pytest.raises(BadInput, match="run of ckpt: expected files that it created"):
        history.workload(run)
