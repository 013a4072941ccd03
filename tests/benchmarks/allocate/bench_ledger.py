"""What a million promised stripes cost mdsd: memory, and time of each thing that happens to them.

Run: python tests/benchmarks/allocate/bench_ledger.py
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator

from tarazu.allocate.ledger import Ledger
from tarazu.stripes import pack

STRIPES = 1_000_000
OSTS = 3_600


def files(stripes: int) -> Iterator[dict[int, int]]:
    for number in range(STRIPES // stripes):
        yield {(number * 7 + k) % OSTS: 1 << 28 for k in range(stripes)}


def timed_ms(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def close(ledger: Ledger, count: int) -> None:
    for index in range(0, count, 2):
        ledger.closed("a", index, 1 << 20, 10.0, 130.0)


def bytes_per_stripe(stripes: int) -> tuple[float, float]:
    """After the promise, and after every second file was closed."""
    tracemalloc.start()
    ledger = Ledger()
    ledger.promise("a", "fs", 1e6, pack(files(stripes)))
    promised, _ = tracemalloc.get_traced_memory()
    close(ledger, STRIPES // stripes)
    closed, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return promised / STRIPES, closed / STRIPES


def main() -> None:
    print(
        "| stripes a file | files | bytes a stripe | half closed | pack (worker) | promise | a close |",
        end="",
    )
    print(" a second without an event | promised() | release of half | end of the step |")
    print("|---" * 11 + "|")
    for stripes in (1, 8, 160):
        count = STRIPES // stripes
        before, after = bytes_per_stripe(stripes)
        ledger, packed = Ledger(), pack(files(stripes))
        packing_ms = timed_ms(lambda n=stripes: pack(files(n)))  # type: ignore[misc]
        promise_ms = timed_ms(lambda: ledger.promise("a", "fs", 1e6, packed, alive_s=60.0, now=0.0))  # noqa: B023
        close_ms = timed_ms(lambda: close(ledger, count)) / (count / 2)  # noqa: B023
        idle_ms = timed_ms(lambda: (ledger.expire(50.0), ledger.silent(50.0)))  # noqa: B023
        sums_ms = timed_ms(lambda: ledger.promised("fs"))  # noqa: B023
        release_ms = timed_ms(lambda: ledger.expire(130.0))  # noqa: B023
        end_ms = timed_ms(lambda: ledger.ended("a"))  # noqa: B023
        assert not ledger.promised("fs")
        print(
            f"| {stripes} | {count:,} | {before:.1f} | {after:.1f} | {packing_ms:.0f} ms | {promise_ms:.0f} ms "
            f"| {close_ms * 1e3:.1f} µs | {idle_ms * 1e3:.0f} µs | {sums_ms:.2f} ms | {release_ms:.0f} ms "
            f"| {end_ms:.0f} ms |",
            flush=True,
        )


if __name__ == "__main__":
    main()
