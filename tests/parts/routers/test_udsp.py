"""What lnetctl says of rules, as captured on 2.17.57; commands; which rules to change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.routers import udsp
from tarazu.parts.routers.udsp import Udsp, read_rules, rule

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
