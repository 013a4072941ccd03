"""Files that come one after the other are written at the same time: their OSTs differ."""

from __future__ import annotations

import numpy as np

from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB, TIB


def test_any_few_files_in_a_row_use_all_osts_evenly() -> None:
    osts = 160
    view = SystemView("fs", 0.0, tuple(Ost(j, f"oss{j // 8}", TIB, TIB, TIB) for j in range(osts)))
    layout = Layout((Component(0, EOF, MIB, 8),))
    # Ten steps of a job of 400 ranks in one plan: a step's files must not share a tenth of the OSTs.
    files = policies.make("tarazu").allocate(view, [CreateRequest(GIB, layout)] * 4000).files
    chosen = np.array([file.osts[0] for file in files])
    for first in range(0, 4000, 400):
        of_step = np.bincount(chosen[first : first + 400].ravel(), minlength=osts)
        assert of_step.max() <= 1.5 * of_step.mean(), first
