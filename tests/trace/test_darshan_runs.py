from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK
from tarazu.trace.darshan_runs import import_log
from tarazu.units import numeric_arguments

DATA = Path(__file__).parents[1] / "data" / "traces"


def test_stepped_checkpoint_sums_posix_and_stdio() -> None:
    run = import_log(DATA / "series_ckpt_0_b2048k.darshan", mount="/scratch/run", fs_name="lustre")
    assert len(run.files) == 56 and run.step.ranks == 8 and run.step.application == "ckpt"
    logs = [f for f in run.files if f.key.startswith("/ckpt/log.")]
    steps = [f for f in run.files if f.rank == 2 and f not in logs]
    assert len(logs) == 8 and {f.size_bytes for f in logs} == {463}
    assert [f.key for f in steps] == [f"/ckpt/ckpt.{s:04}.0002" for s in range(6)]
    assert [f.size_bytes for f in steps] == [2101248 + 204800 * s for s in range(6)]
    assert [f.nth_loose for f in steps] == list(range(6))
    assert steps[0].precise == "/ckpt/ckpt.0000.{rank}" and steps[2].precise == "/ckpt/ckpt.{rank}.{rank}"
    assert steps[0].loose == "/ckpt/ckpt.#.#"
    assert run.step.numbers == (6.0, 2048 * 1024.0, 200 * 1024.0, 2.0**20, 1.0, 0.0)
    assert [f.at_s for f in steps] == sorted(f.at_s for f in steps) and run.complete


def test_shared_file_and_locktest() -> None:
    run = import_log(DATA / "ior_mpiio_coll_ssf_n4_t4m_i3.darshan", mount="/scratch/run")
    (file,) = run.files
    assert file.key == "/ior_mpiio_coll_ssf_n4_t4m_i3" and file.rank == ANY_RANK and file.shared


def test_per_rank_records_of_a_shared_file_are_one_file() -> None:
    run = import_log(DATA / "ior_posix_ssf_n8_t64k_strided_nored.darshan", mount="/scratch/run")
    (file,) = run.files
    assert (file.size_bytes, file.written_bytes, file.writers) == (67108864, 67108864, 8)
    assert file.creators == tuple(range(8)) and file.rank == ANY_RANK


def test_partial_log_says_so() -> None:
    run = import_log(DATA / "ior_posix_fpp_n8_i6_m_partial.darshan", mount="/scratch/run")
    assert run.partial and not run.complete and 0 < len(run.files) < 48


def test_other_mounts_are_not_ours() -> None:
    assert import_log(DATA / "series_ckpt_0_b2048k.darshan", mount="/lustre").files == ()
    assert import_log(DATA / "series_ckpt_0_b2048k.darshan", mount="/scratch/ru").files == ()


@pytest.mark.parametrize("content", [b"", b"not a log", bytes(4000)])
def test_malformed_log_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.darshan"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"x\.darshan: expected a Darshan log"):
        import_log(path)


def test_missing_log(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="Darshan log"):
        import_log(tmp_path / "none.darshan")


def test_numeric_arguments() -> None:
    assert numeric_arguments(["-b", "16m", "-t1m", "--n=40", "size=2G", "64x32x16", "100000"]) == (
        16 * 2**20,
        2**20,
        40,
        2**31,
        64,
        32,
        16,
        100000,
    )
    assert numeric_arguments(["-F", "/out/run7", "v2.1", "1e400", "0.5", "-1"]) == (0.5, -1)
