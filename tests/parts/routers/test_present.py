"""Which rules a server has, and which can be beside them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.nids import NidPattern, parse
from tarazu.parts.routers import udsp
from tarazu.parts.routers.present import Present, usable
from tarazu.parts.routers.udsp import Rule, Udsp, rule

A, B, C = (rule(f"10.77.0.{n}@tcp1", "10.77.0.11@tcp") for n in (31, 32, 33))


def shown(*rules: Rule) -> list[Udsp]:
    """After a rule that is nobody's."""
    first = Udsp(0, src="tcp", priority=0)
    return [first, *(Udsp(n, dst=str(r.dst), rte=str(r.rte)) for n, r in enumerate(rules, 1))]


def test_a_rule_has_the_number_that_it_has_now_however_it_is_written() -> None:
    present = Present([*shown(A, B), Udsp(3, dst="10.77.0.[33-33]@tcp1", rte=str(C.rte))])
    assert [present.index_of(rule) for rule in (A, B, C)] == [1, 2, 3]
    assert Present(shown(B)).index_of(A) is None and Present(shown(B)).index_of(B) == 1
    assert Present(shown(A, B)).went(Present(shown(B))) == str(("", str(A.dst), str(A.rte), None))
    assert udsp.parsed(str(A)) == A
    with pytest.raises(BadInput, match="expected a rule"):
        udsp.parsed("--dst tcp1")


@pytest.mark.parametrize("dst", ["tcp1", "10.77.0.[31-35]@tcp1", "10.77.0.1.3-4]@tcp1"])
def test_a_rule_for_some_of_the_same_nodes_is_in_the_way(dst: str) -> None:
    other = Udsp(4, dst=dst, rte="10.77.0.12@tcp")
    assert Present([*shown(A), other]).in_the_way(A) == other
    assert Present(shown(A, B)).in_the_way(A) is None


ROUTES = tuple(udsp.Route("tcp1", parse(f"10.77.0.{n}@tcp"), up) for n, up in ((11, True), (12, False)))


@pytest.mark.parametrize(
    ("rte", "why"),
    [
        ("10.77.0.11@tcp", ""),
        ("10.77.0.[11-12]@tcp", ""),
        ("10.77.0.12@tcp", "10.77.0.12@tcp is down"),
        ("10.77.0.13@tcp", "no route to tcp1 by 10.77.0.13@tcp"),
        ("10.77.0.11@tcp2", "no route to tcp1 by 10.77.0.11@tcp2"),
    ],
)
def test_a_rule_needs_a_router_that_is_up(rte: str, why: str) -> None:
    asked = rule("10.77.0.31@tcp1", rte)
    found = usable([asked, asked], ROUTES, most=9)
    assert found.rules == (() if why else (asked,))
    assert [reason for _, reason in found.refused] == ([why] if why else [])


def test_a_node_has_one_rule() -> None:
    wide = rule("10.77.0.[30-31]@tcp1", "10.77.0.11@tcp")
    found = usable([wide, A, B], ROUTES, most=9)
    assert found.rules == (wide, B)
    assert found.refused == ((A, "another rule is for some of the same nodes"),)


PLACE = st.frozensets(st.integers(0, 3), min_size=1)
PATTERN = st.builds(NidPattern, st.tuples(PLACE, PLACE, PLACE, PLACE), st.sampled_from(["tcp", "tcp1"]))


@settings(max_examples=25, deadline=None)
@given(PATTERN, PATTERN)
def test_patterns_overlap_when_a_nid_is_one_of_both(one: NidPattern, other: NidPattern) -> None:
    assert one.overlaps(other) == bool({*one.nids()} & {*other.nids()})


def test_no_more_rules_than_the_site_allows() -> None:
    found = usable([A, B, C], ROUTES, most=2)
    assert found.rules == (A, B) and [r for r, _ in found.refused] == [C]
