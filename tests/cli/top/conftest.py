"""The system that the pictures show: docs/top.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[3] / "docs" / "top.py"


@pytest.fixture(scope="session")
def pictured() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictured_top", PATH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
