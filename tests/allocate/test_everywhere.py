"""Files that lie on every OST: only the order of their lists can balance them."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.sim.allocation import policies
from tarazu.units import MIB

OSTS, FILES = 64, 512


@pytest.mark.parametrize("slow", [None, 7])
def test_remainders_of_files_on_every_ost_do_not_pile_up(slow: int | None) -> None:
    """Each file has two stripes on some OSTs and three on others: laid out in turn, some OSTs got a quarter more."""
    speed = [1e9 / 4 if index == slow else 1e9 for index in range(OSTS)]
    room = 1 << 50
    osts = tuple(Ost(i, f"oss{i // 8}", room, room, room, write_bytes_per_s=s) for i, s in enumerate(speed))
    layout = Layout((Component(0, EOF, MIB, OSTS),))
    stripes = np.random.default_rng(3).integers(1, OSTS, FILES).tolist()
    requests = [CreateRequest(count * MIB, layout) for count in stripes]
    held = {}
    for name in ("tarazu", "lsa"):
        held[name] = np.zeros(OSTS)
        for file, count in zip(
            policies.make(name).allocate(SystemView("fs", 0.0, osts), requests).files, stripes
        ):
            assert sorted(file.osts[0]) == list(range(OSTS))
            held[name][list(file.osts[0][:count])] += MIB
    seconds = {name: (of / np.array(speed)).max() for name, of in held.items()}
    assert seconds["tarazu"] <= seconds["lsa"]
    assert seconds["tarazu"] < 1.02 * sum(stripes) * MIB / sum(speed)
