"""The testbed's codec in Python, and the stand-in liblustreapi against it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import LayoutError
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.testbed import lov
from tarazu.sim.testbed.lov import parse_layout

MIB = 1 << 20
components = st.lists(
    st.tuples(st.integers(1, 1000), st.integers(1, 100), st.sampled_from(["", "flash", "a" * 15])),
    min_size=1,
    max_size=8,
)


@settings(max_examples=50, deadline=None)
@given(components, st.booleans())
def test_defaults_survive_a_round_trip(parts, composite):
    parts = parts if composite else parts[:1]
    bounds = [0]
    for length, _, _ in parts:
        bounds.append(bounds[-1] + length * MIB)
    bounds[-1] = EOF
    layout = Layout(
        tuple(
            Component(bounds[i], bounds[i + 1], MIB, count, pool=pool)
            for i, (_, count, pool) in enumerate(parts)
        ),
        composite,
    )
    assert lov.decode(lov.encode(layout), file=False).layout == layout


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([0x0BD10BD0, 0x0BD30BD0, 0x0BD60BD0]))
def test_damaged_blobs_are_refused_or_read(data, magic):
    with contextlib.suppress(LayoutError):
        lov.decode(magic.to_bytes(4, "little") + data)


def test_layout_texts():
    assert parse_layout("8@1M") == Layout((Component(0, EOF, MIB, 8),))
    assert parse_layout("0-128M:1, 128M-EOF:12@64K") == Layout(
        (Component(0, 128 * MIB, 4 * MIB, 1), Component(128 * MIB, EOF, 65536, 12)), True
    )
    ends = parse_layout("0-1M:1, 1M-3M:2, 3M-EOF:4").components
    assert [c.stripe_size_bytes // MIB for c in ends] == [1, 1, 4], "a component's end is a multiple of it"
    for text in ("", "x", "1,2", "0-x:1", "0-1M:"):
        with pytest.raises(LayoutError):
            parse_layout(text)


LLAPI = """
import ctypes
api = ctypes.CDLL('liblustreapi.so.1', use_errno=True)
u64, u32, vp, text = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p
api.llapi_layout_alloc.restype = api.llapi_layout_get_by_fd.restype = vp
def call(name, *arguments):
    function = getattr(api, name)
    rc = function(*arguments)
    return rc
def err(): return errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno())
def L(layout): return vp(layout)
def pfl(last_end=EOF, size=MIB, extra=()):
    l = api.llapi_layout_alloc()
    assert call('llapi_layout_comp_extent_set', L(l), u64(0), u64(16 * MIB)) == 0
    assert call('llapi_layout_stripe_size_set', L(l), u64(MIB)) == 0
    for i, o in enumerate((2,)): assert call('llapi_layout_ost_index_set', L(l), i, u64(o)) == 0
    assert call('llapi_layout_stripe_count_set', L(l), u64(1)) == 0
    assert call('llapi_layout_comp_add', L(l)) == 0
    assert call('llapi_layout_comp_extent_set', L(l), u64(16 * MIB), u64(last_end)) == 0
    assert call('llapi_layout_stripe_size_set', L(l), u64(size)) == 0
    for i, o in enumerate((5, 1, 7)): assert call('llapi_layout_ost_index_set', L(l), i, u64(o)) == 0
    return l
"""


def test_llapi_creates_with_a_layout(bed, agent):
    result = agent(
        LLAPI
        + """
l = pfl()
fd = call('llapi_layout_file_open', b'a', os.O_CREAT | os.O_RDWR, 0o640, L(l))
os.pwrite(fd, b'x', 20 * MIB)
g = api.llapi_layout_get_by_fd(fd, 0)
index, count = u64(), u64()
call('llapi_layout_comp_use', L(g), 2)
got = []
for i in range(3):
    call('llapi_layout_ost_index_get', L(g), u64(i), ctypes.byref(index)); got.append(index.value)
call('llapi_layout_stripe_count_get', L(g), ctypes.byref(count))
result = [osts('a'), got, count.value, oct(os.stat('a').st_mode & 0o777), call('llapi_layout_comp_use', L(g), 3)]
api.llapi_layout_free(L(l)); api.llapi_layout_free(L(g))
"""
    )
    assert result == [[[2], [5, 1, 7]], [5, 1, 7], 3, "0o640", 1]


def test_llapi_checks_before_it_touches_anything(bed, agent, tmp_path):
    result = agent(
        LLAPI
        + f"""
bad = pfl(last_end=2048 * MIB, size=192 * MIB)
rc = call('llapi_layout_sanity', L(bad), False, False)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
opened = call('llapi_layout_file_open', b'a', os.O_CREAT | os.O_RDWR, 0o640, L(bad))
good = pfl(last_end=2048 * MIB, size=64 * MIB)
elsewhere = {str(tmp_path / "f")!r}.encode()
out = call('llapi_layout_file_open', elsewhere, os.O_CREAT | os.O_RDWR, 0o640, L(good))
result = [rc > 0, opened, os.path.exists('a'), call('llapi_layout_sanity', L(good), False, False), out, err(),
          os.path.exists(elsewhere), call('llapi_layout_stripe_size_set', L(good), u64(1000))]
"""
    )
    assert result == [True, -1, False, 0, -1, "ENOTTY", True, -1]


def test_llapi_replaces_a_tail(bed, agent):
    result = agent(
        LLAPI
        + """
l = pfl()
os.close(call('llapi_layout_file_open', b'a', os.O_CREAT | os.O_RDWR, 0o640, L(l)))
first = call('llapi_layout_file_comp_del', b'a', u32(2), u32(0))
more = api.llapi_layout_alloc()
call('llapi_layout_comp_extent_set', L(more), u64(16 * MIB), u64(EOF))
call('llapi_layout_stripe_count_set', L(more), u64(2))
call('llapi_layout_ost_index_set', L(more), 0, u64(6))
second = call('llapi_layout_file_comp_add', b'a', L(more))
os.truncate('a', 17 * MIB)
result = [first, second, osts('a')]
"""
    )
    assert result == [0, 0, [[2], [6, 7]]]
