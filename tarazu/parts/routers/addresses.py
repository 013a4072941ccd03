"""The LNet NIDs of a job step's nodes, by `part.routers.nids`: what servers choose routers by."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

from tarazu import nids
from tarazu.batch.node_set import unfold
from tarazu.errors import BadInput, TarazuError
from tarazu.nids import Nid
from tarazu.parts.routers import hosts as host_names
from tarazu.program import Program
from tarazu.stats.params import find
from tarazu.stats.routing import parse_nis

LIST_S = 2.0
"""For `lctl list_nids`."""
MOST_RESOLVED = 20_000
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def folded(hosts: Sequence[str], setting: str, root: str = "/") -> str:
    """NIDs of these hosts (maybe folded names), folded: `10.77.0.[31-40]@tcp1`.

    Raises TarazuError where they are not known, with the reason.
    """
    names = [socket.gethostname() if name in _HERE else name for name in unfold(",".join(hosts))]
    if setting.startswith("/"):
        known = host_names.read(Path(setting))
        each = {name: host_names.of(name, known) for name in names}
        if unknown := [name for name, its in each.items() if not its]:
            raise BadInput(
                setting, f"a line of host {unknown[0]}", f"none, of {len(unknown)} of {len(each)} hosts"
            )
        addresses = {nid for its in each.values() for nid in its}
    else:
        net = nids.net(setting[1:]) if setting else _own_net(root)
        addresses = {Nid(host_names.address(name), net) for name in names[:MOST_RESOLVED]}
    return nids.text(nids.fold(addresses))


def _own_net(root: str) -> str:
    """The network of this node on which its own name's address is. Raises TarazuError."""
    own = _parsed(own_nids(root))
    here = host_names.address(socket.gethostname())
    net = next((nid.net for nid in own if nid.address == here), None)
    if net is None:
        address = ".".join(map(str, here))
        listed = ", ".join(map(str, own)) or "none that can be read"
        raise TarazuError(
            f"part.routers.nids: expected {address}, this node's name, among its NIDs, found {listed}: "
            "names say no NIDs"
        )
    return net


def own_nids(root: str = "/") -> tuple[str, ...]:
    """NIDs of this node: by LNet's own list, which is root's to read, else by `lctl list_nids`; none: not known."""
    try:
        if path := find(root, "lnet.nis").get(""):
            return parse_nis(path.read_text(errors="replace"))
    except (OSError, ValueError):
        pass
    try:
        listed = Program("lctl", "lctl", LIST_S).call(("list_nids",)) if root == "/" else None
    except TarazuError:
        listed = None
    return tuple(listed.out.split()) if listed else ()


def _parsed(texts: Iterable[str]) -> list[Nid]:
    readable = []
    for text in texts:
        try:
            readable.append(nids.parse(text))
        except BadInput:
            continue
    return readable
