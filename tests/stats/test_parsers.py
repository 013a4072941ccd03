"""Every format, in the spelling of every version, and whatever else may stand in such a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.stats import brw_stats, counters, host, job_stats, lnet, mds, osp
from tarazu.stats.counters import Counter, were_reset
from tarazu.stats.params import CANDIDATES, find, ost_target

OBDFILTER = "sys/kernel/debug/lustre/obdfilter/lustre-OST0001/stats"


def test_stats_of_2_17(data: Path) -> None:
    stats = counters.parse((data / "oss" / OBDFILTER).read_text())
    assert stats.start_s == 1795165918.726055240
    assert stats.row("write_bytes") == Counter(28, 56147968, 61440, 4194304)
    assert stats.row("write") == Counter(28, 3404308, 6125, 447227)
    assert stats.row("quotactl") == Counter()


def test_stats_without_header_have_no_start_time(data: Path) -> None:
    text = (data / "oss/obdfilter.stats.noheader.txt").read_text()
    stats = counters.parse(text.split("obdfilter.")[1])
    assert stats.start_s == 0 and stats.row("write_bytes") == Counter(191, 134987776, 4096, 4194304)


def test_stats_of_2_12_have_rows_without_sums() -> None:
    stats = counters.parse(
        "snapshot_time             1577836800.123456789 secs.nsecs\n"
        "read_bytes                2 samples [bytes] 4096 1048576 1052672\n"
        "write_bytes               3 samples [bytes] 1048576 1048576 3145728\n"
        "ping                      17 samples [reqs]\n"
    )
    assert stats.row("write_bytes").sum == 3145728
    assert stats.row("ping") == Counter(17) and stats.row("write") == Counter()


def test_a_stats_file_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="snapshot_time"):
        counters.parse("<html>busy</html>")


JOB_2_12 = """job_stats:
- job_id:          dd?x.0
  snapshot_time:   1577836800
  read_bytes:      { samples:           0, unit: bytes, min:       0, max:       0, sum:               0 }
  write_bytes:     { samples:           4, unit: bytes, min:16777216, max:16777216, sum:        67108864 }
  setattr:         { samples:           1, unit:  reqs }
"""

JOB_2_15 = """job_stats:
- job_id:          "my\\x20job\\x22\\xc3\\xa4.1000"
  snapshot_time:   1577836800.5 secs.nsecs
  start_time:      1577836700.25 secs.nsecs
  elapsed_time:    100.25 secs.nsecs
  read_bytes:      { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, sumsq: 1 }
  write_bytes:     { samples: 2, unit: bytes, min: 4, max: 4, sum: 8, sumsq: 32 }
- job_id:          "a:b/c"
  snapshot_time:   1577836800.5 secs.nsecs
  start_time:      1577836700.75 secs.nsecs
  write_bytes:     { samples: 3, unit: bytes, min: 1, max: 9, sum: 7, sumsq: 9, hist: { 4: 2, sum: 99 } }
