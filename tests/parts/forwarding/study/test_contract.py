"""What every allocator, placer and scheduler promises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.policy import Schedule
from tarazu.parts.forwarding.study import policies
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


def check_counts(counts: Sequence[int], applications: list[Application], resources: Resources) -> None:
    assert len(counts) == len(applications)
    assert all(type(n) is int and 1 <= n <= resources.count for n in counts)


def check(schedule: Schedule, applications: list[Application], resources: Resources) -> None:
    check_counts(schedule.counts, applications, resources)
    for placed in schedule.placed:
        assert all(type(r) is int and 0 <= r < resources.count for r in placed)
        assert list(placed) == sorted(set(placed))


def hostile(name: str) -> System:
    applications, count = HOSTILE[name]
    return applications, Resources("io-node", count, 480)


@pytest.mark.parametrize("name", policies.ALLOCATORS)
class TestAllocator:
    @PROFILE
    @given(system=systems())
    def test_each_application_gets_one_to_all(self, name: str, system: System) -> None:
        check_counts(policies.ALLOCATORS[name](3).allocate(*system), *system)

    @PROFILE
    @given(system=systems())
    def test_same_seed_same_answer(self, name: str, system: System) -> None:
        assert len({policies.ALLOCATORS[name](5).allocate(*system) for _ in range(2)}) == 1

    @pytest.mark.parametrize("case", HOSTILE)
    def test_hostile_numbers(self, name: str, case: str) -> None:
        check_counts(policies.ALLOCATORS[name](0).allocate(*hostile(case)), *hostile(case))

    def test_nothing_to_share_out(self, name: str) -> None:
        with pytest.raises(ValueError, match="expected applications and resources, found 0 and 4"):
            policies.ALLOCATORS[name](0).allocate([], Resources("ost", 4, 480))
        with pytest.raises(ValueError, match="found 1 and 0"):
            policies.ALLOCATORS[name](0).allocate(hostile("no I/O")[0][:1], Resources("ost", 0, 480))

    def test_says_what_it_has_to_know(self, name: str) -> None:
        allocator = policies.ALLOCATORS[name](0)
        assert allocator.name == name
        table_2 = {
            "random": set(),
            "static": {"nodes"},
            "bba": {"n_perf"},
            "nsysa": {"volume", "cpu", "curve"},
            "ta": {"nodes", "volume", "cpu", "curve"},
        }
        assert allocator.needs == table_2[name]


@pytest.mark.parametrize("name", policies.PLACERS)
class TestPlacer:
    @PROFILE
    @given(system=systems(), data=st.data())
    def test_each_gets_so_many_different_ones(self, name: str, system: System, data: st.DataObject) -> None:
        applications, resources = system
        counts = [data.draw(st.integers(1, resources.count)) for _ in applications]
        schedule = policies.PLACERS[name](3).place(applications, counts, resources)
        assert list(schedule.counts) == counts
        check(schedule, applications, resources)
        assert schedule == policies.PLACERS[name](3).place(applications, counts, resources)

    @pytest.mark.parametrize("case", HOSTILE)
    def test_hostile_numbers(self, name: str, case: str) -> None:
        applications, resources = hostile(case)
        counts = [resources.count] * len(applications)
        schedule = policies.PLACERS[name](0).place(applications, counts, resources)
        assert schedule.placed == (tuple(range(resources.count)),) * len(applications)

    def test_says_what_it_has_to_know(self, name: str) -> None:
        placer = policies.PLACERS[name](0)
        assert placer.name == name
        assert placer.needs == ({"volume", "cpu", "curve"} if name == "gc" else set())


@pytest.mark.parametrize("name", policies.NAMES)
class TestScheduler:
    @settings(PROFILE, max_examples=3)
    @given(system=systems())
    def test_each_application_gets_different_resources(self, name: str, system: System) -> None:
        schedule = policies.named(name, seed=3).schedule(*system)
        check(schedule, *system)
        assert schedule == policies.named(name, seed=3).schedule(*system)

    @pytest.mark.parametrize("case", HOSTILE)
    def test_hostile_numbers(self, name: str, case: str) -> None:
        check(policies.named(name).schedule(*hostile(case)), *hostile(case))

    def test_is_called_what_it_is_called(self, name: str) -> None:
        assert policies.named(name).name == name

    def test_nothing_to_share_out(self, name: str) -> None:
        with pytest.raises(ValueError, match="expected applications and resources, found 0 and 4"):
            policies.named(name).schedule([], Resources("ost", 4, 480))


@pytest.mark.parametrize("name", ["best", "ta", "gnc-ta", "ta-gnc-gc", ""])
def test_unknown_policy_is_named(name: str) -> None:
    with pytest.raises(BadInput, match=r"policy: expected one of random-randp.*mckp"):
        policies.named(name)


@pytest.mark.parametrize("name", ["random-randp", "random-gnc", "static-randp"])
def test_another_seed_is_another_answer(name: str) -> None:
    applications, resources = hostile("more applications than resources")
    answers = {policies.named(name, seed).schedule(applications, resources) for seed in range(5)}
    assert len(answers) > 1
