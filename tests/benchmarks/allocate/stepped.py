"""Three jobs at once that write and read a file per rank in each of ten steps: how long they take under each policy.

Run: python tests/benchmarks/allocate/stepped.py [--osts 480] [--share 0.125] [--policies lsa,tarazu]
"""

from __future__ import annotations

import argparse
import time

import msgspec
import numpy as np

from tarazu.sim.model import presets
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import Job
from tarazu.sim.workloads.workload import OPERATION, File, OperationKind, Workload

STEPS = 10
JOBS = (("first", 768, 10.4e6, 0), ("second", 1536, 9.8e6, 128), ("third", 384, 13.6e6, 384))
"""(name, ranks, bytes of a file, first node); times 1 / share in bytes and share in ranks."""


def stepped(name: str, ranks: int, file_bytes: float, seed: int) -> Workload:
    """Files within a tenth of that size, each another, a barrier after every step."""
    random = np.random.default_rng(seed)
    files, operations = [], []
    for rank in range(ranks):
        for step in range(STEPS):
            number, size = len(files), int(file_bytes * random.uniform(0.9, 1.1))
            files.append(File(f"{name}/{rank}.{step}", size))
            operations += [
                (rank, number, OperationKind.CREATE, 0, 0, 0, 0, 0),
                (rank, number, OperationKind.WRITE, 0, 0, 0, size, size),
                (rank, number, OperationKind.READ, 0, 0, 0, size, size),
                (rank, number, OperationKind.CLOSE, 0, 0, 0, 0, 0),
                (rank, -1, OperationKind.BARRIER, 0, 0, 0, 0, 0),
            ]
    return Workload(name, ranks, 6, tuple(files), np.array(operations, OPERATION))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--osts", type=int, default=480)
    parser.add_argument("--share", type=float, default=0.125, help="of the ranks; 1: 26,880 files")
    parser.add_argument("--policies", default="lsa,random,tarazu")
    arguments = parser.parse_args()
    spec = msgspec.structs.replace(presets.named("scaling").spec, osts=arguments.osts)
    jobs = [
        Job(stepped(name, int(ranks * arguments.share), size / arguments.share, seed), first_node=node)
        for seed, (name, ranks, size, node) in enumerate(JOBS, 1)
    ]
    print("policy       all end  each job                 OST cost  CPU")
    for policy in arguments.policies.split(","):
        start = time.process_time()
        found = Simulation(spec, policy, resolution_s=0.05).run(jobs)
        each = " ".join(f"{job.end_s:7.2f}" for job in found.jobs)
        cpu_s = time.process_time() - start
        print(f"{policy:10} {found.end_s:7.2f} s  {each}  {found.ost_cost:8.4f}  {cpu_s:.1f} s", flush=True)


if __name__ == "__main__":
    main()
