"""Make client-pairs.csv and client-samples.csv.gz again: `python extract_client.py GIT_DIRECTORY`, of DIR-LAB/VertoIO.

There are 360 runs of five minutes (12 workloads of filebench, 30 of each), a file for each of the eight OSTs, of which
one has the I/O; a line is a half-second, in which one pair of parameters was in force that was drawn at random. So a
pair had half a second after any other: what writes had left in the page cache before is the noise of these data.
Throughput: of reads what programs got; of writes what was sent, since half a second of the cache tells nothing of a
pair.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import statistics
import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
KEPT = {(pages, rpcs) for pages in (2, 8, 16, 64, 256, 1024) for rpcs in (8, 32, 128)}
"""Pairs of which each sample is kept; of the others the means are."""
NAME = re.compile(r"dataset/\w+/(\w+?)_itern_(\d+)_filebench_\w+-OST([0-9a-f]{4})-osc-\w+\.csv")


def number(value: float, digits: int = 4) -> str:
    return f"{float(f'{value:.{digits}g}'):g}"


def main(git_directory: str) -> None:
    runs: dict[tuple[str, int], dict[str, list[dict[str, float]]]] = defaultdict(dict)
    archive = subprocess.Popen(
        ["git", "--git-dir", git_directory, "archive", "HEAD", "dataset"], stdout=subprocess.PIPE
    )
    with tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
        for member in tar:
            named, file = NAME.fullmatch(member.name), tar.extractfile(member) if member.isfile() else None
            if named and file:
                runs[named[1], int(named[2])][named[3]] = samples(file.read().decode(), named[1])
    archive.wait()
    of: dict[tuple[str, int, int], list[tuple[int, dict[str, float]]]] = defaultdict(list)
    for (workload, run), osts in sorted(runs.items()):
        busy = max(osts.values(), key=lambda lines: sum(line["rpc_bytes"] for line in lines))
        active = [n for n, line in enumerate(busy) if line["rpc_bytes"] + line["bytes"]]
        for line in busy[active[0] + 2 : active[-1] - 1]:  # whole ones, after the start
            of[workload, int(line["pages"]), int(line["rpcs"])].append((run, line))
    pairs, kept = io.StringIO(), io.StringIO()
    means = csv.writer(pairs, lineterminator="\n")
    each = csv.writer(kept, lineterminator="\n")
    means.writerow("workload pages rpcs samples mb_s_even mb_s_odd call_kib rpc_kib in_flight".split())
    each.writerow("workload pages rpcs run mb_s rpc_kib in_flight".split())
    for (workload, pages, rpcs), lines in sorted(of.items()):
        halves = [[line["mb_s"] for run, line in lines if run % 2 == odd] for odd in (0, 1)]
        sent = [line for _, line in lines if line["sent"]]
        called = [line["call_kib"] for _, line in lines if line["call_kib"]]
        means.writerow(
            [workload, pages, rpcs, len(lines)]
            + [number(statistics.fmean(half)) for half in halves]
            + [number(statistics.median(called))]
            + [number(statistics.median(line[name] for line in sent)) for name in ("rpc_kib", "in_flight")]
        )
        for run, line in lines if (pages, rpcs) in KEPT else ():
            values = (line["mb_s"], line["rpc_kib"], line["in_flight"])
            each.writerow([workload, pages, rpcs, run, *(number(value, 3) for value in values)])
    (HERE / "client-pairs.csv").write_text(pairs.getvalue())
    with (HERE / "client-samples.csv.gz").open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(kept.getvalue().encode())


def samples(text: str, workload: str) -> list[dict[str, float]]:
    """Lines of one OST."""
    side = "read" if "_r_" in workload else "write"
    lines = list(csv.reader(text.splitlines()))
    at = {name: column for column, name in enumerate(lines[0])}
    made = []
    for line in lines[2:]:

        def value(name: str, line: list[str] = line) -> float:
            return float(line[at[name]])

        seconds = value("actual_record_duration") or 0.5
        calls, size = (
            value(f"llite_stats_{side}_bytes.no_of_samples"),
            value(f"llite_stats_{side}_bytes.samples_sum"),
        )
        sent, rpc_size = (
            value(f"ost_{side}_rpc_bytes_data.{name}") for name in ("no_of_samples", "samples_sum")
        )
        issued = value("osc_req_active_data.no_of_samples")
        made.append(
            {
                "pages": value("osc_rpc_configuration_current.mppr_value"),
                "rpcs": value("osc_rpc_configuration_current.mrif_value"),
                "bytes": size,
                "rpc_bytes": rpc_size,
                "mb_s": (size if side == "read" else rpc_size) / seconds / 1e6,
                "call_kib": size / calls / 1024 if calls else 0.0,
                "sent": sent,
                "rpc_kib": rpc_size / sent / 1024 if sent else 0.0,
                "in_flight": value("osc_req_active_data.samples_sum") / issued if issued else 0.0,
            }
        )
    return made


if __name__ == "__main__":
    main(sys.argv[1])
