"""What levers read and write: Lustre's texts as captured, of other versions, and any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.changes import files
from tarazu.parts.council.values import NAMES, USUAL, client, levers_of, nrs, tbf
from tarazu.parts.council.values.nrs import MAX_QUANTUM, OFFSETS, SUPPORTED, read_by_queue, read_policies
from tarazu.parts.council.values.tbf import NONE, read_rules

CAPTURED = Path(__file__).parents[3] / "data" / "lustre" / "control"


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


@settings(max_examples=40)
@given(st.text(max_size=40) | lines_of(shown("nrs_tbf_rule")[2]))
def test_any_text_of_rules_is_read(text: str) -> None:
    assert set(read_rules(text)) <= {"reg", "hp"}


def test_rules_as_captured() -> None:
    found = [read_rules(text.replace("r1 ", "tarazu ")) for text in shown("nrs_tbf_rule")]
    rule = {"jobid={ior.*} rate=200"}
    none = {"reg": {NONE}, "hp": {NONE}}
    assert found == [none, none, {"reg": rule, "hp": rule}, none]
    # A rule in one of a server's partitions only is not as listed.
    halved = (
        shown("nrs_tbf_rule")[2]
        .replace("r1", "tarazu")
        .replace("high", "CPT 1:\ndefault * 10000, ref 0\nhigh")
    )
    assert read_rules(halved)["reg"] == {NONE, *rule}


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
        ("nrs_tbf_rule=none | jobid={ior.*}&uid={500} rate=100", (NONE, "jobid={ior.*}&uid={500} rate=100")),
        ("max_rpcs_in_flight=008|16", ("8", "16")),
        (
            "nrs_tbf_rule=none | projid={1000 1001}&nodemap={tenant_1} rate=5",
            (NONE, "projid={1000 1001}&nodemap={tenant_1} rate=5"),
        ),
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
        "nrs=fifo 8|crrn 8", "nrs=fifo|crrn ٣", "nrs_tbf_rule=none|rate=5", "nrs_tbf_rule=none|jobid={a} rate=0",
        "nrs_tbf_rule=none|jobid={a} rate=1000000", "nrs_tbf_rule=none|x jobid={a} rate=5", "nrs_tbf_rule=none|stop x",
        "max_rpcs_in_flight=8|0", "max_rpcs_in_flight=8|257", "max_rpcs_in_flight=8|-1", "max_pages_per_rpc=256|4M",
        "nrs_tbf_rule=none|prjid={1} rate=5", "nrs_tbf_rule=none|{ior.*} rate=5", "nrs_tbf_rule=none|projid={x} rate=5",
        "nrs_tbf_rule=none|projid={4294967296} rate=5", "nrs_tbf_rule=none|uid={ } rate=5",
        "nrs_tbf_rule=none|nodemap={a-b} rate=5", "nrs_tbf_rule=none|nodemap={abcdefghijklmnopq} rate=5",
        "nrs_tbf_rule=none|jobid={a}&projid={-1} rate=5",
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
        listed = "|".join(("none", "jobid={a} rate=1") if name == "nrs_tbf_rule" else USUAL[name])
        assert {*levers_of([f"{name}={listed}"])[name]} >= {*USUAL[name]} == {*levers_of([name])[name]}


def test_a_policy_that_is_in_force_in_one_queue_gets_its_quantum_in_both() -> None:
    """It keeps the one it has there: `nrs_policies=crrn` starts it in the other queue alone."""
    wanted = dict.fromkeys(("reg", "hp"), nrs.parse("crrn 8"))
    io = "ost.OSS.ost_io"
    quantum = (f"{io}.nrs_crrn_quantum", "8")
    assert nrs.settings(wanted, {"reg": "crrn", "hp": "fifo"}) == [(f"{io}.nrs_policies", "crrn"), quantum]
    assert nrs.settings(wanted, {"reg": "fifo", "hp": "fifo"}) == [(f"{io}.nrs_policies", "crrn")]
    assert nrs.settings(wanted, {"reg": "crrn", "hp": "crrn"}) == [quantum]


def test_thresholds_of_hybrid_io_as_captured() -> None:
    """2.17.57, as it starts: on, 8 MiB for reads, 2 MiB for writes."""
    root = CAPTURED.parent / "client"
    (mount,) = files.devices(root, "llite")
    assert client.KINDS[client.HYBRID[0]].named.fullmatch(mount)
    found = [files.read(root, f"llite.{mount}.{name}") for name in ("hybrid_io", *client.HYBRID)]
    assert found == ["1\n", "8388608\n", "2097152\n"]


@pytest.mark.parametrize(
    ("policy", "version", "kind", "why"),
    [
        ("tbf projid", None, "projid", ""),
        ("tbf jobid+projid", (2, 17, 0), "projid", ""),
        ("tbf", (2, 17, 0), "projid", ""),
        ("tbf", (2, 16, 1), "projid", "expected Lustre 2.16.60 for projid, found 2.16.1"),
        ("tbf", None, "nodemap", ""),
        ("tbf generic", (2, 17, 0), "nodemap", "expected Lustre 2.17.55 for nodemap, found 2.17.0"),
        ("tbf", (2, 17, 57), "nodemap", ""),
        ("tbf jobid", (2, 17, 57), "projid", "expected tbf projid, found tbf jobid"),
        ("tbf projid", (2, 17, 57), "nodemap", "expected tbf nodemap, found tbf projid"),
        ("tbf", (2, 12, 9), "jobid", ""),
    ],
)
def test_rules_are_of_kinds_that_the_server_has(
    policy: str, version: tuple[int, ...] | None, kind: str, why: str
) -> None:
    assert tbf.why_not(f"{kind}={{7}} rate=5", policy, version) == why
    assert tbf.why_not(NONE, policy, version) == ""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.17.57_62_gc881f8e_dirty", (2, 17, 57)), ("2.12.9", (2, 12, 9)), ("lustre: 2.15.7.1", (2, 15, 7)),
        ("2.18", (2, 18, 0)), ("2.14.0_ddn150", None), ("", None), ("2.17.0-rc1 of somebody", None),
    ],
)  # fmt: skip
def test_a_vendors_version_says_nothing_of_what_it_has(
    text: str, version: tuple[int, ...] | None, tmp_path: Path
) -> None:
    assert files.version(tmp_path) is None
    (tmp_path / "sys/fs/lustre").mkdir(parents=True)
    (tmp_path / "sys/fs/lustre/version").write_text(text + "\n")
    assert files.version(tmp_path) == version


def test_a_rule_as_2_12_shows_it_is_the_one_that_was_set() -> None:
    """Without its kind: `tarazu {ior.*} 100, ref 0`."""
    assert tbf.is_as_set("{ior.*} rate=100", "jobid={ior.*} rate=100")
    assert not tbf.is_as_set("{ior.*} rate=100", "jobid={ior.*} rate=1000")


def test_devices_of_an_mdt_are_never_named() -> None:
    """They take other ranges: 1000 was accepted there, and refused by a client's."""
    assert not client.KINDS["max_rpcs_in_flight"].named.fullmatch("lustre-OST0000-osc-MDT0000")
    assert client.KINDS["max_rpcs_in_flight"].named.fullmatch("lustre-OST0007-osc-ffff88810f466800")
