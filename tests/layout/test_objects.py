"""Object sizes against a byte-by-byte walk of the RAID 0 arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from tarazu.layout.objects import component_object_bytes, object_bytes
from tarazu.lustre import EOF
from tarazu.model import Component, Layout

UNIT = 4


def walk(component: Component, size: int) -> list[int]:
    objects = [0] * component.stripe_count
    for offset in range(component.start_bytes, min(component.end_bytes, size)):
        objects[offset // component.stripe_size_bytes % component.stripe_count] += 1
    return objects


@given(
    start=st.integers(0, 40),
    length=st.one_of(st.integers(1, 60), st.none()),
    count=st.integers(1, 7),
    size=st.integers(0, 150),
)
def test_objects_equal_a_walk_over_the_bytes(start: int, length: int | None, count: int, size: int) -> None:
    end = EOF if length is None else (start + length) * UNIT
    component = Component(start * UNIT, end, UNIT, count)
    assert list(component_object_bytes(component, size)) == walk(component, size)


def test_pfl_1_of_2_gib_has_equal_objects_in_each_component() -> None:
    mib = 1 << 20
    layout = Layout(
        (
            Component(0, 128 * mib, 16 * mib, 1),
            Component(128 * mib, 512 * mib, 16 * mib, 3),
            Component(512 * mib, 2048 * mib, 16 * mib, 8),
            Component(2048 * mib, EOF, 16 * mib, 16),
        ),
        composite=True,
    )
    sizes = object_bytes(layout, 2048 * mib)
    assert [set(s) for s in sizes] == [{128 * mib}, {128 * mib}, {192 * mib}, {0}]