"""


def test_job_stats_of_2_12() -> None:
    (entry,) = job_stats.parse([JOB_2_12.encode()])
    assert entry == job_stats.JobStats(
        "dd?x.0",
        0.0,
        1577836800.0,
        {"read_bytes": Counter(), "write_bytes": Counter(4, 67108864, 16777216, 16777216)},
    )


def test_job_stats_of_2_15_and_2_16() -> None:
    first, second = job_stats.parse([JOB_2_15.encode()])
    assert (first.job_id, first.start_s, first.snapshot_s) == ('my job"ä.1000', 1577836700.25, 1577836800.5)
    assert first.rows["read_bytes"].sum == 1
    assert second.job_id == "a:b/c" and second.rows == {"write_bytes": Counter(3, 7, 1, 9)}


def test_job_stats_of_2_17(data: Path) -> None:
    path = data / "oss/proc/fs/lustre/obdfilter/lustre-OST0001/job_stats"
    wanted = ("write_bytes", "write", "setattr")
    entries = {e.job_id: e for e in job_stats.parse([path.read_bytes()], wanted)}
    assert {"ior.0", "4711", "4712", "chown.0"} <= entries.keys()
    assert entries["ior.0"].rows["write_bytes"] == Counter(3, 11534336, 3145728, 4194304)
    assert entries["ior.0"].rows["write"].sum == 1010735
    assert entries["chown.0"].rows["setattr"].samples == 2
    assert entries["ior.0"].start_s == 1795166010.565297550


def test_no_jobs_is_an_empty_list_and_another_file_is_refused() -> None:
    assert list(job_stats.parse([b"job_stats:\n"])) == list(job_stats.parse([])) == []
    with pytest.raises(ValueError, match="expected `job_stats:` in the first line"):
        list(job_stats.parse([b"snapshot_time 1"]))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=31))
def test_a_quoted_job_id_comes_back(job_id: str) -> None:
    escaped = "".join(
        chr(byte) if 32 < byte < 127 and chr(byte) not in "\"\\'" else f"\\x{byte:02x}"
        for byte in job_id.encode()
    )
    assert job_stats.unquote(f'"{escaped}"') == job_id


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (counters.parse, brw_stats.parse, lnet.parse):
        try:
            parse(text)
        except ValueError:
            continue
    assert all(
        isinstance(e.job_id, str)
        for e in job_stats.parse([b"job_stats:\n", text.encode(errors="surrogatepass")])
    )
    mds.parse_pool(text)
    osp.parse_target_obd(text)


def test_brw_stats_by_label(data: Path) -> None:
    path = data / "oss/sys/kernel/debug/lustre/osd-ldiskfs/lustre-OST0000/brw_stats"
    brw = brw_stats.parse(path.read_text())
    sizes = brw.tables["disk I/O size"]
    assert sizes[4 << 10] == (0, 250) and sizes[1 << 20] == (0, 8) and sizes[4 << 20] == (0, 5)
    assert brw.writes("disk I/O size") == 264 and brw.writes("disk I/O size", 1 << 20) == 13
    assert brw.tables["pages per bulk r/w"][1024] == (0, 5)
    assert brw.tables["block maps msec"] == {1: (251, 13)}
    assert brw.start_s == 1795165904.248910040


def test_brw_stats_with_empty_tables() -> None:
    brw = brw_stats.parse(
        "snapshot_time:         1577836800.1 (secs.nsecs)\n\n"
        "                           read      |     write\n"
        "disk I/O size          ios   % cum % |  ios         % cum %\n\n"
        "                           read      |     write\n"
        "I/O time (1/1000s)     ios   % cum % |  ios         % cum %\n"
        "1:                       3 100 100   |    2  66  66\n"
        "2K:                      0   0 100   |    1  33 100\n"
    )
    assert brw.tables == {"disk I/O size": {}, "I/O time (1/1000s)": {1: (3, 2), 2048: (0, 1)}}
    assert brw.writes("disk I/O size") == 0 and brw.writes("no such table") == 0


@pytest.mark.parametrize(
    ("one_by_one", "by_powers", "flights"),
    [
        ({1: 10, 2: 10, 3: 5, 4: 5}, {1: 10, 2: 10, 4: 10}, 65),
        (dict.fromkeys(range(1, 17), 1), {1: 1, 2: 1, 4: 2, 8: 4, 16: 8}, 136),
        ({1: 7, 2: 3}, {1: 7, 2: 3}, 13),
        ({n: 4 * (n in (1, 31)) for n in range(1, 32)}, None, 4 * 32),
        (None, {1: 2, 2: 0, 4: 0, 8: 0, 16: 0, 32: 0, 64: 2}, 2 + 97),
        (None, {1: 0, 1 << 10: 2, 1 << 31: 1}, 2 * 768 + 1 + (1 << 30) + 1),
    ],
)
def test_numbers_in_flight_are_the_same_one_by_one_and_by_powers_of_two(
    one_by_one: dict[int, int] | None, by_powers: dict[int, int] | None, flights: int
) -> None:
    """Lustre has both tables under one name: `bs_inflight_io_log2`."""

    def label(number: int) -> str:
        return f"{number >> 20}M" if number >> 20 else f"{number >> 10}K" if number >> 10 else str(number)

    for table in filter(None, (one_by_one, by_powers)):
        for shown in (str, label):
            rows = "".join(f"{shown(n)}:\t\t {count} 0 0 | {count} 0 0\n" for n, count in table.items())
            brw = brw_stats.parse("disk I/Os in flight    ios   % cum % |  ios         % cum %\n" + rows)
            of = brw.io(brw_stats.WRITES)
            assert (of.flight_sum, of.flight_samples) == (flights, sum(table.values()))


def test_lnet_counts_wrap_and_lengths_do_not(data: Path) -> None:
    captured = lnet.parse((data / "oss/sys/kernel/debug/lnet/stats").read_text())
    assert (captured.send_count, captured.send_length, captured.recv_length) == (2333, 40667096, 208837024)
    before = captured._replace(send_count=2**32 - 10)
    assert captured._replace(send_count=5, send_length=40667196).bytes_since(before) == 100
    rebooted = captured._replace(send_length=7, recv_length=2)
    assert rebooted.bytes_since(captured) == 9


def test_resets_show_by_start_time_or_by_a_decrease() -> None:
    assert not were_reset(1.0, 1.0, (5, 5), (5, 4))
    assert were_reset(1.0, 1.0, (5, 3), (5, 4))
    assert were_reset(2.0, 1.0, (9, 9), (5, 4))
    assert not were_reset(0.0, 1.0, (9, 9), (5, 4)), "the header was switched off, nothing was reset"


def test_host_below_a_root(data: Path) -> None:
    node = host.read(data / "oss")
    kib = {"total": 981652, "free": 461244, "buffers": 24068, "cached": 223980, "slab": 23016, "shared": 376}
    used = kib["total"] - kib["free"] - kib["buffers"] - kib["cached"] - kib["slab"] + kib["shared"]
    assert node.memory_load == pytest.approx(used / kib["total"])
    assert node.cpu.total - node.cpu.busy == 40908 + 103


def test_the_live_host_can_be_read_again_after_a_root(data: Path) -> None:
    host.read(data / "oss")
    live = host.read("/")
    assert 0 < live.memory_load < 1 and live.cpu.total > live.cpu.busy > 0


@pytest.mark.parametrize("content", ["", "cpu\n", "cpu 1 2\n", "hello\n", "cpu a b c d e f g h i j\n"])
def test_a_malformed_proc_stat_is_refused(oss_root: Path, content: str) -> None:
    (oss_root / "proc/stat").write_text(content)
    with pytest.raises((ValueError, OSError)):
        host.read(oss_root)


def test_pools_and_targets_of_the_mds(data: Path, tmp_path: Path) -> None:
    state = mds.read(data / "mds")
    assert state.pools == {("lustre", index): ("flash",) for index in range(5)}
    assert mds.read(tmp_path) == mds.NOTHING


def test_target_names() -> None:
    assert ost_target("scratch-OST001f") == ("scratch", 31)
    assert ost_target("a-b_c-OST0010_UUID") == ("a-b_c", 16)
    assert ost_target("scratch-MDT0000") is None


@pytest.mark.parametrize(("parameter", "patterns"), CANDIDATES.items())
def test_every_place_of_a_parameter_is_looked_at(
    tmp_path: Path, parameter: str, patterns: tuple[str, ...]
) -> None:
    assert find(tmp_path, parameter) == {}
    for pattern in reversed(patterns):
        file = tmp_path / pattern.replace("osd-*", "osd-zfs").replace("*", "scratch-OST0007")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1\n")
        # What stands further up in the table wins over what was found below it.
        assert list(find(tmp_path, parameter).values()) == [file]
