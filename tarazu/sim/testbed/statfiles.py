"""The texts of Lustre 2.17's statistics files, from counters. One function per kind of file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

VERSION = "2.17.57_62_gc881f8e\n"
RPC_BYTES = 4 << 20
"""What one write RPC of the emulated clients carries at most."""


class Counter(msgspec.Struct):
    """One row of a `stats` file; without samples it is omitted."""

    unit: str
    samples: int = 0
    least: int = 0
    most: int = 0
    total: int = 0
    squares: int = 0

    def add(self, value: int, times: int = 1) -> None:
        if times <= 0:
            return
        self.least = value if self.samples == 0 else min(self.least, value)
        self.most = max(self.most, value)
        self.samples += times
        self.total += value * times
        self.squares += value * value * times


def _time(seconds: float) -> str:
    nanoseconds = round(seconds * 1e9)
    return f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}"


def _header(now_s: float, start_s: float) -> str:
    rows = (("snapshot_time", now_s), ("start_time", start_s), ("elapsed_time", now_s - start_s))
    return "".join(f"{name:<36}{_time(value)} secs.nsecs\n" for name, value in rows)


def stats(counters: Mapping[str, Counter], now_s: float, start_s: float) -> str:
    """`obdfilter.*.stats`, `ost.OSS.ost_io.stats`."""
    text = _header(now_s, start_s)
    for name, c in counters.items():
        if c.samples:
            text += f"{name:<36}{c.samples} samples [{c.unit}] {c.least} {c.most} {c.total} {c.squares}\n"
    return text


JOB_ROWS = (
    ("read_bytes", "bytes"),
    ("write_bytes", "bytes"),
    ("read", "usecs"),
    ("write", "usecs"),
    ("getattr", "usecs"),
    ("setattr", "usecs"),
    ("punch", "usecs"),
    ("sync", "usecs"),
    ("destroy", "usecs"),
    ("create", "usecs"),
    ("statfs", "usecs"),
    ("get_info", "usecs"),
    ("set_info", "usecs"),
    ("quotactl", "usecs"),
    ("prealloc", "usecs"),
)


MDT_JOB_ROWS = (
    *((name, "usecs") for name in ("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename")),
    *((name, "usecs") for name in ("getattr", "setattr", "getxattr", "setxattr", "statfs", "sync")),
    *((name, "usecs") for name in ("samedir_rename", "parallel_rename_file", "parallel_rename_dir")),
    *((name, "usecs") for name in ("crossdir_rename", "rename_trylocks", "read", "write")),
    ("read_bytes", "bytes"),
    ("write_bytes", "bytes"),
    ("punch", "usecs"),
)
"""The same of an MDT."""


def job_stats(
    jobs: Mapping[str, tuple[Mapping[str, Counter], float, float]],
    rows: Sequence[tuple[str, str]] = JOB_ROWS,
) -> str:
    """`obdfilter.*.job_stats`, `mdt.*.job_stats`: job id → (counters, last update, start), in Unix seconds."""
    text = "job_stats:\n"
    for job, (counters, now_s, start_s) in jobs.items():
        text += f"- job_id:          {job}\n"
        for name, value in (
            ("snapshot_time", now_s),
            ("start_time", start_s),
            ("elapsed_time", now_s - start_s),
        ):
            text += f"  {name + ':':<17}{_time(value)} secs.nsecs\n"
        for name, unit in rows:
            c = counters.get(name) or Counter(unit)
            row = (
                f"  {name + ':':<16} {{ samples: {c.samples:>11}, unit: {unit:>5}, min: {c.least:>8}, max: {c.most:>8},"
                f" sum: {c.total:>16}, sumsq: {c.squares:>18}"
            )
            if unit == "bytes":
                row += f", hist: {{ {'4M: ' + str(c.samples) if c.samples else ''} }}"
            text += row + " }\n"
    return text


def _table(title: str, unit: str, rows: Sequence[tuple[str, int]]) -> str:
    text = f"\n                           read      |     write\n{title:<22} {unit:<6} % cum % |  {unit:<11} % cum %\n"
    total = sum(count for _, count in rows)
    seen = 0
    for label, count in rows:
        seen += count
        if total:
            share, below = 100 * count // total, 100 * seen // total
            text += f"{label + ':':<10}\t         0   0   0   | {count:>4} {share:>3} {below:>3}\n"
    return text


def time_classes(milliseconds: float, ios: int) -> dict[int, int]:
    """`I/O time`: label → I/Os, of `ios` that took this long on average; they spread over the two nearest classes, so
    that the classes' middles have the same mean.
    """
    label = 1
    while 1.5 * label < milliseconds:
        label *= 2
    low = 0.75 * label if label > 1 else 1.0
    above = round(ios * min(1.0, max(0.0, (milliseconds - low) / (1.5 * label - low))))
    return {label: ios - above, 2 * label: above}


def brw_stats(io_sizes: Mapping[int, int], io_times: Mapping[int, int], now_s: float, start_s: float) -> str:
    """`osd-ldiskfs.*.brw_stats`: number of disk I/Os by size (bytes, a power of two between 4 KiB and 4 MiB) and by
    time (milliseconds, a power of two).
    """
    text = f"snapshot_time:            {_time(now_s)} secs.nsecs\n"
    text += f"start_time:               {_time(start_s)} secs.nsecs\n"
    text += f"elapsed_time:             {_time(now_s - start_s)} secs.nsecs\n"
    sizes = _classes(io_sizes, 4096)
    whole = [("1", sum(count for _, count in sizes))]
    text += _table("pages per bulk r/w", "rpcs", [(_label(size // 4096), count) for size, count in sizes])
    for title, unit in (
        ("discontiguous pages", "rpcs"),
        ("discontiguous blocks", "rpcs"),
        ("disk fragmented I/Os", "ios"),
    ):
        text += _table(title, unit, whole)
    text += _table("disk I/Os in flight", "ios", whole)
    text += _table("I/O time (1/1000s)", "ios", [(_label(n), count) for n, count in _classes(io_times, 1)])
    text += _table("disk I/O size", "ios", [(_label(size), count) for size, count in sizes])
    return text + _table("block maps msec", "maps", whole)


def _classes(counts: Mapping[int, int], least: int) -> list[tuple[int, int]]:
    """(label, count) from the least class to the last that has any."""
    most = max((label for label, count in counts.items() if count), default=0)
    labels = [least << i for i in range(40) if least << i <= most]
    return [(label, counts.get(label, 0)) for label in labels]


def _label(number: int) -> str:
    for unit, size in (("M", 1 << 20), ("K", 1 << 10)):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def diskstats(devices: Mapping[str, tuple[int, int, int, int]]) -> str:
    """`/proc/diskstats`: device → (writes, bytes written, time of all writes and time busy, both in milliseconds)."""
    return "".join(
        f"{253:4} {minor:7} {name} 0 0 0 0 {writes} 0 {size // 512} {ms} 0 {busy} {ms} 0 0 0 0 0 0\n"
        for minor, (name, (writes, size, ms, busy)) in enumerate(devices.items())
    )


def lnet_stats(
    sends: int, receives: int, sent_bytes: int, received_bytes: int, routed: int = 0, routed_bytes: int = 0
) -> str:
    """`lnet/stats`: the counts are 32 bits wide and wrap, the lengths 64."""
    numbers = (sends, receives, routed)
    wrapped = [n % 2**32 for n in numbers]
    counts = (0, 12, 0, *wrapped, 0, sent_bytes, received_bytes, routed_bytes, 0)
    return " ".join(map(str, counts)) + "\n"


def qos_weights(ost: int, values: Sequence[int], nid: str, of_server: Sequence[int]) -> str:
    """A line of `lod.*.qos_ost_weights` (`lod_tgt_weights_seq_show`)."""
    weight, penalty, per_object, avail, used = values
    server_avail, server_penalty, server_per_object, server_used = of_server
    return (
        f"- {{ ost_idx: {ost}, tgt_weight: {weight}, tgt_penalty: {penalty}, tgt_penalty_per_obj: {per_object}, "
        f"tgt_avail: {avail}, tgt_last_used: {used}, svr_nid: {nid}, svr_bavail: {server_avail}, svr_iavail: 1, "
        f"svr_penalty: {server_penalty}, svr_penalty_per_obj: {server_per_object}, svr_last_used: {server_used} }}\n"
    )


def lnet_nis(*nids: str) -> str:
    """`lnet/nis`."""
    return (
        "nid                      status alive refs peer  rtr   max    tx   min\n"
        "0@lo                         up     0    2    0    0     0     0     0\n"
    ) + "".join(f"{nid:<29}up    -1    1    8    0   256   256   246\n" for nid in nids)


def lnet_routes(routing: bool, routes: Sequence[tuple[str, str, bool]] = ()) -> str:
    """`lnet/routes`, in the form of `proc_lnet_routes`: (net, router, is it up)."""
    text = f"Routing {'enabled' if routing else 'disabled'}\nnet      hops priority   state router\n"
    return text + "".join(
        f"{net:<8} {-1:4} {0:8} {'up' if up else 'down':>7} {nid}\n" for net, nid, up in routes
    )


def proc_stat(busy_ticks: int, idle_ticks: int, cpus: int, boot_s: int) -> str:
    """`/proc/stat`: ticks per CPU (1/100 s)."""

    def line(name: str, factor: int) -> str:
        return f"{name} {busy_ticks * factor} 0 0 {idle_ticks * factor} 0 0 0 0 0 0\n"

    text = line("cpu ", cpus) + "".join(line(f"cpu{i}", 1) for i in range(cpus))
    return text + f"intr 0\nctxt 0\nbtime {boot_s}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"


def meminfo(total_kib: int, used_share: float) -> str:
    """`/proc/meminfo` of a server that uses `used_share` of its memory beside the page cache."""
    used = round(total_kib * used_share)
    cached = (total_kib - used) // 2
    free = total_kib - used - cached
    rows = {
        "MemTotal": total_kib,
        "MemFree": free,
        "MemAvailable": free + cached,
        "Buffers": 0,
        "Cached": cached,
        "SwapCached": 0,
        "Active": used,
        "Inactive": cached,
        "SwapTotal": 0,
        "SwapFree": 0,
        "Shmem": 0,
        "Slab": 0,
        "SReclaimable": 0,
        "SUnreclaim": 0,
    }
    return "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in rows.items())
