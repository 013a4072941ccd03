"""What levers read and write: Lustre's texts as captured, of other versions, and any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.changes import files
from tarazu.parts.council.levers import NAMES, USUAL, client, levers_of, nrs
from tarazu.parts.council.levers.nrs import MAX_QUANTUM, OFFSETS, SUPPORTED, read_by_queue, read_policies

CAPTURED = Path(__file__).parents[2] / "data" / "lustre" / "control"


def shown(name: str) -> list[str]:
    """All captured answers to `get_param` of it, in order."""
    text = (CAPTURED / "nrs-set.txt").read_text()
    return re.findall(
        rf"^# lctl get_param ost\.OSS\.ost_io\.{name}\n.*=\n((?:(?!# ).*\n)*)", text, re.MULTILINE
    )


def test_policies_as_captured() -> None:
    found = [read_policies(text) for text in shown("nrs_policies")]
    names = ["crrn", "orr", "trr", "tbf", "tbf jobid", "tbf nid", "delay", "fifo"]
    assert found == [{"reg": name, "hp": name} for name in names]


def test_quanta_as_captured() -> None:
    found = [read_by_queue(text, "quantum") for text in shown("nrs_crrn_quantum")]
    assert found == [{"reg": "8", "hp": "8"}, {"reg": "4", "hp": "8"}]


def test_a_policy_that_is_stopping_is_not_in_force() -> None:
    text = shown("nrs_policies")[0].replace(
        "- name: crrn\n    state: started", "- name: crrn\n    state: stopping"
    )
    assert read_policies(text) == {"reg": "fifo", "hp": "fifo"}


def test_a_service_without_high_priority_requests() -> None:
    text = shown("nrs_policies")[0].partition("high_priority_requests:")[0]
    assert read_policies(text) == {"reg": "crrn"}


def lines_of(text: str) -> st.SearchStrategy[str]:
    """Some of its lines, in any order."""
    return st.lists(st.sampled_from(sorted({*text.splitlines()})), max_size=12).map("\n".join)


@settings(max_examples=40)
@given(st.text(max_size=40) | lines_of(shown("nrs_policies")[4]))
def test_any_other_text_is_refused_or_names_a_policy(text: str) -> None:
    try:
        found = read_policies(text)
    except BadInput:
        return
    assert "reg" in found and all(found.values())


values = st.one_of(
    st.just("fifo"),
    st.integers(1, MAX_QUANTUM).map(lambda n: f"crrn {n}"),
    st.tuples(
        st.sampled_from(["orr", "trr"]),
        st.integers(1, MAX_QUANTUM).map(str),
        st.sampled_from(OFFSETS),
        st.sampled_from(SUPPORTED),
    ).map(" ".join),
)


@settings(max_examples=40)
@given(values)
def test_values_of_nrs_come_back_from_their_text(value: str) -> None:
    policy = nrs.parse(value)
    assert nrs.parse(str(policy)) == policy and len(str(policy)) <= len(value)


@settings(max_examples=40)
@given(values, values)
def test_only_parts_of_a_change_are_between_its_ends(one: str, other: str) -> None:
    ends = [str(nrs.parse(one)), str(nrs.parse(other))]
    assert all(nrs.is_between(end, ends) for end in ends)
    assert not nrs.is_between("delay", ends) and not nrs.is_between("tbf jobid", ends)
    begun = nrs.parse(other).name
    if begun in nrs.QUANTA:
        assert nrs.is_between(f"{begun} {nrs.QUANTA[begun]}", ends) and nrs.is_between(f"{begun} ?", ends)
        strange = next(n for n in range(1, 9) if str(n) not in (*one.split(), *other.split(), "8"))
        assert not nrs.is_between(f"{begun} {strange}", ends)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("nrs", nrs.VALUES),
        ("nrs=fifo | crrn 16|orr 0064 physical reads", ("fifo", "crrn 16", "orr 64")),
        ("nrs = fifo|trr 8 writes logical", ("fifo", "trr 8 logical writes")),
        ("max_rpcs_in_flight=008|16", ("8", "16")),
        ("hybrid_io_write_threshold_bytes=1 | 2147483648", ("1", "2147483648")),
        ("osc_rpcs=1024x8 | 016x128", ("1024x8", "16x128")),
    ],
)
def test_the_site_lists_values(text: str, values: tuple[str, ...]) -> None:
    assert levers_of([text]) == {text.partition("=")[0].strip(): values}


@pytest.mark.parametrize(
    "text",
    [
        "", "window", "nrs=fifo", "nrs=fifo|", "max_rpcs_in_flight=8|",
        "nrs=", "nrs=fifo|fifo", "nrs=fifo|crrn", "nrs=fifo|crrn 0", "nrs=fifo|crrn 65536",
        "nrs=fifo|tbf", "nrs=fifo|delay", "nrs=fifo|crrn 8 reads", "nrs=fifo|orr 8 reads writes", "nrs=fifo|orr 8 x",
        "nrs=fifo 8|crrn 8", "nrs=fifo|crrn ٣",
        "max_rpcs_in_flight=8|0", "max_rpcs_in_flight=8|257", "max_rpcs_in_flight=8|-1", "max_pages_per_rpc=256|4M",
        "hybrid_io_read_threshold_bytes=1|2147483649", "hybrid_io_read_threshold_bytes=1|0",
        "hybrid_io_write_threshold_bytes=1|8M",
        "osc_rpcs=8|16", "osc_rpcs=1024x8|16x257", "osc_rpcs=1024x8|0x8",
        "osc_rpcs=1024x8|16x8x1", "max_read_ahead_mb=1|1e3",
        "max_read_ahead_mb=" + "|".join(map(str, range(1, 99))),
    ],
)  # fmt: skip
def test_levers_that_there_are_not_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^part\.council\.levers"):
        levers_of([text])


@pytest.mark.parametrize("other", ["max_rpcs_in_flight", "max_pages_per_rpc"])
def test_a_pair_and_one_of_it_are_not_listed_both(other: str) -> None:
    with pytest.raises(BadInput, match="expected osc_rpcs or its parameters by themselves"):
        levers_of(["osc_rpcs", other])


def test_all_levers_list_what_they_would_take() -> None:
    for name in NAMES:
        listed = "|".join(USUAL[name])
        assert levers_of([f"{name}={listed}"])[name] == USUAL[name] == levers_of([name])[name]


def test_a_policy_that_is_in_force_in_one_queue_gets_its_quantum_in_both() -> None:
    """It keeps the one it has there: `nrs_policies=crrn` starts it in the other queue alone."""
    wanted = dict.fromkeys(("reg", "hp"), nrs.parse("crrn 8"))
    io = "ost.OSS.ost_io"
    quantum = (f"{io}.nrs_crrn_quantum", "8")
    assert nrs.settings_of(wanted, {"reg": "crrn", "hp": "fifo"}) == [(f"{io}.nrs_policies", "crrn"), quantum]
    assert nrs.settings_of(wanted, {"reg": "fifo", "hp": "fifo"}) == [(f"{io}.nrs_policies", "crrn")]
    assert nrs.settings_of(wanted, {"reg": "crrn", "hp": "crrn"}) == [quantum]


def test_thresholds_of_hybrid_io_as_captured() -> None:
    """2.17.57, as it starts: on, 8 MiB for reads, 2 MiB for writes."""
    root = CAPTURED.parent / "client"
    (mount,) = files.devices(root, "llite")
    assert client.KINDS[client.HYBRID[0]].named.fullmatch(mount)
    found = [files.read(root, f"llite.{mount}.{name}") for name in ("hybrid_io", *client.HYBRID)]
    assert found == ["1\n", "8388608\n", "2097152\n"]


def test_devices_of_an_mdt_are_never_named() -> None:
    """They take other ranges: 1000 was accepted there, and refused by a client's."""
    assert not client.KINDS["max_rpcs_in_flight"].named.fullmatch("lustre-OST0000-osc-MDT0000")
    assert client.KINDS["max_rpcs_in_flight"].named.fullmatch("lustre-OST0007-osc-ffff88810f466800")
