"""sbatch, with the nodes that tarazu-burstd would ask for: for sites without a plugin of Slurm.

    tarazu change bursts sbatch -- -N 64 -p batch job.sh       everything after `--` is sbatch's own
    tarazu change bursts sbatch -- -N 64 --wrap ./a.out

sbatch itself reads the options (`sbatch -v --test-only`). Nothing is added if they say more of nodes than how many, if
tarazu-burstd is silent, or for a script on standard input. What is added is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tarazu import config
from tarazu.errors import TarazuError, Unavailable
from tarazu.names import shown
from tarazu.parts.bursts.settings import options_of
from tarazu.run.program import restore_environment

OWN = {
    "array",
    "batch",
    "bb",
    "bbf",
    "clusters",
    "constraint",
    "contiguous",
    "exclude",
    "immediate",
    "nodefile",
    "nodelist",
    "prefer",
    "reservation",
    "spread-job",
    "switches",
}
"""Options with which somebody says which nodes, or whose jobs are left alone."""
LATER = {"begin", "dependency", "hold"}
ALONE = set(
    "contiguous exclusive get-user-env hold ignore-pbs nice no-kill no-requeue overcommit oversubscribe parsable "
    "propagate quiet reboot requeue spread-job use-min-nodes verbose wait H O Q W k s v".split()
)
"""Options whose next word is not their value."""
ANSWER_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="of sbatch")


def execute(options: argparse.Namespace) -> int:
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    added: list[str] = []
    try:
        added = advice(words, config.load(options.config))
    except TarazuError as error:
        _say(f"tarazu: nothing added: {error}")
    restore_environment()  # the job gets it
    try:
        os.execvp("sbatch", ["sbatch", *added, *words])
    except OSError as error:
        raise Unavailable(f"sbatch: {error.strerror}") from None


def advice(words: Sequence[str], settings: config.Settings) -> list[str]:
    """Options to add, which are also printed. Raises TarazuError."""
    from tarazu.batch.slurm import sbatch_options
    from tarazu.parts.bursts.burstd.asked import VERSION, AboutJob, JobAnswer
    from tarazu.parts.bursts.burstd.asking import ask

    read = sbatch_options(words)
    nodes = read.get("nodes", "")
    if set(read) & OWN or not nodes.isdecimal() or int(nodes) < 2:
        return []
    name = read.get("job-name") or ("wrap" if "wrap" in read else script(words))
    if not name:
        return []
    question = AboutJob(
        VERSION,
        os.fsencode(name).decode("latin-1"),
        int(nodes),
        partition=read.get("partition", ""),
        waits=bool(set(read) & LATER),
    )
    answer = ask(options_of(settings).socket, question, JobAnswer, ANSWER_S)
    if answer.say:
        _say(answer.say)
    if not answer.nodes:
        return []
    _say(f"tarazu: sbatch --nodelist={answer.nodes}")
    return [f"--nodelist={answer.nodes}"]


def _say(text: str) -> None:
    """Beside what sbatch prints."""
    print(shown(text), file=sys.stderr)


def script(words: Sequence[str]) -> str:
    """The script's name, after which Slurm names the job; empty where it is not clear which word it is."""
    for before, word in zip(("", *words), words, strict=False):
        if not word.startswith("-") and Path(word).is_file():
            clear = not before.startswith("-") or "=" in before or before.lstrip("-") in ALONE
            return Path(word).name if clear else ""
    return ""
