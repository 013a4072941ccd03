"""Every file that the product reads, damaged: it is refused in one line, set aside, or read as something else.

A `Case` makes a whole file and reads it as the product does. `sites.py` finds each function that opens a file or makes
values of its bytes; `test_files.py`
misses each that no case names.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import TarazuError
from tests.hostile.cases import CASES
from tests.hostile.cases.case import Case

VALUES = (0xFF, 0x22, 0x39)
"""Put in place of a byte: no UTF-8, a quote, a digit."""
SHORT = 400
"""Up to so many bytes each is changed; of a longer file so many places are drawn."""
CUTS = 24


class Result(NamedTuple):
    readers: int
    damaged: int
    refused: int
    longest_line: int


def mutants(data: bytes, rng: random.Random, places: int = SHORT) -> Iterator[bytes]:
    """Each byte (of a long file: some) in place of others, pieces gone or doubled, and the end torn off."""
    short = len(data) <= places
    for at in range(len(data)) if short else sorted(rng.sample(range(len(data)), places)):
        flipped = data[at] ^ (1 << rng.randrange(8))
        for value in (*VALUES, flipped) if short else (rng.choice(VALUES), flipped):
            if value != data[at]:
                yield data[:at] + bytes((value,)) + data[at + 1 :]
    for _ in range(CUTS):
        at, size = rng.randrange(len(data)), rng.choice((1, 2, 16, 512))
        yield data[:at]
        yield data[:at] + data[at + size :]
        yield data[:at] + data[at : at + size] + data[at:]
    yield b""


def damage(case: Case, rng: random.Random, places: int = SHORT) -> Result:
    """Raises AssertionError naming the reader for whatever is no TarazuError of one line."""
    count = refused = longest = 0
    with tempfile.TemporaryDirectory(prefix="tarazu-") as directory:
        whole, at = Path(directory, "whole"), Path(directory, "damaged")
        whole.mkdir()
        file = case.make(whole)
        case.read(file)
        data, name = file.read_bytes(), file.relative_to(whole)
        mode, beside = file.stat().st_mode, set(os.listdir(file.parent))
        at.mkdir()
        for mutant in mutants(data, rng, places):
            count += 1
            if not (at / name).exists() or set(os.listdir((at / name).parent)) != beside:
                shutil.rmtree(at)
                shutil.copytree(whole, at)
            (at / name).write_bytes(mutant)
            (at / name).chmod(mode)
            try:
                case.read(at / name)
            except TarazuError as error:
                refused += 1
                text = str(error)
                longest = max(longest, len(text))
                if "\n" in text or "\r" in text:
                    raise AssertionError(f"{case.name}: expected one line, found {text!r}") from error
            except Exception as error:
                changed = next((i for i, (a, b) in enumerate(zip(mutant, data, strict=False)) if a != b), -1)
                raise AssertionError(
                    f"{case.name}: expected it refused in a line, found {type(error).__name__}: {error} "
                    f"(byte {changed} of {len(data)})"
                ) from error
    return Result(1, count, refused, longest)


def mutate_files(n: int, seed: int = 0) -> Result:
    """All readers; of long files a tenth of `n` places each."""
    total = Result(0, 0, 0, 0)
    for case in CASES:
        one = damage(case, random.Random(f"{seed} {case.name}"), max(case.places or SHORT, n // 10))
        total = Result(
            total.readers + 1,
            total.damaged + one.damaged,
            total.refused + one.refused,
            max(total.longest_line, one.longest_line),
        )
    return total
