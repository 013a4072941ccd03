"""The study of the situations: its rows do not depend on how they are computed, and come back from the file."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tarazu.errors import BadInput
from tarazu.parts.council.study.requests import dataset
from tarazu.parts.council.study.requests.dataset import SCHEDULERS
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III
from tarazu.parts.council.study.requests.situations import SHORT_PART, SituationCase, cases, rows

D = SITUATIONS.index(TABLE_III["D"])


@pytest.fixture(scope="module")
def data() -> dataset.Dataset:
    return dataset.gathered(
        row for number in (D, D + 1) for row in rows(SituationCase(number, 1, SHORT_PART, ""))
    )


def test_every_situation_is_a_case() -> None:
    found = cases((1, 2))
    assert len(found) == len({case.id for case in found}) == 288
    assert {case.situation for case in found} == set(range(144))


def test_each_scheduler_has_a_run_and_observations(data: dataset.Dataset) -> None:
    makespans = data.makespans(1)
    assert makespans.shape == (144, 10)
    assert np.isfinite(makespans[[D, D + 1]]).all()
    assert np.isnan(np.delete(makespans, [D, D + 1], axis=0)).all()
    for scheduler in range(len(SCHEDULERS)):
        found = data.rewards(D, scheduler)
        assert len(found) > 3 and (found > 0).all()
    assert not len(data.rewards(0, 0))
    assert np.isnan(data.makespans(2)).all()


def test_it_comes_back_from_its_file(data: dataset.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "situations.npz"
    dataset.write(data, path)
    again = dataset.read(path)
    for one, other in zip(data, again, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("content", [b"", b"no file of arrays", b"PK\x03\x04 and then nothing"])
def test_what_is_no_data_set_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"other\.npz"):
        dataset.read(path)


def test_a_data_set_that_is_damaged_is_refused_or_read(data: dataset.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "situations.npz"
    dataset.write(data, path)
    good, random = path.read_bytes(), Random(1)
    refused = 0
    for _ in range(40):
        bad = bytearray(good)
        bad[random.randrange(len(bad))] ^= 1 + random.randrange(255)
        path.write_bytes(bad)
        try:
            dataset.read(path)
        except BadInput:
            refused += 1
    assert refused > 15


@pytest.mark.parametrize(
    "name, wrong",
    [
        ("format", np.array([1, 2])),
        ("reward", np.array("x")),
        ("reward", np.zeros(3)),
        ("first", np.zeros((2, 2))),
        ("situation", np.array([D, 144])),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(
    data: dataset.Dataset, name: str, wrong: Any, tmp_path: Path
) -> None:
    path = tmp_path / "situations.npz"
    np.savez(path, **{"format": np.array(dataset.FORMAT), **data._asdict(), name: wrong})
    with pytest.raises(BadInput, match=r"situations\.npz"):
        dataset.read(path)
