"""Damaged interaction databases, used as clientd does: each works, is refused in a line, or is set aside.

A database is changed: bytes, pieces cut out, doubled or exchanged, the end torn off.
"""

from __future__ import annotations

import random
import resource
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tarazu.daemons.clientd.stored_plans import StoredPlans
from tarazu.errors import TarazuError
from tarazu.model import FilePlacement
from tarazu.store.database import open_database
from tarazu.wire import local
from tests.store.test_database import PFL, STEP, planned

SEED = Path(__file__).parents[1] / "data" / "database" / "7.db"


class Result(NamedTuple):
    mutants: int
    ends: dict[str, int]
    """How it ended (used, refused, set aside) → how often."""
    longest_line: int
    peak_mb: float


def mutate_database(n: int, seed: int = 0) -> Result:
    """Try `n` mutants. Raises what no caller expects: anything but a TarazuError of one line."""
    rng, data = random.Random(seed), SEED.read_bytes()
    ends: Counter[str] = Counter()
    longest = 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "interaction.db"
        aside = Path(f"{path}.damaged")
        for _ in range(n):
            for file in path.parent.iterdir():
                file.unlink()
            path.write_bytes(mutant(data, rng))
            try:
                use(path)
                ends["set aside" if aside.exists() else "used"] += 1
            except TarazuError as error:
                text = str(error)
                if "\n" in text:
                    raise AssertionError(f"expected one line, found {text!r}") from error
                longest = max(longest, len(text))
                ends["refused"] += 1
    return Result(n, dict(ends), longest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def mutant(data: bytes, rng: random.Random) -> bytes:
    """One to eight changes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(found) or 1)
        size = rng.choice((1, 1, 1, 2, 16, 512, 4096))
        match rng.randrange(6):
            case 0:
                found[at : at + size] = rng.randbytes(len(found[at : at + size]))
            case 1:
                found[at : at + size] = b""
            case 2:
                found[at:at] = found[at : at + size]
            case 3:
                other = rng.randrange(len(found) or 1)
                found[at : at + size], found[other : other + size] = (
                    found[other : other + size],
                    found[at : at + size],
                )
            case 4:
                found[at : at + size] = bytes(len(found[at : at + size]))
            case _:
                if found and at > 100:
                    del found[at:]
    return bytes(found)


def use(path: Path) -> None:
    """What clientd does in its life with a database."""
    stored = StoredPlans(str(path))
    stored.rows(local.PlansQuery(), 0)
    stored.rows(local.PlansQuery(key="/ior/test.0"), 1000)
    with open_database(path) as database:
        for plan in database.plans():
            database.files(plan.id)
        plan_id = database.new_plan(STEP)
        ids = database.add_files(plan_id, [planned(rank, PFL) for rank in range(3)])
        database.set_allocation(
            plan_id, status="allocated", placements={ids[0]: FilePlacement(((1,), (2, 3, 4)))}
        )
        database.prune(STEP, keep=1, user_bytes=1 << 20)
