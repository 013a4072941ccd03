"""Shares of the lost time: each cause alone, two at once, what is usual, what is not known; and that they add up."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.ost_state import Verdict
from tarazu.parts.why.causes import causes, like_it
from tarazu.parts.why.facts import Explanation, Kind, Run
from tarazu.parts.why.model import Model, Rates, Usual
from tarazu.then import JobThen, OstThen, ServerThen, System
from tarazu.units import GIB, KIB

OSTS = 8
RATE = 1.0 * GIB
"""Of an OST: a usual run takes a second, and OSTs have given no more."""
replace = msgspec.structs.replace


def system(**of: dict[int, Any]) -> System:
    """All well and its own; `of`: field → {OST: value}."""
    osts = {}
    for index in range(OSTS):
        osts[index] = OstThen(f"oss{index // 4}", 1.0, bytes=RATE, fill=0.4, peak_bytes_per_s=RATE)
        for field, values in of.items():
            if index in values:
                osts[index] = replace(osts[index], **{field: values[index]})
    jobs = (JobThen("777", 4 * RATE, 4096), JobThen("4711", 40 * GIB, 1e5), JobThen("12", GIB, 2e6))
    return System(1.0, osts, {"oss0": ServerThen(jobs=jobs), "oss1": ServerThen(jobs=jobs[:1])})


USUAL = Run(
    "usual",
    0.0,
    1.0,
    OSTS * RATE,
    OSTS,
    OSTS,
    "777",
    ost_bytes=dict.fromkeys(range(OSTS), RATE),
    system=system(),
)
EARLIER = [replace(USUAL, start_s=float(n), io_s=1.0 + 0.01 * n) for n in range(5)]
RUN = replace(USUAL, id="this", start_s=100.0)


def explained(**changes: Any) -> Explanation:
    return causes(replace(RUN, **changes), EARLIER)


def shares(found: Explanation) -> dict[str, float]:
    return {cause.kind.value: cause.share for cause in found.causes}


def test_a_run_like_the_others_is_not_slow_and_says_so_in_one_sentence() -> None:
    found = explained()
    assert not found.slow and found.causes == () and found.lost_s == found.unknown == 0
    assert (
        found.sentence
        == "not slow: 1 s of I/O where 1.02 s were expected (the middle of 5 earlier runs, by bytes)"
    )


def test_more_bytes_than_usual_are_more_work_and_no_lost_time() -> None:
    found = explained(bytes=2 * OSTS * RATE, io_s=2.0, ost_bytes=dict.fromkeys(range(OSTS), 2 * RATE))
    assert not found.slow and found.more_work == 2
    assert found.sentence.endswith("with 2 times the usual bytes")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("slow-ost", {"io_s": 5.0, "system": system(speed={3: 0.2})}),
        ("full-ost", {"io_s": 5.0, "system": system(speed={3: 0.2}, fill={3: 0.97})}),
        ("other-jobs", {"io_s": 5.0, "system": system(bytes={3: 5 * RATE})}),
        ("imbalance", {"io_s": 4.5, "ost_bytes": {0: 4.5 * RATE, **dict.fromkeys(range(1, 8), RATE / 2)}}),
        ("few-stripes", {"io_s": 8.0, "ost_bytes": {0: 8 * RATE}, "largest_shared_bytes": 8 * RATE}),
        ("small-calls", {"io_s": 3.6, "calls": OSTS * RATE / (8 * KIB)}),
        ("metadata", {"io_s": 3.0, "files": 8 * 2000}),
    ],
)
def test_a_cause_alone_is_named_with_all_of_the_lost_time(kind: str, changes: dict[str, Any]) -> None:
    found = explained(**changes)
    assert found.slow and found.causes[0].kind == kind
    assert found.causes[0].share > 0.9 and found.unknown < 0.1, found


def test_files_that_lie_evenly_on_few_osts_are_not_called_uneven() -> None:
    found = explained(io_s=2.0, ost_bytes=dict.fromkeys(range(4), 2 * RATE))
    assert "its own files are on 4 OSTs where 8 are usual" in found.sentence
    both = explained(io_s=3.0, ost_bytes={0: 3 * RATE, **dict.fromkeys(range(1, 5), 1.25 * RATE)})
    assert (
        "its own files are uneven: OST 0 has 1.9 times the mean, and on 5 OSTs where 8 are usual"
        in both.sentence
    )


def test_what_a_full_ost_did_not_take_is_not_called_imbalance_first() -> None:
    """Seven OSTs hold eight files: one has two."""
    seven = {0: 2 * RATE, **dict.fromkeys(range(1, 7), RATE)}
    found = explained(io_s=2.0, ost_bytes=seven, system=system(verdict={7: Verdict.FULL}))
    assert next(iter(shares(found))) == "full-ost" and "OST 7 was full" in found.sentence


def test_the_jobs_beside_it_are_named_by_bytes_and_by_operations_and_its_own_is_not() -> None:
    found = explained(io_s=5.0, system=system(bytes={3: 5 * RATE}))
    assert "other jobs at OST 3 (oss0): job 4711 (40.0 GiB, 1e+05 operations) and job 12" in found.sentence
    assert "777" not in found.sentence
    assert found.causes[0].evidence["servers"] == ["oss0"]


def test_many_small_requests_of_others_count_though_they_move_little() -> None:
    found = explained(io_s=5.0, system=system(operations={3: 1024 + 4 * RATE / (256 * KIB)}))
    assert shares(found) == {"other-jobs": pytest.approx(1.0, abs=0.05)}


def test_servers_that_name_no_other_job_have_none() -> None:
    found = explained(io_s=5.0, system=system(bytes={6: 5 * RATE}))
    assert shares(found) == {} and found.unknown == 1.0 and "why is not known" in found.sentence


def test_an_ost_that_gave_the_run_all_it_can_was_not_slow_whatever_its_verdict_says() -> None:
    """Of two OSTs nobody can tell by the other."""
    late = system(speed={0: 0.16}, bytes=dict.fromkeys(range(2), 4 * RATE))
    few = {0: 4 * RATE, 1: 4 * RATE}
    found = explained(io_s=4.2, ost_bytes=few, largest_shared_bytes=8 * RATE, system=late)
    assert list(shares(found)) == ["few-stripes"]
    found = explained(io_s=25.0, ost_bytes=few, largest_shared_bytes=8 * RATE, system=late)
    assert list(shares(found)) == ["slow-ost", "few-stripes"]


def test_a_system_that_was_seen_for_a_part_of_the_run_is_said_to_be() -> None:
    known = replace(system(), seconds=2.0)
    note = "how the servers and OSTs were meanwhile is known for 2 s of its 5 s of I/O"
    assert note in explained(io_s=5.0, system=known).notes
    assert note not in explained(io_s=5.0, system=replace(known, seconds=5.0)).notes


def test_of_two_at_once_both_are_named_and_the_larger_first() -> None:
    slow = system(speed={6: 0.2}, bytes={3: 12 * RATE})
    found = explained(io_s=12.0, system=slow)
    assert list(shares(found)) == ["other-jobs", "slow-ost"]
    assert sum(shares(found).values()) + found.unknown == pytest.approx(1.0)


def test_what_is_usual_is_no_cause() -> None:
    crowded = system(bytes={3: 5 * RATE})
    earlier = [replace(run, system=crowded, io_s=5.0) for run in EARLIER]
    found = causes(replace(RUN, io_s=10.0, system=crowded), earlier)
    assert found.slow and shares(found) == {} and found.unknown == 1.0


def test_without_earlier_runs_the_highest_rates_say_what_to_expect() -> None:
    found = causes(replace(RUN, io_s=5.0, system=system(speed={3: 0.2})), [])
    assert found.expected_s == pytest.approx(1.0) and "no earlier run like it" in found.expected_by
    assert list(shares(found)) == ["slow-ost"]
    first = causes(replace(RUN, io_s=2.0), [])
    assert not first.slow and first.causes == () and first.lost_s == 0, (
        "half of the highest rates is no slow run"
    )
    assert first.sentence.startswith(
        "whether it was slow is not known, no earlier run is like it: 2 s of I/O, 1 s"
    )
    nothing = causes(replace(RUN, io_s=5.0, system=None), [])
    assert (
        nothing.expected_s is None and not nothing.slow and "nothing to compare it with" in nothing.sentence
    )


def test_runs_of_another_size_or_later_ones_are_no_measure() -> None:
    other = [
        replace(EARLIER[0], ranks=64),
        replace(EARLIER[0], bytes=RATE),
        replace(EARLIER[0], start_s=200.0),
    ]
    assert like_it(RUN, [*other, EARLIER[1]]) == [EARLIER[1]]


def test_runs_that_differ_much_anyway_are_not_slow_by_chance() -> None:
    earlier = [replace(run, io_s=io_s) for run, io_s in zip(EARLIER, (1.0, 2.0, 1.4, 0.8, 1.7), strict=True)]
    assert not causes(replace(RUN, io_s=2.2), earlier).slow
    assert causes(replace(RUN, io_s=4.2), earlier).slow


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shares_and_what_is_not_known_are_one_whatever_is_reported(data: st.DataObject) -> None:
    amount = st.floats(0, 1e13)

    def draw_system() -> System:
        osts = {
            index: OstThen(
                "oss0",
                data.draw(st.none() | st.floats(0, 2)),
                data.draw(st.sampled_from(Verdict)),
                data.draw(st.none() | amount),
                data.draw(st.none() | amount),
                data.draw(st.none() | st.floats(0, 100)),
                data.draw(st.none() | st.floats(0, 1)),
                data.draw(st.none() | amount),
            )
            for index in data.draw(st.sets(st.integers(0, 9), max_size=4))
        }
        server = ServerThen(bytes=data.draw(st.none() | amount), link_bytes_per_s=data.draw(amount))
        return System(data.draw(st.floats(0, 1e4)), osts, {"oss0": server}, data.draw(st.none() | amount))

    def draw_run(start_s: float) -> Run:
        laid = data.draw(st.dictionaries(st.integers(0, 9), st.floats(1, 1e12), max_size=4))
        return Run(
            "x",
            start_s,
            data.draw(st.floats(0, 1e4)),
            data.draw(st.floats(0, 1e12)),
            data.draw(st.integers(0, 10**6)),
            2,
            calls=data.draw(amount),
            largest_shared_bytes=data.draw(amount),
            usable_osts=20,
            ost_bytes=laid,
            system=draw_system() if data.draw(st.booleans()) else None,
        )

    found = causes(draw_run(100.0), [draw_run(float(n)) for n in range(data.draw(st.integers(0, 3)))])
    total = sum(cause.share for cause in found.causes)
    assert all(0 < cause.share <= 1 for cause in found.causes)
    assert total + found.unknown == pytest.approx(1.0 if found.slow else 0.0, abs=1e-6)
    assert found.slow or not found.causes


def test_costs_of_causes_add_up_to_the_time_above_that_without_any() -> None:
    slow = system(speed={6: 0.2}, bytes={3: 12 * RATE})
    model = Model(replace(RUN, io_s=12.0, calls=1e6, system=slow), slow, Rates(RATE, RATE), Usual(OSTS))
    whole = model.seconds(model.present()) - model.seconds(())
    assert sum(model.costs().values()) == pytest.approx(whole)
    assert set(model.costs()) >= {Kind.SLOW_OST, Kind.OTHER_JOBS, Kind.SMALL_CALLS}


def test_a_verdict_that_is_late_does_not_count_where_the_ost_served_as_fast_as_the_others() -> None:
    busy = dict.fromkeys(range(OSTS), 0.9)
    late = system(speed={6: 0.2}, in_flight=busy, bytes={3: 5 * RATE})
    assert list(shares(explained(io_s=5.0, system=replace(late, seconds=5.0)))) == ["other-jobs"]
    now = system(speed={6: 0.2}, in_flight=busy | {6: 4.5})
    assert list(shares(explained(io_s=5.0, system=replace(now, seconds=5.0)))) == ["slow-ost"]


def test_an_ost_that_was_clearly_slow_meanwhile_needs_no_verdict_unless_others_were_at_it() -> None:
    busy = dict.fromkeys(range(OSTS), 0.9)
    slow = replace(system(in_flight=busy | {6: 1.8}), seconds=2.0)
    assert list(shares(explained(io_s=2.0, system=slow))) == ["slow-ost"]
    queue = replace(system(in_flight=busy | {3: 1.8}, bytes={3: 2 * RATE}), seconds=2.0)
    assert list(shares(explained(io_s=2.0, system=queue))) == ["other-jobs"]
    noise = replace(system(in_flight=busy | {6: 1.15}), seconds=2.0)
    assert shares(explained(io_s=2.0, system=noise)) == {}
