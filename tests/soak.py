"""The tests of races, kills, crowds and bounds (marker `soak`), again and again: `python -m tests.soak ROUNDS [...]`.

What follows the number goes to pytest. One line a round, and a summary; the output of a round that failed is kept in
soak-output/. The first round runs the long forms too (TARAZU_SOAK). Exit status 0 only when no round failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LONGEST_ROUND_S = 3600.0
"""A round that takes longer hangs, and has failed."""


def one_round(number: int, arguments: list[str], output: Path) -> tuple[bool, str]:
    """Whether nothing failed, and pytest's own summary; everything it says goes to `output`."""
    environment = {**os.environ, "TARAZU_SOAK": "1"} if number == 1 else dict(os.environ)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "soak or long",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    with output.open("w") as file:
        # A group of its own: what hangs is ended with all that it started.
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            code = process.wait(LONGEST_ROUND_S)
        except subprocess.TimeoutExpired:
            return False, f"hung: not over after {LONGEST_ROUND_S:g} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    lines = output.read_text(errors="replace").splitlines()
    said = next((line.strip("= ") for line in reversed(lines) if " in " in line), "pytest said nothing")
    return code == 0, said


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    if not arguments or not arguments[0].isdecimal() or int(arguments[0]) < 1:
        found = arguments[0] if arguments else "nothing"
        print(f"soak: a number of rounds above 0 expected, {found} found", file=sys.stderr)
        return 2
    # Told to end, it ends what it started, as with ^C.
    signal.signal(signal.SIGTERM, interrupt)
    rounds, begin = int(arguments[0]), time.monotonic()
    directory = Path("soak-output")
    directory.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    done, failed = 0, 0
    try:
        for number in range(1, rounds + 1):
            output = directory / f"{stamp}-round-{number}.txt"
            good, said = one_round(number, arguments[1:], output)
            done, failed = done + 1, failed + (not good)
            verdict = "ok" if good else "FAILED"
            print(
                f"round {number} of {rounds}: {verdict}: {said}{'' if good else f' ({output})'}", flush=True
            )
            if good:
                output.unlink()
    except KeyboardInterrupt:
        failed += 1
        print(f"round {done + 1} of {rounds}: interrupted")
    minutes = (time.monotonic() - begin) / 60
    print(f"{done} rounds, {failed} failed, {minutes:.1f} minutes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
