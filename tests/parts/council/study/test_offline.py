"""The offline evaluation: its arithmetic, what its tables and figures are made of, and what is shown."""

from __future__ import annotations

import math
from functools import partial
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study import offline, pictures, tables
from tarazu.parts.council.study.learners import OURS, PAPER, EpsilonGreedy
from tarazu.parts.council.study.offline import Measured, Sample
from tarazu.parts.council.study.requests import situations
from tarazu.parts.council.study.requests.situation import SITUATIONS, WINDOWS
from tarazu.parts.council.study.tables import SIX, Curves, Evaluated

READ = Pattern("read", "strided", 32768)


def of(*means: float) -> Measured:
    return Measured(READ, tuple(Sample((mean, mean), (0.0, 0.0)) for mean in means))


def test_greed_without_exploration_loses_what_its_window_loses() -> None:
    greedy = partial(EpsilonGreedy, 3, epsilon=0.0)
    best = offline.scenario(of(1.0, 2.0, 4.0), greedy, 2, 3, 1, 40)
    assert best.regret == 0.0
    assert (best.performance == 1.0).all() and (best.precision == 1.0).all()
    worst = offline.scenario(of(1.0, 2.0, 4.0), greedy, 0, 3, 1, 40)
    assert worst.regret == pytest.approx(40 * 0.75)
    assert (worst.performance == 0.25).all() and (worst.precision == 0.0).all()


@pytest.mark.parametrize(
    ("performance", "observations"),
    [
        ([0.9, 0.96, 0.97], 20.0),
        ([0.96, 0.5, 0.97, 0.98], 30.0),
        ([0.96, 0.94, 0.97], 10.0),
        ([0.9, 0.94], math.inf),
    ],
)
def test_reached_is_where_it_stays(performance: list[float], observations: float) -> None:
    assert offline.reached(np.array(performance)) == observations


def test_each_situation_keeps_its_own_window() -> None:
    several = [of(4.0, 1.0), of(1.0, 4.0)._replace(pattern=READ._replace(operation="write"))]
    which, windows = offline.together(several, EpsilonGreedy(2, 1, 0.1), 400, 3)
    late = slice(200, 400)
    assert (windows[late][which[late] == 0] == 0).mean() > 0.85
    assert (windows[late][which[late] == 1] == 1).mean() > 0.85


def test_who_stays_loses_by_a_change() -> None:
    one = of(4.0, 1.0)
    other = one.mirrored(0.5)
    assert other.shares.tolist() == [0.25, 1.0]
    before, after = offline.through([(one, 30), (other, 5)], EpsilonGreedy(2, 1, 0.0), 1)
    assert before == [0] * 30 and after == [0] * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The six of table III, of a few requests each."""
    path = tmp_path_factory.mktemp("situations")
    rows = [
        row
        for number in SIX
        for row in situations.rows(situations.SituationCase(number, 1, situations.SHORT_PART, ""))
    ]
    (path / "rows.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return str(path)


def test_epsilon_is_the_learners(folder: str) -> None:
    """Who explores always finds each window as often as any; who never does stays with the first that it tries."""
    always, never = (
        tables.curves(folder, PAPER, 2, lambda text: None, of=SIX[:1], epsilon=epsilon)
        for epsilon in (1.0, 0.0)
    )
    assert always.performance.shape == always.precision.shape == (1, len(WINDOWS), 30)
    assert always.precision.mean() == pytest.approx(1 / len(WINDOWS), abs=0.03)
    assert never.precision[:, :, 1:].std(-1).max() == 0.0


def test_each_pattern_in_turn_is_counted_by_its_own_observations(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a learner that is told which window is best each bin but the first has that one alone."""
    best = [int(np.argmax(tables.data(folder)[number].shares)) for number in SIX]

    class Knows:
        def observe(self, host: str, *_: object, **__: object) -> None:
            self.arm = best[int(host.split()[1])]

        def choose(self) -> Knows:
            return self

    monkeypatch.setattr(tables, "LEARNERS", {"any": lambda *_: Knows()})
    found = tables.mixed(folder, "any", 20, 600)
    assert found.shape == (6, 9)
    assert (found[:, 1:] == 1.0).all()
    assert (found[:, 0] >= 0.9).all() and found[:, 0].min() < 1.0


def test_precision_grows_by_what_all_starts_have_together() -> None:
    precision = np.zeros((144, len(WINDOWS), 3))
    precision[:, 0, 0] = 1.0  # one start has the best window already, the others none of it
    precision[..., -1] = 2 / 7
    writes = [number for number, one in enumerate(SITUATIONS) if one.operation == "write"]
    precision[writes, :, -1] = 3 / 7
    found = tables.improved(precision)
    assert found["READ"] == pytest.approx((100.0,) * 4)
    assert found["WRITE"] == pytest.approx((200.0,) * 4)
    assert found["Total"] == pytest.approx((100.0, 150.0, 150.0, 200.0))


def test_what_is_shown(folder: str) -> None:
    def curves(level: float) -> Curves:
        shape = (len(SITUATIONS), len(WINDOWS), 30)
        rising = np.broadcast_to(np.linspace(0.1, level, 30), shape)
        return Curves(np.full(shape, level), rising, np.full(shape[:2], 10 * level))

    alone = np.tile(np.linspace(0.1, 0.9, 30), (6, 1))
    found = Evaluated(
        {PAPER: curves(0.6), OURS: curves(0.97)},
        {"ε = 0.1": alone, OURS: alone},
        {PAPER: alone[:, :27], OURS: alone[:, :27]},
    )
    rows = tables.csv_text(found, folder).splitlines()
    for row in (
        "table,of,learner,what,value",
        '"C, as printed","growth of precision, per cent: median",226.82',
        'II,READ,epsilon-greedy,"growth of precision, per cent: max.",500.00',
        "IV,F,tarazu,performance in the last bin,0.97",
        'all scenarios,all,epsilon-greedy,"0.95 reached, mean of all",inf',
        'figure 5,B,tarazu,"precision in turns, last three bins",0.79',
    ):
        assert [each for each in rows if each.endswith(row)] != [], row
    root = ElementTree.fromstring(pictures.offline_picture(found.alone, found.mixed))
    lines = [one for one in root.iter() if one.tag.endswith("path") and one.get("d", "").count("L") > 20]
    assert len(lines) == 6 * 2 + 2 * 6, "one for each learner and pattern"
