"""A file an hour: nothing is lost or seen twice, whatever is put together when; others can read it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import durable
from tarazu.errors import BadInput, StoreError
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.traffic import Traffic, joined
from tests.parts.changes.dying import full_disk

DAY = 20_000 * days.DAY_S
"""2024-10-04."""
Row = tuple[int, str, int, int]


def traffic(rows: Iterable[Row], interval_s: float = 10.0) -> Traffic:
    rows = list(rows)
    nodes = tuple(dict.fromkeys(row[1] for row in rows))
    numbers = [np.array([row[i] for row in rows], np.int64) for i in (0, 2, 3)]
    node = np.array([nodes.index(row[1]) for row in rows], np.int32)
    return Traffic(nodes, interval_s, numbers[0], node, *numbers[1:])


def found(directory: Path, start_s: float = 0, end_s: float = 1e12) -> list[Row]:
    """All rows by time and node, after a look at what is promised of chunks."""
    rows: list[Row] = []
    chunks = list(days.read(directory, start_s, end_s))
    for chunk in chunks:
        columns = (chunk.time_s, chunk.node, chunk.read, chunk.written)
        rows += [(t, chunk.nodes[n], r, w) for t, n, r, w in zip(*(c.tolist() for c in columns))]
    for before, after in pairwise(chunks):
        if before.interval_s == after.interval_s:
            assert before.time_s[-1] < after.time_s[0], "an interval is in two chunks"
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    return sorted(rows)


def summed(rows: Iterable[Row]) -> list[Row]:
    total: dict[tuple[int, str], list[int]] = {}
    for time_s, node, read, written in rows:
        of = total.setdefault((time_s, node), [0, 0])
        of[0] += read
        of[1] += written
    return [(*key, *values) for key, values in sorted(total.items())]


ROW = st.tuples(
    st.integers(0, 3 * days.HOUR_S // 60).map(lambda n: DAY + 60 * n),
    st.sampled_from(["n1", "n2", "login1", "10.0.0.7@o2ib"]),
    st.integers(0, 1 << 50),
    st.integers(0, 1 << 50),
)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.one_of(st.lists(ROW, min_size=1, max_size=6), st.integers(0, 9)), max_size=8))
def test_what_was_added_is_read_in_order_each_once(steps: list[list[Row] | int]) -> None:
    added: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for step in steps:
            if isinstance(step, int):
                days.tidy(name, DAY + step * 1800)
            else:
                days.append(name, traffic(step))
                added += step
            assert found(Path(name)) == summed(added)
        days.tidy(name, DAY + days.DAY_S)
        assert found(Path(name)) == summed(added)
        middle = DAY + days.HOUR_S + 1200
        assert found(Path(name), middle, middle + 6000) == [
            row for row in summed(added) if middle <= row[0] < middle + 6000
        ]
        hours = {str(np.datetime64(row[0], "s"))[:13] for row in added}
        assert {path.name for path in Path(name).glob("*.parquet")} == {f"{h}-10s.parquet" for h in hours}
        assert not Path(name, "parts").exists() or not list(Path(name, "parts").iterdir())


def of_an_hour(first_s: int, nodes: int = 4) -> Traffic:
    return traffic((first_s + 600 * i, f"n{n}", i, n) for i in range(6) for n in range(nodes))


def found_of(one: Traffic) -> list[Row]:
    return [
        (t, one.nodes[n], r, w)
        for t, n, r, w in zip(one.time_s.tolist(), one.node.tolist(), one.read.tolist(), one.written.tolist())
    ]


@pytest.mark.parametrize("fails_at", range(5))
def test_a_crash_while_files_are_put_together_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    for nodes in (2, 3, 4):
        days.append(tmp_path, of_an_hour(DAY, nodes))
    before = found(tmp_path)

    class Crash(BaseException):
        pass

    steps = Counter[str]()
    replace, unlink = durable.replace, Path.unlink

    def step() -> None:
        steps["all"] += 1
        if steps["all"] > fails_at:
            raise Crash

    def replaced(path: Path, data: bytes, **how: bool) -> None:
        step()
        replace(path, data, **how)  # type: ignore[arg-type]

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        step()
        unlink(path, missing_ok)

    monkeypatch.setattr(durable, "replace", replaced)
    monkeypatch.setattr(Path, "unlink", unlinked)
    try:
        days.tidy(tmp_path, DAY + days.DAY_S)
        crashed = False
    except Crash:
        crashed = True
    monkeypatch.undo()
    assert crashed == (fails_at < 4), "a file is written, and three parts are removed"
    assert found(tmp_path) == before
    days.append(tmp_path, of_an_hour(DAY, 1))
    days.tidy(tmp_path, DAY + days.DAY_S)
    assert found(tmp_path) == summed(before + found_of(of_an_hour(DAY, 1)))
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["2024-10-04T00-10s.parquet"]


def test_a_full_disk_set_the_hour_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written was taken for what cannot be read."""
    days.append(tmp_path, of_an_hour(DAY, 2))
    days.tidy(tmp_path, DAY + days.DAY_S)
    days.append(tmp_path, of_an_hour(DAY, 3))
    before = found(tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "replace", full_disk)
        with pytest.raises(StoreError):
            days.tidy(tmp_path, DAY + days.DAY_S)
    assert found(tmp_path) == before and not list(tmp_path.rglob("*.unreadable"))


