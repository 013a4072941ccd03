"""Benchmark runs and the system's state during each, of NERSC's tokio-abcutils: tokio-runs.csv.gz of README.md.

`python extract_tokio.py GIT_DIRECTORY`, of a clone of https://github.com/NERSC/tokio-abcutils; needs git.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COMMIT = "d8594fb"
TABLES = tuple(f"summaries/{system}-summaries_2017-02-14-2018-02-15.csv.gz" for system in ("cori", "edison"))
TARGET = Path(__file__).parent / "tokio-runs.csv.gz"
GIB = 2**30
OTHER_OPERATIONS = (
    "close getattr getxattr link mkdir mknod rename rmdir setattr statfs unlink".split()  # of the MDS
)
COLUMNS = (
    "start_s file_system processes application mode direction gib speed_mib_s wall_s others_read_gib"
    " others_written_gib others_opens other_operations mds_cpu oss_cpu missing full most_full"
    " failed_over_osses jobs node_hours radius"
).split()


def rows(git_directory: str) -> Iterator[list[object]]:
    """Runs on a Lustre file system, oldest first; those on Cori's burst buffer name none."""
    found = []
    for table in TABLES:
        packed = subprocess.run(
            ["git", f"--git-dir={git_directory}", "show", f"{COMMIT}:{table}"],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        with gzip.open(io.BytesIO(packed), "rt", newline="") as opened:
            names, *lines = csv.reader(opened)
            # Each line but the first opens with a number of its own.
            runs = (dict(zip(names, line[-len(names) :], strict=True)) for line in lines)
            found += [_row(run) for run in runs if run["_file_system"]]
    return iter(sorted(found, key=lambda row: (row[1], row[0])))  # type: ignore[arg-type, return-value]


def _row(run: dict[str, str]) -> list[object]:
    def number(name: str) -> float:
        return float(run.get(name) or "nan")

    read, written = (number(f"darshan_tot_bytes_{way}_posix") for way in ("read", "written"))
    writes = number("darshan_biggest_write_api_bytes") > number("darshan_biggest_read_api_bytes")
    files = number(f"darshan_biggest_{'write' if writes else 'read'}_api_files")
    processes = int(number("darshan_nprocs"))
    operations = sum(number(f"fs_tot_{name}_ops") for name in OTHER_OPERATIONS)
    return [
        int(number("darshan_start_time")),
        run["_file_system"],
        processes,
        run["darshan_app"].rpartition("/")[2],
        # As tokio-abcutils has it: a file per process where the files divide by the processes.
        "fpp" if files % processes < 0.05 * files else "shared",
        "write" if writes else "read",
        _short((read + written) / GIB),
        _short(number("darshan_agg_perf_by_slowest_posix")),
        int(number("darshan_walltime")),
        _short((number("fs_tot_bytes_read") - read) / GIB),
        _short((number("fs_tot_bytes_written") - written) / GIB),
        _short(number("fs_tot_open_ops") - number("darshan_tot_opens_posix")),
        _short(operations),
        _short(number("fs_ave_mds_cpu")),
        _short(number("fs_ave_oss_cpu")),
        _short(number("fs_frac_missing")),
        _short(number("fshealth_ost_avg_full_pct")),
        _short(number("fshealth_ost_most_full_pct")),
        _short(number("fshealth_ost_overloaded_oss_count")),
        int(number("jobsdb_concurrent_jobs")),
        _short(number("jobsdb_concurrent_nodehrs")),
        _short(number("topology_job_avg_radius")),
    ]


def _short(value: float) -> str:
    """Three digits, as much as the monitoring is worth; empty where it is not known."""
    return f"{value:.3g}" if math.isfinite(value) else ""


def main() -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows(sys.argv[1]))
    TARGET.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
