"""Thirty questions of users, operators, researchers and maintainers: each is answered two clicks from the front."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.reading import ROOT
from tests.docs.test_pages import anchors

CLICKS = 2
QUESTIONS = {
    "What is it?": "README.md#tarazu",
    "How mature is it?": "README.md#how-mature-it-is",
    "What does it gain and lose?": "README.md#what-it-gains-and-loses",
    "Can I try it without Lustre?": "docs/quickstart.md#do-it-by-hand",
    "How do I run a job?": "docs/user-guide.md#run-a-job",
    "What does it cost my job?": "docs/user-guide.md#what-it-costs",
    "How do I turn it off?": "docs/user-guide.md#turn-it-off",
    "Nothing is placed: why?": "docs/user-guide.md#when-something-is-odd",
    "What does this line of jobs.log mean?": "docs/user-guide.md#what-happened-to-my-job",
    "Can it learn from my Darshan logs?": "docs/user-guide.md#learn-from-darshan-logs",
    "Does it respect my lfs setstripe?": "docs/user-guide.md#your-wishes-come-first",
    "How do I use it with Slurm?": "docs/job-launch.md#slurm",
    "How do I use it in a container?": "docs/job-launch.md#apptainer-and-other-containers",
    "My program is static: what now?": "docs/without-preload.md#a-jobs-directories",
    "How does my program do I/O?": "docs/phases.md#io-phases",
    "Which package goes on which node?": "docs/packages.md#packages",
    "How do I install and configure it?": "docs/operator-guide.md#install",
    "How do I upgrade?": "docs/packages.md#upgrade",
    "How do I remove it?": "docs/packages.md#uninstall",
    "How do I switch it off for everybody?": "docs/off-switches.md#everything-at-once",
    "How do I start with a few users?": "docs/off-switches.md#a-part-of-it",
    "Does it work with my Lustre?": "docs/compatibility.md#versions-of-lustre",
    "What if mdsd's node dies?": "docs/second-mdsd.md#what-happens-when",
    "What can it change, and how do I undo it?": "docs/changes.md#take-back",
    "Why does it call this OST slow?": "docs/deciding.md#which-ost-is-slow",
    "Who can do what?": "docs/security.md#who-talks-to-whom",
    "How do I see the OSTs live?": "docs/watching.md#tarazu-top",
    "How do I simulate my own cluster?": "docs/simulator.md#scenarios",
    "How far can I trust the simulator?": "docs/validation.md#the-simulator",
    "What is measured, what assumed?": "docs/validation.md#assumed-and-measured",
    "Where in the code is what?": "docs/architecture.md#the-way-of-a-file-from-a-counter-to-open",
}
FRONT = (ROOT / "README.md", ROOT / "docs" / "index.md")


@cache
def pages_within(clicks: int) -> frozenset[Path]:
    """The pages that so many links of the front lead to at most."""
    if clicks == 0:
        return frozenset(FRONT)
    near = pages_within(clicks - 1)
    links = {
        (page.parent / name).resolve()
        for page in near
        for name in re.findall(r"\]\(([\w./-]+\.md)", page.read_text())
    }
    return near | links


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_two_clicks(question: str) -> None:
    name, _, heading = QUESTIONS[question].partition("#")
    page = ROOT / name
    assert page in pages_within(CLICKS), f"{name}: no two links lead there from README or docs/index.md"
    assert heading in anchors(page), f"{name}: no heading #{heading}"


def test_there_are_thirty_questions() -> None:
    assert len(QUESTIONS) >= 30
