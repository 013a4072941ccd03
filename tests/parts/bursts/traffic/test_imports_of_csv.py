"""CSV files as Zabbix and Prometheus export them: what counters grew by is moved, once, when it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic import days, imports
from tarazu.parts.bursts.traffic.imports import Columns, Imported, Rules
from tarazu.parts.bursts.traffic.traffic import UNKNOWN

T = 1_795_358_000
READ_WRITTEN = Columns(read="r", written="w")


def take(tmp_path: Path, text: str, columns: Columns = READ_WRITTEN, **own: object) -> Imported:
    path = tmp_path / "file.csv"
    path.write_text(text)
    add = bool(own.pop("add", False))
    items = own.pop("items", None)
    return imports.read([path], tmp_path / "days", columns, Rules(**own), items=items, add=add)  # type: ignore[arg-type]


def rows(tmp_path: Path) -> list[tuple[int, str, int, int]]:
    return [
        (int(t) - T, chunk.nodes[n], int(r), int(w))
        for chunk in days.read(tmp_path / "days", 0, 1e12)
        for t, n, r, w in zip(chunk.time_s, chunk.node, chunk.read, chunk.written, strict=True)
    ]


def test_a_column_each_of_counters_that_begin_again(tmp_path: Path) -> None:
    told = take(
        tmp_path,
        "timestamp,instance,r,w\n"
        f"{T},n1:9100,1000,0\n{T},n2:9100,5,5\n"
        f"{T + 10},n1:9100,1100,7\n{T + 10},n2:9100,5,5\n"
        f"{T + 30},n1:9100,40,7\n{T + 20},n1:9100,9,9\n{T + 9000},n2:9100,9999,5\n,,\nx,n2,1,1\n",
    )
    assert rows(tmp_path) == [(0, "n1", 100, 7), (10, "n1", 20, 0), (20, "n1", 20, 0)]
    assert (told.nodes, told.resets, told.back, told.gaps, told.bytes["read"]) == (2, 1, 2, 2, 140)
    assert told.not_numbers == 2


def test_zabbix_items_and_a_network(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(
        'itemid,host,key_\n1,n1,lustre.read\n2,n1,lustre.write\n3,n2,net\n4,n2,net2\n9,n2,"cpu[a,b]"\n'
    )
    items = imports.read_items(tmp_path / "items.csv", Columns())
    told = take(
        tmp_path,
        "itemid,clock,value,ns\n"
        + "".join(
            f"{item},{T + 10 * i},{100 * i * item},0\n" for item in (1, 2, 3, 4, 9, 77) for i in (0, 1)
        ),
        Columns(read="lustre.read", written="lustre.write", network="net,net2"),
        items=items,
    )
    (chunk,) = days.read(tmp_path / "days", 0, 1e12)
    assert rows(tmp_path) == [(0, "n1", 100, 200), (0, "n2", 0, 0)]
    assert chunk.network is not None and chunk.network.tolist() == [UNKNOWN, 700] and told.others == 4


def test_rates_in_milliseconds_and_amounts_in_iso_times(tmp_path: Path) -> None:
    take(
        tmp_path,
        f"time;host;metric;value\n{T}000;n1;r;3\n{T}000;n1;z;3\n{T + 20}000;n1;r;5\n",
        kind="rates",
        scale=2.0,
    )
    assert rows(tmp_path) == [(0, "n1", 100, 0), (10, "n1", 100, 0)]
    take(
        tmp_path,
        "time,host,r\n2026-11-22T14:33:20Z,n1,3\n2026-11-22T14:33:30Z,n1,5\n",
        Columns(read="r"),
        kind="amounts",
        add=True,
    )
    assert rows(tmp_path) == [(0, "n1", 105, 0), (10, "n1", 100, 0)]


def test_all_or_nothing(tmp_path: Path) -> None:
    text = f"clock,node,r\n{T},a,1\n{T + 10},a,5\n"
    take(tmp_path, text, Columns(read="r"))
    with pytest.raises(BadInput, match="2026-11-22"):
        take(tmp_path, text, Columns(read="r"))
    with pytest.raises(BadInput, match="a column w"):
        take(tmp_path, text, Columns(read="x", value="w", metric="r"), add=True)
    assert rows(tmp_path) == [(0, "a", 4, 0)] and not (tmp_path / "days/.import").exists()


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("a,b\n1,2\n", READ_WRITTEN, "clock or timestamp"),
        ("", READ_WRITTEN, "a CSV file"),
        ("clock,node,value\n1,a,2\n", READ_WRITTEN, "what was counted"),
        ("clock,node,value\n1,a,2\n", Columns(), "was read or written"),
        ("clock,node,r,r\n1,a,2,3\n", READ_WRITTEN, "each column once"),
        ("clock,node,r\n1,a,2\n", Columns(read="r", written="x,r"), "named once"),
    ],
    ids=["no-time", "empty", "no-metric", "nothing-asked", "column-twice", "asked-twice"],
)
def test_what_is_missing_is_named(tmp_path: Path, text: str, columns: Columns, expected: str) -> None:
    with pytest.raises(BadInput, match=expected):
        take(tmp_path, text, columns)
    with pytest.raises(BadInput, match="readable file"):
        imports.read([tmp_path / "none"], tmp_path / "days", READ_WRITTEN, Rules())


def test_a_header_that_is_no_text_ended_in_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"clock,node,\xff\n1,a,2\n")
    with pytest.raises(BadInput, match="with a header"):
        imports.read([tmp_path / "x"], tmp_path / "days", READ_WRITTEN, Rules())


def test_rows_that_came_twice_counted_twice(tmp_path: Path) -> None:
    lines = "".join(f"{T + 10 * i},a,{100 * i}\n{T + 10 * i},b,{i}\n" for i in range(4))
    told = take(tmp_path, f"clock,node,r\n{lines}{lines}{T + 40},a,400\n", Columns(read="r"))
    assert told.bytes["read"] == 403 and told.back == 8


def test_rows_with_more_columns_were_left_out_without_a_word(tmp_path: Path) -> None:
    told = take(
        tmp_path, f"clock,node,r\n{T},a,1\n{T + 5},a,1,2\n{T + 6},a\n{T + 10},a,5\n", Columns(read="r")
    )
    assert (told.bytes["read"], told.malformed) == (4, 2)


@pytest.mark.parametrize("rules", [Rules(scale=float("nan")), Rules(scale=0.0), Rules(gap_s=-1.0)], ids=repr)
def test_a_scale_that_is_none_gave_nothing(tmp_path: Path, rules: Rules) -> None:
    with pytest.raises(BadInput, match="above 0"):
        imports.read([tmp_path / "none"], tmp_path / "days", READ_WRITTEN, rules)


SERIES = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 1 << 40)), min_size=2, max_size=20)


@settings(max_examples=12, deadline=None)
@given(st.lists(SERIES, min_size=1, max_size=3))
def test_every_byte_that_a_counter_grew_by_is_there(
    tmp_path_factory: pytest.TempPathFactory, series: list[list[tuple[int, int]]]
) -> None:
    lines, expected = [], {}
    for number, steps in enumerate(series):
        at_s = T + int(np.cumsum([s for s, _ in steps])[0])
        total = 0
        for i, (step_s, grown) in enumerate(steps):
            at_s, total = at_s + step_s, total + grown
            lines.append((at_s, f"{at_s}.25,n{number},{total}\n"))
            expected[f"n{number}"] = expected.get(f"n{number}", 0) + (grown if i else 0)
    tmp_path = tmp_path_factory.mktemp("import")
    told = take(tmp_path, "clock,node,r\n" + "".join(line for _, line in sorted(lines)), Columns(read="r"))
    got = dict.fromkeys(expected, 0)
    for _, node, read, _ in rows(tmp_path) if told.last_s else []:
        got[node] += read
    assert got == expected and told.bytes["read"] == sum(expected.values())


@settings(max_examples=20, deadline=None)
@given(st.text(st.sampled_from('0123456789,n\n.-e"|;é'), max_size=80))
def test_any_text_is_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    tmp_path = tmp_path_factory.mktemp("import")
    try:
        told = take(tmp_path, "clock,node,r,w\n" + text)
    except BadInput:
        return
    assert sum(r + w for _, _, r, w in rows(tmp_path)) == told.bytes["read"] + told.bytes["written"]
