"""How a validation says what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], object]
"""Called with a short sentence before each step that takes long."""
