"""Lustre's facts are written down twice, for C and for Python: they are the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tarazu import lustre

HEADER = Path(__file__).parents[1] / "preload" / "lustre.h"


def test_c_and_python_know_the_same_lustre() -> None:
    defined = dict(
        re.findall(r'(?m)^#define (\w+) ("[^"]*"|[0-9A-Fa-fx]+)u?(?:ll)?(?=\s|$)', HEADER.read_text())
    )
    both = {name: ast.literal_eval(value) for name, value in defined.items() if hasattr(lustre, name)}
    assert {name: getattr(lustre, name) for name in both} == both
    assert len(both) >= 15
