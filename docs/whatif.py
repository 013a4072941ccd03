"""Draws `docs/whatif.svg`: the picture of `tarazu whatif --example`."""

from __future__ import annotations

from importlib.resources import as_file
from pathlib import Path

from tarazu.parts.whatif import picture
from tarazu.parts.whatif.job import jobs
from tarazu.parts.whatif.study import study
from tarazu.trace.darshan import example
from tarazu.trace.darshan.read import read

PICTURE = Path(__file__).with_name("whatif.svg")


def main() -> None:
    with as_file(example()) as log:
        picture.draw([picture.of_job(study(job)) for job in jobs(read(log)).jobs], PICTURE)


if __name__ == "__main__":
    main()
