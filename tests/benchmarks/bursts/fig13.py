"""The three settings of figure 13 in a simulated network: by nodes, communication, uneven (spatially-bursty-io)."""

from __future__ import annotations

from tarazu.parts.bursts.study import fig13
from tests.benchmarks.figure import Figure

SHORT_NODES = (2, 8)
ENOUGH = 16
"""Nodes from which on the paper's order is there: remapped before reallocated before original."""
OF_REGROUPING = 0.5
"""What ranks in the order of the nodes gain, of what regrouping them gains: more than half."""


def measure(short: bool) -> list[Figure]:
    nodes = SHORT_NODES if short else fig13.NODES
    io, communicating, uneven = fig13.figures(nodes)
    found = [
        Figure(f"13a, {f.nodes} nodes: original beside reallocated", f.original_s / f.reallocated_s, "x")
        for f in io
    ]
    last = io[-1]
    found.append(
        Figure(
            f"13a: {last.nodes} nodes beside one I/O node's worth",
            last.original_s / last.reallocated_s,
            "x",
            least=1.2 if short else 10,
        )
    )
    for f in communicating:
        whole, ours = sum(f.original), sum(f.reallocated)
        found.append(Figure(f"13b, {f.nodes} nodes: original beside reallocated", whole / ours, "x"))
        found.append(
            Figure(
                f"13b, {f.nodes} nodes: remapping beside reallocation",
                sum(f.remapped) / ours,
                "",
                most=1.0,
            )
        )
        if f.nodes >= ENOUGH:
            found.append(
                Figure(
                    f"13b, {f.nodes} nodes: reallocation beside the original",
                    ours / whole,
                    "",
                    most=1.0,
                )
            )
    for f in uneven:
        found.append(
            Figure(
                f"13c, {f.nodes} nodes, I/O nodes of {f.io_node:g}: even nodes beside even traffic",
                f.even_nodes_s / f.even_traffic_s,
                "x",
                least=1.3 if f.io_node == 1 and f.nodes > 2 else 1.0,
            )
        )
        found.append(
            Figure(
                f"13c, {f.nodes} nodes, I/O nodes of {f.io_node:g}: the same in order",
                f.even_nodes_s / f.ordered_s,
                "x",
                least=1.0,
            )
        )
        if f.io_node == 1 and f.nodes > 2:
            gained = (f.even_nodes_s - f.ordered_s) / (f.even_nodes_s - f.even_traffic_s)
            found.append(
                Figure(
                    f"13c, {f.nodes} nodes: gained in order, of what regrouping gains",
                    gained,
                    "",
                    least=OF_REGROUPING,
                )
            )
    return found
