"""Two mdsds through kills, stops and cut links: no promise is lost or made twice, in the end both are equal."""

from __future__ import annotations

import random

import pytest

from tarazu.allocate.records import Closed, Died
from tests.daemons.mdsd.two_mdsds import World


def scenario(seed: int, steps: int) -> World:
    rng = random.Random(seed)
    world = World(rng)
    world.run(rng.choice((1, 5, 8)))
    for number in range(steps):
        either = world.nodes[rng.random() < 0.5]
        living = list(world.living())
        what = rng.random()
        if what < 0.5:
            id = f"r{number}"
            either.ask(id, rng, rng.choice((0.01, 0.1, 0.5, 1.0)))
            if rng.random() < 0.5:
                world.step()
            for node in world.nodes.values():  # no answer yet: the client asks both
                node.ask(id, rng, 0.2)
        elif what < 0.6 and living:
            world.write(rng.choice(living))
        elif what < 0.7 and living:
            world.end(rng.choice(living))
        elif what < 0.72:
            world.delete()
        elif what < 0.74:
            world.cut[:] = rng.choice(((True, True), (True, False), (False, True)))
        elif what < 0.77:
            world.cut[:] = (False, False)
        elif what < 0.78:
            either.kill()
        elif what < 0.80:
            for node in world.nodes.values():
                if node.pair is None:
                    node.start()
        elif what < 0.805:
            either.paused = True
        elif what < 0.82:
            for node in world.nodes.values():
                node.paused = False
        world.run(rng.choice((0.1, 0.1, 0.3, 1.0, 3.0 if rng.random() < 0.2 else 0.2)))
    return world


@pytest.mark.parametrize("seed", [3, 7, 33])
def test_no_promise_is_lost_or_made_twice_and_both_are_equal_in_the_end(seed: int) -> None:
    world = scenario(seed, 300)
    active = world.heal()
    assert active.book.digest() == world.nodes[not active.second].book.digest()
    unwritten = [id for id, told in world.living().items() if not told.written]
    assert world.answers > 50 and all(id in active.book.ledger for id in unwritten)


def answered_by_both() -> World:
    """Two that are apart have given different answers to the request `r`; the second one's term is the later."""
    world = World(random.Random(1))
    world.run(8)
    world.cut[:] = (True, True)
    world.run(6)
    for node, share in zip(world.nodes.values(), (0.1, 0.2), strict=True):
        node.ask("r", world.random, share)
    world.run(0.5)
    return world


def test_of_two_answers_to_one_request_the_later_terms_stays_whoever_was_heard_last() -> None:
    world = answered_by_both()
    first, second = world.nodes[False], world.nodes[True]
    answers = [node.book.answered.get("r") for node in (first, second)]
    assert answers[0] and answers[1] and answers[0].data != answers[1].data
    first.hear("r")
    active = world.heal()
    assert active is second and active.book.answered.get("r").data == answers[1].data
    assert [id for id, _ in active.book.ledger.promises()] == ["r", "beside r"]


def test_what_has_ended_is_not_promised_again_beside_itself_when_the_other_one_hands_it_over() -> None:
    """The step was told to one side, whose bytes are still to be seen; nobody ends it a second time."""
    world = answered_by_both()
    second = world.nodes[True]
    now_s = second.book.clock.now()
    second.book.note(Closed("r", now_s, now_s + 600.0, second.book.ledger.known("r", ((0, 1),))))
    second.end("r")
    active = world.heal()
    assert active is second and [id for id, _ in active.book.ledger.promises()] == ["r"]


def test_the_answer_to_a_request_whose_files_are_all_closed_is_the_same_after_they_have_met() -> None:
    world = World(random.Random(1))
    world.run(8)
    world.cut[:] = (True, True)
    world.run(6)
    first, second = world.nodes[False], world.nodes[True]
    first.ask("r", world.random, 0.1)
    world.run(0.5)
    first.close("r", 1)
    world.run(5.0)
    given = first.book.answered.get("r")
    assert given and first.book.ledger.get("r") is None and "r" not in second.book.answered
    active = world.heal()
    assert active is second and active.book.answered.get("r") == given
    assert active.book.digest() == first.book.digest()


@pytest.mark.parametrize("silent_first", [False, True])
def test_what_was_promised_twice_to_a_step_that_fell_silent_is_free_until_it_speaks(
    silent_first: bool,
) -> None:
    world = answered_by_both()
    first, second = world.nodes[False], world.nodes[True]
    world.ending.add("r")  # gives no sign of life
    if silent_first:
        second.book.note(Died(("r",), second.book.clock.now()))
    active = world.heal()
    assert active is second and "beside r" in active.book.ledger
    if not silent_first:
        active.book.note(Died(("r",), active.book.clock.now()))
        world.run(1.0)
    assert not active.book.ledger.promised("fs")
    assert active.book.digest() == first.book.digest()
    active.hear("r")
    world.run(1.0)
    assert len(active.book.ledger.promised("fs")) and not active.book.ledger.dead()
    assert active.book.digest() == first.book.digest()


def test_a_promise_that_one_took_back_and_the_other_told_survives_a_restart_while_they_are_parted() -> None:
    world = World(random.Random(1))
    world.run(8.0)
    first, second = world.nodes[False], world.nodes[True]
    first.ask("a", world.random, 0.5)
    world.cut[:] = False, True  # the record arrives, its acknowledgement does not
    world.run(0.2)
    world.cut[:] = True, True
    world.run(6.0)
    assert "a" in second.book.ledger and "a" not in first.book.ledger
    second.ask("a", world.random, 0.5)
    world.run(0.5)
    assert "a" in world.told
    first.kill()
    first.start()
    world.run(5.0)
    assert world.heal() is first, "its term is the later one"
    assert "a" in first.book.ledger and first.book.answered.get("a")


def test_who_was_away_while_the_other_one_answered_waits_for_it_before_it_answers_anew() -> None:
    """Killed by turns: asked again, the one that came back first gave other OSTs than the other one had told."""
    world = World(random.Random(1))
    world.run(8.0)
    first, second = world.nodes[False], world.nodes[True]
    first.kill()
    world.run(4.0)
    second.ask("a", world.random, 0.5)
    world.run(0.5)
    assert "a" in world.told
    first.start()
    world.run(0.2)
    assert first.pair and first.pair.role == "following" and "a" not in first.book.ledger
    second.kill()
    first.link.wire.clear()  # what was under way is lost
    world.run(6.0)
    assert not first.pair.active
    second.start()
    world.run(3.0)
    assert second.pair and second.pair.active and second.book.answered.get("a")
    second.kill()
    world.run(4.0)
    assert first.pair.active and first.book.answered.get("a"), "it knows all by now"


def test_who_was_away_answers_when_the_other_one_stays_away() -> None:
    world = World(random.Random(1))
    world.run(8.0)
    first, second = world.nodes[False], world.nodes[True]
    first.kill()
    world.run(4.0)
    second.kill()
    first.start()
    world.run(6.0)
    assert first.pair and not first.pair.active
    world.run(5.0)
    assert first.pair.active
    first.kill()
    first.start()
    world.run(4.0)
    assert first.pair.active, "it answered alone before, and knows what was answered"
