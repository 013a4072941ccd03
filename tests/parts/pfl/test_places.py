"""Files of a Darshan log whose names go through links are counted where they lay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.parts.pfl.gathered import add_log
from tarazu.parts.pfl.sizes import Halves
from tests.trace.test_places import DIRECT, LINKED, wrote


@pytest.mark.parametrize("linked", LINKED)
def test_files_that_are_named_through_a_link_are_on_the_only_lustre_of_the_log(
    tmp_path: Path, linked: list[str]
) -> None:
    log = wrote(tmp_path / "linked.darshan", [*linked, *DIRECT[len(linked) :]])
    assert add_log(str(log), "/scratch", Halves()) == 3
