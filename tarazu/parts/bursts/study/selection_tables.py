"""The study of node selection as a table: each policy a row, the mean of several seeds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.parts.bursts.study.selection_study import SelectionOutcome, SelectionStudy

HEADERS = (
    "policy",
    "placed",
    "busiest 10 %",
    "by bytes",
    "I/O time",
    "of placed",
    "alone",
    "I/O nodes",
    "waiting",
    "fewest cabinets",
    "links",
)
LEGEND = (
    "placed: jobs whose nodes are not Slurm's own choice, of those known to be optimizable as they started",
    "busiest 10 %: traffic of the busiest tenth of the I/O nodes, mean of 10 s intervals; by bytes: each byte alike",
    "I/O time: hours of all data-intensive jobs; of placed: of the placed jobs, beside the same jobs by Slurm's choice",
    "alone: the same without other jobs' I/O, beside the nodes that Slurm would have given them at that moment",
    "I/O nodes: of a placed job, beside the same by Slurm's choice; waiting: mean of all jobs, and their median",
    "fewest cabinets: part of the multi-node jobs not placed that stand in as few as could hold them (fragmentation)",
    "links: between two nodes of a placed job, beside the same by Slurm's choice (2 in a cabinet, else 4)",
)


def mean(studies: Sequence[SelectionStudy]) -> tuple[SelectionOutcome, ...]:
    """Of the same system and policies with other seeds; each policy's figures are means of those that there are."""
    means = []
    for same in zip(*(study.outcomes for study in studies), strict=True):
        fields = {}
        for name in SelectionOutcome.__struct_fields__[1:]:
            values = np.array([getattr(outcome, name) for outcome in same], dtype=np.float64)
            known = values[~np.isnan(values)]
            fields[name] = float(known.mean()) if len(known) else float("nan")
        fields["chosen"], fields["optimizable"] = round(fields["chosen"]), round(fields["optimizable"])
        means.append(msgspec.structs.replace(same[0], **fields))
    return tuple(means)


def rows(outcomes: Sequence[SelectionOutcome]) -> list[tuple[str, ...]]:
    """Cells of each row, as `HEADERS` has them."""
    return [_row(outcome) for outcome in outcomes]


def _row(o: SelectionOutcome) -> tuple[str, ...]:
    placed = o.chosen > 0
    return (
        o.policy,
        f"{o.chosen} of {o.optimizable}" if o.optimizable else "-",
        f"{o.busiest:.1%}",
        f"{o.busiest_by_bytes:.1%}",
        f"{o.io_hours:.0f} h",
        f"{o.chosen_io_hours:.0f} / {o.own_io_hours:.0f} h" if placed else "-",
        f"{o.alone_hours:.0f} / {o.own_alone_hours:.0f} h" if placed else "-",
        f"{o.io_nodes:.1f} / {o.own_io_nodes:.1f}" if placed else "-",
        f"{o.wait_s / 60:.0f} / {o.wait_median_s / 60:.0f} min",
        f"{o.others_least_cabinets:.1%}",
        f"{o.hops:.2f} / {o.own_hops:.2f}" if placed else "-",
    )
