"""Whatever layout the configuration manager accepts, with whatever OSTs the allocator gives it, the placement map takes
and the library reads.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu import native
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.layout.objects import explicit_components
from tarazu.layout.setstripe import parse_layout
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, FileName, Forecast, Layout, Ost, SystemView
from tarazu.plan.left_to_lustre import checked, within_a_request
from tarazu.sim.allocation import policies
from tarazu.store.placement_map import MapRow, check_layout, check_osts, write_map
from tarazu.units import GIB, KIB, MIB, TIB

OSTS = 12
SPACE = 1 << 50
POOLS = {"flash": 4}
VIEW = SystemView(
    "lustre",
    0.0,
    tuple(Ost(i, f"oss{i % 3}", SPACE, SPACE, SPACE, pools=("flash",) if i < 4 else ()) for i in range(OSTS)),
)
KEY = bytes(range(16))


@st.composite
def defaults(draw: st.DrawFn) -> Layout:
    """Default layouts of all kinds, also some that Lustre would not take."""

    def component(start: int, end: int) -> Component:
        composite = end != EOF or start > 0
        extension = (
            draw(st.sampled_from([0, 0, 64 * MIB, 96 * MIB, 100 * MIB, GIB, 100 * KIB])) if composite else 0
        )
        return Component(
            start,
            end,
            draw(st.sampled_from([0, 64 * KIB, MIB, 4 * MIB, 48 * MIB])),
            draw(st.sampled_from([0xFFFF, 0xFFFD, 1, 2, 5, 12, 30])),
            draw(st.sampled_from(["raid0", "overstriped"])),
            draw(st.sampled_from(["", "", "flash", "gone"])),
            extension,
        )

    ends = sorted(draw(st.sets(st.sampled_from([MIB, 16 * MIB, 64 * MIB, 512 * MIB, 4 * GIB]), max_size=3)))
    parts: list[Component] = []
    start = 0
    if ends and draw(st.booleans()):
        start = ends.pop(0)
        parts.append(Component(0, start, start, 0, "mdt"))
    for end in [*ends, EOF]:
        parts.append(component(start, end))
        start = end
    return Layout(tuple(parts), composite=len(parts) > 1)


def rows_of(files: list[Forecast], default: Layout | None, policy: LayoutPolicy) -> list[MapRow]:
    """What a plan holds of these files."""
    choices = ConfigurationManager(policy, UsableOsts(OSTS, POOLS), default).choose(files)
    placeable = [(i, f, choice.layout) for i, (f, choice) in enumerate(zip(files, choices)) if choice.layout]
    assert all(choice.layout or choice.left_because for choice in choices)
    if not placeable:
        return []
    requests = [CreateRequest(f.size_bytes, layout) for _, f, layout in placeable]
    answer = policies.make("tarazu").allocate(VIEW, requests)
    allocated, refused = checked(placeable, [p.osts for p in answer.files], OSTS)
    assert refused == {}
    return [
        MapRow(
            "lustre", f.name, i, layout, allocated[i].osts,
            explicit_components(layout, f.size_bytes),
        )
        for i, f, layout in placeable
    ]  # fmt: skip


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    default=st.none() | defaults(),
    sizes=st.lists(
        st.sampled_from([1, 5 * MIB, 64 * MIB, 600 * MIB + 1, 10 * GIB, TIB]), min_size=1, max_size=6
    ),
    count=st.sampled_from(["auto", "site", "paper", "7"]),
    striping=st.sampled_from(["auto", "raid0", "contiguous"]),
)
def test_a_map_takes_what_is_planned_and_the_library_reads_it(
    tmp_path: Path, default: Layout | None, sizes: list[int], count: str, striping: str
) -> None:
    files = [Forecast(FileName(f"/{i}", f"/{i}", f"/{i}", False, 0, 0, 0), s) for i, s in enumerate(sizes)]
    rows = rows_of(files, default, LayoutPolicy(count, striping, min_size_bytes=0))
    path = tmp_path / "map.1"
    write_map(path, generation=1, hash_key=KEY, ost_counts={"lustre": OSTS}, rows=rows)
    path.chmod(0o600)
    for row in rows:
        names = native.Templates(row.name.precise, row.name.loose, False)
        hit = native.map_lookup(path, "lustre", row.name.key, names, 0, 0, 0)
        assert hit is not None
        assert (hit.row_id, hit.layout, hit.osts) == (row.row_id, row.layout, row.osts)
        assert native.encode_lov(row.layout, row.osts)


def test_one_bad_layout_costs_its_own_files_only() -> None:
    """A list that no map may hold made the leader refuse the whole plan."""
    good = parse_layout("-c 2 -S 1M")[0]
    crooked = Layout((Component(0, MIB, MIB, 1), Component(2 * MIB, EOF, MIB, 1)), composite=True)
    forecast = Forecast(FileName("/f", "/f", "/f", False, 0, 0, 0), GIB)
    placeable = [(1, forecast, good), (2, forecast, crooked), (3, forecast, good), (4, forecast, good)]
    osts = [((0, 1),), ((0,), (1,)), ((3, 3),), ((2, OSTS),)]
    allocated, refused = checked(placeable, osts, OSTS)
    assert [bool(a.osts) for a in allocated.values()] == [True, False, False, False]
    assert "begins at 1048576" in refused[2] and "distinct" in refused[3] and "below 12" in refused[4]


def test_what_mdsd_would_refuse_as_a_whole_is_left_out_of_the_request() -> None:
    """`-C -32` for each of many files came to more stripes than a request may have, and nothing was placed."""
    wide, narrow = parse_layout("-C 2000 -S 1M")[0], parse_layout("-c 1 -S 1M")[0]
    fits = within_a_request([narrow, None, *[wide] * 3000, narrow])
    assert (fits[0], fits[1], fits[-1]) == (True, True, True) and sum(fits) == 3 + (5_000_000 - 2) // 2000
    shapes = [Layout((Component(0, EOF, MIB * n, 1),)) for n in range(1, 10_005)]
    assert sum(within_a_request(shapes * 2)) == 20_000


def test_start_hints_of_several_stripes_that_extend_themselves_do_not_balance_worse_than_lustre() -> None:
    """Lustre took the OSTs that follow the hint: OST cost 1.4 to 3 where its own choice had 1.2 to 2."""
    layout = parse_layout("-E 16M -c 1 -S 4M -E -1 -c 4 -S 4M -z 64M")[0]
    for size, asked in ((GIB, ((), ())), (16 * MIB, ((5,), (1,)))):
        forecast = Forecast(FileName("/f", "/f", "/f", False, 0, 0, 0), size)
        allocated, refused = checked([(1, forecast, layout)], [((5,), (1, 2, 3, 4))], OSTS)
        assert refused == {} and allocated[1].osts == asked
        check_layout("map", layout, explicit_components(layout, size), asked)


def test_a_self_extending_component_is_asked_for_with_a_start_hint() -> None:
    layout = parse_layout("-E 16M -c 1 -S 4M -E -1 -c 1 -S 4M -z 64M")[0]
    forecast = Forecast(FileName("/f", "/f", "/f", False, 0, 0, 0), GIB)
    allocated, refused = checked([(1, forecast, layout)], [((5,), (1,))], OSTS)
    assert refused == {} and allocated[1].osts == ((5,), (1,))
    check_layout("map", layout, explicit_components(layout, GIB), allocated[1].osts)
    assert check_osts("map", layout, allocated[1].osts, OSTS) == (5, 1)


@pytest.mark.parametrize("text", ["-E 64M -c 1 -S 1M -z 64M -E -1 -c 2 -S 1M", "-E -1 -c 2 -S 1M -z 96M"])
def test_an_extension_that_lustre_would_not_take_is_left_alone(text: str) -> None:
    forecast = Forecast(FileName("/f", "/f", "/f", False, 0, 0, 0), GIB)
    (choice,) = ConfigurationManager(LayoutPolicy(), UsableOsts(OSTS), parse_layout(text)[0]).choose(
        [forecast]
    )
    assert choice.layout is None and "extension size" in choice.left_because
