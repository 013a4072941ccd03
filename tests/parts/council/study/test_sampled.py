"""The offline evaluation as a whole: what its tables and figures are made of, and what is shown."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tarazu.errors import BadInput
from tarazu.parts.council.study import pictures, sampled, tables
from tarazu.parts.council.study.measured import WINDOWS
from tarazu.parts.council.study.requests.situation import SITUATIONS
from tarazu.parts.council.study.sampled import GENERATED, OURS, PAPER, Curves, Evaluated


def test_as_many_processes_as_there_are_find_the_same() -> None:
    here, there = (sampled.curves(GENERATED, PAPER, 1, of=(0, 5), jobs=jobs) for jobs in (1, 2))
    assert here.performance.shape == here.precision.shape == (2, WINDOWS, 30)
    for one, other in zip(here, there, strict=True):
        assert (one == other).all()


def test_epsilon_is_the_learners() -> None:
    """Who explores always finds each window as often as any; who never does stays with the first that it tries."""
    always, never, usual = (
        sampled.curves(GENERATED, PAPER, 2, of=(3,), jobs=1, epsilon=epsilon) for epsilon in (1.0, 0.0, None)
    )
    assert always.precision.mean() == pytest.approx(1 / WINDOWS, abs=0.03)
    assert never.precision[:, :, 1:].std(-1).max() == 0.0
    assert usual.precision.mean() > always.precision.mean()


def test_precision_grows_by_what_all_starts_have_together() -> None:
    precision = np.zeros((144, WINDOWS, 3))
    precision[:, 0, 0] = 1.0  # one start has the best window already, the others none of it
    precision[..., -1] = 2 / 7
    writes = [number for number, one in enumerate(SITUATIONS) if one.operation == "write"]
    precision[writes, :, -1] = 3 / 7
    found = sampled.table_2(precision)
    assert found["READ"] == pytest.approx((100.0,) * 4)
    assert found["WRITE"] == pytest.approx((200.0,) * 4)
    assert found["Total"] == pytest.approx((100.0, 150.0, 150.0, 200.0))


def test_each_pattern_in_turn_is_counted_by_its_own_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a learner that is told which window is best each bin but the first has that one alone."""
    six = [sampled.data(GENERATED)[number] for number in sampled.SIX]
    best = [int(np.argmax(one.shares)) for one in six]

    class Knows:
        def observe(self, host: str, *_: object, **__: object) -> None:
            self.arm = best[int(host.split()[1])]

        def choose(self) -> Knows:
            return self

    monkeypatch.setattr(sampled.learning, "named", lambda *_: Knows())
    found = sampled.mixed(GENERATED, "any", 20, 600)
    assert found.shape == (6, 9)
    assert (found[:, 1:] == 1.0).all()
    assert (found[:, 0] >= 0.9).all() and found[:, 0].min() < 1.0


@pytest.fixture
def found() -> Evaluated:
    def curves(level: float) -> Curves:
        shape = (len(SITUATIONS), WINDOWS, 30)
        rising = np.broadcast_to(np.linspace(0.1, level, 30), shape)
        return Curves(np.full(shape, level), rising, np.full(shape[:2], 10 * level))

    alone = np.tile(np.linspace(0.1, 0.9, 30), (6, 1))
    return Evaluated(
        100,
        {PAPER: curves(0.6), OURS: curves(0.97)},
        {"ε = 0.1": alone, OURS: alone},
        {PAPER: alone[:, :27], OURS: alone[:, :27]},
    )


def test_the_table_has_what_was_printed_beside_what_was_found(found: Evaluated) -> None:
    rows = tables.csv_text(found, GENERATED).splitlines()
    assert rows[0] == "table,of,learner,what,value"
    for row in (
        '"C, as printed","growth of precision, per cent: median",226.82',
        'II,READ,epsilon-greedy,"growth of precision, per cent: max.",500.00',
        'IV,A,"C, as printed",precision in the last bin,0.88',
        "IV,F,tarazu,performance in the last bin,0.97",
        'all scenarios,all,epsilon-greedy,"0.95 reached, mean of all",inf',
        "all scenarios,all,tarazu,regret,9.7",
        'figure 5,B,tarazu,"precision in turns, last three bins",0.79',
    ):
        assert [each for each in rows if each.endswith(row)] != [], row


def test_the_picture_has_a_line_for_each_learner_and_pattern(found: Evaluated) -> None:
    root = ElementTree.fromstring(pictures.offline_picture(found))
    lines = [one for one in root.iter() if one.tag.endswith("path") and one.get("d", "").count("L") > 20]
    assert len(lines) == 6 * 2 + 2 * 6
    assert "ε = 0.1" in "".join(root.itertext())


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "situations.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(BadInput):
        sampled.curves(str(path), PAPER, 1, jobs=1)


def test_the_command_says_what_it_wants(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tables.main([GENERATED, "--repetitions", "0"])
    assert "at least" in capsys.readouterr().err
