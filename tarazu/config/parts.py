"""What files and the environment say of parts: kept as it stands until a part asks, which has a section of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from tarazu.config.check import items
from tarazu.config.values import KINDS, convert, from_text, one_of
from tarazu.errors import ConfigError

T = TypeVar("T")
PART = "part"
"""`[part.NAME]` in the file, `TARAZU_PART_NAME_SETTING` in the environment."""


class Given(NamedTuple):
    value: Any
    where: str


class PartTables:
    """By the names of parts. Equal ones say the same."""

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        environ: Mapping[str, str] | None = None,
        chosen: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """`tables`: name → setting → value, or where it stands too; `environ`: variables of parts; `chosen`: name →
        setting → value that counts before both.
        """
        self._tables = {
            name: {
                s: v if isinstance(v, Given) else Given(v, f"[{PART}.{name}] {s}") for s, v in table.items()
            }
            for name, table in (tables or {}).items()
        }
        self._environ = dict(environ or {})
        self._chosen = {name: dict(values) for name, values in (chosen or {}).items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartTables) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((*self._tables, *self._environ.items()))

    def __bool__(self) -> bool:
        """Anything is said of any part."""
        return bool(self._tables or self._environ or self._chosen)

    def having(self, name: str, values: Mapping[str, Any]) -> PartTables:
        """With these values of a part, whatever else says of them."""
        chosen = self._chosen | {name: {**self._chosen.get(name, {}), **values}}
        return PartTables(self._tables, self._environ, chosen)

    def where(self, name: str, setting: str) -> str:
        """It comes from; its own name where nobody has said anything."""
        variable = _variable(name, setting)
        if variable in self._environ:
            return f"${variable}"
        given = self._tables.get(name, {}).get(setting)
        return given.where if given else f"{PART}.{name}.{setting}"

    def names(self) -> tuple[str, ...]:
        """Parts of which files say something."""
        return tuple(self._tables)

    def of(self, name: str, section: type[T]) -> T:
        """A part's section, of the class that it declares. Raises ConfigError for the first mistake."""
        read, problems = self.examined(name, section)
        if problems:
            raise problems[0]
        return read

    def examined(self, name: str, section: type[T]) -> tuple[T, list[ConfigError]]:
        """With the defaults of what is wrong; each mistake."""
        known = items(section)
        given = dict(self._tables.get(name, {}))
        for setting, item in known.items():
            if (variable := _variable(name, setting)) in self._environ:
                value = from_text(self._environ[variable], KINDS[item.kind])
                given[setting] = Given(value, f"${variable}")
        values, problems = {}, []
        for setting, (value, where) in given.items():
            try:
                if setting not in known:
                    raise ConfigError(where, one_of(f"a setting of [{PART}.{name}]", setting, known), setting)
                values[setting] = convert(value, known[setting], where)
            except ConfigError as error:
                problems.append(error)
        return section(**{**values, **self._chosen.get(name, {})}), problems


def _variable(name: str, setting: str) -> str:
    return f"TARAZU_{PART}_{name}_{setting}".upper()
