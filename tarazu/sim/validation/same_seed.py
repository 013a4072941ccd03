"""The same seed gives the same result, bit for bit: in this process, in a fresh one, and for another seed not."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import msgspec

from tarazu.errors import TarazuError
from tarazu.sim.model import presets
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import Failure, Job
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow
from tarazu.sim.workloads import ior
from tarazu.units import MIB

POLICIES = ("lsa", "random", "tarazu")


def digest(policy: str, seed: int) -> str:
    """Of every number of two runs in a row, with other users' traffic, old statistics and an OST that fails."""
    simulation = Simulation(
        presets.named("paper").spec, policy, seed, statistics_s=5.0, failures=[Failure(3, 4.0, 0.2, 20.0)]
    )
    jobs = [
        Job(ior.workload(ranks=12, ranks_per_node=12, block_bytes=192 * MIB), striping="pfl-1"),
        Job(
            ior.workload(ranks=4, ranks_per_node=4, block_bytes=64 * MIB, name="other"),
            first_node=1,
            background=True,
        ),
    ]
    told = msgspec.json.encode([simulation.run(jobs), simulation.run(jobs)])
    return hashlib.sha256(told).hexdigest()


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """For each policy how many of four digests differ that must not, and of two that must."""
    comparisons: list[ValidationRow] = []
    for policy in POLICIES if full else POLICIES[-1:]:
        progress(f"same seed: {policy}")
        here = digest(policy, 1)
        hash_seeds = ("0", "1") if full else ("0",)
        again = [digest(policy, 1), *(_elsewhere(policy, hash_seed) for hash_seed in hash_seeds)]
        differ = sum(other != here for other in again)
        name = f"same seed: {policy}, {len(again)} repetitions, {len(hash_seeds)} in processes of their own"
        comparisons.append(
            ValidationRow(name, "results that differ", 0.0, differ, differ, 0.0, "the first result")
        )
        if policy == "random":
            other = float(digest(policy, 2) != here)
            name = f"another seed: {policy}"
            comparisons.append(
                ValidationRow(name, "results that differ", 1.0, other, 1.0 - other, 0.0, "the first result")
            )
    return tuple(comparisons)


def _elsewhere(policy: str, hash_seed: str) -> str:
    """Where sets and dictionaries of strings have another order."""
    program = f"from tarazu.sim.validation.same_seed import digest; print(digest({policy!r}, 1))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise TarazuError(f"same seed: expected a digest, found {done.stderr.strip()[-500:]}")
    return done.stdout.strip()
