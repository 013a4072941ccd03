"""Stripe counts by curves in mdsd: what it keeps of running steps, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tarazu.config import Settings
from tarazu.part import Asker, MdsdFacts
from tarazu.parts.forwarding.counting import MOST_OF_USER, MOST_WAITING_OF_USER, Counting
from tarazu.parts.forwarding.messages import CountReply, CountRequest, StepProfile

OSTS = 8
PEAK = ((1, 1e9), (2, 1.9e9), (4, 3.5e9), (6, 3e9), (8, 2.5e9))
FLAT = ((1, 1e9), (8, 1.01e9))


class Asked:
    """A Counting, and what it has answered."""

    def __init__(self) -> None:
        self.replies: list[CountReply] = []
        self.of: list[str] = []
        """The ids of what they answer."""
        self.now = 0.0
        self.counting = Counting(
            MdsdFacts(Settings(), print, lambda: None, str, lambda fs: OSTS if fs == "lustre" else 0)
        )

    def ask(self, id: str, *, uid: int = 1000, wait: bool = True, **more: Any) -> CountReply | None:
        profile = {"nodes": 4, "cpu_s": 100.0, "io_bytes": 1e10, "points": PEAK, **more.pop("profile", {})}
        request = CountRequest(
            **{
                "id": id,
                "fs_name": "lustre",
                "job_id": "",
                "profile": StepProfile(**profile),
                "alive_s": 10.0,
                **more,
            }
        )
        before = len(self.replies)

        def reply(answer: Any) -> None:
            self.replies.append(answer)
            self.of.append(id)

        asker = Asker("client", uid, reply)
        self.counting.answer(asker, request, self.now)
        return self.answer(lambda: len(self.replies) > before) if wait else None

    def steps(self) -> int:
        """How many it keeps."""
        return int(self.counting.status(self.now)["steps"])

    def answer(self, there: Callable[[], bool]) -> CountReply:
        deadline = time.monotonic() + 120
        while not there():
            assert time.monotonic() < deadline
            self.counting.turn(self.now, True)
            time.sleep(0.001)
        return self.replies[-1]


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked()
    yield made
    made.counting.close()


def test_a_step_alone_gets_what_its_curve_says(asked: Asked) -> None:
    reply = asked.ask("a")
    assert reply == CountReply(4, f"by joint among 1 running step on {OSTS} OSTs")
    assert asked.ask("b", fs_name="other") == CountReply(0, "no usable OST of other has been reported")


def test_those_that_run_take_part(asked: Asked) -> None:
    """T_cpu: what computes little gets fewer where all together are too much."""
    counts = [(asked.ask(str(n), profile={"cpu_s": 0.1}) or CountReply(0)).count for n in range(12)]
    assert counts[0] == 4 > min(counts) and asked.steps() == 12
    assert "among 12 running steps" in asked.replies[-1].why
    asked.ask("one of another file system", fs_name="lustre", profile={"points": FLAT})
    assert asked.steps() == 13


def test_asked_again_it_says_the_same(asked: Asked) -> None:
    first = asked.ask("a")
    for n in range(8):
        asked.ask(f"other{n}", profile={"cpu_s": 0.1})
    again = asked.ask("a")
    assert first and again == first and asked.steps() == 9


def test_further_plans_of_a_step_are_no_further_step(asked: Asked) -> None:
    asked.ask("a", job_id="77"), asked.ask("b", job_id="77")
    assert asked.steps() == 1 and "among 1 running step " in asked.replies[-1].why
    asked.counting.ended("a")
    assert asked.steps() == 1
    asked.counting.ended("b")
    assert asked.steps() == 0
    asked.ask("c", job_id="77")
    asked.ask("d", job_id="77", uid=1001)
    asked.ask("e", job_id="77", profile={"io_bytes": 7.0})
    assert asked.steps() == 3


def test_further_files_of_a_step_get_what_suits_now(asked: Asked) -> None:
    first = asked.ask("a", job_id="77", profile={"cpu_s": 0.1})
    for n in range(4):
        asked.ask(f"other{n}", profile={"cpu_s": 0.1})
    later = asked.ask("b", job_id="77", profile={"cpu_s": 0.1})
    assert first and later and later.count < first.count == 4
    again = asked.ask("a", job_id="77", profile={"cpu_s": 0.1})
    assert again and again.count == first.count


def test_silence_ends_a_step_and_signs_of_life_do_not(asked: Asked) -> None:
    asked.ask("a"), asked.ask("b")
    asked.now = 8.0
    asked.counting.alive(["a", "nobody's"], asked.now)
    asked.now = 15.0
    asked.counting.turn(asked.now, True)
    assert asked.steps() == 1
    asked.now = 30.0
    asked.counting.turn(asked.now, True)
    assert asked.steps() == 0


def test_a_question_only_is_not_kept(asked: Asked) -> None:
    reply = asked.ask("a", alive_s=0.0)
    assert reply and reply.count == 4 and asked.steps() == 0


def test_what_ends_before_its_answer_is_answered_and_forgotten(asked: Asked) -> None:
    asked.ask("a", wait=False)
    asked.ask("b", wait=False)
    asked.counting.ended("b")
    asked.answer(lambda: len(asked.replies) == 2)
    assert {*asked.of} == {"a", "b"} and asked.steps() == 1


def test_no_user_keeps_too_many(asked: Asked) -> None:
    for n in range(MOST_OF_USER):
        asked.ask(str(n), profile={"points": FLAT}, fs_name="lustre")
    reply = asked.ask("more")
    assert reply and reply.count == 0 and f"at most {MOST_OF_USER}" in reply.why
    other = asked.ask("other", uid=7)
    assert other and other.count > 0


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        ({"points": ()}, "at least one point"),
        ({"points": ((1, float("nan")),)}, "positive bandwidth"),
        ({"cpu_s": float("inf")}, "seconds of computing"),
        ({"io_bytes": 0.0}, "bytes of I/O"),
        ({"points": ((1, 1.0), (8, 1e18))}, "bytes a second at the most"),
        ({"points": ((1 << 62, 1e9),)}, "resources from 1"),
        ({"nodes": 1 << 63}, "compute nodes"),
        ({"phases": 1 << 62}, "phases"),
    ],
)
def test_a_profile_that_cannot_be_is_refused(asked: Asked, profile: dict[str, Any], why: str) -> None:
    reply = asked.ask("a", profile=profile)
    assert reply and reply.count == 0 and why in reply.why and asked.steps() == 0


def test_one_users_questions_leave_room_for_those_of_others(asked: Asked) -> None:
    for n in range(MOST_WAITING_OF_USER + 2):
        asked.ask(str(n), wait=False, alive_s=0.0)
    asked.ask("of another", wait=False, uid=7)
    asked.answer(lambda: len(asked.replies) == MOST_WAITING_OF_USER + 3)
    ((refused, id),) = ((r, id) for r, id in zip(asked.replies, asked.of, strict=True) if not r.count)
    assert id == f"{MOST_WAITING_OF_USER + 1}" and f"at most {MOST_WAITING_OF_USER} waiting" in refused.why


@pytest.mark.parametrize("wait", [True, False])
def test_an_id_of_another_user_is_refused(asked: Asked, wait: bool) -> None:
    asked.ask("a", wait=wait)
    asked.ask("a", uid=7, wait=False)
    asked.answer(lambda: len(asked.replies) == 2)
    ((refused, of_other),) = ((r.why, r.count) for r in asked.replies if not r.count)
    assert "another user's" in refused and of_other == 0 and asked.counting.owner("a") == 1000
