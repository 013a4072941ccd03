"""What every allocator, placer and scheduler promises."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tarazu.errors import BadInput
from tarazu.parts.forwarding.application import Application, Resources, Schedule
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study import schedulers
from tests.parts.forwarding.strategies import systems

PROFILE = settings(
    max_examples=3, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
System = tuple[list[Application], Resources]

LEVEL = curve([(1, 1e9)])
RISING = curve([(1, 1e9), (2, 1.8e9), (4, 3e9), (8, 4e9)])
HOSTILE = {
    "one of each": ([Application("a", 1, RISING, 10, 1e9)], 1),
    "no compute time": ([Application("a", 4, RISING, 0, 1e12), Application("b", 4, LEVEL, 0, 1e9)], 3),
    "no I/O": ([Application("a", 4, RISING, 10, 0), Application("b", 4, LEVEL, 10, 0)], 3),
    "nothing at all": ([Application("a", 4, RISING, 0, 0)], 3),
    "one resource": ([Application(str(i), 4, RISING, 10, 1e10) for i in range(7)], 1),
    "more applications than resources": ([Application(str(i), 4, RISING, 10, 1e10) for i in range(40)], 5),
    "one application": ([Application("a", 480, RISING, 10, 1e12, 20)], 20),
    "equal curves": ([Application(str(i), 4, LEVEL, 10, 1e10) for i in range(6)], 6),
    "larger than the machine": ([Application("a", 10**6, RISING, 10, 1e10)], 4),
    "no compute nodes": ([Application("a", 0, RISING, 10, 1e10)], 4),
    "far apart": ([Application("a", 1, LEVEL, 1e-9, 1), Application("b", 1, RISING, 1e12, 1e30)], 4),
    "points beyond the resources": ([Application("a", 1, curve([(100, 1e9), (300, 2e9)]), 1, 1e10)], 4),
}


def check(schedule: Schedule, applications: list[Application], resources: Resources) -> None:
    assert len(schedule.placed) == len(applications)
    for placed in schedule.placed:
        assert placed
        assert all(type(r) is int and 0 <= r < resources.count for r in placed)
        assert list(placed) == sorted(set(placed))


def hostile(name: str) -> System:
    applications, count = HOSTILE[name]
    return applications, Resources("io-node", count, 480)


def test_each_says_what_it_has_to_know() -> None:
    """Table 2."""
    all_of_it = {"volume", "cpu", "curve"}
    allocators = {"random": set(), "static": {"nodes"}, "bba": {"n_perf"}, "nsysa": all_of_it}
    placers = {"randp": set(), "gnc": set(), "gc": all_of_it}
    for table, expected in (
        (schedulers.ALLOCATORS, {**allocators, "ta": {"nodes", *all_of_it}}),
        (schedulers.PLACERS, placers),
    ):
        assert {name: make(0).needs for name, make in table.items()} == expected


@pytest.mark.parametrize("name", schedulers.NAMES)
class TestScheduler:
    @PROFILE
    @given(system=systems())
    def test_each_application_gets_different_resources(self, name: str, system: System) -> None:
        schedule = schedulers.named(name, seed=3).schedule(*system)
        check(schedule, *system)
        assert schedule == schedulers.named(name, seed=3).schedule(*system)

    @pytest.mark.parametrize("case", HOSTILE)
    def test_hostile_numbers(self, name: str, case: str) -> None:
        check(schedulers.named(name).schedule(*hostile(case)), *hostile(case))

    def test_is_called_what_it_is_called(self, name: str) -> None:
        assert schedulers.named(name).name == name

    def test_nothing_to_share_out(self, name: str) -> None:
        with pytest.raises(ValueError, match="expected applications and resources, found 0 and 4"):
            schedulers.named(name).schedule([], Resources("ost", 4, 480))


@pytest.mark.parametrize("name", ["best", "ta", "gnc-ta", "ta-gnc-gc", ""])
def test_unknown_policy_is_named(name: str) -> None:
    with pytest.raises(BadInput, match=r"policy: expected one of random-randp.*mckp"):
        schedulers.named(name)


@pytest.mark.parametrize("name", ["random-randp", "random-gnc", "static-randp"])
def test_another_seed_is_another_answer(name: str) -> None:
    applications, resources = hostile("more applications than resources")
    answers = {schedulers.named(name, seed).schedule(applications, resources) for seed in range(5)}
    assert len(answers) > 1
