"""A mapping as options of Lustre's module `lnet`, for sites that set no rules on servers.

`nodes`: each node's own route by its I/O node. It is for the node's requests; bulk data take the router that the
server chose. `networks`: nodes of one I/O node are a network of their own, which both sides reach by it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.nids import Nid
from tarazu.parts.bursts.mapping.rules import Addresses
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers

FIRST_NET = 100
"""Of the networks that `networks` makes."""


def of_nodes(mapping: Numbers, machine: Machine, known: Addresses) -> Iterator[str]:
    """Lines for nodes' modprobe.d, a group of nodes after the other. Raises BadInput."""
    for name, its, servers, gateways in _groups(mapping, machine, known):
        yield f"# {name}: on {nids.text(nids.fold(its))}"
        ways = [f"{net} {gateway}" for net in servers for gateway in gateways]
        yield f'options lnet routes="{"; ".join(ways)}"'


def of_networks(mapping: Numbers, machine: Machine, known: Addresses) -> Iterator[str]:
    """Lines of /etc/lnet.conf for nodes and routers, then those for servers: an option of a module holds 1024
    characters, too few for the networks of a large machine. Raises BadInput; also where the nodes' networks have no
    IPv4 addresses, which `ip2nets` needs.
    """
    networks: list[str] = []
    from_nodes: list[str] = []
    from_servers: list[str] = []
    for number, (name, its, servers, gateways) in enumerate(_groups(mapping, machine, known)):
        for gateway in gateways:
            if not gateway.net.startswith(nids.IPV4_NETS):
                raise BadInput(f"network {gateway.net}", "a network of IPv4 addresses, for ip2nets")
            net = f"{gateway.net.rstrip('0123456789')}{FIRST_NET + number}"
            at = ".".join(map(str, gateway.address))
            patterns = nids.fold([gateway, *(nid for nid in its if nid.net == gateway.net)])
            networks += [f"  - net-spec: {net}  # {name}", "    ip-range:"]
            networks += [f'        {n}: "{str(p).partition("@")[0]}"' for n, p in enumerate(patterns)]
            from_nodes += _route(servers, f"{at}@{net}")
            for router in known.io_nodes[machine.io_nodes.index(name)]:
                from_servers += _route([net], str(router))
    yield "# /etc/lnet.conf of nodes and routers, instead of their networks on the nodes' side"
    yield "ip2nets:"
    yield from networks
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
