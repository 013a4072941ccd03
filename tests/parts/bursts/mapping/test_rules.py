"""A mapping as rules, as few of them as a site wants, and as networks of LNet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.nids import Nid, parse, unfold
from tarazu.parts.bursts.mapping.mappings import folded, round_robin, units, units_in
from tarazu.parts.bursts.mapping.rules import Addresses, addresses, networks, rules, served_by
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.routers.mapped import without


def site(nodes: int, per_subnet: int, io_nodes: int) -> tuple[Machine, Addresses]:
    plain = regular(nodes, per_subnet)
    names = tuple(f"rtr{n}" for n in range(io_nodes))
    machine = Machine(plain.nodes, plain.cabinets, names, plain.cabinet, np.full(nodes, -1, np.int32))
    known = {
        name: (Nid((10, 77, n // per_subnet, n % per_subnet + 1), "tcp1"),)
        for n, name in enumerate(plain.nodes)
    }
    known |= {
        name: (Nid((10, 1, 0, n + 1), "tcp"), Nid((10, 77, 250, n + 1), "tcp1"))
        for n, name in enumerate(names)
    }
    return machine, addresses(machine, known)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 120), st.integers(1, 40), st.integers(1, 7), st.integers(0, 1000))
def test_each_node_is_in_one_rule_by_its_io_node(
    nodes: int, per_subnet: int, io_nodes: int, seed: int
) -> None:
    machine, known = site(nodes, per_subnet, io_nodes)
    mapping = np.random.default_rng(seed).integers(0, io_nodes, nodes).astype(np.int32)
    made = rules(mapping, known)
    found = {nid: rule.rte for rule in made for nid in rule.dst.nids()}
    assert len(found) == sum(rule.dst.size for rule in made) == nodes
    for (nid,), io_node in zip(known.nodes, mapping.tolist(), strict=True):
        assert str(found[nid]) == f"10.1.0.{io_node + 1}@tcp"
    assert served_by(made, known, machine.served_by).tolist() == mapping.tolist()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.sets(st.integers(0, 59), max_size=9))
def test_nodes_of_jobs_are_left_out_and_nothing_else_changes(nodes: int, taken: set[int]) -> None:
    _, known = site(nodes, 20, 4)
    whole = rules(round_robin(nodes, 4), known)
    gone = frozenset(nid for n in taken if n < nodes for nid in known.nodes[n])
    left = without(whole, gone)
    of = {nid: rule.rte for rule in whole for nid in rule.dst.nids()}
    assert {nid: rule.rte for rule in left for nid in rule.dst.nids()} == {
        nid: rte for nid, rte in of.items() if nid not in gone
    }
    untouched = [rule for rule in whole if not any(map(rule.dst.has, gone))]
    assert [rule for rule in left if rule in untouched] == untouched


def test_rules_are_few_where_subnets_are_cut_alike() -> None:
    """1,024 nodes in subnets of 128, 16 I/O nodes: a rule for each, of ranges with steps."""
    _, known = site(1024, 128, 16)
    made = rules(folded(units(known.nodes, 1), 16), known)
    assert len(made) == 16 and str(made[0].dst) == "10.77.[0-7].[1-113/16]@tcp1"
    uneven, known = site(1024, 128, 17)
    exact = rules(round_robin(1024, 17), known)
    few = folded(units(known.nodes, 1), 17)
    assert len(rules(few, known)) == 17 < len(exact) / 3
    by_groups = folded(units_in(known, 17, 40), 17)
    assert len(rules(by_groups, known)) <= 40
    spreads = [np.ptp(np.bincount(mapping)) for mapping in (few, by_groups)]
    assert spreads[1] < spreads[0], "rounds that begin elsewhere even out"
    for begin in range(0, len(uneven.nodes), 128):
        assert len(set(few[begin : begin + 17].tolist())) == 17, "neighbours have different ones"


def test_nodes_without_a_nid_have_no_rule() -> None:
    _, known = site(4, 4, 2)
    known = known._replace(nodes=(*known.nodes[:3], ()))
    assert known.unknown == 1
    assert [str(rule) for rule in rules(folded(units(known.nodes, 1), 2), known)] == [
        "--dst 10.77.0.[1-3/2]@tcp1 --rte 10.1.0.1@tcp",
        "--dst 10.77.0.2@tcp1 --rte 10.1.0.2@tcp",
    ]


def test_an_io_node_is_named_by_its_host_or_its_nid() -> None:
    machine = Machine(("n1",), (), ("10.1.0.9@tcp",), np.array([-1], np.int32), np.array([0], np.int32))
    found = addresses(machine, {"n1": (parse("10.77.0.1@tcp1"),)})
    assert found.io_nodes == ((parse("10.1.0.9@tcp"),),)
    for name, known, says in (
        ("rtr", {}, "its NIDs in the file of part.routers.nids"),
        ("10.77.0.9@tcp1", {}, "a NID on the servers' network"),
    ):
        other = Machine(("n1",), (), (name,), machine.cabinet, machine.served_by)
        with pytest.raises(BadInput, match=says):
            addresses(other, {"n1": (parse("10.77.0.1@tcp1"),), **known})


def test_a_network_for_each_io_node() -> None:
    machine, known = site(6, 6, 2)
    text = "\n".join(networks(round_robin(6, 2), machine, known))
    assert (
        '  - net-spec: tcp101  # rtr1\n    ip-range:\n        0: "10.77.0.[2-6/2]"\n        1: "10.77.250.2"'
        in text
    )
    nodes, servers = text.split("# /etc/lnet.conf of servers")
    assert "    - net: tcp\n      gateway: 10.77.250.2@tcp101" in nodes
    assert "    - net: tcp101\n      gateway: 10.1.0.2@tcp" in servers
    seen = [
        nid for line in nodes.splitlines() if ': "' in line for nid in unfold(line.split('"')[1] + "@tcp")
    ]
    assert len(seen) == len(set(seen)) == 8, "each node and router once"
