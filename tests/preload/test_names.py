"""Templates and hashes: docs/formats.md, "Names"."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu import native
from tarazu.errors import StoreError
from tarazu.store.placement_map import MapRow, write_map
from tests.map_rows import map_row

WHO = {"job_id": "123456.pbs01", "rank": 7, "pid": 4321, "host": "node01.cluster"}

TABLE = [
    # key, precise, loose, volatile
    ("/ior/test.00000007", "/ior/test.{rank}", "/ior/test.#", False),
    ("/ior/test.00000008", "/ior/test.00000008", "/ior/test.#", False),
    ("/a/77/b7/7x", "/a/77/b{rank}/{rank}x", "/a/#/b#/#x", False),
    ("/out/123456/x", "/out/{job}/x", "/out/#/x", True),
    ("/out/123456.pbs01/x", "/out/{job}/x", "/out/{job}/x", True),
    ("/out/job123456.out", "/out/job{job}.out", "/out/job#.out", True),
    ("/out/1234567/x", "/out/1234567/x", "/out/#/x", False),
    ("/out/0123456/x", "/out/0123456/x", "/out/#/x", False),
    ("/o/node01.cluster.dat", "/o/{host}.dat", "/o/{host}.dat", True),
    ("/o/node01-7.dat", "/o/{host}-{rank}.dat", "/o/{host}-#.dat", True),
    ("/o/mynode01.dat", "/o/mynode01.dat", "/o/mynode#.dat", False),
    ("/o/node012.dat", "/o/node012.dat", "/o/node#.dat", False),
    ("/p/core.4321", "/p/core.{pid}", "/p/core.#", True),
    ("/p/core.04321", "/p/core.04321", "/p/core.#", False),
    ("/d/20240506", "/d/{date}", "/d/#", True),
    ("/d/2024-05-06", "/d/{date}", "/d/#-#-#", True),
    ("/d/2024_05_06.nc", "/d/{date}.nc", "/d/#_#_#.nc", True),
    ("/d/2024-05_06", "/d/2024-05_06", "/d/#-#_#", False),
    ("/d/20241306", "/d/20241306", "/d/#", False),
    ("/d/20240532", "/d/20240532", "/d/#", False),
    ("/d/20240506_1234", "/d/{date}", "/d/#_#", True),
    ("/d/20240506T123456Z", "/d/{date}Z", "/d/#T#Z", True),
    ("/d/2024-05-06_12:34:56.h5", "/d/{date}.h5", "/d/#-#-#_#:#:#.h#", True),
    ("/d/2024-05-06-12-34.h5", "/d/{date}.h5", "/d/#-#-#-#-#.h#", True),
    ("/d/202405061234", "/d/{date}", "/d/#", True),
    ("/d/20240506123456", "/d/{date}", "/d/#", True),
    ("/d/20240506_9999", "/d/{date}_9999", "/d/#_#", True),
    ("/d/20240506_7", "/d/{date}_{rank}", "/d/#_#", True),
    ("/d/1700000000", "/d/{date}", "/d/#", True),
    ("/d/1700000000123", "/d/{date}", "/d/#", True),
    ("/d/1200000000", "/d/1200000000", "/d/#", False),
    ("/d/17000000001", "/d/17000000001", "/d/#", False),
    ("/ünïcode/7", "/ünïcode/{rank}", "/ünïcode/#", False),
    ("/run.2024-05-06/123456/out.7", "/run.{date}/{job}/out.{rank}", "/run.#-#-#/#/out.#", True),
]


@pytest.mark.parametrize(("key", "precise", "loose", "volatile"), TABLE, ids=[t[0] for t in TABLE])
def test_templates(key: str, precise: str, loose: str, volatile: bool) -> None:
    assert native.template(key, **WHO) == native.Templates(precise, loose, volatile)  # type: ignore[arg-type]


def test_what_is_not_known_matches_nothing() -> None:
    assert native.template("/a.0.1/b12") == native.Templates("/a.0.1/b12", "/a.#.#/b#", False)


def test_flux_and_array_job_ids() -> None:
    assert native.template("/f3xYz9/a", job_id="f3xYz9") == native.Templates("/{job}/a", "/{job}/a", True)
    assert native.template("/f3xYz99/a", job_id="f3xYz9").precise == "/f3xYz99/a"
    assert native.template("/777[3]/a", job_id="777[3]") == native.Templates("/{job}/a", "/{job}/a", True)


def test_names_of_job_arrays() -> None:
    task = {"job_id": "7003", "array_job": "7001", "array_index": 2, "rank": 0}

    def named(key: str, **changes: object) -> tuple[str, str, bool]:
        names = native.template(key, **{**task, **changes})  # type: ignore[arg-type]
        return names.precise, names.loose, names.volatile

    assert named("/out_7001_2.dat") == ("/out_{job}_{array}.dat", "/out_#_#.dat", True)
    assert named("/out_7003_002.dat")[0] == "/out_{job}_{array}.dat"
    assert named("/t2/x.12") == ("/t{array}/x.12", "/t#/x.#", False)
    assert named("/t2/x.2", rank=2) == ("/t{rank}/x.{rank}", "/t#/x.#", False), "the rank comes first"
    assert named("/t2/x", array_index=None)[0] == "/t2/x"
    assert named("/70013/x")[0] == "/70013/x"


def test_small_numbers_are_no_job_ids_and_no_pids() -> None:
    assert native.template("/12/x.7", job_id="12", pid=7).precise == "/12/x.7"


def test_names_that_are_not_utf8_survive() -> None:
    key = b"/caf\xe9.7".decode("utf-8", "surrogateescape")
    assert native.template(key, rank=7).precise == key.replace("7", "{rank}")


@given(st.text(alphabet="/ab7.-_{}2405:T1é", max_size=60), st.integers(-1, 20))
def test_templates_of_any_key(key: str, rank: int) -> None:
    names = native.template(key, job_id="405", rank=rank, pid=1177, host="ab.b7")
    assert not any(c.isdigit() and c.isascii() for c in names.loose)
    assert names.volatile == any(
        t in names.precise and t not in key for t in ("{job}", "{date}", "{pid}", "{host}")
    ) or any(t in key for t in ("{job}", "{date}", "{pid}", "{host}"))
    # A template holds nothing to replace any more.
    assert native.template(names.loose).loose == names.loose


@given(st.text(max_size=3000))
def test_long_keys_still_have_templates(key: str) -> None:
    names = native.template(key + "1/" * 1200, rank=1)
    assert names.precise and names.loose


def test_siphash_reference_vectors() -> None:
    key = bytes(range(16))
    # From the reference implementation: inputs 00, 00 01, ... of growing length.
    known = {0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 15: "e545be4961ca29a1"}
    for length, digest in known.items():
        assert native.siphash(key, bytes(range(length))) == int.from_bytes(bytes.fromhex(digest), "little")


def test_hashes_are_over_the_documented_bytes() -> None:
    key = bytes(range(16))
    assert native.hash_exact(key, "lustre", "/a") == native.siphash(key, b"Elustre:/a")
    tail = struct.pack("<iI", -1, 3)
    assert native.hash_precise(key, "lustre", "/a{rank}", -1, 3) == native.siphash(
        key, b"Tlustre:/a{rank}" + tail
    )
    assert native.hash_loose(key, "lustre", "/a#", -1, 3) == native.siphash(key, b"Llustre:/a#" + tail)
    with pytest.raises(StoreError, match="16 bytes"):
        native.hash_exact(b"short", "lustre", "/a")


def _row(key: str, rank: int, n: int, row_id: int, job_id: str = "") -> MapRow:
    names = native.template(key, job_id=job_id, rank=rank)
    return map_row(key, (row_id % 35, (row_id + 1) % 35), names=names, rank=rank, n=n, row_id=row_id)


def test_map_lookup_order_and_ranks(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    rows = [
        _row("/s/2024-05-06.nc", -1, 0, 1),
        _row("/out/job123456.dat", 3, 0, 2, job_id="123456"),
        _row("/exact/file", -1, 0, 3),
        _row("/ckpt/run1.step2", 5, 1, 4),
    ]
    write_map(path, generation=1, hash_key=bytes(16), ost_counts={"lustre": 35}, rows=rows)

    def look(key: str, rank: int, n: int, job_id: str = "") -> tuple[int, str] | None:
        names = native.template(key, rank=rank, job_id=job_id)
        hit = native.map_lookup(path, "lustre", key, names, rank, n, n)
        return hit and (hit.row_id, hit.how)

    assert look("/exact/file", 9, 4) == (3, "exact")
    assert look("/s/2030-01-01.nc", 9, 0) == (1, "precise-any-rank")
    assert look("/s/2030-01-01.nc", -1, 0) == (1, "precise-any-rank")
    assert look("/s/2030-01-01.nc", 9, 1) is None
    assert look("/out/job999999.dat", 3, 0, job_id="999999") == (2, "precise")
    assert look("/out/job999999.dat", 4, 0, job_id="999999") is None
    assert look("/ckpt/run2.step9", 5, 1) == (4, "loose")
    assert native.map_lookup(path, "other", "/exact/file", native.template("/exact/file"), -1, 0, 0) is None


def test_every_row_of_a_large_map_is_found(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    rows = [_row(f"/fpp/test.{i:08d}", i, 0, i) for i in range(500)]
    write_map(path, generation=1, hash_key=bytes(range(16)), ost_counts={"lustre": 35}, rows=rows)
    for i in range(0, 500, 7):
        key = f"/fpp/test.{i:08d}"
        hit = native.map_lookup(path, "lustre", key, native.template(key, rank=i), i, 0, 0)
        assert hit and (hit.row_id, hit.how, hit.osts) == (i, "exact", ((i % 35, (i + 1) % 35),))


@given(st.integers(0, 1 << 20), st.integers(0, 255), st.integers(0, 1 << 20))
def test_damaged_maps_are_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.map"
    write_map(
        path,
        generation=1,
        hash_key=bytes(16),
        ost_counts={"lustre": 35},
        rows=[_row(f"/f.{i}", i, 0, i) for i in range(9)],
    )
    data = bytearray(path.read_bytes())
    data[at % len(data)] = value
    path.write_bytes(data if cut % 3 else data[: cut % len(data)])
    for i in range(9):
        try:
            hit = native.map_lookup(path, "lustre", f"/f.{i}", native.template(f"/f.{i}", rank=i), i, 0, 0)
        except StoreError:
            return
        assert hit is None or all(o < 35 for osts in hit.osts for o in osts)


def test_whose_map_is_trusted(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    write_map(path, generation=1, hash_key=bytes(16), ost_counts={"lustre": 35}, rows=[_row("/f", -1, 0, 1)])
    for mode, wrong in ((0o666, "writable by others"), (0o664, "writable by others")):
        path.chmod(mode)
        with pytest.raises(StoreError, match=wrong):
            native.map_lookup(path, "lustre", "/f", native.template("/f"), -1, 0, 0)
    path.chmod(0o644)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(StoreError, match="cannot be opened"):
        native.map_lookup(link, "lustre", "/f", native.template("/f"), -1, 0, 0)
