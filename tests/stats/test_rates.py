"""Rates of jobs and clients over resets, new and vanished entries, odd intervals and jumps of the wall clock."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.stats import job_stats
from tarazu.stats.collector import Collector
from tarazu.stats.lnet import parse
from tarazu.stats.rates import JobRates, client_rates
from tarazu.wire.reports import ClientRate, JobRate

DEBUG = "sys/kernel/debug"


def entry(job: str, start: float, read: int, written: int, samples: int = 1) -> str:
    return (
        f"- job_id:          {job}\n  snapshot_time:   9.000000000 secs.nsecs\n"
        f"  start_time:      {start:.9f} secs.nsecs\n  elapsed_time:    1.000000000 secs.nsecs\n"
        f"  read_bytes:      {{ samples: {samples}, unit: bytes, min: 1, max: 1, sum: {read}, sumsq: 1, "
        "hist: { 1K: 1 } }\n"
        f"  write_bytes:     {{ samples: 1, unit: bytes, min: 1, max: 1, sum: {written}, sumsq: 1 }}\n"
        "  setattr:         { samples: 7, unit: usecs, min: 1, max: 1, sum: 99, sumsq: 1 }\n"
    )


def file(*entries: str) -> list[bytes]:
    return [b"job_stats:\n" + "".join(entries).encode()]


def test_jobs_over_several_targets() -> None:
    rates = JobRates()
    for target in "ab":
        rates.add(target, file(entry("x", 1, 5, 10), entry("y", 1, 0, 1), entry("idle", 1, 0, 0)))
    assert rates.take() == ()
    for target in "ab":
        rates.add(target, file(entry("x", 1, 6, 30), entry("y", 1, 0, 1), entry("new", 8, 3, 4)))
    assert rates.take() == (JobRate("x", 40, 2), JobRate("new", 8, 6, 4))


def test_a_job_that_began_anew_counts_from_zero() -> None:
    rates = JobRates()
    rates.add("a", file(entry("later", 1, 0, 10), entry("less", 0, 0, 10)))
    rates.take()
    rates.add("a", file(entry("later", 2, 0, 25), entry("less", 0, 0, 4)))
    assert rates.take() == (JobRate("later", 25, 0, 2), JobRate("less", 4, 0, 2))


def test_jobs_of_most_operations_are_named_though_others_move_more() -> None:
    rates = JobRates()
    rates.add("a", file(entry("base", 1, 0, 1)))
    rates.take()
    large = [entry(f"large{n:04}", 1, 0, 1 << 30) for n in range(1200)]
    rates.add("a", file(*large, entry("small", 1, 0, 4096, samples=5000)))
    named = rates.take()
    assert len(named) <= 1000 and JobRate("small", 4096, 0, 5001) in named
    assert [j.write_bytes for j in named] == sorted((j.write_bytes for j in named), reverse=True)


def test_a_target_that_could_not_be_read_is_compared_with_none() -> None:
    rates = JobRates()
    rates.add("a", file(entry("x", 1, 0, 10)))
    rates.take()
    with pytest.raises(ValueError, match="expected `job_stats:`"):
        rates.add("a", [b"rubbish"])
    assert rates.take() == ()
    rates.add("a", file(entry("x", 1, 0, 90)))
    assert rates.take() == ()
    rates.add("a", file(entry("x", 1, 0, 91)))
    assert rates.take() == (JobRate("x", 1, 0),)


def test_two_readers_of_2_17_may_leave_one_without_the_first_line() -> None:
    text = entry("x", 1, 0, 10).encode()
    assert [e.job_id for e in job_stats.parse([text])] == ["x"]
    assert list(job_stats.parse([])) == []


@given(st.integers(1, 400), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_entries_are_the_same_however_the_file_is_cut(size: int, seed: int) -> None:
    jobs = random.Random(seed).randrange(6)
    whole = file(*(entry(f"job{i}", i, i, i * i) for i in range(jobs)))[0]
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
    cut = list(job_stats.parse(pieces))
    assert cut == list(job_stats.parse([whole])) and len(cut) == jobs
    for span, e in zip(job_stats.spans(pieces), job_stats.entries([whole]), strict=True):
        usual = job_stats.usual(span)
        assert usual and usual[3] == b"%d" % job_stats.parse_entry(e).rows["write_bytes"].sum


def test_job_ids_full_of_dashes() -> None:
    jobs = [f"{'-' * 25}{i}" for i in range(400)]
    whole = file(*(entry(job, 1, 1, 1) for job in jobs))
    assert [e.job_id for e in job_stats.parse(whole)] == jobs


def test_clients_over_resets_and_reconnections() -> None:
    before = {
        ("a", "n1"): (1.0, 100, 10, 4, 2),
        ("a", "n2"): (1.0, 50, 0, 1, 0),
        ("a", "n3"): (1.0, 9, 9, 9, 9),
    }
    now = {
        ("a", "n1"): (1.0, 130, 10, 5, 2),
        ("a", "n2"): (2.0, 20, 0, 1, 0),
        ("a", "n3"): (1.0, 9, 9, 9, 9),
        ("a", "n4"): (3.0, 7, 0, 1, 0),
        ("b", "n1"): (1.0, 1000, 0, 1, 0),  # an OST that was not here before
    }
    assert client_rates(now, before) == (
        ClientRate("n1", 30, 0, 1, 0),
        ClientRate("n2", 20, 0, 1, 0),
        ClientRate("n4", 7, 0, 1, 0),
    )
    assert client_rates(now, {}) == ()


def test_what_no_message_can_hold_is_cut() -> None:
    most = 9 * 10**17
    rates = JobRates()
    for written in (0, most):
        for target in range(40):
            rates.add(str(target), file(entry("x", 1, written, written or 1)))
        moved = rates.take()
    before = {(str(i), "n"): (1.0, 0, 0, 0, 0) for i in range(40)}
    clients = client_rates(dict.fromkeys(before, (1.0, most, most, 1, 1)), before)
    assert moved == (JobRate("x", 2**63 - 1, 2**63 - 1),)
    assert clients == (ClientRate("n", 2**63 - 1, 2**63 - 1, 40, 40),)


def test_lnet_lengths_after_a_restart_of_lnet_and_a_wrap_of_the_counts() -> None:
    before = parse("1 2 3 4294967295 4294967295 0 0 1000 2000 0 0")
    assert parse("1 2 3 5 7 0 0 1500 2700 0 0").bytes_since(before) == 1200
    assert parse("1 2 3 5 7 0 0 10 20 0 0").bytes_since(before) == 30


@pytest.mark.parametrize("wall", [5.0, 1e9, 1000.0])
def test_a_jump_of_the_wall_clock_changes_no_rate(oss_root: Path, wall: float) -> None:
    collector = Collector(oss_root, "oss1")
    lnet = oss_root / DEBUG / "lnet/stats"
    lnet.write_text("0 0 0 0 0 0 0 0 0 0 0\n")
    collector.collect(1000.0, clock_s=50.0)
    lnet.write_text("0 0 0 0 0 0 0 6000 0 0 0\n")
    report = collector.collect(wall, clock_s=110.0)
    assert (report.interval_s, report.lnet_bytes_per_s) == (60.0, 100.0)


@pytest.mark.parametrize(("elapsed_s", "rate"), [(0.0, 0.0), (-5.0, 0.0), (86_400.0, 1.0)])
def test_no_interval_one_back_in_time_and_a_day_asleep(oss_root: Path, elapsed_s: float, rate: float) -> None:
    collector = Collector(oss_root, "oss1")
    lnet = oss_root / DEBUG / "lnet/stats"
    lnet.write_text("0 0 0 0 0 0 0 0 0 0 0\n")
    collector.collect(0.0, clock_s=100.0)
    lnet.write_text("0 0 0 0 0 0 0 86400 0 0 0\n")
    report = collector.collect(60.0, clock_s=100.0 + elapsed_s)
    assert report.lnet_bytes_per_s == pytest.approx(rate) and report.interval_s == max(0.0, elapsed_s)


def test_ten_thousand_jobs_take_little_memory(tmp_path: Path) -> None:
    rates = JobRates()
    text = file(*(entry(f"ior.{i}", i, i + 1, i + 1) for i in range(2000)))
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        for target in range(10):
            rates.add(str(target), text)
        rates.take()
    # 20,000 entries: 150 bytes each, twice while they are compared.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 16_384
