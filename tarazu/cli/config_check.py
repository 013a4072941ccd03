"""`tarazu config check`: every mistake of the settings, what is passed over, and what their changes need to count."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tarazu import config
from tarazu.cli.output import print_json, say
from tarazu.config.combinations import impossible
from tarazu.errors import BadInput, ConfigError, TarazuError
from tarazu.part import installed, sections
from tarazu.units import counted


def check(file: str | None, in_force: str | None, *, as_json: bool) -> int:
    """Of `file`, else of what is in force; 1 when something is wrong."""
    examined = config.examine(file or in_force)
    wrong = problems(examined)
    now = _settings_in_force(in_force) if file else config.Settings()
    changes = {} if now is None else _changes(now, examined.settings)
    notes = [*_unknown_variables(), *_unknown_parts(examined.settings)]
    if as_json:
        told = [{"where": p.where, "expected": p.expected, "found": p.found} for p in wrong]
        print_json({"problems": told, "notes": notes, "changes": changes})
        return 1 if wrong else 0
    for line in (*map(str, wrong), *notes):
        say(line)
    for needs, names in changes.items():
        against = "the settings in force" if file else "the defaults"
        say(f"differs from {against}, {needs}: {', '.join(names)}")
    say(counted(len(wrong), "mistake"))
    return 1 if wrong else 0


def problems(found: config.Examined) -> list[ConfigError]:
    """Also what cannot work together, and what a daemon would refuse when it starts."""
    wrong = [*found.problems, *impossible(found), *_of_parts(found.settings)]
    for name, attempt in _attempts(found.settings):
        try:
            # A node without that part of tarazu does not use the setting.
            with contextlib.suppress(ImportError):
                attempt()
        except BadInput as error:
            where = found.where(name)
            # The place in a file that the setting names says more than the setting.
            inside = f" ({error.where})" if error.where not in (name, where) else ""
            wrong.append(ConfigError(where + inside, error.expected, error.found))
        except TarazuError as error:
            wrong.append(ConfigError(found.where(name), "what a daemon can use", str(error)))
    return wrong


def _of_parts(settings: config.Settings) -> Iterator[ConfigError]:
    for name, part in installed().items():
        if part.settings:
            _, wrong = settings.part.examined(name, part.settings)
            yield from wrong
            # A node without what a setting needs does not use it.
            with contextlib.suppress(ImportError):
                yield from [] if wrong else part.problems(settings)


def _attempts(s: config.Settings) -> Iterator[tuple[str, Callable[[], object]]]:
    """What daemons do with settings when they start. Files that are not on this node are other nodes' business."""
    yield "mdsd.exclude", lambda: _of("tarazu.daemons.mdsd.exclusions", "Exclusions")(s.mdsd.exclude)
    if s.layout.pfl_file and os.path.lexists(s.layout.pfl_file):
        yield "layout.pfl_file", lambda: _of("tarazu.layout.pfl", "read")(Path(s.layout.pfl_file))


def _of(module: str, name: str) -> Callable[..., object]:
    """Raises ImportError on a node that has no such part of tarazu."""
    function: Callable[..., object] = getattr(importlib.import_module(module), name)
    return function


def _settings_in_force(path: str | None) -> config.Settings | None:
    try:
        return config.load(path)
    except TarazuError:
        return None


def _changes(before: config.Settings, after: config.Settings) -> dict[str, list[str]]:
    """What is needed → settings that differ."""
    words = {
        "SIGHUP": "taken over on SIGHUP",
        "step": "read for each job step",
        "start": "after a restart only",
    }
    changes: dict[str, list[str]] = {}
    for section, name in config.changed(before, after, sections()):
        needs = words[config.read_at(section, name, sections())]
        changes.setdefault(needs, []).append(f"{section}.{name}")
    return changes


def _unknown_parts(settings: config.Settings) -> Iterator[str]:
    """One file serves all nodes: another one may have them."""
    for name in settings.part.names():
        if name not in installed():
            yield f"[{config.PART}.{name}]: no part of this name is on this node, passed over"


def _unknown_variables() -> list[str]:
    """In the environment: those that begin as a section's do and are none of its settings."""
    notes = []
    for variable in sorted(name for name in os.environ if name.startswith("TARAZU_")):
        section, _, name = variable.removeprefix("TARAZU_").lower().partition("_")
        known = (
            {f.name for f in dataclasses.fields(config.SECTIONS[section])}
            if section in config.SECTIONS
            else ()
        )
        if name and known and name not in known:
            notes.append(f"${variable}: no setting of [{section}], passed over")
    return notes
