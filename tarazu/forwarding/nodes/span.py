"""How many I/O nodes a job's nodes are spread over (spatially-bursty-io, 6.4.3)."""

from __future__ import annotations

from fractions import Fraction

from tarazu.forwarding.nodes.wish import SelectionOptions

LEAST, HALF, MOST = Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)


def kept(nodes: int, next_size: int | None) -> Fraction:
    """Part of the I/O nodes with idle nodes that upcoming jobs are to find: 2/3 when the next optimizable job has
    more than twice as many nodes as this one, 1/3 when less than half as many, or when there is none; else 1/2."""
    if next_size is None or 2 * next_size < nodes:
        return LEAST
    return MOST if next_size > 2 * nodes else HALF


def span(
    nodes: int, diversity: int, by_default: int, least: int, next_size: int | None, options: SelectionOptions
) -> int:
    """I/O nodes for the job; not more than `by_default`: leave it to Slurm.

    `diversity`: I/O nodes that have idle nodes; `by_default`: that Slurm's own choice has; `least`: that hold the job.
    """
    most = min(diversity, nodes // options.per_io_node)
    if options.span:
        spare = int(diversity * (1 - kept(nodes, next_size)))
        # too few to keep some: this job first, with what makes it better off at all
        most = min(most, spare if spare > by_default else by_default + 1)
    return max(most, least)
