"""What levers read and write: Lustre's texts as captured, of other versions, and any other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput, Unavailable
from tarazu.sim.testbed import tunables
from tarazu.tune.levers import NAMES, client, known, lever, nrs, tbf
from tarazu.tune.levers.nrs import MAX_QUANTUM, OFFSETS, SUPPORTED, read_by_queue, read_policies
from tarazu.tune.levers.tbf import NONE, read_rules

CAPTURED = Path(__file__).parents[2] / "data" / "lustre" / "control"


class Nobody:
    """No lctl: these tests set nothing."""

    def set(self, settings: Sequence[tuple[str, str]]) -> None:
        raise AssertionError(settings)


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
    found = nrs.Nrs(Nobody(), "/")
    ends = [str(nrs.parse(one)), str(nrs.parse(other))]
    assert all(found.between(end, ends) for end in ends)
    assert not found.between("delay", ends) and not found.between("tbf jobid", ends)
    begun = nrs.parse(other).name
    if begun in nrs.QUANTA:
        assert found.between(f"{begun} {nrs.QUANTA[begun]}", ends) and found.between(f"{begun} ?", ends)
        strange = next(n for n in range(1, 9) if str(n) not in (*one.split(), *other.split(), "8"))
        assert not found.between(f"{begun} {strange}", ends)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("nrs", nrs.VALUES),
        ("nrs=fifo | crrn 16|orr 0064 physical reads", ("fifo", "crrn 16", "orr 64")),
        ("nrs = fifo|trr 8 writes logical", ("fifo", "trr 8 logical writes")),
        ("nrs_tbf_rule=none | jobid={ior.*}&uid={500} rate=100", (NONE, "jobid={ior.*}&uid={500} rate=100")),
        ("max_rpcs_in_flight=008|16", ("8", "16")),
    ],
)
def test_the_site_lists_values(text: str, values: tuple[str, ...]) -> None:
    assert lever(text, Nobody()).values == values


@pytest.mark.parametrize(
    "text",
    [
        "", "window", "nrs=fifo", "nrs=fifo|", "max_rpcs_in_flight=8|",
        "nrs=", "nrs=fifo|fifo", "nrs=fifo|crrn", "nrs=fifo|crrn 0", "nrs=fifo|crrn 65536",
        "nrs=fifo|tbf", "nrs=fifo|delay", "nrs=fifo|crrn 8 reads", "nrs=fifo|orr 8 reads writes", "nrs=fifo|orr 8 x",
        "nrs=fifo 8|crrn 8", "nrs=fifo|crrn ٣", "nrs_tbf_rule=none|rate=5", "nrs_tbf_rule=none|jobid={a} rate=0",
        "nrs_tbf_rule=none|jobid={a} rate=1000000", "nrs_tbf_rule=none|x jobid={a} rate=5", "nrs_tbf_rule=none|stop x",
        "max_rpcs_in_flight=8|0", "max_rpcs_in_flight=8|257", "max_rpcs_in_flight=8|-1", "max_pages_per_rpc=256|4M",
        "max_read_ahead_mb=1|1e3", "max_read_ahead_mb=" + "|".join(map(str, range(1, 99))),
    ],
)  # fmt: skip
def test_levers_that_there_are_not_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^tune\.levers"):
        lever(text, Nobody())


def test_all_levers_list_what_they_would_take() -> None:
    for name, each in known(Nobody()).items():
        assert name in NAMES and all(each.canonical(value) == value for value in each.values)  # type: ignore[attr-defined]


def test_devices_of_an_mdt_are_never_named(tmp_path: Path) -> None:
    """They take other ranges: 1000 was accepted there, and refused by a client's."""
    tunables.make_client(tmp_path, "lustre", 0, 1)
    osc = tmp_path / "sys/fs/lustre/osc"
    (osc / "lustre-OST0000-osc-MDT0000").mkdir()
    (osc / "lustre-OST0000-osc-MDT0000" / "max_rpcs_in_flight").write_text("8\n")
    found = lever("max_rpcs_in_flight", Nobody(), tmp_path).now()
    assert [p.name for p in found] == [f"osc.lustre-OST0000-osc-{tunables.instance(0)}.max_rpcs_in_flight"]
    assert not client.KINDS["max_rpcs_in_flight"].named.fullmatch("lustre-OST0000-osc-MDT0000")
    assert client.KINDS["max_rpcs_in_flight"].named.fullmatch("lustre-OST0007-osc-ffff88810f466800")


def test_parameters_are_found_where_2_12_has_them(tmp_path: Path) -> None:
    mount = "ffff88810f466800"
    for place, name, value in (
        (f"proc/fs/lustre/osc/lustre-OST0000-osc-{mount}", "max_pages_per_rpc", "1024"),
        (f"sys/kernel/debug/lustre/llite/lustre-{mount}", "max_read_ahead_mb", "64"),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / name).write_text(f"{value}\n")
        assert lever(name, Nobody(), tmp_path).current() == value


def test_a_rule_as_2_12_shows_it_is_the_one_that_was_set(tmp_path: Path) -> None:
    """Without its kind: `tarazu {ior.*} 100, ref 0`."""
    tunables.make_oss(tmp_path)
    io = tmp_path / "sys/kernel/debug/lustre/ost/OSS/ost_io"
    (io / "nrs_policies").write_text(shown("nrs_policies")[4])
    rules = "CPT 0:\ntarazu {ior.*} 100, ref 0\ndefault {*} 10000, ref 0\n"
    (io / "nrs_tbf_rule").write_text(f"regular_requests:\n{rules}high_priority_requests:\n{rules}")
    made = lever("nrs_tbf_rule=none | jobid={ior.*} rate=100", Nobody(), tmp_path)
    assert made.current() == "jobid={ior.*} rate=100"
    assert tbf.TbfRule(Nobody(), tmp_path).same("{ior.*} rate=100", "jobid={ior.*} rate=100")


def test_what_cannot_be_read_is_not_taken_for_absent(tmp_path: Path) -> None:
    tunables.make_oss(tmp_path)
    policies = tmp_path / "sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_policies"
    policies.write_text("regular_requests:\n")
    with pytest.raises(Unavailable, match="one of them started"):
        lever("nrs", Nobody(), tmp_path).now()
    policies.unlink()
    policies.mkdir()
    with pytest.raises(Unavailable, match=r"regular file|directory"):
        lever("nrs", Nobody(), tmp_path).now()
