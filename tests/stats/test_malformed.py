"""Statistics files that are changed at random: no look at a node fails, or takes long."""

from __future__ import annotations

import logging
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.stats import (
    arcstats,
    brw_stats,
    counters,
    diskstats,
    host,
    job_stats,
    lnet,
    mds,
    osp,
    routing,
)
from tests.hostile.statistics import mutate, mutate_statistics, roots


def test_mutated_files_of_every_version() -> None:
    level = logging.getLogger("tarazu.stats").level
    try:
        result = mutate_statistics(400, seed=random.randrange(2**32))
    finally:
        logging.getLogger("tarazu.stats").setLevel(level)
    assert result.files >= 400 and result.looks > 20


TEXTS = [path.read_bytes() for root in roots() for path in sorted(root.rglob("*")) if path.is_file()][::7]


@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_every_parser_gives_its_value_or_refuses(content: bytes, seed: int) -> None:
    changed = mutate(content, random.Random(seed))
    text = changed.decode("utf-8", "replace")
    for parse in (
        counters.parse,
        counters.whole_number,
        lambda text: counters.some(text, ("read_bytes", "write_bytes")),
        brw_stats.parse,
        brw_stats.pieces,
        diskstats.parse,
        lnet.parse,
        routing.parse_routes,
        routing.parse_nis,
        host.parse_cpu,
        host.parse_memory,
        osp.parse_prealloc_status,
        osp.parse_target_obd,
        mds.parse_pool,
        arcstats.parse,
        lambda _: list(job_stats.parse([changed])),
    ):
        try:
            parse(text)
        except ValueError as error:
            assert len(str(error)) < 300


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 30, "1" + "0" * 5000])
def test_no_count_is_too_large_for_a_message(digits: str) -> None:
    row = f"write_bytes {digits} samples [bytes] 1 2 {digits}"
    try:
        assert counters.parse(row).row("write_bytes").sum < 2**64
    except ValueError as error:
        assert len(str(error)) < 200
