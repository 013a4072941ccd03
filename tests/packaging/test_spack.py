"""The Spack recipe names the dependencies that pyproject.toml names. Spack itself is not at hand: its words are."""

from __future__ import annotations

import contextlib
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAMES = {"ortools": "or-tools"}
"""PyPI's name → Spack's, where they differ."""


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Variant ("" without one) → what the recipe depends on to run."""
    needs: dict[str, set[str]] = {}
    inside = [""]

    @contextlib.contextmanager
    def when(spec: str) -> Iterator[None]:
        inside.append(spec.removeprefix("+"))
        yield
        inside.pop()

    def depends_on(spec: str, type: str | tuple[str, ...]) -> None:
        if "run" in type:
            needs.setdefault(inside[-1], set()).add(spec)

    words = types.ModuleType("spack.package")
    vars(words).update(
        depends_on=depends_on,
        when=when,
        variant=lambda name, **_: needs.setdefault(name, set()),
        version=lambda *_, **__: None,
        license=lambda *_: None,
        run_after=lambda _: lambda function: function,
        on_package_attributes=lambda **_: lambda function: function,
    )
    python = types.ModuleType("spack_repo.builtin.build_systems.python")
    vars(python)["PythonPackage"] = type("PythonPackage", (), {})
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "spack.package", words)
    monkeypatch.setitem(sys.modules, python.__name__, python)
    path = ROOT / "packaging" / "spack" / "package.py"
    exec(compile(path.read_text(), str(path), "exec"), {})
    return needs


def spack(requirements: list[str]) -> set[str]:
    found = set()
    for text in requirements:
        requirement = Requirement(text)
        (version,) = requirement.specifier
        found.add(f"py-{NAMES.get(requirement.name.lower(), requirement.name.lower())}@{version.version}:")
    return found


def test_the_recipe_needs_what_the_wheel_needs(recipe: dict[str, set[str]]) -> None:
    project = PROJECT["project"]
    python = f"python@{project['requires-python'].removeprefix('>=')}:"
    assert recipe.pop("") == spack(project["dependencies"]) | {python}
    assert recipe
    for variant, needs in recipe.items():
        assert needs == spack(project["optional-dependencies"][variant]), variant
