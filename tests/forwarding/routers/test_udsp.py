"""What lnetctl says of rules, as captured on 2.17.57; commands; which rules to change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.routers.present import Present, usable
from tarazu.forwarding.routers.udsp import Rule, Udsp, read_rules, rule
from tarazu.nids import NidPattern, parse

CAPTURED = Path(__file__).parents[2] / "data" / "lustre" / "control" / "lnet-routes-udsp.txt"
ANSWERS = re.findall(r"^# (lnetctl .*)\n((?:[^#\n].*\n|\n)*)# rc (\d+)$", CAPTURED.read_text(), re.MULTILINE)
"""(command, what it printed, exit status)."""


def answers(command: str) -> list[str]:
    return [text for asked, text, _ in ANSWERS if asked == f"lnetctl {command}"]


def test_rules_as_captured() -> None:
    empty, four, three, none = map(read_rules, answers("udsp show"))
    assert empty == none == ()
    assert four == (
        Udsp(0, src="tcp", priority=0),
        Udsp(1, dst="tcp1", rte="10.77.0.11@tcp"),
        Udsp(2, dst="10.77.0.[20-25]@tcp1", rte="10.77.0.12@tcp"),
        Udsp(3, dst="tcp1", rte="10.77.0.[11-12]@tcp", priority=0),
    )
    assert [each.idx for each in three] == [0, 1, 2] and [r[1:] for r in three] == [r[1:] for r in four[1:]]
    ours = rule("10.77.0.[20-25]@tcp1", "10.77.0.12@tcp")
    assert [each.rule for each in four] == [None, None, ours, None]
    assert (Present(four).index_of(ours), Present(three).index_of(ours)) == (2, 1)


def test_commands() -> None:
    asked = [command.split()[1:] for command, _, status in ANSWERS if status == "0"]
    assert list(udsp.add(rule("10.77.0.[20-25]@tcp1", "10.77.0.12@tcp"))) in asked
    assert list(udsp.delete(2)) in asked and list(udsp.SHOW) in asked


@pytest.mark.parametrize("status", ["254", "234"])
def test_why_it_failed(status: str) -> None:
    text = next(text for _, text, found in ANSWERS if found == status)
    assert udsp.why_failed(text) in (
        "cannot del udsp: No such file or directory",
        "Route already exists or the specified network is local",
    )
    assert udsp.why_failed("") == "" and udsp.why_failed("no lnet\nmore") == "no lnet"


SHOWN = st.builds(
    Udsp,
    st.integers(0, 999),
    st.sampled_from(["", "tcp"]),
    st.sampled_from(["", "tcp1", "10.77.0.[31-40]@tcp1", "NA"]),
    st.sampled_from(["", "10.77.0.[11-12]@tcp"]),
    st.sampled_from([None, 0, -1, 7]),
)


def printed(rules: list[Udsp]) -> str:
    """As `lnetctl udsp show` prints them."""
    text = "udsp:\n" if rules else ""
    for each in rules:
        text += f"    - idx: {each.idx}\n"
        text += "".join(f"      {n}: {v}\n" for n in ("src", "dst", "rte") if (v := getattr(each, n)))
        if each.priority is not None:
            text += f"      action:\n          priority: {each.priority}\n"
    return text


@settings(max_examples=25, deadline=None)
@given(st.lists(SHOWN, max_size=6))
def test_what_is_printed_is_read(rules: list[Udsp]) -> None:
    assert read_rules(printed(rules)) == tuple(rules)
    for each in rules:
        assert (each.rule is not None) == (
            each.dst.startswith("10.") and bool(each.rte) and not each.src and each.priority is None
        )


@settings(max_examples=25, deadline=None)
@given(
    st.one_of(
        st.text(st.characters(max_codepoint=300), max_size=80),
        st.text("udsproute:- idx0netgatewaystate\n", max_size=120),
    )
)
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    try:
        read_rules(text)
    except BadInput as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "wrong",
    [
        "route:\n- net: tcp\n",
        "udsp:\n    - src: tcp\n",
        "udsp:\n    - idx: many\n",
        "udsp:\n      dst: tcp\n",
        "    - idx: 0\n",
        "udsp:\nudsp:\n",
        "cannot open /dev/lnet\n",
    ],
)
def test_no_rules_are_read_out_of_something_else(wrong: str) -> None:
    with pytest.raises(BadInput):
        read_rules(wrong)


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
