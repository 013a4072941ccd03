"""Runs of requests: bytes are kept, limits hold, the same seed is the same run, a controller is obeyed."""

from __future__ import annotations

import pytest

from tarazu.parts.council.study.online import madbench2, write_and_read
from tarazu.parts.council.study.requests.outcome import Setting
from tarazu.parts.council.study.requests.run import simulate
from tarazu.parts.council.study.requests.situation import (
    PAPER_BYTES,
    SITUATIONS,
    TABLE_III,
    Phase,
    Situation,
    Workload,
)
from tarazu.parts.council.study.requests.system import GRID5000

MiB = 1 << 20
F = TABLE_III["F"]
FEW = 256
"""The part of the requests that is made."""
BYTES = PAPER_BYTES // FEW


@pytest.mark.parametrize("scheduler", ["fifo", "hbrr", "twins"])
@pytest.mark.parametrize("situation", [F, SITUATIONS[11], TABLE_III["C"]], ids=str)
def test_bytes_are_kept_and_limits_hold(situation: Situation, scheduler: str) -> None:
    outcome = simulate(situation, Setting(scheduler), 1, part=FEW, interval_s=0.01)
    total = situation.processes * max(1, BYTES // (situation.processes * situation.request_bytes))
    total *= situation.request_bytes
    assert outcome.bytes == total
    assert sum(one.observation.bytes for one in outcome.seen) <= total
    late = [one for one in outcome.seen if one.at_s < outcome.makespan_s]
    assert sum(one.observation.bytes for one in late) > 0.4 * total
    assert outcome.bytes_per_s <= GRID5000.servers * GRID5000.disk.bytes_per_s, "all disks at their rate"
    assert outcome.bytes_per_s <= situation.nodes * GRID5000.link_bytes_per_s
    assert all(busy <= outcome.makespan_s for busy in outcome.busy_s)
    for one in outcome.seen:
        assert 0 <= one.observation.demand <= situation.processes / situation.nodes + 1e-9
        assert (
            one.observation.read if situation.operation == "write" else one.observation.write
        ).requests == 0


def test_the_same_seed_is_the_same_run() -> None:
    one, again, other = (simulate(F, Setting(), seed, part=FEW) for seed in (1, 1, 2))
    assert one == again
    assert one.makespan_s != other.makespan_s


def test_one_process_alone_reads_at_the_rate_that_its_waits_leave() -> None:
    alone = Workload(1, (Phase("alone", "read", "contiguous", True, 1, 16 * MiB, 256 * MiB),))
    outcome = simulate(alone, Setting("fifo"), 1)
    request = 16 * MiB
    # Each of four disks reads a quarter, of which it has read ahead one segment; then the I/O node stores and forwards.
    disk_s = (request / 4 - GRID5000.disk.segment_bytes) / GRID5000.disk.bytes_per_s
    expected = request / (disk_s + 2 * request / GRID5000.link_bytes_per_s)
    assert outcome.bytes_per_s == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("write", [False, True])
def test_one_request_takes_what_lies_on_its_way(write: bool) -> None:
    """Closed form: two messages each way, the link twice, the dispatcher, and the disk."""
    calm = GRID5000._replace(client_s=0.0)
    one = Workload(
        1, (Phase("one", "write" if write else "read", "contiguous", True, 1, 32 << 10, 32 << 10),)
    )
    outcome = simulate(one, Setting("twins"), 1, system=calm)
    way_s = 4 * calm.hop_s + 2 * (32 << 10) / calm.link_bytes_per_s + calm.request_s
    assert outcome.accesses == 1
    assert outcome.makespan_s == pytest.approx(way_s + sum(outcome.busy_s))
    transfer_s = calm.disk.command_s + (32 << 10) / calm.disk.bytes_per_s
    assert sum(outcome.busy_s) == pytest.approx(transfer_s + sum(outcome.turned_s))


def test_a_request_for_another_server_waits_for_its_window() -> None:
    """By hand: two processes, a stripe each; node 0 is at server 0 for 8 ms and then at server 1."""
    calm = GRID5000._replace(client_s=0.0)
    two = Workload(1, (Phase("two", "write", "strided", True, 2, 64 << 10, 128 << 10),))
    outcome = simulate(two, Setting("twins", 8e-3), 1, system=calm)
    link_s = (64 << 10) / calm.link_bytes_per_s
    first_s = link_s + calm.hop_s
    second_s = first_s + 8e-3 + calm.request_s + link_s + calm.hop_s + outcome.busy_s[1] + 2 * calm.hop_s
    assert outcome.makespan_s == pytest.approx(second_s)
    assert outcome.busy_s[2:] == (0.0, 0.0)
    # On its own node the second process is the first of a window that is server 1's: no wait.
    apart = simulate(two._replace(nodes=2), Setting("twins", 8e-3), 1, system=calm)
    assert apart.makespan_s == pytest.approx(max(apart.busy_s) + 2 * link_s + 4 * calm.hop_s + calm.request_s)


def test_windows_matter() -> None:
    """Physically: where requests of neighbours come together while others have their window, they are one access."""
    short, long = (simulate(F, Setting("twins", window_s), 1, part=FEW // 8) for window_s in (125e-6, 8e-3))
    assert long.accesses < 0.7 * short.accesses
    assert long.bytes_per_s > 1.15 * short.bytes_per_s
    # And where there are no neighbours, waiting is only waiting.
    lonely = TABLE_III["E"]._replace(operation="read")
    short, long = (simulate(lonely, Setting("twins", window_s), 3, part=32) for window_s in (125e-6, 8e-3))
    assert long.bytes_per_s < 0.85 * short.bytes_per_s


def test_a_controller_is_asked_each_interval_and_obeyed() -> None:
    asked = []

    def controller(now: float, seen) -> float:  # type: ignore[no-untyped-def]
        asked.append(now)
        assert [one.node for one in seen] == list(range(F.nodes))
        return 8e-3 if len(asked) >= 3 else 125e-6

    outcome = simulate(F, Setting("twins", 125e-6), 1, controller=controller, part=FEW // 2, interval_s=0.05)
    assert asked == pytest.approx([0.05 * (i + 1) for i in range(len(asked))])
    assert [one.window_s for one in outcome.seen[:: F.nodes]][:5] == [125e-6] * 3 + [8e-3] * 2
    fixed = simulate(F, Setting("twins", 125e-6), 1, part=FEW // 2, interval_s=0.05)
    assert outcome.makespan_s < fixed.makespan_s
    assert outcome.seen[: 3 * F.nodes] == fixed.seen[: 3 * F.nodes], "the same until then"


def test_phases_follow_one_another_and_a_file_that_was_written_is_read() -> None:
    phases = tuple(F._replace(operation=operation).phase(FEW) for operation in ("write", "read"))
    outcome = simulate(Workload(4, phases), Setting(), 1, interval_s=0.02)
    write, read = outcome.phases
    assert write.begin_s == 0.0 < write.end_s <= read.begin_s < read.end_s == outcome.makespan_s
    assert {one.pattern.operation for one in outcome.seen} == {"write", "read"}


def test_the_benchmark_writes_and_reads_in_turn() -> None:
    assert {phase.bytes for phase in write_and_read(3, part=1).phases} == {PAPER_BYTES}
    outcome = simulate(write_and_read(2, part=256), Setting(), 1)
    assert [phase.name for phase in outcome.phases] == ["write", "read"] * 2


def test_madbench2_moves_what_table_v_says() -> None:
    s, w, *c = madbench2(1, part=1).phases
    assert (s.requests, w.requests, [one.requests for one in c]) == (80, 160, [80] * 4)
    assert s.request_bytes == 51_200 and s.bytes == 80 * 1280 * 1280 * 8
    assert list(w.accesses(1))[:2] == [(0, 51_200, False), (1, 51_200, True)]
    outcome = simulate(madbench2(1, part=40), Setting(), 1)
    assert [phase.name for phase in outcome.phases] == ["S", "W", *"CCCC"]


@pytest.mark.parametrize(
    "shared, spatiality", [(True, "contiguous"), (True, "strided"), (False, "contiguous")]
)
def test_no_byte_is_accessed_twice_and_a_part_is_the_first_of_all(shared: bool, spatiality: str) -> None:
    phase = Phase("", "write", spatiality, shared, 8, 10, 8 * 10 * 16, 4)  # type: ignore[arg-type]
    for process in range(8):
        made = list(phase.accesses(process))
        assert made == list(phase._replace(part=1).accesses(process))[:4]
    made = [one for process in range(8) for one in phase.accesses(process)]
    assert len(set(made)) == len(made) == phase.bytes // 10
    assert max(offset for _, offset, _ in made) < phase.file_bytes
    assert phase.file_bytes * phase.files == 8 * 10 * 16