def test_joined_rows_had_the_networks_of_others() -> None:
    unsorted = traffic([(DAY + 10, "a", 1, 2), (DAY, "a", 3, 4)])
    ordered = joined(dataclasses.replace(unsorted, network=np.array([5, 6])))
    assert (ordered.time_s.tolist(), ordered.network) == ([DAY, DAY + 10], None)


def test_two_intervals_follow_one_another(tmp_path: Path) -> None:
    days.append(tmp_path, traffic([(DAY, "a", 1, 2)]))
    days.append(tmp_path, traffic([(DAY + 60, "b", 1, 2)], interval_s=60.0))
    days.append(tmp_path, traffic([(DAY + 3690, "a", 1, 2)]))
    days.tidy(tmp_path, DAY + 2 * days.DAY_S)
    chunks = list(days.read(tmp_path, 0, 1e12))
    assert [(c.interval_s, c.time_s.tolist()) for c in chunks] == [
        (10.0, [DAY]),
        (60.0, [DAY + 60]),
        (10.0, [DAY + 3690]),
    ]
    assert days.span(tmp_path) == (DAY, DAY + 3700)


def test_the_oldest_go_and_the_newest_stays(tmp_path: Path) -> None:
    for hour in range(3):
        days.append(tmp_path, of_an_hour(DAY + hour * days.HOUR_S))
    days.tidy(tmp_path, DAY + days.DAY_S, limit_bytes=days.size(tmp_path) - 1)
    assert found(tmp_path)[0][0] == DAY + days.HOUR_S
    days.tidy(tmp_path, DAY + 9 * days.DAY_S, limit_bytes=1)
    assert [p.name for p in tmp_path.rglob("*.parquet")] == ["2024-10-04T02-10s.parquet"]


def test_pandas_and_duckdb_read_what_is_there(tmp_path: Path) -> None:
    import duckdb
    import pandas

    days.append(tmp_path, traffic([(DAY, "n1", 5, 7), (DAY, "n2", 1, 1)]))
    days.append(tmp_path, traffic([(DAY + 2 * days.DAY_S, "n1", 2, 3)]))
    days.tidy(tmp_path, DAY + 2 * days.DAY_S + 1)
    frame = pandas.read_parquet(tmp_path / "2024-10-04T00-10s.parquet")
    assert frame.groupby("node", observed=True)["written"].sum().to_dict() == {"n1": 7, "n2": 1}
    rows = duckdb.sql(
        f"SELECT node, sum(read), sum(written) FROM '{tmp_path}/**/*.parquet' GROUP BY node ORDER BY node"
    ).fetchall()
    assert rows == [("n1", 7, 10), ("n2", 1, 1)]


@pytest.mark.parametrize("damage", ["cut", "garbage", "other", "version", "times of another type"])
def test_a_file_that_is_none_is_named_and_set_aside(tmp_path: Path, damage: str) -> None:
    import pyarrow
    from pyarrow import parquet

    days.append(tmp_path, of_an_hour(DAY))
    days.append(tmp_path, of_an_hour(DAY + days.HOUR_S))
    path = min((tmp_path / "parts").iterdir())
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "garbage":
        path.write_bytes(b"PAR1" + bytes(range(256)) * 9)
    elif damage == "times of another type":
        table = parquet.read_table(path)
        times = table["time_s"].cast(pyarrow.timestamp("s"))
        parquet.write_table(table.set_column(0, "time_s", times), path)
    else:
        about = {days.KEY: b'{"version":9,"interval_s":10}'} if damage == "version" else None
        parquet.write_table(pyarrow.table({"a": [1]}).replace_schema_metadata(about), path)
    with pytest.raises(BadInput, match=path.name):
        list(days.read(tmp_path, 0, 1e12))
    days.tidy(tmp_path, DAY + 3 * days.DAY_S)
    assert found(tmp_path) == found_of(of_an_hour(DAY + days.HOUR_S))
    assert list(tmp_path.rglob("*.unreadable"))


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    for rows, interval_s in (([(-1, "a", 1, 1)], 10.0), ([(DAY, "a", 1, 1)], 0.0)):
        with pytest.raises(BadInput):
            days.append(tmp_path, traffic(rows, interval_s))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        days.append(tmp_path / "file", of_an_hour(DAY))
    assert found(tmp_path / "nowhere") == [] and days.span(tmp_path) is None
