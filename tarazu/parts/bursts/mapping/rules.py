"""A mapping as rules on the servers: `--dst NODES --rte ROUTER`, of each I/O node as few as its nodes fold into.

Bulk data take the router that the *server* chose, so that is where a mapping is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.nids import Nid
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers
from tarazu.parts.routers import hosts
from tarazu.parts.routers.udsp import Rule, pattern_of

Known = Mapping[str, tuple[Nid, ...]]
"""Host → its NIDs."""
FIRST_NET = 100
"""Of the networks that `networks` makes."""


class Addresses(NamedTuple):
    """NIDs of a machine."""

    nodes: tuple[tuple[Nid, ...], ...]
    """In the order of the machine; none where none is known."""
    io_nodes: tuple[tuple[Nid, ...], ...]
    """Those on the servers' networks, which are the networks that no node is on."""
    at_nodes: tuple[tuple[Nid, ...], ...]
    """Of the I/O nodes, those on the nodes' networks."""

    @property
    def unknown(self) -> int:
        """Nodes of which no NID is known: they have no rule, and take all routes alike."""
        return sum(not each for each in self.nodes)


def addresses(machine: Machine, known: Known) -> Addresses:
    """An I/O node may be named by a NID. Raises BadInput for one without a NID on another network than the nodes'."""
    nodes = tuple(hosts.of(name, known) for name in machine.nodes)
    nets = {nid.net for each in nodes for nid in each}
    io_node_nids = [_of_io_node(name, known) for name in machine.io_nodes]
    servers = tuple(tuple(nid for nid in each if nid.net not in nets) for each in io_node_nids)
    for name, each in zip(machine.io_nodes, servers, strict=True):
        if not each:
            raise BadInput(
                f"I/O node {name}",
                "a NID on the servers' network, where no compute node is (part.routers.nids)",
                "none",
            )
    return Addresses(nodes, servers, tuple(tuple(n for n in each if n.net in nets) for each in io_node_nids))


def rules(mapping: Numbers, known: Addresses) -> tuple[Rule, ...]:
    """In the order of the I/O nodes; for each network of servers its own."""
    routers = {nid for each in known.io_nodes for nid in each}
    entries = []
    for number, its in enumerate(known.io_nodes):
        nodes = [nid for node in (mapping == number).nonzero()[0].tolist() for nid in known.nodes[node]]
        for net in sorted({nid.net for nid in its}):
            rte = pattern_of({nid for nid in its if nid.net == net}, (r for r in routers if r.net == net))
            entries += [Rule(dst, rte) for dst in nids.fold(nodes)]
    return tuple(entries)


def on_a_server(all_rules: Iterable[Rule]) -> int:
    """How many of them a server has, which is on one of the networks."""
    nets: dict[str, int] = {}
    for rule in all_rules:
        nets[rule.rte.net] = nets.get(rule.rte.net, 0) + 1
    return max(nets.values(), default=0)


def served_by(its: Sequence[Rule], known: Addresses, otherwise: Numbers) -> Numbers:
    """(nodes,): the I/O node that the rules name for each, `otherwise` where they name none that is known."""
    number = {nid: n for n, each in enumerate(known.io_nodes) for nid in each}
    of_nid = {
        nid: number[router]
        for rule in its
        for router in rule.rte.nids()
        if router in number
        for nid in rule.dst.nids()
    }
    mapping = otherwise.copy()
    for node, nids_of in enumerate(known.nodes):
        for nid in nids_of:
            mapping[node] = of_nid.get(nid, mapping[node])
    return mapping


def _of_io_node(name: str, known: Known) -> tuple[Nid, ...]:
    if its := hosts.of(name, known):
        return its
    try:
        return (nids.parse(name),)
    except BadInput:
        raise BadInput(f"I/O node {name}", "its NIDs in the file of part.routers.nids", "none") from None


def networks(mapping: Numbers, machine: Machine, known: Addresses) -> Iterator[str]:
    """For sites that set no rules on servers: nodes of one I/O node are a network of their own, which both sides reach
    by it alone. Lines of /etc/lnet.conf for nodes and routers, then those for servers: an option of a module holds 1024
    characters, too few for the networks of a large machine. Raises BadInput; also where the nodes' networks have no
    IPv4 addresses, which `ip2nets` needs.
    """
    specs: list[str] = []
    from_nodes: list[str] = []
    from_servers: list[str] = []
    for number, (name, its, servers, gateways) in enumerate(_groups(mapping, machine, known)):
        for gateway in gateways:
            if not gateway.net.startswith(nids.IPV4_NETS):
                raise BadInput(f"network {gateway.net}", "a network of IPv4 addresses, for ip2nets")
            net = f"{gateway.net.rstrip('0123456789')}{FIRST_NET + number}"
            at = ".".join(map(str, gateway.address))
            patterns = nids.fold([gateway, *(nid for nid in its if nid.net == gateway.net)])
            specs += [f"  - net-spec: {net}  # {name}", "    ip-range:"]
            specs += [f'        {n}: "{str(p).partition("@")[0]}"' for n, p in enumerate(patterns)]
            from_nodes += _route(servers, f"{at}@{net}")
            for router in known.io_nodes[machine.io_nodes.index(name)]:
                from_servers += _route([net], str(router))
    yield "# /etc/lnet.conf of nodes and routers, instead of their networks on the nodes' side"
    yield "ip2nets:"
    yield from specs
    yield "# of nodes: of these only the route by a network that the node is on"
    yield "route:"
    yield from from_nodes
    yield "# /etc/lnet.conf of servers"
    yield "route:"
    yield from from_servers


def _route(nets: Iterable[str], gateway: str) -> list[str]:
    return [line for net in nets for line in (f"    - net: {net}", f"      gateway: {gateway}")]


def _groups(
    mapping: Numbers, machine: Machine, known: Addresses
) -> Iterator[tuple[str, list[Nid], list[str], tuple[Nid, ...]]]:
    """(I/O node, its nodes' NIDs, the servers' networks, its NIDs on the nodes' networks)."""
    for number, name in enumerate(machine.io_nodes):
        its = [nid for node in (mapping == number).nonzero()[0].tolist() for nid in known.nodes[node]]
        if not its:
            continue
        nets = {nid.net for nid in its}
        gateways = tuple(nid for nid in known.at_nodes[number] if nid.net in nets)
        if not gateways:
            raise BadInput(f"I/O node {name}", "a NID on its nodes' network (part.routers.nids)", "none")
        yield name, its, sorted({nid.net for nid in known.io_nodes[number]}), gateways
